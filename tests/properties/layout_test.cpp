// A layout means what its names say. Compares tiles, summands and the arithmetic of digits with counting by
// coordinates.
#include <algorithm>
#include <set>

#include "support/generators.hpp"
#include "support/movement.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

TEST(LayoutProperty, EveryDeviceHoldsTheTileThatItsCoordinatesName) {
    check_property(cases(1500), [] {
        const Spec spec = *layouts();
        const Layout layout = layout_of(spec);
        RC_ASSERT(validate(layout).has_value());
        const auto held = holdings(spec);
        RC_ASSERT(static_cast<Index>(held.size()) == device_count(layout));
        for (std::size_t device = 0; device < held.size(); ++device) {
            RC_ASSERT(tile(layout, static_cast<Index>(device)) == as_tile(held[device].tile));
            RC_ASSERT(tile_shape(layout, static_cast<Index>(device)) == extents(as_tile(held[device].tile)));
            RC_ASSERT(summand(layout, static_cast<Index>(device)) == held[device].summand);
        }
        RC_ASSERT(tile_elements(layout) == largest_tile(held));
        RC_ASSERT(tile_bytes(layout) == largest_tile(held) * 4);
        RC_ASSERT(divides(layout) == divides(spec));
        RC_ASSERT(holdings(layout) == held);
    });
}

TEST(LayoutProperty, TilesOfEachSummandCoverTheArrayOnce) {
    check_property(cases(500), [] {
        const Spec spec = *layouts({.devices_max = 64});
        const Layout layout = layout_of(spec);
        std::set<std::pair<Index, std::vector<Index>>> seen;  // (summand, origin) of the tiles with elements
        Index covered = 0;
        for (Index device = 0; device < device_count(layout); ++device) {
            const Box box = as_box(tile(layout, device));
            std::vector<Index> origin;
            for (const Interval& side : box) origin.push_back(side.begin);
            if (count(box) > 0 && seen.insert({summand(layout, device), origin}).second) covered += count(box);
        }
        Index all = summand_count(layout);
        for (const Index extent : shape(layout)) all *= extent;
        RC_ASSERT(covered == all);
    });
}

TEST(LayoutProperty, UsedAtomsAndTheirComplementAreAllDigits) {
    check_property(cases(500), [] {
        const Layout layout = layout_of(*layouts());
        const AtomList used = used_atoms(layout);
        const AtomList rest = complement(used, device_count(layout));
        RC_ASSERT(combinations(used) * combinations(rest) == device_count(layout));
        std::set<std::pair<Index, Index>> seen;
        for (Index device = 0; device < device_count(layout); ++device)
            seen.insert({value_of(used, device), value_of(rest, device)});
        RC_ASSERT(static_cast<Index>(seen.size()) == device_count(layout));
    });
}

TEST(LayoutProperty, EqualCanonicalListsAreTheSameFunctionOfTheDevice) {
    check_property(cases(500), [] {
        const Pair pair = *pairs({.devices_max = 48});
        const Layout a = layout_of(pair.source);
        const Layout b = layout_of(pair.target);
        for (std::size_t i = 0; i < a.dims.size(); ++i) {
            bool same = combinations(a.dims[i].atoms) == combinations(b.dims[i].atoms);
            for (Index device = 0; same && device < device_count(a); ++device)
                same = value_of(a.dims[i].atoms, device) == value_of(b.dims[i].atoms, device);
            RC_ASSERT(same == (a.dims[i].atoms == b.dims[i].atoms));
        }
    });
}

TEST(LayoutProperty, WhatIsLeftAfterAPrefixCompletesIt) {
    check_property(cases(500), [] {
        const Pair pair = *typed_pairs(StepKind::slice);
        const Layout before = layout_of(pair.source);
        const Layout after = layout_of(pair.target);
        for (std::size_t i = 0; i < before.dims.size(); ++i) {
            const auto rest = after_prefix(after.dims[i].atoms, before.dims[i].atoms);
            RC_ASSERT(rest.has_value());
            AtomList joined = before.dims[i].atoms;
            joined.insert(joined.end(), rest->begin(), rest->end());
            RC_ASSERT(canonical(joined) == after.dims[i].atoms);
        }
    });
}

