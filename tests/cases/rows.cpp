#include "cases/rows.hpp"

#include <algorithm>

#include "reshard/notations/hlo.hpp"
#include "reshard/notations/notation.hpp"

namespace reshard::test {

namespace {

/// S(0), R, P as PyTorch writes them; nullopt for strided and other placements.
std::optional<Placement> placement_of(const std::string& text) {
    if (text == "R") return Replicate();
    if (text == "P") return Partial();
    if (text.size() == 4 && text.starts_with("S(") && text[3] == ')')
        return Shard(static_cast<std::size_t>(text[2] - '0'));
    return std::nullopt;
}

std::optional<Layout> layout_of(const Json& placements, const Mesh& mesh, const std::vector<Index>& extents) {
    std::vector<Placement> list;
    for (const Json& entry : placements.list) {
        const auto placement = placement_of(entry.text);
        if (!placement) return std::nullopt;
        list.push_back(*placement);
    }
    const auto made = from_placements(mesh, DType::f32, extents, list);
    return made ? std::optional(*made) : std::nullopt;
}

// Tilings of all devices in a transposed order, read by the library. Other tests cover the reader itself
// (notation_test, the properties of notations).
std::optional<Layout> layout_of_hlo(const std::string& text, DType dtype, const std::vector<Index>& shape,
                                    Index devices) {
    const auto sharding = parse_hlo(text);
    if (!sharding || !sharding->devices.empty()) return std::nullopt;
    const auto replicates = [](HloSharding::Subgroup group) { return group == HloSharding::Subgroup::replicated; };
    const bool tiled = sharding->kind == HloSharding::Kind::tiled;
    if (tiled ? !std::ranges::all_of(sharding->subgroups, replicates) : sharding->kind != HloSharding::Kind::replicated)
        return std::nullopt;
    const auto layout = parse_layout(Notation::hlo, {Mesh{{"d", devices}}, dtype, shape}, text);
    return layout && layout->mesh.devices.in_order() ? std::optional(*layout) : std::nullopt;
}

}  // namespace

std::optional<Problem> problem_of_dtensor(const Json& row) {
    if (row.has("source_order") || row.has("target_order") || row["mesh"].kind != Json::Kind::list) return std::nullopt;
    Mesh mesh;
    std::vector<Index> extents;
    for (const Json& size : row["mesh"].list)
        mesh.axes.push_back({"d" + std::to_string(mesh.axes.size()), static_cast<Index>(size.number)});
    for (const Json& extent : row["shape"].list) extents.push_back(static_cast<Index>(extent.number));
    const auto source = layout_of(row["source"], mesh, extents);
    const auto target = layout_of(row["target"], mesh, extents);
    if (!source || !target) return std::nullopt;
    return Problem{*source, *target};
}

std::optional<Problem> problem_of_xla(const Json& row) {
    std::string word = row["dtype"].text;
    if (word.starts_with("s")) word[0] = 'i';
    const auto dtype = parse_dtype(word);
    if (!dtype) return std::nullopt;
    std::vector<Index> shape;
    for (const Json& extent : row["shape"].list) shape.push_back(static_cast<Index>(extent.number));
    const auto devices = static_cast<Index>(row["devices"].number);
    auto source = layout_of_hlo(row["source"].text, *dtype, shape, devices);
    auto target = layout_of_hlo(row["target"].text, *dtype, shape, devices);
    if (!source || !target) return std::nullopt;
    share_mesh(*source, *target);
    return Problem{*source, *target};
}

}  // namespace reshard::test
