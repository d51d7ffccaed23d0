// Sums of halos on a backend, against an oracle that adds cell by cell in the order that the documentation gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "conformance/drawn_cases.hpp"
#include "conformance/halos/drawn.hpp"
#include "conformance/halos/padded.hpp"
#include "conformance/halos/run_ahead.hpp"
#include "conformance/harness.hpp"
#include "reshard/halo/sum.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Bytes;
using test::Random;

// One array of a random case, on all ranks.
struct Drawn {
    DrawnLayout drawn;
    HaloLayout layout;
    std::string dtype;
    Index pad = 0;
    MemoryKind kind = MemoryKind::of_caller;
};

Drawn draw(Random& random, Index ranks) {
    static const std::array<std::string, 4> dtypes = {"i32", "u8", "f32", "f64"};
    Drawn made;
    made.drawn = draw_layout(random, ranks);
    made.dtype = dtypes[static_cast<std::size_t>(below(random, std::ssize(dtypes)))];
    made.pad = below(random, 3);
    made.kind = static_cast<MemoryKind>(below(random, 3));
    const Mesh mesh = parse_mesh(mesh_text(made.drawn)).value();
    made.layout = parse_halo_layout(mesh, text_of(made.drawn, made.dtype)).value();
    return made;
}

// The value in a cell before a run. Floats have digits that a sum in another order rounds otherwise.
template <class T>
T value(Index device, Index cell, Index run) {
    const auto mixed =
        static_cast<std::uint64_t>(device * 1'000'003 + cell * 101 + run * 7919 + 1) * 0x9e3779b97f4a7c15U;
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(static_cast<Index>(mixed >> 40) - (1 << 23)) / T{7};
    return static_cast<T>(mixed >> 40);
}

// The memory of one array on one rank, and the elements that belong there.
class Field {
public:
    Field(const Drawn& drawn, Backend& backend)
        : drawn_(drawn),
          rank_(backend.rank()),
          array_(array_shape(drawn.layout, rank_), drawn.pad, size_of(drawn.layout.owned.dtype), drawn.kind, backend),
          expected_(array_.bytes().size()) {}

    [[nodiscard]] const Storage& storage() const { return array_.storage(); }
    [[nodiscard]] Buffers buffers() { return {{}, array_.bytes(), {}}; }
    [[nodiscard]] bool is_right() { return std::ranges::equal(array_.bytes(), expected_); }

    // Values in all cells with elements, and sentinels in all others.
    void prepare(Index run) {
        if (drawn_.dtype == "i32") fill<std::int32_t>(run);
        if (drawn_.dtype == "u8") fill<std::uint8_t>(run);
        if (drawn_.dtype == "f32") fill<float>(run);
        if (drawn_.dtype == "f64") fill<double>(run);
    }

    // Bytes of ghost cells on other ranks that hold elements of this rank's block.
    [[nodiscard]] Index bytes_elsewhere() const {
        Index cells = 0;
        for (const auto& [element, all] : copies())
            for (const auto& [device, cell] : all) cells += device == rank_ ? 0 : 1;
        return cells * size_of(drawn_.layout.owned.dtype);
    }

private:
    using Cells = std::vector<std::pair<Index, Index>>;  // device, cell

    // For each element of the block its ghost cells, by device and then in row-major order.
    [[nodiscard]] std::map<Index, Cells> copies() const {
        std::map<Index, Cells> found;
        for (const Index element : tile_of(drawn_.drawn, rank_)) found[element] = {};
        for (Index device = 0; device < devices_of(drawn_.drawn); ++device) {
            if (!in_one_row(drawn_.drawn, device, rank_)) continue;
            const std::vector<Index> cells = array_of(drawn_.drawn, device);
            const std::vector<bool> blocks = block_of(drawn_.drawn, device);
            for (std::size_t cell = 0; cell < cells.size(); ++cell) {
                const auto element = found.find(cells[cell]);
                if (!blocks[cell] && element != found.end())
                    element->second.emplace_back(device, static_cast<Index>(cell));
            }
        }
        return found;
    }

    template <class T>
    void fill(Index run) {
        const std::span<std::byte> memory = array_.bytes();
        for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(0xa0 + i % 7);
        const auto put = [&](std::span<std::byte> to, std::size_t cell, T one) {
            std::memcpy(to.data() + array_.places()[cell] * static_cast<Index>(sizeof(T)), &one, sizeof(T));
        };
        const std::vector<Index> cells = array_of(drawn_.drawn, rank_);
        const std::vector<bool> block = block_of(drawn_.drawn, rank_);
        for (std::size_t cell = 0; cell < cells.size(); ++cell)
            if (cells[cell] >= 0) put(memory, cell, value<T>(rank_, static_cast<Index>(cell), run));
        std::ranges::copy(memory, expected_.begin());
        const std::map<Index, Cells> all = copies();
        for (std::size_t cell = 0; cell < cells.size(); ++cell) {
            if (!block[cell]) continue;
            T sum = value<T>(rank_, static_cast<Index>(cell), run);
            for (const auto& [device, other] : all.at(cells[cell]))
                sum = static_cast<T>(sum + value<T>(device, other, run));
            put(expected_, cell, sum);
        }
    }

    const Drawn& drawn_;
    Index rank_;
    PaddedArray array_;
    Bytes expected_;
};

std::vector<Drawn> draw_list(Random& random, Index ranks) {
    std::vector<Drawn> list;
    const Index arrays = 1 + below(random, 2);
    for (Index k = 0; k < arrays; ++k) list.push_back(draw(random, ranks));
    return list;
}