TEST(LayoutProperty, PlacementsMeanTheSameAsNames) {
    check_property(cases(500), [] {
        const Mesh mesh(*meshes(48));
        const auto rank = *between<std::size_t>(1, 4);
        std::vector<Placement> placements;
        Spec spec;
        spec.mesh = mesh.axes;
        spec.dims.resize(rank);
        for (const Axis& axis : mesh.axes) {
            const auto role = *between<std::size_t>(0, rank + 2);
            placements.push_back(role < rank ? Shard(role) : role == rank ? Partial() : Replicate());
            if (role < rank) spec.dims[role].axes.push_back({axis.name, 1, axis.size});
            if (role == rank) spec.unreduced.push_back({axis.name, 1, axis.size});
        }
        std::vector<Index> extents;
        for (SpecDim& dim : spec.dims) extents.push_back(dim.extent = 2 * shards(dim));
        const auto made = from_placements(mesh, DType::f32, extents, placements);
        RC_ASSERT(made.has_value());
        RC_ASSERT(*made == layout_of(spec));
    });
}

/// torch.chunk cuts pieces of ceil(size / n) along one axis of n devices. Here it cuts axis by axis, in mesh order.
Interval chunked(const std::vector<Index>& sizes, const std::vector<Index>& coordinates, Index extent) {
    Interval piece{0, extent};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Index step = (piece.size() + sizes[i] - 1) / sizes[i];
        const Index begin = std::min(piece.end, piece.begin + coordinates[i] * step);
        piece = {begin, std::min(piece.end, begin + step)};
    }
    return piece;
}

TEST(LayoutProperty, PlacementsOfUnevenSizesAreTorchChunks) {
    int in_pieces = 0;
    check_property(cases(500), [&] {
        const std::vector<Index> sizes = {*between<Index>(2, 4), *between<Index>(1, 4), *between<Index>(2, 3)};
        const auto extent = *between<Index>(0, 40);
        const Mesh mesh{{"a", sizes[0]}, {"b", sizes[1]}, {"c", sizes[2]}};
        const auto made = from_placements(mesh, DType::f32, {extent}, {Shard(0), Shard(0), Shard(0)});
        RC_ASSERT(made.has_value());
        in_pieces += has_pieces(*made) ? 1 : 0;
        for (Index device = 0; device < device_count(*made); ++device) {
            const Index c = device % sizes[2];
            const Index b = device / sizes[2] % sizes[1];
            const Interval want = chunked(sizes, {device / sizes[2] / sizes[1], b, c}, extent);
            RC_ASSERT(tile(*made, device) == as_tile({want}));
        }
    });
    EXPECT_GT(in_pieces, 0);
}

TEST(LayoutProperty, BrokenTwinsAreRefusedForTheRightReason) {
    check_property(cases(500), [] {
        const auto mesh = *broken_meshes();
        const auto verdict = validate(mesh.value);
        RC_ASSERT(!verdict.has_value());
        RC_ASSERT(name(verdict.error().code) == name(mesh.code));
        RC_ASSERT(verdict.error().message.find(mesh.fragment) != std::string::npos);
    });
    check_property(cases(500), [] {
        const auto layout = *broken_layouts();
        const auto verdict = validate(layout.value);
        RC_ASSERT(!verdict.has_value());
        RC_ASSERT(name(verdict.error().code) == name(layout.code));
        RC_LOG(verdict.error().message);
        RC_ASSERT(verdict.error().message.find(layout.fragment) != std::string::npos);
    });
}

