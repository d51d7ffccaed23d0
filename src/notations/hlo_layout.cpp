// From an HloSharding to a layout, and back.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/notations/iota.hpp"
#include "src/notations/peers.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace notation {

namespace {

using Kind = HloSharding::Kind;
using Subgroup = HloSharding::Subgroup;

tl::unexpected<Error> no_layout(std::string message) { return fail(Code::unsupported, std::move(message)); }

Result<Layout> empty_layout(const NotationContext& setting, Mesh mesh) {
    Layout layout;
    layout.dtype = setting.dtype;
    layout.mesh = std::move(mesh);
    for (const Index extent : setting.shape) layout.dims.emplace_back(extent);
    RESHARD_CHECK(validate(layout));
    return layout;
}

// A list of atoms cut into runs of the given sizes; nullopt where a run ends inside of an atom's digits.
std::optional<std::vector<AtomList>> dealt(std::vector<Atom> atoms, const std::vector<Index>& sizes) {
    std::vector<AtomList> runs;
    std::ranges::reverse(atoms);  // the next one is the last
    for (Index size : sizes) {
        AtomList run;
        while (size > 1) {
            const Atom atom = atoms.back();
            atoms.pop_back();
            if (size % atom.size == 0) {
                if (atom.size > 1) run.push_back(atom);
                size /= atom.size;
            } else if (atom.size % size == 0) {
                const Index rest = atom.size / size;
                run.push_back({size, atom.stride * rest});
                atoms.push_back({rest, atom.stride});
                size = 1;
            } else {
                return std::nullopt;
            }
        }
        runs.push_back(std::move(run));
    }
    return runs;
}

// Axes x, y, ... for the digits of the runs, most major first.
Mesh mesh_of(const std::vector<AtomList>& runs) {
    AtomList all;
    for (const AtomList& run : runs) all.insert(all.end(), run.begin(), run.end());
    std::ranges::sort(all, std::greater{}, &Atom::stride);
    constexpr std::string_view letters = "xyzwuv";
    Mesh mesh;
    for (std::size_t i = 0; i < all.size(); ++i)
        mesh.axes.push_back({i < letters.size() ? std::string(1, letters[i]) : fmt::format("a{}", i), all[i].size});
    return mesh;
}

bool has_names(const Mesh& mesh, const std::vector<AtomList>& runs) {
    return std::ranges::all_of(runs, [&](const AtomList& run) {
        return std::ranges::all_of(canonical(run), [&](Atom atom) { return names_of(mesh, atom).has_value(); });
    });
}

std::vector<Atom> row_major_atoms(const std::vector<Index>& sizes) { return iota_atoms(sizes, {}); }

Result<Layout> tiled(const HloSharding& sharding, const NotationContext& setting) {
    const std::size_t rank = sharding.tiles.size() - sharding.subgroups.size();
    if (rank != setting.shape.size())
        return fail(Code::layout,
                    fmt::format("the sharding has {} dimensions, the array {}", rank, setting.shape.size()));
    Index count = 1;
    for (const Index size : sharding.tiles) count *= size;
    if (setting.mesh && device_count(*setting.mesh) != count)
        return fail(Code::layout,
                    fmt::format("the sharding is over {} devices, there are {}", count, device_count(*setting.mesh)));
    std::optional<std::vector<AtomList>> runs;
    Mesh mesh;
    if (sharding.devices.empty()) {
        runs = dealt(iota_atoms(sharding.reshape, sharding.transpose), sharding.tiles);
        if (runs) mesh = mesh_of(*runs);
    }
    if (!runs) {
        if (count > listed_devices_max) return no_layout("too many devices to list");
        auto devices =
            sharding.devices.empty() ? *iota_devices(sharding.reshape, sharding.transpose, count) : sharding.devices;
        runs = dealt(row_major_atoms(sharding.tiles), sharding.tiles);
        mesh = mesh_of(*runs);
        mesh.devices = DeviceList(std::move(devices));
    }
    // The caller's names where they will do.
    if (setting.mesh && mesh.devices.in_order() && setting.mesh->devices.in_order() && has_names(*setting.mesh, *runs))
        mesh = *setting.mesh;
    RESHARD_TRY(auto& layout, empty_layout(setting, std::move(mesh)));
    for (std::size_t i = 0; i < rank; ++i) layout.dims[i].atoms = canonical((*runs)[i]);
    for (std::size_t i = 0; i < sharding.subgroups.size(); ++i) {
        if (sharding.subgroups[i] == Subgroup::manual && sharding.tiles[rank + i] > 1)
            return no_layout("manual subgroups hold different arrays, not parts of one");
        if (sharding.subgroups[i] != Subgroup::unreduced) continue;
        const AtomList& run = (*runs)[rank + i];
        layout.unreduced.insert(layout.unreduced.end(), run.begin(), run.end());
    }
    layout.unreduced = as_set(layout.unreduced);
    RESHARD_CHECK(validate(layout));
    return std::move(layout);
}

Result<Layout> named(const HloSharding& sharding, const NotationContext& setting) {
    if (!sharding.subgroups.empty()) return no_layout("manual axes hold different arrays, not parts of one");
    if (sharding.dims.size() != setting.shape.size())
        return fail(Code::layout, fmt::format("the sharding has {} dimensions, the array {}", sharding.dims.size(),
                                              setting.shape.size()));
    RESHARD_TRY(auto& layout, empty_layout(setting, *sharding.mesh));
    for (std::size_t i = 0; i < sharding.dims.size(); ++i) layout.dims[i].atoms = sharding.dims[i];
    layout.unreduced = sharding.partial;
    layout.reduction = sharding.reduction;
    RESHARD_CHECK(validate(layout));
    return std::move(layout);
}

}  // namespace

