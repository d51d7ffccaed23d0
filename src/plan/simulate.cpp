// The meaning of steps, written for the reader and not for speed: each element of each tile is looked up on its own.
#include "reshard/planner/simulate.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

using Coordinates = std::vector<Index>;

// Calls visit(coordinates, position) for each element of a tile in row-major order.
template <class Visit>
void for_each_element(const Tile& tile, const Visit& visit) {
    const Index elements = count(tile);
    Coordinates at(tile.size());
    for (Index position = 0; position < elements; ++position) {
        Index rest = position;
        for (std::size_t i = tile.size(); i-- > 0;) {
            const Index indices = tile[i].size();
            at[i] = tile[i].at(rest % indices);
            rest /= indices;
        }
        visit(at, position);
    }
}

// The position of an element in a row-major tile, or nullopt when it is not in there.
std::optional<Index> position_in(const Tile& tile, const Coordinates& at) {
    if (count(tile) == 0) return std::nullopt;
    Index position = 0;
    for (std::size_t i = 0; i < tile.size(); ++i) {
        Index before = 0;
        std::optional<Index> own;
        for (const Interval& interval : tile[i].intervals) {
            if (interval.begin <= at[i] && at[i] < interval.end) own = before + at[i] - interval.begin;
            before += interval.size();
        }
        if (!own) return std::nullopt;
        position = position * before + *own;
    }
    return position;
}

Index global_position(const Layout& layout, const Coordinates& at) {
    Index position = 0;
    for (std::size_t i = 0; i < at.size(); ++i) position = position * layout.dims[i].extent + at[i];
    return position;
}

std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

std::int64_t combined(Combine combine, std::int64_t a, std::int64_t b) {
    const auto ua = static_cast<std::uint64_t>(a);
    const auto ub = static_cast<std::uint64_t>(b);
    switch (combine) {
        case Combine::sum:
            return static_cast<std::int64_t>(ua + ub);
        case Combine::prod:
            return static_cast<std::int64_t>(ua * ub);
        case Combine::max:
            return std::max(a, b);
        case Combine::min:
            return std::min(a, b);
        case Combine::copy:
            break;
    }
    return b;
}

std::int64_t identity(Combine combine) {
    if (combine == Combine::max) return std::numeric_limits<std::int64_t>::min();
    if (combine == Combine::min) return std::numeric_limits<std::int64_t>::max();
    return combine == Combine::prod ? 1 : 0;
}

// 1 / x modulo 2^64, by Newton's steps. Each step doubles the correct bits, and an odd x starts with three.
std::uint64_t inverse(std::uint64_t odd) {
    std::uint64_t x = odd;
    for (int step = 0; step < 5; ++step) x *= 2 - odd * x;
    return x;
}

// Summands that combine to `value`: noise, and one summand that compensates for it. For a max or a min it is the value
// itself, and all others lie on its other side. The factors of a product are odd, so that they have inverses.
std::int64_t summand_value(Combine combine, std::int64_t value, Index position, Index summand, Index summands) {
    const auto noise = [&](Index s) {
        return mix(static_cast<std::uint64_t>(position) * 1000003u + static_cast<std::uint64_t>(s));
    };
    const bool makes_up = summand == static_cast<Index>(noise(0) % static_cast<std::uint64_t>(summands));
    if (combine == Combine::max || combine == Combine::min) {
        const std::int64_t bound = identity(combine);
        const auto room = static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(bound);
        const std::uint64_t away = std::min(noise(summand + 1) >> 40, combine == Combine::max ? room : 0 - room);
        if (makes_up) return value;
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) -
                                         (combine == Combine::max ? away : 0 - away));
    }
    const auto other = [&](Index s) { return combine == Combine::prod ? noise(s + 1) | 1U : noise(s + 1); };
    if (!makes_up) return static_cast<std::int64_t>(other(summand));
    auto rest = static_cast<std::uint64_t>(value);
    for (Index s = 0; s < summands; ++s) {
        if (s == summand) continue;
        rest = combine == Combine::prod ? rest * inverse(other(s)) : rest - other(s);
    }
    return static_cast<std::int64_t>(rest);
}

// The tile and the summand that a device holds; replicas share both. pre: the device is in the mesh.
std::pair<std::vector<Index>, Index> key_of(const Layout& layout, Index device) {
    std::vector<Index> shards;
    for (const Dim& dim : layout.dims) shards.push_back(value_of(dim.atoms, *position_of(layout.mesh, device)));
    return {shards, summand(layout, device)};
}

Result<void> fits(const Layout& layout, std::size_t elements) {
    Index expected = 1;
    for (const Dim& dim : layout.dims) expected *= dim.extent;
    if (static_cast<std::size_t>(expected) != elements)
        return fail(Code::mismatch, fmt::format("the array has {} elements, the layout {}", elements, expected));
    const auto total = checked_multiply(tile_elements(layout), device_count(layout));
    if (!total || *total > index_max / 8 || world_size(layout.mesh) > index_max / 64)
        return fail(Code::overflow, "the tiles of all devices do not fit memory");
    return {};
}

