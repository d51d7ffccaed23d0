// Random moves that cast, transpose and pad, alone and together. Every element is compared with a reference that shares
// no code with the library: its tiles, its order of dimensions, its rounding and its padding.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "conformance/array.hpp"
#include "conformance/harness.hpp"
#include "held.hpp"
#include "reference.hpp"
#include "reshard/padding.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

constexpr std::array moved_types = {DType::f32,     DType::bf16, DType::f16, DType::f64, DType::f8_e4m3fn,
                                    DType::f8_e5m2, DType::i8,   DType::i16, DType::i32, DType::i64,
                                    DType::u8,      DType::u16,  DType::u32, DType::u64};

std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + number * 0xbf58476d1ce4e5b9u + 1;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// One question: the caller's source, the order of its dimensions, and the target.
struct Change {
    Layout source;
    Layout target;
    MoveOptions options;
    std::uint64_t seed = 0;
    std::optional<Judged<Plan>> plan = std::nullopt;

    [[nodiscard]] Index summands() const { return summand_count(source); }
    [[nodiscard]] bool pads() const { return options.fill.has_value(); }
    // The extent of the source in dimension i of the target.
    [[nodiscard]] Index source_extent(std::size_t i) const {
        return source.dims[options.permute.empty() ? i : static_cast<std::size_t>(options.permute[i])].extent;
    }
    // The extent of a box that has the elements of both ends. Its elements are numbered in row-major order.
    [[nodiscard]] Index extent(std::size_t i) const { return std::max(source_extent(i), target.dims[i].extent); }
    [[nodiscard]] std::string text() const {
        return fmt::format("seed {}: {} on {} to {} on {}, order [{}]{}", seed, format(source), format(source.mesh),
                           format(target), format(target.mesh), fmt::join(options.permute, ","),
                           pads() ? ", with padding" : "");
    }
};

// Random bits. Half of the floats lie where rounding decides: at the middle between two numbers of the target, or near
// its ends.
std::uint64_t drawn_bits(DType from, DType to, std::uint64_t noise) {
    const int size = static_cast<int>(8 * size_of(from));
    std::uint64_t bits = size == 64 ? noise : noise >> 7 & ((std::uint64_t{1} << size) - 1);
    if (!is_float(from) || !is_float(to)) return bits;
    const Format wide = format_of(from);
    const Format narrow = format_of(to);
    const int dropped = wide.mantissa_bits - narrow.mantissa_bits;
    const std::uint64_t choice = mixed(noise, 1);
    if (dropped > 0 && choice % 4 < 2)
        bits = (bits >> dropped << dropped) | std::uint64_t{1} << (dropped - 1) | (choice >> 8 & (choice % 4));
    if (wide.exponent_bits > narrow.exponent_bits && choice >> 16 & 1) {
        const std::uint64_t reach =
            (std::uint64_t{1} << narrow.exponent_bits) + static_cast<std::uint64_t>(narrow.mantissa_bits) + 4;
        const std::uint64_t lowest = static_cast<std::uint64_t>(wide.bias() - narrow.bias() - narrow.mantissa_bits - 2);
        const std::uint64_t field = lowest + (choice >> 20) % reach;
        const std::uint64_t all = ((std::uint64_t{1} << wide.exponent_bits) - 1) << wide.mantissa_bits;
        bits = (bits & ~all) | (field << wide.mantissa_bits & all);
    }
    return bits;
}

// Summands whose sum is exact in the wider type, and often not in the narrower one.
Index drawn_summand(const Change& change, std::uint64_t element, Index summand) {
    const DType from = change.source.dtype;
    const std::uint64_t noise = mixed(change.seed + 77, element * 64 + static_cast<std::uint64_t>(summand));
    const bool widens = from != change.target.dtype && includes(change.target.dtype, from);
    int bits = is_float(from) ? format_of(from).mantissa_bits + 1 : static_cast<int>(8 * size_of(from)) - 1;
    bits = std::min(bits, 40) - (widens ? 0 : 4);
    const auto most = static_cast<std::uint64_t>(1) << bits;
    const auto value = static_cast<Index>(noise % most);
    const bool may_be_negative = is_float(from) || decode(from, ~std::uint64_t{0} >> (64 - 8 * size_of(from))).negative;
    return may_be_negative && noise >> 60 & 1 ? -value : value;
}

