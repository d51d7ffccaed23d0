// Writes DTensor's placements. src/notations/dtensor.cpp has the grammar at its head.
#include <algorithm>
#include <functional>
#include <ranges>
#include <set>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/layout/flattened.hpp"
#include "src/notations/peers.hpp"
#include "src/notations/ragged.hpp"

namespace reshard::notation {

namespace {

// The axes of a list as numbers in the mesh; unsupported where it is not whole axes.
Result<std::vector<std::size_t>> whole_axes(const Layout& layout, const AtomList& atoms) {
    RESHARD_TRY(const auto& names, names_in(layout, atoms, "DTensor"));
    std::vector<std::size_t> axes;
    for (const SubAxis& part : names) {
        if (part.size != 0)
            return cannot_say("DTensor",
                              fmt::format("a part of an axis, {}:({}){}", part.axis, part.before, part.size));
        for (std::size_t i = 0; i < layout.mesh.axes.size(); ++i)
            if (layout.mesh.axes[i].name == part.axis) axes.push_back(i);
    }
    return axes;
}

// Marks the partial axes that are averaged if their sum is divided by `by`, the last ones that fit. nullopt if no axes
// multiply to `by`.
std::optional<std::vector<bool>> averaged_axes(const Mesh& mesh, const std::vector<std::size_t>& axes, Index by) {
    std::vector<bool> averaged(axes.size(), false);
    std::set<std::pair<std::size_t, Index>> tried;  // in vain: axes from here down, and what they were to multiply to
    const std::function<bool(std::size_t, Index)> choose = [&](std::size_t end, Index rest) {
        if (rest == 1) return true;
        if (end == 0 || !tried.emplace(end, rest).second) return false;
        const Index size = mesh.axes[axes[end - 1]].size;
        averaged[end - 1] = rest % size == 0 && choose(end - 1, rest / size);
        return averaged[end - 1] || choose(end - 1, rest);
    };
    if (!choose(axes.size(), by)) return std::nullopt;
    return averaged;
}

// A RaggedShard whose axes stand behind the axes that cut the flattened dimensions.
struct FlattenedEnd {
    Layout layout;         // with the dimensions apart, and without the axis that deals out their tiles
    std::size_t axis = 0;  // that deals them out
    std::size_t dims = 0;  // leading dimensions that are flattened
    std::vector<Index> units;
};

Result<std::optional<FlattenedEnd>> flattened_end(const Layout& layout) {
    auto found = layout.dims.empty() ? std::nullopt : unflattened(layout.dims[0]);
    if (!found) return std::nullopt;
    RESHARD_TRY(const auto& axes, whole_axes(layout, found->axes));
    if (axes.size() != 1) return cannot_say("DTensor", "tiles that several axes flatten");
    FlattenedEnd end{layout, axes[0], found->dims.size(), std::move(found->units)};
    end.layout.dims.erase(end.layout.dims.begin());
    end.layout.dims.insert(end.layout.dims.begin(), found->dims.begin(), found->dims.end());
    return end;
}

}  // namespace

Result<std::string> format_placements(const Layout& given) {
    RESHARD_TRY(const auto& flat, flattened_end(given));
    const Layout& layout = flat ? flat->layout : given;
    std::vector<std::string> words(layout.mesh.axes.size(), "Replicate()");
    std::string shapes;
    std::size_t first = words.size();  // that is not replicated
    for (const Dim& dim : layout.dims) {
        RESHARD_TRY(const auto& axes, whole_axes(layout, dim.atoms));
        for (const std::size_t axis : axes) first = std::min(first, axis);
    }
    RESHARD_TRY(const auto& partial, whole_axes(layout, layout.unreduced));
    for (const std::size_t axis : partial) first = std::min(first, axis);
    for (std::size_t d = 0; d < layout.dims.size(); ++d) {
        RESHARD_TRY(const auto& axes, whole_axes(layout, layout.dims[d].atoms));
        const Dim& dim = layout.dims[d];
        if (auto shares = axes.size() == 1 && !by_ceil_div(dim) ? shares_in_order(dim) : std::nullopt) {
            words[axes[0]] = word_of_shares(layout, d, axes[0], *std::move(shares), axes[0] == first, shapes);
            continue;
        }
        for (std::size_t i = 0; i < axes.size(); ++i) {
            // Axes that are more major in the dimension and later in the mesh have cut before it, by then.
            Index split = 1;
            for (std::size_t j = 0; j < i; ++j)
                if (axes[j] > axes[i]) split *= layout.mesh.axes[axes[j]].size;
            words[axes[i]] =
                split == 1 ? fmt::format("Shard(dim={})", d) : fmt::format("_StridedShard(dim={}, sf={})", d, split);
        }
    }
    const std::string_view kind = layout.reduction == Reduction::prod ? "product" : name(layout.reduction);
    const auto averaged = averaged_axes(layout.mesh, partial, divisor(layout));
    if (!averaged) return cannot_say("DTensor", fmt::format("a sum over {}: no axes have so many", divisor(layout)));
    for (std::size_t i = 0; i < partial.size(); ++i)
        words[partial[i]] =
            fmt::format("Partial({})", layout.reduction == Reduction::avg && !(*averaged)[i] ? "sum" : kind);
    if (flat)
        words[flat->axis] =
            fmt::format("RaggedShard(dims=({}), local_units=({}))",
                        fmt::join(std::views::iota(std::size_t{0}, flat->dims), ", "), fmt::join(flat->units, ", "));
    std::string text = "(";
    for (const std::string& word : words) text += (text.size() > 1 ? ", " : "") + word;
    text += words.size() == 1 ? ",)" : ")";
    if (!shapes.empty()) text += fmt::format(", sharding_shapes={{{}}}", shapes);
    // Other cuts than torch.chunk's, axis by axis, have no words; reading the text back tells.
    const auto back = parse_placements({layout.mesh, layout.dtype, shape(layout)}, text);
    if (!back || !equivalent(*back, given))
        return cannot_say("DTensor", "where a dimension is cut: torch.chunk, axis by axis, cuts elsewhere");
    // A Spec says the shape of the array whose dimensions are flattened.
    return flat ? fmt::format("Spec({} on ({}))", text, fmt::join(shape(layout), ", ")) : text;
}

}  // namespace reshard::notation
