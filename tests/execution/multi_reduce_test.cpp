// Compares a fold with separate stores and additions, and vectors of elements with single elements.
#include "src/copy/multi_reduce.hpp"
#include "src/tables/dtypes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace reshard {
namespace {

using Bytes = std::vector<std::byte>;

// Any bits except NaN, because an addition may keep either of two NaNs.
void draw_numbers(DType dtype, std::span<std::byte> bytes, std::mt19937_64& random) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const auto clear = [&](std::size_t word, std::size_t at, std::byte mask) {
        for (std::size_t i = at; i < bytes.size(); i += word) bytes[i] &= mask;
    };
    switch (dtype) {
        case DType::boolean:
            return clear(1, 0, std::byte{1});
        case DType::f16:
        case DType::bf16:
            return clear(2, 1, std::byte{0xbb});
        case DType::f32:
        case DType::c64:
            return clear(4, 3, std::byte{0xbf});
        case DType::f64:
        case DType::c128:
            return clear(8, 7, std::byte{0xbf});
        default:
            return;
    }
}

template <class Visit>
void for_every_reduction(const Visit& visit) {
    for (int type = 0; type < std::ssize(tables::dtypes); ++type) {
        for (const Reduction reduction : all_reductions) {
            const auto dtype = static_cast<DType>(type);
            if (can_reduce(dtype, reduction)) visit(dtype, combine_of(reduction));
        }
    }
}

TEST(Combine, VectorsHaveTheBitsOfElements) {
    std::mt19937_64 random(5);
    for_every_reduction([&](DType dtype, Combine combine) {
        constexpr Index elements = 20003;
        const Index size = size_of(dtype);
        Bytes source(static_cast<std::size_t>(elements * size));
        Bytes target(source.size());
        draw_numbers(dtype, source, random);
        draw_numbers(dtype, target, random);
        Bytes wanted = target;
        for (Index i = 0; i < elements; ++i) {
            combine_dense(dtype, combine, source.data() + i * size, wanted.data() + i * size, 1);
        }
        combine_dense(dtype, combine, source.data(), target.data(), elements);
        EXPECT_TRUE(target == wanted) << name(dtype) << " " << static_cast<int>(combine);
    });
}

// A box of the given extents in its own memory, with dimensions in any order and gaps between them.
Region drawn_region(const std::vector<Index>& extents, Index element_bytes, std::mt19937_64& random) {
    std::vector<std::size_t> order(extents.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    if (random() % 2 == 0) std::ranges::shuffle(order, random);
    Region region{static_cast<Index>(random() % 3) * element_bytes, element_bytes, extents,
                  std::vector<Index>(extents.size())};
    Index stride = element_bytes * static_cast<Index>(random() % 4 == 0 ? 2 : 1);
    for (const std::size_t k : order) {
        region.strides_bytes[k] = stride;
        stride *= extents[k] + static_cast<Index>(random() % 3 == 0 ? 1 : 0);
    }
    return region;
}

Bytes memory_for(const Region& region) {
    Index end = region.offset_bytes + region.element_bytes;
    for (std::size_t k = 0; k < region.extents.size(); ++k) {
        end += std::max<Index>(region.extents[k] - 1, 0) * region.strides_bytes[k];
    }
    return Bytes(static_cast<std::size_t>(end), std::byte{0x5a});
}

void expect_fold(DType dtype, Combine combine, const std::vector<Index>& extents, std::mt19937_64& random) {
    std::vector<MultiReduce::Operand> summands;
    std::vector<MultiReduce::Operand> targets;
    std::vector<Bytes> sources;
    std::vector<Bytes> got;
    const std::size_t count = 1 + random() % 4;
    for (std::size_t i = 0; i < count; ++i) {
        summands.push_back({count - 1 - i, drawn_region(extents, size_of(dtype), random)});
    }
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
        targets.push_back({i, drawn_region(extents, size_of(dtype), random)});
        got.push_back(memory_for(targets.back().region));
    }
    for (std::size_t i = 0; i < count; ++i) {
        sources.push_back(memory_for(summands[count - 1 - i].region));
        draw_numbers(dtype, sources.back(), random);
    }
    std::vector<Bytes> wanted = got;
    for (std::size_t t = 0; t < targets.size(); ++t) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::byte* from = sources[summands[i].memory].data();
            if (i == 0) BoxCopy(summands[i].region, targets[t].region).run(from, wanted[t].data());
            if (i > 0) BoxCombine(dtype, combine, summands[i].region, targets[t].region).run(from, wanted[t].data());
        }
    }
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (const Bytes& source : sources) from.push_back(source.data());
    for (Bytes& target : got) to.push_back(target.data());
    MultiReduce(dtype, combine, summands, targets).run(from, to, random() % 2 == 0 ? Store::cached : Store::streaming);
    store_fence();
    EXPECT_TRUE(got == wanted) << name(dtype) << " " << static_cast<int>(combine) << " "
                               << testing::PrintToString(extents);
}

TEST(MultiReduce, IsAStoreAndAdditions) {
    std::mt19937_64 random(7);
    for_every_reduction([&](DType dtype, Combine combine) {
        for (const std::vector<Index>& extents :
             std::vector<std::vector<Index>>{{}, {1}, {0, 3}, {7}, {20011}, {5, 6}, {3, 1, 5003}, {33, 65, 3}}) {
            for (int again = 0; again < 3; ++again) expect_fold(dtype, combine, extents, random);
        }
    });
}

}  // namespace
}  // namespace reshard