// Calls visit(number of the element, position in the tile) for a tile in row-major order. Dimension i of the tile is
// dimension place[i] of the target.
template <class Visit>
void for_each_element(const Indices& tile, const std::vector<std::size_t>& place, const Change& change,
                      const Visit& visit) {
    Index elements = 1;
    for (const auto& indices : tile) elements *= std::ssize(indices);
    std::vector<Index> at(tile.size());
    for (Index position = 0; position < elements; ++position) {
        Index rest = position;
        for (std::size_t i = tile.size(); i-- > 0; rest /= std::ssize(tile[i]))
            at[place[i]] = tile[i][static_cast<std::size_t>(rest % std::ssize(tile[i]))];
        Index number = 0;
        for (std::size_t i = 0; i < at.size(); ++i) number = number * change.extent(i) + at[i];
        visit(static_cast<std::uint64_t>(number), position);
    }
}

std::vector<std::size_t> places(const Layout& layout, const std::vector<Index>& order) {
    std::vector<std::size_t> place(layout.dims.size());
    for (std::size_t i = 0; i < place.size(); ++i) place[order.empty() ? i : static_cast<std::size_t>(order[i])] = i;
    return place;
}

std::uint64_t element_bits(const Change& change, std::uint64_t element, Index summand) {
    if (change.summands() == 1)
        return drawn_bits(change.source.dtype, change.target.dtype, mixed(change.seed, element));
    return *encode(change.source.dtype, whole(drawn_summand(change, element, summand)));
}

bool in_source(const Change& change, std::uint64_t element) {
    for (std::size_t i = change.target.dims.size(); i-- > 0;) {
        const auto extent = static_cast<std::uint64_t>(change.extent(i));
        if (element % extent >= static_cast<std::uint64_t>(change.source_extent(i))) return false;
        element /= extent;
    }
    return true;
}

std::uint64_t fill_bits(const Change& change) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, change.options.fill->data(), change.options.fill->size());
    return bits;
}

std::optional<std::uint64_t> expected_bits(const Change& change, std::uint64_t element) {
    const DType to = change.target.dtype;
    if (!in_source(change, element)) return fill_bits(change);
    if (change.summands() == 1) {
        const std::uint64_t bits = element_bits(change, element, 0);
        return change.source.dtype == to ? bits : encode(to, decode(change.source.dtype, bits));
    }
    Index sum = 0;
    for (Index summand = 0; summand < change.summands(); ++summand) sum += drawn_summand(change, element, summand);
    return encode(to, whole(sum));
}

std::vector<std::byte> buffer_for(const std::optional<Indices>& tile, const Layout& layout) {
    Index elements = tile ? 1 : 0;
    if (tile)
        for (const auto& indices : *tile) elements *= std::ssize(indices);
    return std::vector<std::byte>(static_cast<std::size_t>(elements * size_of(layout.dtype)));
}

std::vector<std::byte> source_tile(const Change& change, Index rank) {
    const auto tile = tile_by_arithmetic(change.source, rank);
    std::vector<std::byte> bytes = buffer_for(tile, change.source);
    if (bytes.empty()) return bytes;
    const Index size = size_of(change.source.dtype);
    const Index own = summand(change.source, rank);
    for_each_element(*tile, places(change.source, change.options.permute), change,
                     [&](std::uint64_t element, Index position) {
                         const std::uint64_t bits = element_bits(change, element, own);
                         std::memcpy(bytes.data() + position * size, &bits, static_cast<std::size_t>(size));
                     });
    return bytes;
}