Result<Layout> layout_of(const HloSharding& sharding, const NotationContext& setting) {
    switch (sharding.kind) {
        case Kind::tiled:
            return tiled(sharding, setting);
        case Kind::named:
            return named(sharding, setting);
        case Kind::maximal: {
            if (setting.mesh && !position_of(*setting.mesh, sharding.device))
                return fail(Code::layout, fmt::format("there is no device {}", sharding.device));
            Mesh one;
            one.devices = DeviceList({sharding.device});
            return empty_layout(setting, std::move(one));
        }
        case Kind::replicated:
        case Kind::unreduced: {
            const auto& mesh = sharding.mesh ? sharding.mesh : setting.mesh;
            if (!mesh) return fail(Code::mesh, "it does not say over how many devices: give a mesh");
            auto layout = empty_layout(setting, *mesh);
            if (layout && sharding.kind == Kind::unreduced) layout->unreduced = complement({}, device_count(*mesh));
            return layout;
        }
        case Kind::manual:
            return no_layout("manual: every device holds an array of its own");
        case Kind::unknown:
            return no_layout("unknown says nothing of where elements lie");
        case Kind::tuple:
            break;
    }
    return no_layout("a tuple is several arrays");
}

Result<Layout> parse_hlo_layout(const NotationContext& setting, std::string_view text) {
    RESHARD_TRY(const auto& sharding, parse_hlo(text));
    auto layout = layout_of(sharding, setting);
    if (layout) return layout;
    return tl::unexpected(Error{layout.error().code, layout.error().message, std::string(text), 0});
}

