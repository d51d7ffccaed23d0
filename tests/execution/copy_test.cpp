// Strided copies and fills, compared with a naive loop over random boxes.
#include "src/copy/copy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "src/copy/page_memory.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard {
namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

// `tile` in a random storage: dimensions in any order, gaps between them, an offset.
Slot random_slot(Random& random, const Box& tile, Index element_bytes) {
    std::vector<std::size_t> order(tile.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    if (below(random, 2) == 0) std::ranges::shuffle(order, random);
    Slot slot{BufferId::source,
              below(random, 3) * element_bytes,
              as_tile(tile),
              {below(random, 4), std::vector<Index>(tile.size())}};
    Index stride = below(random, 4) == 0 ? 2 : 1;
    for (std::size_t k = order.size(); k-- > 0;) {
        slot.storage.strides[order[k]] = stride;
        stride *= tile[order[k]].size();
        if (below(random, 3) == 0) stride += below(random, 4);
    }
    return slot;
}

Index bytes_of_slot(const Slot& slot, Index element_bytes) {
    Index last = slot.storage.offset;
    for (std::size_t k = 0; k < slot.tile.size(); ++k) last += (slot.tile[k].size() - 1) * slot.storage.strides[k];
    return slot.offset_bytes + (last + 1) * element_bytes;
}

// The byte at which an element lies, from the definition of a storage.
Index place_of(const Slot& slot, const std::vector<Index>& element, Index element_bytes) {
    Index place = slot.storage.offset;
    for (std::size_t k = 0; k < element.size(); ++k)
        place += (element[k] - slot.tile[k].at(0)) * slot.storage.strides[k];
    return slot.offset_bytes + place * element_bytes;
}

template <class Visit>
void visit_box(const Box& box, const Visit& visit) {
    std::vector<Index> element;
    for (const Interval& side : box) {
        if (side.size() == 0) return;
        element.push_back(side.begin);
    }
    while (true) {
        visit(element);
        std::size_t k = box.size();
        while (k > 0 && ++element[k - 1] == box[k - 1].end) {
            element[k - 1] = box[k - 1].begin;
            --k;
        }
        if (k == 0) return;
    }
}

std::vector<std::byte> random_bytes(Random& random, Index bytes) {
    std::vector<std::byte> made(static_cast<std::size_t>(bytes));
    for (std::byte& byte : made) byte = static_cast<std::byte>(random());
    return made;
}

struct Scene {
    Index element_bytes;
    Box box;
    Slot source;
    Slot target;
};

// A box inside two different tiles around it.
Scene random_scene(Random& random, Index extent_max) {
    constexpr std::array<Index, 5> sizes = {1, 2, 4, 8, 16};
    Scene scene{sizes[static_cast<std::size_t>(below(random, 5))], {}, {}, {}};
    Box around_source;
    Box around_target;
    const Index dims = below(random, 5);
    for (Index k = 0; k < dims; ++k) {
        const Index begin = 100 + below(random, 5);
        const Index end = begin + (below(random, 20) == 0 ? 0 : 1 + below(random, extent_max));
        scene.box.push_back({begin, end});
        const bool snug = below(random, 2) == 0;
        around_source.push_back(
            {begin - (snug ? 0 : below(random, 3)), std::max(end, begin + 1) + (snug ? 0 : below(random, 3))});
        around_target.push_back(
            {begin - (snug ? 0 : below(random, 3)), std::max(end, begin + 1) + (snug ? 0 : below(random, 3))});
    }
    scene.source = random_slot(random, around_source, scene.element_bytes);
    scene.target = random_slot(random, around_target, scene.element_bytes);
    return scene;
}

void expect_copy(Random& random, const Scene& scene) {
    const auto source = random_bytes(random, bytes_of_slot(scene.source, scene.element_bytes));
    auto target = random_bytes(random, bytes_of_slot(scene.target, scene.element_bytes));
    auto wanted = target;
    visit_box(scene.box, [&](const std::vector<Index>& element) {
        std::memcpy(wanted.data() + place_of(scene.target, element, scene.element_bytes),
                    source.data() + place_of(scene.source, element, scene.element_bytes),
                    static_cast<std::size_t>(scene.element_bytes));
    });
    const BoxCopy copy(region_of(scene.source, scene.box, scene.element_bytes),
                       region_of(scene.target, scene.box, scene.element_bytes));
    copy.run(source.data(), target.data(), below(random, 2) == 0 ? Store::cached : Store::streaming);
    store_fence();
    ASSERT_EQ(target, wanted);
}

TEST(Copy, RandomBoxesAsANaiveLoopCopiesThem) {
    Random random(1);
    for (int i = 0; i < 4000; ++i) {
        SCOPED_TRACE(i);
        ASSERT_NO_FATAL_FAILURE(expect_copy(random, random_scene(random, 7)));
    }
}

// Columns of one tile, each dealt to its own memory, some with fewer rows, and one copy that is not made of rows.
TEST(Copy, DealtColumnsAreWhatEachAloneCopies) {
    Random random(17);
    for (int round = 0; round < 200; ++round) {
        const Index columns = 2 + below(random, 6);
        const Index run_bytes = 1 + below(random, 200);
        const Index rows = 2 + below(random, 12);
        const std::vector<std::byte> source = random_bytes(random, rows * columns * run_bytes);
        std::vector<BoxCopy> copies;
        for (Index column = 0; column < columns; ++column) {
            const Index own = below(random, 4) == 0 ? rows - 1 : rows;
            const Region from{column * run_bytes, 1, {own, run_bytes}, {columns * run_bytes, 1}};
            const Region turned{column * run_bytes, 1, {own, run_bytes}, {1, own}};
            const Region rowwise{below(random, 3), 1, {own, run_bytes}, {run_bytes + below(random, 2) * 7, 1}};
            copies.emplace_back(from, below(random, 8) == 0 ? turned : rowwise);
        }
        const auto bytes = static_cast<std::size_t>(2 * rows * columns * (run_bytes + 7));
        const Store store = round % 2 == 0 ? Store::cached : Store::streaming;
        std::vector<std::vector<std::byte>> dealt(copies.size(), std::vector<std::byte>(bytes));
        std::vector<std::vector<std::byte>> alone = dealt;
        DealtCopies together;
        for (std::size_t i = 0; i < copies.size(); ++i) {
            together.add(copies[i], source.data(), dealt[i].data());
            copies[i].run(source.data(), alone[i].data());
        }
        together.run(store);
        store_fence();
        ASSERT_EQ(dealt, alone) << fmt::format("round {}: {} columns of {} rows, {} bytes", round, columns, rows,
                                               run_bytes);
        std::ranges::fill(dealt.front(), std::byte{0});
        const auto emptied = dealt;
        together.run(store);
        ASSERT_EQ(dealt, emptied) << "what was run is not run again";
    }
}

TEST(Copy, LargerBoxesThanABlock) {
    Random random(2);
    for (int i = 0; i < 60; ++i) {
        Scene scene = random_scene(random, 40);
        if (scene.box.size() > 3) continue;
        SCOPED_TRACE(i);
        ASSERT_NO_FATAL_FAILURE(expect_copy(random, scene));
    }
}

TEST(Copy, FillsAreZeroInTheBoxOnly) {
    Random random(3);
    for (int i = 0; i < 1000; ++i) {
        const Scene scene = random_scene(random, 7);
        auto target = random_bytes(random, bytes_of_slot(scene.target, scene.element_bytes));
        auto wanted = target;
        visit_box(scene.box, [&](const std::vector<Index>& element) {
            std::memset(wanted.data() + place_of(scene.target, element, scene.element_bytes), 0,
                        static_cast<std::size_t>(scene.element_bytes));
        });
        BoxFill(region_of(scene.target, scene.box, scene.element_bytes)).run(target.data());
        ASSERT_EQ(target, wanted) << i;
    }
}

TEST(Copy, SumsAddInTheBoxOnly) {
    Random random(4);
    for (int i = 0; i < 1000; ++i) {
        Scene scene = random_scene(random, 7);
        if (scene.element_bytes > 2) continue;
        const DType dtype = scene.element_bytes == 1 ? DType::i8 : DType::u16;
        const auto source = random_bytes(random, bytes_of_slot(scene.source, scene.element_bytes));
        auto target = random_bytes(random, bytes_of_slot(scene.target, scene.element_bytes));
        auto wanted = target;
        visit_box(scene.box, [&](const std::vector<Index>& element) {
            unsigned from = 0;
            unsigned to = 0;
            const auto bytes = static_cast<std::size_t>(scene.element_bytes);
            std::memcpy(&from, source.data() + place_of(scene.source, element, scene.element_bytes), bytes);
            std::memcpy(&to, wanted.data() + place_of(scene.target, element, scene.element_bytes), bytes);
            to += from;
            std::memcpy(wanted.data() + place_of(scene.target, element, scene.element_bytes), &to, bytes);
        });
        BoxCombine(dtype, Combine::sum, region_of(scene.source, scene.box, scene.element_bytes),
                   region_of(scene.target, scene.box, scene.element_bytes))
            .run(source.data(), target.data());
        ASSERT_EQ(target, wanted) << i;
    }
}

TEST(Copy, LoopsAreMergedAndOrderedByTheTarget) {
    const Box box = {{0, 4}, {0, 5}, {0, 6}};
    const Tile tile = as_tile(box);
    const Slot rows{BufferId::source, 0, tile, row_major(tile)};
    const Slot columns{BufferId::target, 0, tile, column_major(tile)};
    EXPECT_EQ(loop_nest(region_of(rows, box, 4), region_of(rows, box, 4)).loops.size(), 1U);
    const LoopNest turned = loop_nest(region_of(rows, box, 4), region_of(columns, box, 4));
    ASSERT_EQ(turned.loops.size(), 3U);
    EXPECT_EQ(turned.loops.back().target_stride, 4);
    EXPECT_TRUE(contiguous(region_of(rows, box, 4)));
    EXPECT_FALSE(contiguous(region_of(columns, box, 4)));
    EXPECT_TRUE(contiguous(region_of(rows, {{1, 3}, {0, 5}, {0, 6}}, 4)));
    EXPECT_FALSE(contiguous(region_of(rows, {{0, 4}, {1, 5}, {0, 6}}, 4)));
}

// The first receive that has an element stores it, and the later receives add to it.
TEST(Arrivals, TheFirstStoresAndLaterOnesAdd) {
    Random random(5);
    for (int i = 0; i < 500; ++i) {
        Schedule schedule;
        schedule.combine = Combine::sum;
        for (Index k = 1 + below(random, 5); k > 0; --k) {
            Box box;
            for (int d = 0; d < 2; ++d) {
                const Index begin = below(random, 5);
                box.push_back({begin, begin + below(random, 5)});
            }
            schedule.receives.push_back({k, box});
        }
        std::array<std::array<int, 10>, 10> seen{};
        const auto falls = arrivals(schedule);
        ASSERT_EQ(falls.size(), schedule.receives.size());
        for (std::size_t k = 0; k < falls.size(); ++k) {
            auto after = seen;
            Index elements = 0;
            for (const SplitReceive& arrival : falls[k]) {
                ASSERT_EQ(intersect(arrival.box, schedule.receives[k].box), arrival.box);
                visit_box(arrival.box, [&](const std::vector<Index>& at) {
                    const auto row = static_cast<std::size_t>(at[0]);
                    const auto column = static_cast<std::size_t>(at[1]);
                    EXPECT_EQ(arrival.adds, seen[row][column] > 0);
                    ++after[row][column];
                    ++elements;
                });
            }
            EXPECT_EQ(elements, count(schedule.receives[k].box));
            seen = after;
        }
    }
}

TEST(Memory, IsAlignedToPages) {
    for (const Index bytes : {Index{0}, Index{1}, Index{4096}, Index{4097}}) {
        auto memory = allocate_pages(bytes);
        ASSERT_TRUE(memory);
        EXPECT_EQ((*memory)->bytes().size(), static_cast<std::size_t>(bytes));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*memory)->bytes().data()) % 4096, 0U);
    }
    EXPECT_FALSE(allocate_pages(-1));
    EXPECT_FALSE(allocate_pages(index_max));
}

}  // namespace
}  // namespace reshard