// The elements that are wrong, and the first of them in words.
std::string wrong_in(const Change& change, Index rank, const std::vector<std::byte>& bytes) {
    const auto tile = tile_by_arithmetic(change.target, rank);
    if (bytes.empty()) return {};
    const DType to = change.target.dtype;
    const Index size = size_of(to);
    Index wrong = 0;
    std::string first;
    for_each_element(*tile, places(change.target, {}), change, [&](std::uint64_t element, Index position) {
        std::uint64_t got = 0;
        std::memcpy(&got, bytes.data() + position * size, static_cast<std::size_t>(size));
        const auto wanted = expected_bits(change, element);
        const bool right = wanted ? got == *wanted : decode(to, got).kind == Number::Kind::nan;
        if (right || wrong++ > 0) return;
        first = fmt::format("element {} of {:#x} is {:#x}, not {:#x}", element, element_bits(change, element, 0), got,
                            wanted.value_or(0));
    });
    return wrong == 0 ? "" : fmt::format("{} wrong; {}", wrong, first);
}

DType drawn_type(std::uint64_t noise, bool reduced) {
    for (;; noise = mixed(noise, 3)) {
        const DType dtype = moved_types[noise % (noise >> 32 & 1 ? 4 : moved_types.size())];
        if (!reduced || can_reduce(dtype, Reduction::sum)) return dtype;
    }
}

// Replaces the target by one with other extents, and draws a fill value.
void pad(Change& change, std::uint64_t seed, Index ranks) {
    for (std::uint64_t number = 0; number < 20; ++number) {
        Layout target = test::problem_of(test::random_question(mixed(seed, 100 + number), ranks)).target;
        if (target.dims.size() != change.target.dims.size() || summand_count(target) > 1) continue;
        target.dtype = change.target.dtype;
        change.target = std::move(target);
        const std::uint64_t bits = number == 0 ? 0 : mixed(seed, 9);
        std::vector<std::byte> fill = fill_of(bits);
        fill.resize(static_cast<std::size_t>(size_of(change.target.dtype)));
        if (bits == 0) fill.clear();
        change.options.fill = std::move(fill);
        return;
    }
}

// nullopt if the question is about other summands than sums that the target wants whole.
std::optional<Change> drawn(std::uint64_t seed, Index ranks) {
    const Problem problem = test::problem_of(test::random_question(seed, ranks));
    if (summand_count(problem.target) > 1 || shape(problem.source) != shape(problem.target)) return std::nullopt;
    if (!problem.source.unreduced.empty() && problem.source.reduction != Reduction::sum) return std::nullopt;
    if (problem.source.unreduced.empty() && mixed(seed, 4) % 4 != 0) return std::nullopt;  // sums are rare
    Change change{problem.source, problem.target, {.cast = true}, seed};
    change.source.dtype = drawn_type(mixed(seed, 5), !problem.source.unreduced.empty());
    change.target.dtype = drawn_type(mixed(seed, 6), !problem.target.unreduced.empty());
    if (mixed(seed, 8) % 3 == 0) pad(change, seed, ranks);
    std::vector<Index>& order = change.options.permute;
    if (mixed(seed, 7) % 3 == 0) return change;
    for (std::size_t i = 0; i < change.source.dims.size(); ++i) order.push_back(static_cast<Index>(i));
    std::mt19937_64 random(seed);
    std::ranges::shuffle(order, random);
    for (std::size_t i = 0; i < order.size(); ++i)
        change.source.dims[static_cast<std::size_t>(order[i])] = problem.source.dims[i];
    return change;
}

// Plans the question. Only what may not be cast has no plan.
void plan(Change& change) {
    const auto seen = permuted(change.source, change.options.permute);
    ASSERT_TRUE(seen) << seen.error().message;
    const auto ends = change.pads() ? common_extents(*seen, change.target) : Problem{*seen, change.target};
    ASSERT_TRUE(ends) << ends.error().message << '\n' << change.text();
    const auto made = synthesize(ends->source, ends->target, {.cast = true});
    const DType from = change.source.dtype;
    const DType to = change.target.dtype;
    const bool may = from == to || may_cast(from, to, change.summands() > 1);
    ASSERT_EQ(made.has_value(), may) << change.text() << '\n' << (made ? "" : made.error().message);
    if (!made) {
        EXPECT_EQ(made.error().code, Code::unsupported) << made.error().message;
        return;
    }
    change.plan = *made;
}

