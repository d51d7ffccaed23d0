// The meaning of steps, written for the reader and not for speed: each element of each tile is looked up on its own.
#include "reshard/simulate.hpp"

#include <map>

#include <fmt/format.h>

namespace reshard {

namespace {

using Coordinates = std::vector<Index>;

// Calls visit(coordinates, position) for each element of a box in row-major order.
template <class Visit>
void for_each_element(const Box& box, const Visit& visit) {
    Coordinates at;
    for (const Interval& side : box) at.push_back(side.begin);
    const Index elements = count(box);
    for (Index position = 0; position < elements; ++position) {
        visit(at, position);
        for (std::size_t i = box.size(); i-- > 0;) {
            if (++at[i] < box[i].end) break;
            at[i] = box[i].begin;
        }
    }
}

// The position of an element in a row-major box, or nullopt when it is not in there.
std::optional<Index> position_in(const Box& box, const Coordinates& at) {
    Index position = 0;
    for (std::size_t i = 0; i < box.size(); ++i) {
        if (at[i] < box[i].begin || at[i] >= box[i].end) return std::nullopt;
        position = position * box[i].size() + (at[i] - box[i].begin);
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

// Summand s > 0 is noise; summand 0 makes up for it.
std::int64_t summand_value(std::int64_t value, Index position, Index summand, Index summands) {
    const auto noise = [&](Index s) {
        return mix(static_cast<std::uint64_t>(position) * 1000003u + static_cast<std::uint64_t>(s));
    };
    if (summand > 0) return static_cast<std::int64_t>(noise(summand));
    auto rest = static_cast<std::uint64_t>(value);
    for (Index s = 1; s < summands; ++s) rest -= noise(s);
    return static_cast<std::int64_t>(rest);
}

// Which tile of which summand: what replicas share.
std::pair<std::vector<Index>, Index> key_of(const Layout& layout, Index device) {
    std::vector<Index> shards;
    for (const Dim& dim : layout.dims) shards.push_back(value_of(dim.atoms, device));
    return {shards, summand(layout, device)};
}

Result<void> fits(const Layout& layout, std::size_t elements) {
    Index expected = 1;
    for (const Dim& dim : layout.dims) expected *= dim.extent;
    if (static_cast<std::size_t>(expected) != elements)
        return fail(Code::mismatch, fmt::format("the array has {} elements, the layout {}", elements, expected));
    const auto total = checked_multiply(tile_elements(layout), device_count(layout));
    if (!total || *total > index_max / 8) return fail(Code::overflow, "the tiles of all devices do not fit memory");
    return {};
}

// The devices that a step of this kind may read for `device`, in the order in which summands are added.
std::vector<Index> readable(const Layout& before, const Step& step, const Move& move, Index device) {
    switch (step.kind) {
        case StepKind::slice:
        case StepKind::zero_fill:
            return {device};
        case StepKind::all_gather:
        case StepKind::all_to_all:
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
            return group_of(move.group, device);
        case StepKind::permute:
            // One device that holds the whole tile.
            for (Index peer = 0; peer < device_count(before); ++peer)
                if (tile(before, peer) == tile(step.layout, device) &&
                    summand(before, peer) == summand(step.layout, device))
                    return {peer};
            return {};
        case StepKind::exchange:
            break;
    }
    std::vector<Index> holders;  // one of each tile is enough
    std::map<std::vector<Index>, Index> seen;
    for (Index peer = 0; peer < device_count(before); ++peer)
        if (summand(before, peer) == summand(step.layout, device) &&
            seen.emplace(key_of(before, peer).first, peer).second)
            holders.push_back(peer);
    return holders;
}

}  // namespace

Result<Tiles> distribute(const Layout& layout, std::span<const std::int64_t> array) {
    if (auto valid = validate(layout); !valid) return tl::unexpected(valid.error());
    if (auto size = fits(layout, array.size()); !size) return tl::unexpected(size.error());
    Tiles tiles(static_cast<std::size_t>(device_count(layout)));
    for (Index device = 0; device < device_count(layout); ++device) {
        const Box box = tile(layout, device);
        auto& values = tiles[static_cast<std::size_t>(device)];
        values.reserve(static_cast<std::size_t>(count(box)));
        for_each_element(box, [&](const Coordinates& at, Index) {
            const Index position = global_position(layout, at);
            values.push_back(summand_value(array[static_cast<std::size_t>(position)], position, summand(layout, device),
                                           summand_count(layout)));
        });
    }
    return tiles;
}

Result<Tiles> simulate(const Layout& before, const Step& step, const Tiles& tiles) {
    const auto move = type_step(before, step);
    if (!move) return tl::unexpected(move.error());
    const Layout& after = step.layout;
    const bool adds = step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce;
    const bool fills = step.kind == StepKind::zero_fill;
    const AtomList spread = fills ? spread_atoms(before, after) : AtomList{};
    Tiles result(tiles.size());
    bool complete = tiles.size() == static_cast<std::size_t>(device_count(before));
    for (Index device = 0; complete && device < device_count(after); ++device) {
        const std::vector<Index> peers = readable(before, step, *move, device);
        const bool keeps = value_of(spread, device) == 0;
        std::vector<Box> boxes;
        for (const Index peer : peers) boxes.push_back(tile(before, peer));
        auto& values = result[static_cast<std::size_t>(device)];
        for_each_element(tile(after, device), [&](const Coordinates& at, Index) {
            std::uint64_t value = 0;
            bool found = false;
            for (std::size_t i = 0; i < peers.size() && (adds || !found); ++i) {
                const auto position = position_in(boxes[i], at);
                if (!position) continue;
                found = true;
                const auto& held = tiles[static_cast<std::size_t>(peers[i])];
                if (keeps) value += static_cast<std::uint64_t>(held[static_cast<std::size_t>(*position)]);
            }
            complete = complete && (found || fills);
            values.push_back(static_cast<std::int64_t>(value));
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
    if (!fits(layout, array.size()) || tiles.size() != static_cast<std::size_t>(device_count(layout))) return false;
    std::map<std::pair<std::vector<Index>, Index>, Index> first;  // the first replica of each tile of each summand
    std::vector<std::uint64_t> sums(array.size(), 0);
    for (Index device = 0; device < device_count(layout); ++device) {
        const auto& values = tiles[static_cast<std::size_t>(device)];
        const Box box = tile(layout, device);
        if (values.size() != static_cast<std::size_t>(count(box))) return false;
        const auto [replica, fresh] = first.emplace(key_of(layout, device), device);
        if (!fresh) {
            if (values != tiles[static_cast<std::size_t>(replica->second)]) return false;
            continue;
        }
        for_each_element(box, [&](const Coordinates& at, Index position) {
            sums[static_cast<std::size_t>(global_position(layout, at))] +=
                static_cast<std::uint64_t>(values[static_cast<std::size_t>(position)]);
        });
    }
    for (std::size_t i = 0; i < array.size(); ++i)
        if (static_cast<std::int64_t>(sums[i]) != array[i]) return false;
    return true;
}

}  // namespace reshard
