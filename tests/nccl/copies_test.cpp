// Compares copies, casts, fills and folds by the device's kernels with the host's, for random boxes, storages and
// alignments. The doubles run the kernels' own functions, thread by thread; a device runs the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "backends/nccl/kernels/copy_set.hpp"
#include "doubles/find.hpp"
#include "party.hpp"
#include "src/tables/dtypes.hpp"
#include "support/property.hpp"

namespace reshard::nccl::test {
namespace {

// A buffer in the program's memory, and its copy on the device, `shift` bytes into an allocation.
class Twin {
public:
    Twin(Index bytes, std::size_t shift, std::mt19937& random) : shift_(shift) {
        for (Index i = 0; i < bytes; ++i) host.push_back(static_cast<std::byte>(random()));
        must(cudaMalloc(&start_, host.size() + shift + 16), "cudaMalloc");
        up();
    }
    ~Twin() { cudaFree(start_); }
    Twin(const Twin&) = delete;
    Twin& operator=(const Twin&) = delete;

    [[nodiscard]] std::byte* device() const { return static_cast<std::byte*>(start_) + shift_; }
    void up() const { must(cudaMemcpy(device(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy"); }
    [[nodiscard]] std::vector<std::byte> down() const {
        std::vector<std::byte> got(host.size());
        must(cudaMemcpy(got.data(), device(), got.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return got;
    }
    std::vector<std::byte> host;

private:
    std::size_t shift_;
    void* start_ = nullptr;
};

struct Drawn {
    Region source;
    Region target;
    Index source_bytes;
    Index target_bytes;
};

// A region at some offset, with its dimensions in any order and perhaps gaps after them.
Region draw_region(const std::vector<Index>& extents, Index element_bytes, std::mt19937& random, Index& bytes) {
    std::vector<std::size_t> order(extents.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = order.size() - 1 - k;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    Region region{static_cast<Index>(random() % 3) * element_bytes, element_bytes, extents,
                  std::vector<Index>(extents.size())};
    Index stride = element_bytes;
    for (const std::size_t k : order) {
        region.strides_bytes[k] = stride;
        stride *= extents[k];
        if (random() % 3 == 0) stride += static_cast<Index>(random() % 4) * element_bytes;
    }
    bytes = region.offset_bytes + stride;
    return region;
}

Drawn draw(Index source_bytes, Index target_bytes, std::mt19937& random) {
    const std::size_t dims = 1 + random() % 5;
    const Index most = dims == 1 ? 3000 : dims == 2 ? 90 : dims == 3 ? 24 : 9;
    std::vector<Index> extents;
    for (std::size_t k = 0; k < dims; ++k) extents.push_back(1 + static_cast<Index>(random()) % most);
    Drawn drawn;
    drawn.source = draw_region(extents, source_bytes, random, drawn.source_bytes);
    drawn.target = draw_region(extents, target_bytes, random, drawn.target_bytes);
    return drawn;
}

Drawn draw(Index element_bytes, std::mt19937& random) { return draw(element_bytes, element_bytes, random); }

void run(const CopySet& set, std::byte* source, std::byte* target) {
    Placed placed;
    ASSERT_TRUE(set.place({source, target, nullptr, nullptr}, placed));
    void* table = nullptr;
    const std::size_t bytes = placed.table.size() * sizeof(DeviceBox);
    must(cudaMalloc(&table, bytes), "cudaMalloc");
    must(cudaMemcpy(table, placed.table.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (const Launch& one : placed.launches) {
        const DeviceBoxes boxes{static_cast<const DeviceBox*>(table) + one.first_box, one.boxes};
        must(launch(one.kernel, boxes, one.blocks, nullptr), "launch");
    }
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaFree(table), "cudaFree");
}

TEST(Copies, RandomBoxes) {
    for (unsigned seed = 1; seed <= static_cast<unsigned>(reshard::test::cases(600)); ++seed) {
        std::mt19937 random(seed);
        const Index element_bytes = Index{1} << (random() % 5);
        const Drawn drawn = draw(element_bytes, random);
        Twin source(drawn.source_bytes, random() % 3 == 0 ? random() % 16 : 0, random);
        Twin target(drawn.target_bytes, random() % 3 == 0 ? random() % 16 : 0, random);
        CopySet set;
        set.copy(BufferId::source, drawn.source, BufferId::target, drawn.target);
        run(set, source.device(), target.device());
        BoxCopy(drawn.source, drawn.target).run(source.host.data(), target.host.data());
        ASSERT_EQ(target.down() == target.host, true) << "seed " << seed;
        ASSERT_EQ(source.down() == source.host, true) << "seed " << seed;
    }
}

// Planes of each element size: whole tiles, words that do not fill a tile, and elements that do not fill a word.
TEST(Copies, Transposes) {
    std::mt19937 random(2);
    constexpr std::pair<Index, Index> sides[] = {{128, 128}, {256, 96}, {100, 132}, {33, 66},
                                                 {8, 8},     {131, 7},  {9, 300}};
    for (const Index element : {Index{1}, Index{2}, Index{4}, Index{8}, Index{16}}) {
        for (const auto& [rows, columns] : sides) {
            const Region from{0, element, {3, rows, columns}, {rows * columns * element, columns * element, element}};
            const Region to{0, element, {3, rows, columns}, {rows * columns * element, element, rows * element}};
            Twin source(bytes_of(from), 0, random);
            Twin target(bytes_of(to), 0, random);
            CopySet set;
            set.copy(BufferId::source, from, BufferId::target, to);
            run(set, source.device(), target.device());
            BoxCopy(from, to).run(source.host.data(), target.host.data());
            ASSERT_EQ(target.down() == target.host, true) << element << ": " << rows << 'x' << columns;
        }
    }
}

TEST(Copies, FillsWithPatterns) {
    for (unsigned seed = 1; seed <= static_cast<unsigned>(reshard::test::cases(200)); ++seed) {
        std::mt19937 random(seed);
        const Index element_bytes = Index{1} << (random() % 5);
        const Drawn drawn = draw(element_bytes, random);
        Twin target(drawn.target_bytes, random() % 2 == 0 ? random() % 16 : 0, random);
        Pattern pattern{};
        for (std::byte& byte : pattern) byte = static_cast<std::byte>(random());
        CopySet set;
        set.fill(BufferId::target, drawn.target, pattern);
        run(set, nullptr, target.device());
        BoxFill(drawn.target, pattern).run(target.host.data());
        ASSERT_EQ(target.down() == target.host, true) << "seed " << seed;
    }
}

bool can_average(DType dtype) { return can_reduce(dtype, Reduction::avg).has_value(); }

// Random bits: infinities, NaN, subnormals. Payloads of NaN depend on the machine, so any NaN equals any other.
template <class T, class IsNan>
bool same_numbers(const std::vector<std::byte>& a, const std::vector<std::byte>& b, const IsNan& is_nan) {
    for (std::size_t i = 0; i + sizeof(T) <= a.size(); i += sizeof(T)) {
        T x;
        T y;
        std::memcpy(&x, &a[i], sizeof x);
        std::memcpy(&y, &b[i], sizeof y);
        if (std::memcmp(&x, &y, sizeof x) != 0 && !(is_nan(x) && is_nan(y))) return false;
    }
    return true;
}

bool same(const std::vector<std::byte>& a, const std::vector<std::byte>& b, DType dtype) {
    if (a == b) return true;
    const auto unequal_to_itself = [](auto x) { return x != x; };
    switch (dtype) {
        case DType::f16:
            return same_numbers<std::uint16_t>(a, b, [](std::uint16_t x) { return (x & 0x7fff) > 0x7c00; });
        case DType::bf16:
            return same_numbers<std::uint16_t>(a, b, [](std::uint16_t x) { return (x & 0x7fff) > 0x7f80; });
        case DType::f32:
        case DType::c64:
            return same_numbers<float>(a, b, unequal_to_itself);
        case DType::f64:
        case DType::c128:
            return same_numbers<double>(a, b, unequal_to_itself);
        default:
            return false;
    }
}

constexpr Combine combines[] = {Combine::sum, Combine::max, Combine::min, Combine::prod};

TEST(Copies, FoldsAndScales) {
    for (unsigned seed = 1; seed <= static_cast<unsigned>(std::max(400, reshard::test::cases(400))); ++seed) {
        std::mt19937 random(seed);
        const auto dtype = static_cast<DType>(seed / 2 % tables::dtypes.size());
        const Combine combine = combines[random() % 4];
        const bool complex = is_complex(dtype);
        if (!reducible(dtype) || (complex && (combine == Combine::max || combine == Combine::min))) continue;
        // Every second region is a run, which fits the widest accesses.
        const Region run_of{0, size_of(dtype), {160}, {size_of(dtype)}};
        const Drawn drawn =
            seed % 2 == 0 ? Drawn{run_of, run_of, bytes_of(run_of), bytes_of(run_of)} : draw(size_of(dtype), random);
        const std::size_t shift = seed % 2 == 1 && random() % 2 == 0 ? 8 : 0;
        Twin source(drawn.source_bytes, shift, random);
        Twin target(drawn.target_bytes, shift, random);
        CopySet folds;
        folds.combine(dtype, combine, BufferId::source, drawn.source, BufferId::target, drawn.target);
        run(folds, source.device(), target.device());
        BoxCombine(dtype, combine, drawn.source, drawn.target).run(source.host.data(), target.host.data());
        ASSERT_TRUE(same(target.down(), target.host, dtype)) << "seed " << seed << ' ' << name(dtype);
        if (!can_average(dtype)) continue;
        target.up();
        const Scale scale{1 + static_cast<Index>(random() % 5), 1 + static_cast<Index>(random() % 7)};
        CopySet scales;
        scales.scale(dtype, scale, BufferId::target, drawn.target);
        run(scales, nullptr, target.device());
        BoxScale(dtype, scale, drawn.target).run(target.host.data());
        ASSERT_TRUE(same(target.down(), target.host, dtype)) << "seed " << seed << ' ' << name(dtype);
    }
}

// Each pair of types that a move may cast, with random bits: NaN with any payload, subnormals, numbers too large. Every
// second region is a run with a rest that fills no whole vector.
TEST(Copies, CastsEveryPairOfTypes) {
    std::mt19937 random(5);
    Index pairs = 0;
    for (const tables::DTypeRow& from : tables::dtypes) {
        for (const tables::DTypeRow& to : tables::dtypes) {
            if (!tables::can_cast(from.dtype, to.dtype)) continue;
            ++pairs;
            for (int round = 0; round < 6; ++round) {
                const Index run_of = 4096 + round;
                const Region read{0, from.bytes, {run_of}, {from.bytes}};
                const Region written{0, to.bytes, {run_of}, {to.bytes}};
                const Drawn drawn = round % 2 == 0 ? Drawn{read, written, bytes_of(read), bytes_of(written)}
                                                   : draw(from.bytes, to.bytes, random);
                Twin source(drawn.source_bytes, round / 2 % 2 * 8, random);
                Twin target(drawn.target_bytes, 0, random);
                CopySet set;
                set.cast(from.dtype, to.dtype, BufferId::source, drawn.source, BufferId::target, drawn.target);
                run(set, source.device(), target.device());
                BoxCopy(drawn.source, drawn.target, cast_of(from.dtype, to.dtype))
                    .run(source.host.data(), target.host.data());
                ASSERT_TRUE(target.down() == target.host) << from.name << " to " << to.name << ", round " << round;
            }
        }
    }
    EXPECT_EQ(pairs, 48);
}

// Thousands of boxes take only a few launches, and each box is found.
TEST(Copies, ManyBoxesAreOneLaunchPerKernel) {
    std::mt19937 random(1);
    constexpr Index boxes = 3000;
    constexpr Index row = 48;
    Twin source(boxes * row * 2, 0, random);
    Twin target(boxes * row, 0, random);
    CopySet set;
    for (Index i = 0; i < boxes; ++i) {
        const Region from{(boxes - 1 - i) * row * 2, 4, {row / 4 - i % 3}, {4}};
        const Region to{i * row, 4, {row / 4 - i % 3}, {4}};
        set.copy(BufferId::source, from, BufferId::target, to);
        BoxCopy(from, to).run(source.host.data(), target.host.data());
    }
    Placed placed;
    ASSERT_TRUE(set.place({source.device(), target.device(), nullptr, nullptr}, placed));
    EXPECT_LE(placed.launches.size(), 5u);
    EXPECT_EQ(placed.table.size(), static_cast<std::size_t>(boxes));
    run(set, source.device(), target.device());
    EXPECT_EQ(target.down() == target.host, true);
}

// Sizes beyond 32 bits, without memory: boxes are cut so that 31 bits count each, and together they are the whole.
TEST(Copies, BoxesBeyond32BitsAreCut) {
    const Index extent = Index{5} << 32;
    CopySet set;
    set.copy(BufferId::source, {0, 1, {extent, 3}, {4, 1}}, BufferId::target, {0, 1, {extent, 3}, {3, 1}});
    Placed placed;
    ASSERT_TRUE(set.place(
        {reinterpret_cast<std::byte*>(4096), reinterpret_cast<std::byte*>(Index{1} << 46), nullptr, nullptr}, placed));
    Index bytes = 0;
    for (const DeviceBox& box : placed.table) {
        EXPECT_LT(box.units, units_max);
        bytes += box.units;  // vectors of one byte, because rows have 3
    }
    EXPECT_EQ(bytes, extent * 3);
    for (const Launch& launch : placed.launches) EXPECT_LT(launch.blocks, 1u << 31);
}

TEST(Copies, ADeepNestIsSeveralBoxes) {
    std::mt19937 random(3);
    const std::vector<Index> extents(11, 2);
    Region from{0, 2, extents, {}};
    Region to{0, 2, extents, {}};
    for (std::size_t k = 0; k < extents.size(); ++k) {
        from.strides_bytes.push_back(Index{3} << (2 * k));
        to.strides_bytes.push_back(Index{2} << (2 * (extents.size() - 1 - k)));
        from.strides_bytes.back() *= 2;
    }
    Twin source(Index{6} << 22, 0, random);
    Twin target(Index{4} << 22, 0, random);
    CopySet set;
    set.copy(BufferId::source, from, BufferId::target, to);
    run(set, source.device(), target.device());
    BoxCopy(from, to).run(source.host.data(), target.host.data());
    EXPECT_EQ(target.down() == target.host, true);
}

TEST(Copies, ElementsThatCombineMustBeAligned) {
    CopySet set;
    set.combine(DType::f32, Combine::sum, BufferId::source, {0, 4, {8}, {4}}, BufferId::target, {0, 4, {8}, {4}});
    Placed placed;
    const auto done =
        set.place({reinterpret_cast<std::byte*>(4098), reinterpret_cast<std::byte*>(8192), nullptr, nullptr}, placed);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::mismatch);
}

TEST(Copies, ElementsThatAreCastMustBeAligned) {
    for (const std::uintptr_t shift : {std::uintptr_t{2}, std::uintptr_t{1}}) {
        CopySet set;
        set.cast(DType::f32, DType::bf16, BufferId::source, {0, 4, {8}, {4}}, BufferId::target, {0, 2, {8}, {2}});
        Placed placed;
        const auto done = set.place({reinterpret_cast<std::byte*>(4096 + (shift == 2 ? shift : 0)),
                                     reinterpret_cast<std::byte*>(8192 + (shift == 1 ? shift : 0)), nullptr, nullptr},
                                    placed);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch);
    }
}

// True if elements of some type are cast to this one.
bool is_cast_to(DType to) {
    return std::ranges::any_of(tables::dtypes, [to](const auto& from) { return tables::can_cast(from.dtype, to); });
}

// This test is the last by name. The tests above together have run every kernel.
TEST(CopiesEnd, EveryKernelHasRun) {
    if (!on_doubles()) GTEST_SKIP() << "launches are counted by the doubles";
    auto* const launches = found<int(const char*)>("gpu_double_launches");
#define X(name, Vector)                                     \
    EXPECT_GT(launches("reshard_copy_" #name), 0) << #name; \
    EXPECT_GT(launches("reshard_fill_" #name), 0) << #name;
    RESHARD_ROW_KERNELS(X)
#undef X
#define X(name, Word, pack) EXPECT_GT(launches("reshard_turn_" #name), 0) << #name;
    RESHARD_TILE_KERNELS(X)
#undef X
#define X(name, Element, ...)                               \
    EXPECT_GT(launches("reshard_fold_" #name), 0) << #name; \
    EXPECT_GT(launches("reshard_fold_" #name "_wide"), 0) << #name;
    RESHARD_ELEMENTS(X)
#undef X
#define X(name, ...)                                                    \
    if (is_cast_to(DType::name)) {                                      \
        EXPECT_GT(launches("reshard_cast_" #name), 0) << #name;         \
        EXPECT_GT(launches("reshard_cast_" #name "_wide"), 0) << #name; \
    }
    RESHARD_DTYPES(X, X)
#undef X
    EXPECT_EQ(found<int()>("gpu_double_complaints")(), 0);
}

}  // namespace
}  // namespace reshard::nccl::test