TEST(LayoutProperty, TheTwoDistributionsDenoteOneArray) {
    check_property(cases(300), [] {
        const Spec spec = *layouts({.devices_max = 48});
        const Layout layout = layout_of(spec);
        const auto held = holdings(spec);
        const Values array = make_array(shape(layout));
        const Tiles mine = spread(held, shape(layout), array);
        RC_ASSERT(fault(held, shape(layout), array, mine) == "");
        RC_ASSERT(denotes(layout, mine, array));
        const auto theirs = distribute(layout, array);
        RC_ASSERT(theirs.has_value());
        RC_ASSERT(fault(held, shape(layout), array, *theirs) == "");
        // Both find one wrong element anywhere.
        Tiles wrong = mine;
        const auto full = std::ranges::find_if(wrong, [](const auto& values) { return !values.empty(); });
        if (full == wrong.end()) return;
        // For max and min the change must be visible: a summand that is not the max may have another value.
        if (held[0].combine == Combine::max)
            full->back() = INT64_MAX;
        else if (held[0].combine == Combine::min)
            full->back() = INT64_MIN;
        else
            full->back() += 1;
        RC_ASSERT(!denotes(layout, wrong, array));
        RC_ASSERT(fault(held, shape(layout), array, wrong) != "");
    });
}

TEST(LayoutProperty, CutsAreWhatTheirRulesSay) {
    check_property(cases(500), [] {
        const auto extent = *rc::gen::inRange<Index>(0, 60);
        const auto shards = *rc::gen::inRange<Index>(1, 7);
        const auto block = *rc::gen::inRange<Index>(1, 9);
        const AtomList atoms = canonical({{shards, 1}});
        const Dim cyclic = block_cyclic(extent, atoms, block);
        for (Index index = 0; index < extent; ++index) {
            const Side held = side(cyclic, index / block % shards);
            RC_ASSERT(intersect(held, Side{{{index, index + 1}}}).size() == 1);
        }
        Index all = 0;
        for (const Side& held : sides(cyclic)) all += held.size();
        RC_ASSERT(all == extent);
        RC_ASSERT(tile_extent(cyclic) >= tile_extent_min(cyclic));
        // A cut that ceil-div makes too is not kept as pieces.
        const Index tile = std::max<Index>(1, ceil_divide(extent, shards));
        RC_ASSERT(block_cyclic(extent, atoms, tile).pieces.empty());
    });
}

// numpy.array_split: the first extent % shards shards have an index more.
TEST(LayoutProperty, BalancedCutsAreArraySplit) {
    check_property(cases(500), [] {
        const auto extent = *rc::gen::inRange<Index>(0, 60);
        const auto shards = *rc::gen::inRange<Index>(1, 9);
        const AtomList atoms = canonical({{shards, 1}});
        const Dim even = balanced(extent, atoms);
        RC_ASSERT(even.pieces.empty());
        std::vector<Index> shares;
        for (Index shard = 0; shard < shards; ++shard) shares.push_back(extent / shards);
        for (Index shard = 0; shard < extent % shards; ++shard) ++shares[static_cast<std::size_t>(shard)];
        // The same shares in a list are the same dimension, and so are their pieces.
        RC_ASSERT(with_shard_sizes(atoms, shares) == even);
        Dim listed(extent, atoms, pieces_of(even));
        make_canonical(listed);
        RC_ASSERT(listed == even);
        Index begin = 0;
        for (Index shard = 0; shard < shards; ++shard) {
            const Index end = begin + shares[static_cast<std::size_t>(shard)];
            RC_ASSERT(side(even, shard) == (begin < end ? Side{{{begin, end}}} : Side{}));
            begin = end;
        }
        RC_ASSERT(tile_extent(even) == shares.front());
        RC_ASSERT(tile_extent_min(even) == shares.back());
        const Dim ceil_div(extent, atoms);
        RC_ASSERT(by_ceil_div(even) == (sides(ceil_div) == sides(even)));
        for (Index factor = 1; factor <= shards; ++factor) {
            if (shards % factor != 0) continue;
            const Dim coarse = coarsened(even, canonical({{shards / factor, factor}}), factor);
            for (Index shard = 0; shard < shards; ++shard)
                RC_ASSERT(intersect(side(coarse, shard / factor), side(even, shard)) == side(even, shard));
        }
    });
}

}  // namespace
}  // namespace reshard::test
