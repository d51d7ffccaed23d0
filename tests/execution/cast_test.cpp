// Casts of every kernel that this processor runs, and copies that cast, compared with arithmetic that shares no code
// with them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "reshard/text.hpp"
#include "src/copy/multi_copy.hpp"
#include "src/tables/dtypes.hpp"
#include "support/random_bytes.hpp"

namespace reshard {
namespace {

using test::below;
using test::Bytes;
using test::Random;
using test::random_bytes;

constexpr std::array<Store, 2> stores = {Store::cached, Store::streaming};

// A 16-bit float by the definition of its format.
struct Format {
    int mantissa;
    int bias;
    [[nodiscard]] int exponent_max() const { return 2 * bias + 1; }

    [[nodiscard]] double value(std::uint16_t bits) const {
        const int exponent = (bits & 0x7fff) >> mantissa;
        const double fraction = bits & ((1 << mantissa) - 1);
        const double sign = (bits & 0x8000) != 0 ? -1 : 1;
        if (exponent == exponent_max()) return fraction == 0 ? sign * INFINITY : NAN;
        if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
        return sign * std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    }

    // The nearest number of the format; of two, the even one. pre: the processor rounds to nearest even.
    [[nodiscard]] double nearest(double exact) const {
        if (exact == 0 || std::isnan(exact) || std::isinf(exact)) return exact;
        const int exponent = std::max(std::ilogb(exact), 1 - bias);
        const double unit = std::ldexp(1.0, exponent - mantissa);
        const double rounded = std::nearbyint(exact / unit) * unit;
        const double most = std::ldexp(2.0, bias);
        return std::fabs(rounded) >= most ? std::copysign(INFINITY, exact) : rounded;
    }
};
constexpr Format brain{7, 127};
constexpr Format half{10, 15};

// Two doubles that a test takes for one: every NaN is any other.
bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::vector<std::uint16_t> all_bits() {
    std::vector<std::uint16_t> all;
    for (int bits = 0; bits <= 0xffff; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
    return all;
}

CopyKernels::CastRun cast_of_kernel(const CopyKernels& kernels, Store store, Casting casting) {
    return kernels.casts[static_cast<std::size_t>(store)][static_cast<std::size_t>(casting)];
}

template <class To, class From>
std::vector<To> cast_all(CopyKernels::CastRun cast, const std::vector<From>& from) {
    std::vector<To> to(from.size());
    cast(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()), std::ssize(from));
    store_fence();
    return to;
}

TEST(Casts, EveryNumberOf16BitsWidensToItsValue) {
    const std::vector<std::uint16_t> all = all_bits();
    for (const CopyKernels* kernels : all_copy_kernels()) {
        for (const Store store : stores) {
            for (const auto& [casting, format] :
                 {std::pair(Casting::bf16_to_f32, brain), {Casting::f16_to_f32, half}}) {
                const auto wide = cast_all<float>(cast_of_kernel(*kernels, store, casting), all);
                for (std::size_t i = 0; i < all.size(); ++i)
                    ASSERT_TRUE(same(wide[i], format.value(all[i]))) << kernels->name << ", bits " << all[i];
            }
        }
    }
}

// Around every number of the narrower type: itself, the middle to the next one, and the neighbours of both.
std::vector<float> numbers_around(const Format& format) {
    std::vector<float> numbers;
    for (const std::uint16_t bits : all_bits()) {
        const auto at = static_cast<float>(format.value(bits));
        const auto next = static_cast<float>(format.value(static_cast<std::uint16_t>(bits + 1)));
        const auto middle = static_cast<float>((static_cast<double>(at) + static_cast<double>(next)) / 2);
        for (const float number : {at, middle})
            for (const float to : {-INFINITY, number, INFINITY}) numbers.push_back(std::nextafter(number, to));
    }
    for (std::uint32_t payload = 1; payload < 0x800000; payload *= 2)
        for (const std::uint32_t sign : {0U, 0x80000000U})
            numbers.push_back(std::bit_cast<float>(sign | 0x7f800000U | payload));
    return numbers;
}

TEST(Casts, EveryFloatBecomesTheNearestNumberOf16Bits) {
    ASSERT_EQ(std::fegetround(), FE_TONEAREST);
    for (const auto& [casting, format] : {std::pair(Casting::f32_to_bf16, brain), {Casting::f32_to_f16, half}}) {
        const std::vector<float> numbers = numbers_around(format);
        for (const CopyKernels* kernels : all_copy_kernels()) {
            for (const Store store : stores) {
                const auto narrow = cast_all<std::uint16_t>(cast_of_kernel(*kernels, store, casting), numbers);
                for (std::size_t i = 0; i < numbers.size(); ++i)
                    ASSERT_TRUE(same(format.value(narrow[i]), format.nearest(numbers[i])))
                        << kernels->name << ", " << std::bit_cast<std::uint32_t>(numbers[i]) << " became " << narrow[i];
            }
        }
    }
}

// All kernels give the bits of one-by-one casts, at any length and alignment, and change no byte beside the run.
TEST(Casts, RunsOfAnyLengthAndAlignment) {
    constexpr std::array<std::pair<DType, DType>, 4> types = {std::pair(DType::f32, DType::bf16),
                                                              {DType::bf16, DType::f32},
                                                              {DType::f32, DType::f16},
                                                              {DType::f16, DType::f32}};
    Random random(11);
    for (const CopyKernels* kernels : all_copy_kernels()) {
        for (std::size_t i = 0; i < 400; ++i) {
            const std::size_t number = i / 2 % types.size();
            const ElementCast cast = cast_of(types[number].first, types[number].second);
            const Index elements = below(random, below(random, 2) == 0 ? 40 : 1500);
            const Index source_start = below(random, 70);
            const Index target_start = below(random, 3) == 0 ? below(random, 70) : below(random, 35) * cast.to_bytes;
            const Bytes source = random_bytes(random, source_start + elements * cast.from_bytes);
            Bytes target = random_bytes(random, target_start + elements * cast.to_bytes + 5);
            Bytes wanted = target;
            for (Index k = 0; k < elements; ++k)
                cast.lines[0](1, 0, 0, source.data() + source_start + k * cast.from_bytes,
                              wanted.data() + target_start + k * cast.to_bytes);
            kernels->casts[i % 2][number](source.data() + source_start, target.data() + target_start, elements);
            store_fence();
            ASSERT_EQ(target, wanted) << kernels->name << ", " << elements << " elements of "
                                      << name(types[number].first);
        }
    }
}

// A box of three dimensions in two memories: each has its own order of dimensions, gaps and start.
struct Scene {
    Region source;
    Region target;
    Index source_bytes = 0;
    Index target_bytes = 0;
};

Region random_region(Random& random, const std::vector<Index>& extents, Index element_bytes, Index& bytes) {
    Region region{below(random, 20) * (below(random, 3) == 0 ? 1 : element_bytes), element_bytes, extents, {}};
    region.strides_bytes.resize(extents.size());
    std::vector<std::size_t> order(extents.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    if (below(random, 2) == 0) std::ranges::shuffle(order, random);
    Index stride = element_bytes;
    for (std::size_t k = order.size(); k-- > 0;) {
        region.strides_bytes[order[k]] = stride;
        stride *= extents[order[k]] + (below(random, 3) == 0 ? below(random, 3) : 0);
    }
    bytes = region.offset_bytes + stride;
    return region;
}

Scene random_scene(Random& random, const ElementCast& cast) {
    const auto extent = [&] { return below(random, 3) == 0 ? 1 + below(random, 150) : 1 + below(random, 20); };
    const std::vector<Index> extents = {below(random, 30) == 0 ? 0 : 1 + below(random, 5), extent(), extent()};
    Scene scene;
    scene.source = random_region(random, extents, cast.from_bytes, scene.source_bytes);
    scene.target = random_region(random, extents, cast.to_bytes, scene.target_bytes);
    return scene;
}

Bytes cast_one_by_one(const Scene& scene, const ElementCast& cast, const Bytes& source, Bytes target) {
    const std::vector<Index>& extents = scene.source.extents;
    const auto place = [&](const Region& region, Index i, Index j, Index k) {
        const std::vector<Index>& strides = region.strides_bytes;
        return region.offset_bytes + i * strides[0] + j * strides[1] + k * strides[2];
    };
    for (Index i = 0; i < extents[0]; ++i)
        for (Index j = 0; j < extents[1]; ++j)
            for (Index k = 0; k < extents[2]; ++k)
                cast.lines[0](1, 0, 0, source.data() + place(scene.source, i, j, k),
                              target.data() + place(scene.target, i, j, k));
    return target;
}

// Draws one of the pairs of types that may be cast.
std::pair<DType, DType> drawn_types(Random& random) {
    if (below(random, 2) == 0)
        return below(random, 2) == 0 ? std::pair(DType::f32, DType::bf16) : std::pair(DType::bf16, DType::f32);
    const auto drawn = [&] {
        return tables::dtypes[static_cast<std::size_t>(below(random, std::ssize(tables::dtypes)))].dtype;
    };
    for (;;) {
        const DType from = drawn();
        const DType to = drawn();
        if (tables::can_cast(from, to)) return {from, to};
    }
}

TEST(Casts, CopiesOfBoxesCastEveryElement) {
    Random random(12);
    for (std::size_t i = 0; i < 1500; ++i) {
        const auto [from, to] = drawn_types(random);
        const ElementCast cast = cast_of(from, to);
        ASSERT_TRUE(cast);
        const Scene scene = random_scene(random, cast);
        const Bytes source = random_bytes(random, scene.source_bytes);
        const Bytes before = random_bytes(random, scene.target_bytes);
        const Bytes wanted = cast_one_by_one(scene, cast, source, before);
        SCOPED_TRACE(fmt::format("{}: {} to {}", i, name(from), name(to)));
        Bytes target = before;
        BoxCopy(scene.source, scene.target, cast).run(source.data(), target.data(), stores[i % 2]);
        store_fence();
        ASSERT_EQ(target, wanted);
    }
}

// The box is cut in two along its second dimension. Two memories hold a part each, on the side that is not the tile.
TEST(Casts, SweepsCastEveryElement) {
    Random random(13);
    for (std::size_t i = 0; i < 1000; ++i) {
        const auto [from, to] = drawn_types(random);
        const ElementCast cast = cast_of(from, to);
        const Scene scene = random_scene(random, cast);
        const Bytes source = random_bytes(random, scene.source_bytes);
        const Bytes before = random_bytes(random, scene.target_bytes);
        const Bytes wanted = cast_one_by_one(scene, cast, source, before);
        SCOPED_TRACE(fmt::format("{}: {} to {}", i, name(from), name(to)));
        const auto kind = i % 2 == 0 ? MultiCopy::Kind::push : MultiCopy::Kind::pull;
        const Index rows = scene.source.extents[1];
        const Index cut = below(random, rows + 1);
        MultiCopy sweep(kind, cast);
        for (const auto& [memory, begin, end] :
             {std::tuple(std::size_t{0}, Index{0}, cut), {std::size_t{1}, cut, rows}}) {
            Region part[2] = {scene.source, scene.target};
            for (Region& region : part) {
                region.offset_bytes += begin * region.strides_bytes[1];
                region.extents[1] = end - begin;
            }
            sweep.add(memory, part[0], part[1]);
        }
        sweep.arrange();
        Bytes target = before;
        for (int run = 0; run < 2; ++run) {
            if (kind == MultiCopy::Kind::push)
                sweep.push(source.data(), std::array{target.data(), target.data()}, stores[i / 2 % 2]);
            else
                sweep.pull(target.data(), std::array{source.data(), source.data()}, stores[i / 2 % 2]);
        }
        store_fence();
        ASSERT_EQ(target, wanted);
    }
}

}  // namespace
}  // namespace reshard