// The devices that a step of this kind may read for `device`, in the order of adding summands.
std::vector<Index> readable(const Layout& before, const Step& step, const Move& move, Index device) {
    switch (step.kind) {
        case StepKind::slice:
        case StepKind::zero_fill:
        case StepKind::view:
        case StepKind::cast:
            return {device};
        case StepKind::all_gather:
        case StepKind::all_to_all:
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
            return group_of(before, move.group, device);
        case StepKind::permute:
            // One device that holds the whole tile.
            for (Index peer = 0; peer < world_size(before.mesh); ++peer)
                if (position_of(before.mesh, peer) && tile(before, peer) == tile(step.layout, device) &&
                    summand(before, peer) == summand(step.layout, device))
                    return {peer};
            return {};
        case StepKind::exchange:
            break;
    }
    std::vector<Index> holders;  // one of each tile is enough
    std::map<std::vector<Index>, Index> seen;
    for (Index peer = 0; peer < world_size(before.mesh); ++peer)
        if (position_of(before.mesh, peer) && summand(before, peer) == summand(step.layout, device) &&
            seen.emplace(key_of(before, peer).first, peer).second)
            holders.push_back(peer);
    return holders;
}

}  // namespace

Result<Tiles> distribute(const Layout& layout, std::span<const std::int64_t> array) {
    RESHARD_CHECK(validate(layout));
    RESHARD_CHECK(fits(layout, array.size()));
    Tiles tiles(static_cast<std::size_t>(world_size(layout.mesh)));
    for (Index device = 0; device < world_size(layout.mesh); ++device) {
        const Tile held = tile(layout, device);
        auto& values = tiles[static_cast<std::size_t>(device)];
        values.reserve(static_cast<std::size_t>(count(held)));
        for_each_element(held, [&](const Coordinates& at, Index) {
            const Index position = global_position(layout, at);
            values.push_back(summand_value(combine_of(layout.reduction), array[static_cast<std::size_t>(position)],
                                           position, summand(layout, device), summand_count(layout)));
        });
    }
    return tiles;
}

Result<Tiles> simulate(const Layout& before, const Step& step, const Tiles& tiles) {
    RESHARD_TRY(const auto& move, type_step(before, step));
    const Layout& after = step.layout;
    const bool adds = reduces(step.kind);
    const bool fills = reshard::fills(step.kind);
    const Combine combine = combine_of(fills ? after.reduction : before.reduction);
    const AtomList spread = fills ? spread_atoms(before, after) : AtomList{};
    bool complete = tiles.size() >= static_cast<std::size_t>(world_size(before.mesh));
    for (std::size_t device = 0; complete && device < tiles.size(); ++device)
        complete = tiles[device].size() == static_cast<std::size_t>(count(tile(before, static_cast<Index>(device))));
    if (!complete) return fail(Code::mismatch, "the tiles are not those of the layout before the step");
    // Values are whole numbers here, which every type holds, so a cast keeps them.
    if (step.kind == StepKind::view || step.kind == StepKind::cast) return tiles;
    Tiles result(std::max(tiles.size(), static_cast<std::size_t>(world_size(after.mesh))));
    for (Index device = 0; complete && device < world_size(after.mesh); ++device) {
        const auto position = position_of(after.mesh, device);
        if (!position) continue;
        const std::vector<Index> peers = readable(before, step, move, device);
        const bool keeps = value_of(spread, *position) == 0;
        std::vector<Tile> held_tiles;
        for (const Index peer : peers) held_tiles.push_back(tile(before, peer));
        auto& values = result[static_cast<std::size_t>(device)];
        for_each_element(tile(after, device), [&](const Coordinates& at, Index) {
            std::int64_t value = identity(combine);
            bool found = false;
            for (std::size_t i = 0; i < peers.size() && (adds || !found); ++i) {
                const auto place = position_in(held_tiles[i], at);
                if (!place) continue;
                found = true;
                const auto& held = tiles[static_cast<std::size_t>(peers[i])];
                if (keeps) value = combined(combine, value, held[static_cast<std::size_t>(*place)]);
            }
            complete = complete && (found || fills);
            values.push_back(value);
        });
    }
    if (!complete) return fail(Code::step, fmt::format("a {} finds no holder for an element", name(step.kind)));
    return result;
}

Result<Tiles> simulate(const Plan& plan, Tiles tiles) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        auto next = simulate(layout_before(plan, i), plan.steps[i], tiles);
        if (!next) return next;
        tiles = std::move(*next);
    }
    return tiles;
}

bool denotes(const Layout& layout, const Tiles& tiles, std::span<const std::int64_t> array) {
    if (!fits(layout, array.size()) || tiles.size() < static_cast<std::size_t>(world_size(layout.mesh))) return false;
    std::map<std::pair<std::vector<Index>, Index>, Index> first;  // the first replica of each tile of each summand
    const Combine combine = combine_of(layout.reduction);
    std::vector<std::int64_t> totals(array.size(), identity(combine));
    for (std::size_t number = 0; number < tiles.size(); ++number) {
        const auto device = static_cast<Index>(number);
        const auto& values = tiles[number];
        const Tile held = tile(layout, device);
        if (values.size() != static_cast<std::size_t>(count(held))) return false;
        if (!position_of(layout.mesh, device)) continue;
        const auto [replica, fresh] = first.emplace(key_of(layout, device), device);
        if (!fresh) {
            if (values != tiles[static_cast<std::size_t>(replica->second)]) return false;
            continue;
        }
        for_each_element(held, [&](const Coordinates& at, Index position) {
            std::int64_t& total = totals[static_cast<std::size_t>(global_position(layout, at))];
            total = combined(combine, total, values[static_cast<std::size_t>(position)]);
        });
    }
    return std::ranges::equal(totals, array);
}

}  // namespace reshard
