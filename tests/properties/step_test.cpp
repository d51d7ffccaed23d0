// Compares the typing rules with the meaning of each kind of step, and the figures of a Move with a count of devices.
#include <algorithm>
#include <map>

#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/replay.hpp"

namespace reshard::test {
namespace {

bool inside(const Interval& a, const Interval& b) { return b.begin <= a.begin && a.end <= b.end; }

using Held = std::vector<Holding>;

/// True if every device keeps its summand.
bool same_summands(const Held& before, const Held& after) {
    return std::ranges::equal(before, after, {}, &Holding::summand, &Holding::summand);
}

/// True if in dimension i every tile of `a` lies inside the same device's tile of `b`.
bool nested(const Held& a, const Held& b, std::size_t i) {
    for (std::size_t device = 0; device < a.size(); ++device)
        if (!inside(a[device].tile[i], b[device].tile[i])) return false;
    return true;
}

bool all_nested(const Held& a, const Held& b) {
    for (std::size_t i = 0; i < a[0].tile.size(); ++i)
        if (!nested(a, b, i)) return false;
    return true;
}

template <class Key>
bool determines(const Held& a, const Held& b, Key key_a, Key key_b) {
    std::map<std::string, std::string> known;
    for (std::size_t device = 0; device < a.size(); ++device) {
        const auto [entry, fresh] = known.emplace(key_a(a[device]), key_b(b[device]));
        if (!fresh && entry->second != key_b(b[device])) return false;
    }
    return true;
}

std::string tile_key(const Holding& holding) {
    std::string key;
    for (const Interval& side : holding.tile) key += std::to_string(side.begin) + " ";
    return key + "s" + std::to_string(holding.summand);
}
std::string sum_key(const Holding& holding) { return std::to_string(holding.summand); }

/// True if devices that agree in `a` agree in `b`: `a` uses every digit of the device number that `b` uses.
bool refines(const Held& a, const Held& b) { return determines(a, b, tile_key, tile_key); }
bool sums_refine(const Held& a, const Held& b) { return determines(a, b, sum_key, sum_key); }

/// True if a step of `kind` can deliver `after` and reads only where that kind may read. Sizes divide.
///   slice           each device from its own tile
///   all_gather      each device keeps its tile inside the new one; no summand changes
///   all_to_all      in each dimension tiles only grow or only shrink; devices that were replicas stay replicas and no
///                   new replicas arise
///   permute         every wanted tile is some device's whole tile of the same summand, and no tile is dropped
///   all_reduce      tiles stay, and the old summand decides the new one
///   reduce_scatter  tiles shrink, the old summand decides the new one, and replicas stay the same groups
///   zero_fill       tiles grow, and the new summand decides the old summand and the old tile (one keeper)
///   exchange        the same number of summands
bool deliverable(StepKind kind, const Held& before, const Held& after) {
    if (before == after) return false;
    switch (kind) {
        case StepKind::slice:
            return same_summands(before, after) && all_nested(after, before);
        case StepKind::all_gather:
            return same_summands(before, after) && all_nested(before, after);
        case StepKind::all_to_all:
            for (std::size_t i = 0; i < before[0].tile.size(); ++i)
                if (!nested(before, after, i) && !nested(after, before, i)) return false;
            return same_summands(before, after) && refines(before, after) && refines(after, before);
        case StepKind::permute: {
            std::vector<std::string> had, wanted;
            std::ranges::transform(before, std::back_inserter(had), tile_key);
            std::ranges::transform(after, std::back_inserter(wanted), tile_key);
            std::ranges::sort(had);
            std::ranges::sort(wanted);
            return had == wanted && elements(before[0].tile) == elements(after[0].tile);
        }
        case StepKind::all_reduce:
            return all_nested(before, after) && all_nested(after, before) && sums_refine(before, after);
        case StepKind::reduce_scatter:
            return all_nested(after, before) && sums_refine(before, after) && !sums_refine(after, before) &&
                   refines(before, after) && refines(after, before);
        case StepKind::zero_fill:
            return all_nested(before, after) && sums_refine(after, before) && !sums_refine(before, after) &&
                   refines(after, before);
        case StepKind::exchange:
            return summands(before) == summands(after);
        case StepKind::view:
        case StepKind::cast:
            return false;
    }
    return false;
}

void assert_typed_iff_deliverable(const Pair& pair) {
    const Layout before = layout_of(pair.source);
    const Layout after = layout_of(pair.target);
    const Held held = holdings(pair.source);
    const Held wanted = holdings(pair.target);
    for (const StepKind kind : kinds_of_one_shape) {
        const auto move = type_step(before, {kind, after});
        RC_LOG() << repeat_line(pair) << " as " << name(kind) << ": "
                 << (move ? std::string("typed") : move.error().message);
        RC_ASSERT(move.has_value() == deliverable(kind, held, wanted));
        if (!move) RC_ASSERT(move.error().code == Code::step);
    }
}

TEST(StepProperty, TypedExactlyWhenTheKindCanDeliverOnRandomPairs) {
    check_property(cases(1000), [] { assert_typed_iff_deliverable(*pairs({.uneven = false, .devices_max = 64})); });
}

TEST(StepProperty, TypedExactlyWhenTheKindCanDeliverOnPairsMadeForAKind) {
    std::map<StepKind, int> met;
    check_property(cases(1600), [&] {
        const StepKind kind = kinds_of_one_shape[*between<std::size_t>(0, kinds_of_one_shape.size())];
        const Pair pair = *typed_pairs(kind);
        RC_LOG() << "made for " << name(kind);
        RC_ASSERT(type_step(layout_of(pair.source), {kind, layout_of(pair.target)}).has_value());
        assert_typed_iff_deliverable(pair);
        ++met[kind];
    });
    for (const StepKind kind : kinds_of_one_shape) EXPECT_GE(met[kind], cases(1600) / 20) << name(kind);
}

/// The elements that a device receives by the table of steps. T is the largest tile before, g the group size.
Index by_the_table(StepKind kind, const Held& before, const Held& after, Index g) {
    const Index tile = largest_tile(before);
    switch (kind) {
        case StepKind::slice:
        case StepKind::zero_fill:
        case StepKind::view:
        case StepKind::cast:
            return 0;
        case StepKind::all_gather:
            return tile * (g - 1);
        case StepKind::all_to_all:
        case StepKind::reduce_scatter:
            return tile * (g - 1) / g;
        case StepKind::all_reduce:
            return (2 * tile * (g - 1) + g - 1) / g;
        case StepKind::permute:
            return tile;
        case StepKind::exchange:
            return most_foreign(before, after);
    }
    return -1;
}

/// The size of a group, from the tiles alone, for regular kinds: devices that differ only in what the step touches.
Index group_of(StepKind kind, const Held& before, const Held& after) {
    const Index t = largest_tile(before);
    const Index u = largest_tile(after);
    switch (kind) {
        case StepKind::slice:
            return 1;
        case StepKind::all_gather:
            return u / t;
        case StepKind::reduce_scatter:
        case StepKind::all_reduce:
            return summands(before) / summands(after);
        case StepKind::zero_fill:
            return summands(after) / summands(before);
        case StepKind::all_to_all: {
            Index g = 1;  // some dimensions grow by as much as the others shrink
            for (std::size_t i = 0; i < before[0].tile.size(); ++i) {
                const Index was = before[0].tile[i].size();
                const Index is = after[0].tile[i].size();
                if (is > was) g *= is / was;
            }
            return g;
        }
        default:
            return static_cast<Index>(before.size());
    }
}

/// True if every peer of every rank differs from it only in the digits of the group.
bool stays_in_groups(const Layout& before, const Step& step, const Move& move) {
    const AtomList others = complement(move.group, device_count(before));
    for (Index rank = 0; rank < device_count(before); ++rank)
        for (const Transfer& receive : schedule(before, step, rank).receives)
            if (value_of(others, receive.peer) != value_of(others, rank)) return false;
    return true;
}

TEST(StepProperty, FiguresAreThoseOfTheTableAndDataArrives) {
    check_property(cases(1600), [] {
        const StepKind kind = kinds_of_one_shape[*between<std::size_t>(0, kinds_of_one_shape.size())];
        const Pair pair = *typed_pairs(kind);
        const Layout before = layout_of(pair.source);
        const Step step{kind, layout_of(pair.target)};
        const auto move = type_step(before, step);
        RC_LOG() << repeat_line(pair) << " as " << name(kind);
        RC_ASSERT(move.has_value());
        const Held held = holdings(pair.source);
        const Held wanted = holdings(pair.target);
        const Index g = group_of(kind, held, wanted);
        // A permute or an exchange may need fewer than all devices. Then its groups do not talk to each other.
        const bool any = kind == StepKind::permute || kind == StepKind::exchange;
        RC_ASSERT(g % move->group_size == 0);
        RC_ASSERT(any || move->group_size == g);
        RC_ASSERT(move->received == by_the_table(kind, held, wanted, g));
        RC_ASSERT(stays_in_groups(before, step, *move));
        RC_ASSERT(replay_step(before, step, *move) == "");
    });
}

TEST(StepProperty, UnevenStepsThatAreTypedDeliver) {
    std::map<StepKind, int> met;
    check_property(cases(1500), [&] {
        const Pair pair = *pairs({.uneven = true, .devices_max = 48});
        const Layout before = layout_of(pair.source);
        const Layout after = layout_of(pair.target);
        for (const StepKind kind : kinds_of_one_shape) {
            const auto move = type_step(before, {kind, after});
            if (!move) continue;
            RC_LOG() << repeat_line(pair) << " as " << name(kind);
            RC_ASSERT(replay_step(before, {kind, after}, *move) == "");
            ++met[kind];
        }
    });
    for (const StepKind kind : {StepKind::slice, StepKind::all_gather, StepKind::permute, StepKind::exchange})
        EXPECT_GT(met[kind], 0) << name(kind);
}

/// A step made for sizes that divide gets any extents. It may be typed or not, but is never wrong.
TEST(StepProperty, StepsMadeForAKindAndGivenAnyExtentsDeliverWhenTyped) {
    std::map<StepKind, int> met;
    check_property(cases(2000), [&] {
        const StepKind kind = kinds_of_one_shape[*between<std::size_t>(0, kinds_of_one_shape.size())];
        Pair pair = *typed_pairs(kind);
        for (std::size_t i = 0; i < pair.source.dims.size(); ++i)
            pair.source.dims[i].extent = pair.target.dims[i].extent = *between<Index>(0, 14);
        const Layout before = layout_of(pair.source);
        const Step step{kind, layout_of(pair.target)};
        const auto move = type_step(before, step);
        if (!move) return;
        RC_LOG() << repeat_line(pair) << " as " << name(kind);
        RC_ASSERT(replay_step(before, step, *move) == "");
        ++met[kind];
    });
    for (const StepKind kind : kinds_of_one_shape) EXPECT_GE(met[kind], cases(2000) / 100) << name(kind);
}

TEST(StepProperty, ForeignElementsIsTheMostThatADeviceLacks) {
    check_property(cases(3000), [] {
        const Pair pair = *pairs({.devices_max = 144});
        const Held before = holdings(pair.source);
        const Held after = holdings(pair.target);
        RC_LOG() << repeat_line(pair);
        RC_ASSERT(missing_elements(layout_of(pair.source), layout_of(pair.target)) == most_foreign(before, after));
        if (summands(before) == 1 && summands(after) == 1)
            RC_ASSERT(lower_bound(layout_of(pair.source), layout_of(pair.target)) == most_foreign(before, after));
    });
}

}  // namespace
}  // namespace reshard::test