std::string describe(const std::vector<Drawn>& list) {
    std::string words;
    for (const Drawn& one : list) words += fmt::format("{}: {}\n", mesh_text(one.drawn), text_of(one.drawn, one.dtype));
    return words;
}

void expect_sum(Backend& backend, const std::vector<Drawn>& all) {
    std::vector<HaloLayout> layouts;
    std::vector<Field> fields;
    fields.reserve(all.size());
    std::vector<std::optional<Storage>> storages;
    for (const Drawn& drawn : all) {
        layouts.push_back(drawn.layout);
        fields.emplace_back(drawn, backend);
        storages.emplace_back(fields.back().storage());
    }
    auto sum = HaloSum::prepare(layouts, backend, storages);
    ASSERT_TRUE(sum) << sum.error().message;
    std::vector<Buffers> buffers;
    Index elsewhere = 0;
    for (Field& field : fields) {
        buffers.push_back(field.buffers());
        elsewhere += field.bytes_elsewhere();
    }
    EXPECT_EQ(sum->received_bytes(), elsewhere);
    auto bound = sum->bind(buffers);
    ASSERT_TRUE(bound) << bound.error().message;
    const auto one_run_at_a_time = [&] { EXPECT_FALSE((*bound)->start()); };
    expect_two_runs(**bound, fields, backend.rank(), one_run_at_a_time);
}

TEST(HaloSums, EveryElementIsRightAndNothingElseIsTouched) {
    expect_each(draw_cases([](Random& random) { return draw_list(random, harness().ranks()); }), expect_sum);
}

HaloLayout line(Index ranks, const std::string& halo, const std::string& dtype = "i32") {
    return parse_halo_layout(Mesh{{"x", ranks}}, fmt::format("{}[{}@x~{}]", dtype, 4 * ranks, halo)).value();
}

TEST(HaloSums, RunSumsOneArray) {
    const HaloLayout layout = line(harness().ranks(), "1%");
    harness().on_every_rank([&](Backend& backend) {
        auto sum = HaloSum::prepare(layout, backend);
        ASSERT_TRUE(sum) << sum.error().message;
        std::vector<int> array = {10, 1, 2, 3, 4, 20};
        const auto done = sum->run(array);
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(array, (std::vector<int>{10, 21, 2, 3, 14, 20}));
        std::vector<float> other(6);
        EXPECT_EQ(sum->run(other).error().message, "elements of f32 were given for an array of i32");
    });
}

// A halo that is too large for mailboxes, so peers read the ghost cells themselves.
TEST(HaloSums, ARankMayChangeItsHaloOnceItsRunIsOver) {
    const Index ranks = harness().ranks(), width = 30'000;
    const HaloLayout layout =
        parse_halo_layout(Mesh{{"x", ranks}}, fmt::format("i32[{}@x~{}%]", 2 * width * ranks, width)).value();
    harness().on_every_rank([&](Backend& backend) {
        auto sum = HaloSum::prepare(layout, backend);
        ASSERT_TRUE(sum) << sum.error().message;
        const auto memory = backend.allocate(4 * width * Index{sizeof(int)}).value();
        const std::span cells(reinterpret_cast<int*>(memory->bytes().data()), 4 * width);
        std::ranges::fill(cells, static_cast<int>(backend.rank()));
        if (run_ahead(backend, *sum, memory->bytes())) return;
        const Index before = (backend.rank() + ranks - 1) % ranks, after = (backend.rank() + 1) % ranks;
        EXPECT_EQ(std::ranges::count(cells.subspan(width, width), backend.rank() + before), width);
        EXPECT_EQ(std::ranges::count(cells.subspan(2 * width, width), backend.rank() + after), width);
    });
}

TEST(HaloSums, RanksWithOtherHalosAreToldSo) {
    if (harness().ranks() < 2) GTEST_SKIP() << "one rank agrees with itself";
    harness().on_every_rank([&](Backend& backend) {
        auto made = HaloSum::prepare(line(backend.size(), backend.rank() == 1 ? "2" : "1"), backend);
        std::vector<int> array(backend.rank() == 1 ? 8 : 6, 0);
        // Ranks in one process that prepared first are told when they start.
        const auto done = made ? made->run(array) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch) << done.error().message;
    });
}

TEST(HaloSums, TypesWithoutSumsAndBuffersThatDoNotFitAreRefused) {
    harness().on_every_rank([&](Backend& backend) {
        const auto refused = HaloSum::prepare(line(backend.size(), "1", "f8_e5m2"), backend);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::unsupported) << refused.error().message;
        const std::vector<HaloLayout> layouts(2, line(backend.size(), "1"));
        auto sum = HaloSum::prepare(layouts, backend);
        ASSERT_TRUE(sum) << sum.error().message;
        std::vector<int> memory(11, 0);
        const auto bytes = std::as_writable_bytes(std::span(memory));
        const auto bind = [&](std::span<std::byte> one, std::span<std::byte> other) {
            const std::vector<Buffers> buffers = {{{}, one, {}}, {{}, other, {}}};
            const auto bound = sum->bind(buffers);
            return bound ? std::string() : bound.error().message;
        };
        EXPECT_EQ(bind(bytes.first(20), bytes.last(24)), "array 0 needs 24 bytes, the buffer has 20");
        EXPECT_EQ(bind(bytes.first(24), bytes.last(24)), "array 0 and array 1 overlap in memory");
        // A rank whose buffers were wrong may try again.
        std::vector<int> other(6, 0);
        EXPECT_EQ(bind(bytes.first(24), std::as_writable_bytes(std::span(other))), "");
    });
}

}  // namespace
}  // namespace reshard::conformance
