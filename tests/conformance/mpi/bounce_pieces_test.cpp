// Parts cut into pieces. The receiver copies exactly the data out of the slots that the sender packed into them, for
// any size of slots. The sender packs with the stores that it measured to be faster.
#include "backends/mpi/shm/bounce_pieces.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "backends/mpi/shm/bounce_buffers.hpp"

namespace reshard::mpi {
namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

// A region with these extents, its dimensions in random order, sometimes with gaps.
Region random_region(Random& random, const std::vector<Index>& extents, Index element_bytes) {
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random);
    Region region{below(random, 3) * element_bytes, element_bytes, extents, std::vector<Index>(extents.size())};
    Index stride = element_bytes * (below(random, 8) == 0 ? 2 : 1);
    for (const std::size_t k : order) {
        region.strides_bytes[k] = stride;
        stride *= extents[k];
        if (below(random, 3) == 0) stride += below(random, 4) * element_bytes;
    }
    return region;
}

Index end_of(const Region& region) {
    Index end = region.offset_bytes + region.element_bytes;
    for (std::size_t k = 0; k < region.extents.size(); ++k) end += (region.extents[k] - 1) * region.strides_bytes[k];
    return end;
}

// Visits the places of each element in both regions, one element after another.
template <class Visit>
void visit(const Region& source, const Region& target, const Visit& visit_places) {
    std::vector<Index> at(source.extents.size(), 0);
    while (true) {
        Index from = source.offset_bytes;
        Index to = target.offset_bytes;
        for (std::size_t k = 0; k < at.size(); ++k) {
            from += at[k] * source.strides_bytes[k];
            to += at[k] * target.strides_bytes[k];
        }
        visit_places(from, to);
        std::size_t k = at.size();
        while (k > 0 && ++at[k - 1] == source.extents[k - 1]) at[--k] = 0;
        if (k == 0) return;
    }
}

// Mostly none.
ElementCast random_cast(Random& random) {
    switch (below(random, 8)) {
        case 0:
            return cast_of(DType::f32, DType::bf16);
        case 1:
            return cast_of(DType::f16, DType::f32);
        case 2:
            return cast_of(DType::f16, DType::bf16);
        default:
            return {};
    }
}

// With elements of so many bytes, or with a cast.
PeerRegion random_part(Random& random, Index element_bytes, const ElementCast& cast) {
    std::vector<Index> extents(static_cast<std::size_t>(below(random, 4)));
    for (Index& extent : extents) extent = 1 + below(random, extents.size() > 2 ? 20 : 200);
    return {0, 0, random_region(random, extents, cast ? cast.from_bytes : element_bytes),
            random_region(random, extents, cast ? cast.to_bytes : element_bytes), cast};
}