// A tenth if ranks are processes, which plan for themselves, or if a device is emulated.
Index asked_of(const Harness& ranks) {
    const Index all = test::long_run() ? 20000 : test::cases(1000);
    if (ranks.ranks() > 4) return all / 4;
    return testing::internal::GetArgvs()[0].ends_with("changes_local") ? all : all / 10;
}

// The bytes of a dense tile with the first dimension innermost, from those with the last one innermost, or back.
std::vector<std::byte> turned(const std::vector<std::byte>& bytes, const Tile& tile, DType dtype, bool back) {
    std::vector<std::byte> made(bytes.size());
    const std::vector<Index> extents = reshard::extents(tile);
    const auto size = static_cast<std::size_t>(size_of(dtype));
    for (std::size_t position = 0; position < bytes.size() / size; ++position) {
        auto rest = static_cast<Index>(position);
        Index stride = 1;
        for (const Index extent : extents) stride *= extent;
        Index at = 0;
        for (std::size_t i = extents.size(); i-- > 0; rest /= extents[i]) {
            stride /= extents[i];
            at += rest % extents[i] * stride;
        }
        const auto from = back ? static_cast<std::size_t>(at) : position;
        const auto to = back ? position : static_cast<std::size_t>(at);
        std::memcpy(made.data() + to * size, bytes.data() + from * size, size);
    }
    return made;
}

// By an executor, which may write the source. Then tiles of both types lie in the memory of both ends. The padding is
// filled before the run or after it. Some tiles are stored with the first dimension innermost.
Result<void> run_executor(Backend& backend, const Change& change, std::size_t number, std::vector<std::byte>& in,
                          std::vector<std::byte>& out) {
    const bool donates = number % 3 == 1;
    Storages storages;
    if (change.pads()) storages = storages_within(change.source, change.target, backend.rank());
    const bool turns = number % 5 == 3 && !change.pads();
    const Tile held = tile(change.source, backend.rank());
    const Tile wanted = tile(change.target, backend.rank());
    storages.source = permuted(turns ? column_major(held) : row_major(held), change.options.permute);
    if (turns) {
        storages.target = column_major(wanted);
        in = turned(in, held, change.source.dtype, false);
    }
    auto executor = Executor::prepare(within(*change.plan, {.memory = {.donate = donates}}), backend, storages);
    if (!executor) return tl::unexpected(executor.error());
    const auto fill = [&]() -> Result<void> {
        if (!change.pads()) return {};
        const auto seen = permuted(change.source, change.options.permute);
        return fill_padding(*seen, change.target, backend.rank(), out, *change.options.fill);
    };
    const bool fills_first = number % 2 == 0;
    if (fills_first) {
        if (auto filled = fill(); !filled) return filled;
    }
    std::vector<std::byte> working(static_cast<std::size_t>(donates ? executor->workspace_bytes() : 0));
    Held source(backend, in), target(backend, out), workspace(backend, working);
    auto moved = donates ? executor->run(Buffers{source.bytes(), target.bytes(), workspace.bytes(), source.bytes()})
                         : executor->run(ConstElements(source.bytes()), Elements(target.bytes()));
    if (moved) moved = target.get();
    if (turns) out = turned(out, wanted, change.target.dtype, true);
    return moved && !fills_first ? fill() : moved;
}