namespace {

// An order of the digits of the device number as XLA prints it: axes of size 1 dropped, neighbours merged.
void write_order(const AtomList& order, HloSharding& sharding) {
    const AtomList merged = canonical(order);
    AtomList axes = merged;
    std::ranges::sort(axes, std::greater{}, &Atom::stride);
    for (const Atom& axis : axes) sharding.reshape.push_back(axis.size);
    if (axes.empty()) sharding.reshape.push_back(1);
    if (axes.size() < 2) return;
    for (const Atom& atom : merged) sharding.transpose.push_back(std::ranges::find(axes, atom) - axes.begin());
}

Result<HloSharding> hlo_of(const Layout& layout) {
    RESHARD_CHECK(require_plain_cuts(layout, "an HloSharding"));
    if (!layout.unreduced.empty() && layout.reduction != Reduction::sum)
        return cannot_say("an HloSharding",
                          fmt::format("a {}: its unreduced devices hold sums", name(layout.reduction)));
    const Index count = device_count(layout);
    HloSharding made;
    if (count == 1) {
        made.kind = Kind::maximal;
        made.device = device_at(layout.mesh, 0);
        return made;
    }
    const bool listed = !layout.mesh.devices.in_order();
    if (listed && world_size(layout.mesh) != count)
        return cannot_say("an HloSharding",
                          fmt::format("a mesh of {} devices with device {} in it", count, world_size(layout.mesh) - 1));
    made.kind = used_atoms(layout).empty() ? Kind::replicated : Kind::tiled;
    if (made.kind == Kind::replicated) return made;
    AtomList order;
    for (const Dim& dim : layout.dims) {
        made.tiles.push_back(shard_count(dim));
        order.insert(order.end(), dim.atoms.begin(), dim.atoms.end());
    }
    const auto add_group = [&](const AtomList& atoms, Subgroup type) {
        if (atoms.empty()) return;
        made.tiles.push_back(combinations(atoms));
        made.subgroups.push_back(type);
        order.insert(order.end(), atoms.begin(), atoms.end());
    };
    const AtomList replicated = complement(used_atoms(layout), count);
    add_group(layout.unreduced, Subgroup::unreduced);
    add_group(replicated, Subgroup::replicated);
    if (!listed) {
        write_order(order, made);
        return made;
    }
    if (count > listed_devices_max) return cannot_say("an HloSharding", "a list of so many devices");
    for (Index position = 0; position < count; ++position)
        made.devices.push_back(device_at(layout.mesh, with_value(order, 0, position)));
    return made;
}

std::string format_named(const HloSharding& sharding) {
    const Mesh& mesh = *sharding.mesh;
    const auto parts = [&](const AtomList& atoms) {
        std::string text = "{";
        for (const Atom& atom : atoms)
            for (const SubAxis& part : names_of(mesh, atom).value_or(std::vector<SubAxis>{})) {
                text += fmt::format("{}'{}'", text.size() > 1 ? ", " : "", part.axis);
                if (part.size != 0) text += fmt::format(":({}){}", part.before, part.size);
            }
        return text + "}";
    };
    std::string text = "{mesh[";
    for (std::size_t i = 0; i < mesh.axes.size(); ++i)
        text += fmt::format("{}'{}'={}", i > 0 ? "," : "", mesh.axes[i].name, mesh.axes[i].size);
    text += "]";
    if (!mesh.devices.in_order()) text += fmt::format(", device_ids=({})", fmt::join(mesh.devices.devices(), ","));
    text += ", [";
    for (std::size_t i = 0; i < sharding.dims.size(); ++i)
        text += fmt::format("{}{}", i > 0 ? ", " : "", parts(sharding.dims[i]));
    text += "]";
    if (!sharding.partial.empty())
        text += fmt::format(", unreduced={}{}", sharding.reduction == Reduction::sum ? "" : name(sharding.reduction),
                            parts(sharding.partial));
    return text + "}";
}

}  // namespace

Result<std::string> format_hlo(const Layout& layout) {
    RESHARD_TRY(const auto& sharding, hlo_of(layout));
    return format(sharding);
}

}  // namespace notation

std::string format(const HloSharding& sharding) {
    using Kind = HloSharding::Kind;
    constexpr std::array<std::string_view, 5> words = {"{replicated}", "", "{manual}", "{unknown}", "{unreduced}"};
    constexpr std::array<std::string_view, 3> types = {"manual", "replicated", "unreduced"};
    if (sharding.kind == Kind::maximal) return fmt::format("{{maximal device={}}}", sharding.device);
    if (sharding.kind == Kind::tuple) {
        std::vector<std::string> texts;
        for (const HloSharding& element : sharding.elements) texts.push_back(format(element));
        return fmt::format("{{{}}}", fmt::join(texts, ", "));
    }
    if (sharding.kind == Kind::named) return notation::format_named(sharding);
    if (sharding.kind != Kind::tiled) return std::string(words[static_cast<std::size_t>(sharding.kind)]);
    std::string text = fmt::format("{{devices=[{}]", fmt::join(sharding.tiles, ","));
    if (!sharding.devices.empty())
        text += fmt::format("{}", fmt::join(sharding.devices, ","));
    else
        text += fmt::format("<=[{}]", fmt::join(sharding.reshape, ","));
    if (!sharding.transpose.empty()) text += fmt::format("T({})", fmt::join(sharding.transpose, ","));
    std::vector<std::string_view> groups;
    for (const auto group : sharding.subgroups) groups.push_back(types[static_cast<std::size_t>(group)]);
    if (groups.size() == 1 && groups[0] == "replicated")
        text += " last_tile_dim_replicate";
    else if (!groups.empty())
        text += fmt::format(" last_tile_dims={{{}}}", fmt::join(groups, ", "));
    return text + "}";
}

}  // namespace reshard