TEST(BouncePieces, ArriveAsTheyLeft) {
    Random random(20261121);
    for (int round = 0; round < 300; ++round) {
        const Index element_bytes = Index{1} << below(random, 5);
        const Index slot_bytes = Index{64} << below(random, 11);
        const Store store = below(random, 2) == 0 ? Store::streaming : Store::cached;
        std::vector<PeerRegion> parts;
        std::vector<std::vector<std::byte>> sources;
        std::vector<std::vector<std::byte>> targets;
        std::vector<char> staged;
        for (Index i = 0; i <= below(random, 4); ++i) {
            parts.push_back(random_part(random, element_bytes, random_cast(random)));
            parts.back().array = static_cast<std::size_t>(i);
            sources.emplace_back(static_cast<std::size_t>(end_of(parts.back().source)));
            for (std::byte& byte : sources.back()) byte = static_cast<std::byte>(random());
            targets.emplace_back(static_cast<std::size_t>(end_of(parts.back().target)), std::byte{0x5a});
            staged.push_back(below(random, 4) != 0 ? 1 : 0);
        }
        std::vector<const std::byte*> from;
        std::vector<std::byte*> to;
        auto expected = targets;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            from.push_back(sources[i].data());
            to.push_back(targets[i].data());
            if (staged[i] == 0) continue;
            if (parts[i].cast) {
                BoxCopy(parts[i].source, parts[i].target, parts[i].cast).run(sources[i].data(), expected[i].data());
                continue;
            }
            visit(parts[i].source, parts[i].target, [&](Index source, Index target) {
                std::copy_n(sources[i].data() + source, element_bytes, expected[i].data() + target);
            });
        }
        DealtCopies copies;
        BouncePieces sender(parts, slot_bytes, BouncePieces::Side::sender);
        BouncePieces receiver(parts, slot_bytes, BouncePieces::Side::receiver);
        sender.restart(staged);
        receiver.restart(staged);
        std::vector<std::byte> slot(static_cast<std::size_t>(slot_bytes));
        Index slots = 0;
        while (!sender.finished()) {
            Index used = 0;
            while (sender.pack(slot.data(), used, from, copies)) {
            }
            copies.run(store);
            ASSERT_LE(used, slot_bytes);
            ASSERT_GT(used, 0) << "a slot that takes nothing";
            ASSERT_FALSE(receiver.finished());
            receiver.unpack(slot.data(), to, store);
            ++slots;
        }
        EXPECT_TRUE(receiver.finished());
        BouncePieces staying(parts, slot_bytes, BouncePieces::Side::both);
        staying.restart(staged);
        auto moved = std::vector<std::vector<std::byte>>();
        for (const auto& target : targets) moved.emplace_back(target.size(), std::byte{0x5a});
        for (std::size_t i = 0; i < moved.size(); ++i) to[i] = moved[i].data();
        while (staying.move(from, to, store)) {
        }
        ASSERT_EQ(moved, expected) << fmt::format("round {}: what stays", round);
        ASSERT_EQ(targets, expected) << fmt::format("round {}: elements of {}, slots of {}, {} of them", round,
                                                    element_bytes, slot_bytes, slots);
    }
}

// Runs one more cycle and returns the stores that are kept then. A cached store takes `ratio` times as long as a
// non-temporal one. In the turn with `late` turns left the rank loses its core.
Store kept_after_cycle(PackStores& stores, double ratio, int late = -1) {
    int others = 0;
    for (int left = stores.turns_left(); left > 0; --left) {
        EXPECT_EQ(stores.turns_left(), left);
        others += stores.now() != stores.kept() ? 1 : 0;
        stores.end_turn(left == late ? 1e6 : stores.now() == Store::cached ? ratio : 1);
    }
    EXPECT_LE(others, PackStores::samples);
    return stores.kept();
}

TEST(PackStores, FollowTheDistanceOfTheCores) {
    for (const Store first : {Store::cached, Store::streaming}) {
        for (int late = -1; late < 3 * PackStores::samples; ++late) {
            PackStores stores(first, true);
            EXPECT_EQ(stores.now(), first);
            for (const double ratio : {1.0, 3.0, 3.0, 0.7, 1.4, 1.6}) {
                EXPECT_EQ(kept_after_cycle(stores, ratio, late), ratio > 1.5 ? Store::streaming : Store::cached)
                    << "ratio " << ratio << ", late with " << late << " turns left";
            }
        }
        PackStores given(first);
        for (const double ratio : {1.0, 3.0}) EXPECT_EQ(kept_after_cycle(given, ratio), first);
    }
}

TEST(PackStores, MeasureLessOftenWhileTheChoiceStays) {
    PackStores stores(Store::cached, true);
    for (int length = PackStores::shortest; length < PackStores::longest; length *= 2) {
        kept_after_cycle(stores, 1);
        EXPECT_EQ(stores.turns_left(), 2 * length);
    }
    kept_after_cycle(stores, 1);
    EXPECT_EQ(stores.turns_left(), PackStores::longest);
    EXPECT_EQ(kept_after_cycle(stores, 3), Store::streaming);
    EXPECT_EQ(stores.turns_left(), PackStores::shortest);
}

}  // namespace
}  // namespace reshard::mpi