// In one call, which plans on each rank, for some. The second call finds what the first one kept.
Result<void> move(Backend& backend, const Change& change, std::size_t number, std::vector<std::byte>& in,
                  std::vector<std::byte>& out) {
    if (number % 8 != 0) return run_executor(backend, change, number, in, out);
    for (int call = 0; call < 2; ++call) {
        std::ranges::fill(out, std::byte{0xa5});
        Held from(backend, in), to(backend, out);
        auto moved = redistribute(backend, change.source, change.target, from.bytes(), to.bytes(), change.options);
        if (moved) moved = to.get();
        if (!moved) return moved;
    }
    return {};
}

TEST(Changes, RandomCastsTranspositionsAndPaddingMoveEveryElement) {
    std::vector<Change> changes;
    Index casts = 0, transposed = 0;
    Index padded = 0;
    Index all_three = 0;
    Index summed = 0, refused = 0;
    for (std::uint64_t seed = 1; std::ssize(changes) < asked_of(harness()); ++seed) {
        auto change = drawn(seed, harness().ranks());
        if (!change) continue;
        plan(*change);
        if (HasFatalFailure()) return;
        refused += change->plan ? 0 : 1;
        if (!change->plan) continue;
        const bool is_cast = change->source.dtype != change->target.dtype;
        const bool is_transposed = !std::ranges::is_sorted(change->options.permute);
        casts += is_cast ? 1 : 0;
        transposed += is_transposed ? 1 : 0;
        padded += change->pads() ? 1 : 0;
        all_three += is_cast && is_transposed && change->pads() ? 1 : 0;
        summed += change->summands() > 1 ? 1 : 0;
        changes.push_back(std::move(*change));
    }
    harness().on_every_rank([&](Backend& backend) {
        const Index rank = backend.rank();
        for (std::size_t i = 0; i < changes.size(); ++i) {
            const Change& change = changes[i];
            std::vector<std::byte> in = source_tile(change, rank);
            std::vector<std::byte> out = buffer_for(tile_by_arithmetic(change.target, rank), change.target);
            const auto moved = move(backend, change, i, in, out);
            ASSERT_TRUE(moved) << moved.error().message << '\n' << change.text();
            const std::string wrong = wrong_in(change, rank, out);
            ASSERT_TRUE(wrong.empty()) << wrong << '\n' << change.text() << '\n' << format(change.plan->plan());
        }
        if (rank == 0)
            std::cout << fmt::format(
                "{} moves: {} cast, {} transposed, {} padded, {} all three, {} summed; {} refused\n", changes.size(),
                casts, transposed, padded, all_three, summed, refused);
    });
    EXPECT_GT(3 * casts, std::ssize(changes));
    EXPECT_GT(6 * padded, std::ssize(changes));
    if (changes.size() >= 500) {  // fewer may have none
        EXPECT_GT(20 * all_three, std::ssize(changes));
    }
    EXPECT_TRUE(summed > 0 || harness().ranks() == 1);
}

// No tile lies between the cast and the copy, and the backend says so. The array is so large that one step moves it.
TEST(Changes, ACastNextToACopyTakesNoMemory) {
    const Mesh mesh{{"x", harness().ranks()}};
    for (const auto& [from, to] :
         {std::pair("f32[1440@x,1440]", "bf16[1440,1440@x]"), {"bf16[1440@x,1440]", "f32[1440,1440@x]"}}) {
        const auto made = synthesize(*parse_layout(mesh, from), *parse_layout(mesh, to), {.cast = true});
        ASSERT_TRUE(made) << made.error().message;
        const Index ends = 1440 * 1440 / harness().ranks() * (4 + 2);
        EXPECT_EQ(made->verdict().footprint_bytes, ends);
        harness().on_every_rank([&](Backend& backend) {
            const auto executor = Executor::prepare(*made, backend);
            ASSERT_TRUE(executor) << executor.error().message;
            EXPECT_EQ(executor->workspace_bytes(), 0);
            EXPECT_EQ(executor->footprint_bytes() - executor->staging_bytes(), ends);
            if (backend.name() != "mpi") return;
            EXPECT_NE(executor->describe().find("the cast is part of the copy"), std::string::npos)
                << executor->describe();
        });
    }
}

}  // namespace
}  // namespace reshard::conformance
