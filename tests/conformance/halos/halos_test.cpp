// Halos on a backend: in place and from other layouts, against an oracle that looks at each cell, and errors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "conformance/drawn_cases.hpp"
#include "conformance/halos/drawn.hpp"
#include "conformance/halos/padded.hpp"
#include "conformance/halos/run_ahead.hpp"
#include "conformance/harness.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using test::below;
using test::Bytes;
using test::Random;

// One array of a random case, on all ranks.
struct Drawn {
    MemoryKind kind = MemoryKind::of_caller;
    DrawnLayout target;
    std::optional<DrawnLayout> source;
    std::string dtype;
    Index pad = 0;  // elements at the end of each row, and before the first
    HaloMove move;
};

Drawn draw(Random& random, Index ranks) {
    static const std::array<std::string, 3> dtypes = {"i32", "u8", "f64"};
    Drawn drawn;
    drawn.target = draw_layout(random, ranks);
    if (below(random, 4) == 0) draw_devices(random, drawn.target, ranks);
    if (below(random, 2) == 0)
        drawn.source = below(random, 2) == 0 ? draw_source(random, drawn.target)
                                             : draw_source_elsewhere(random, drawn.target, ranks);
    drawn.dtype = dtypes[static_cast<std::size_t>(below(random, std::ssize(dtypes)))];
    drawn.pad = below(random, 3);
    drawn.kind = static_cast<MemoryKind>(below(random, 3));
    const Mesh mesh = parse_mesh(mesh_text(drawn.target)).value();
    drawn.move.target = parse_halo_layout(mesh, text_of(drawn.target, drawn.dtype)).value();
    if (!drawn.source) return drawn;
    const Mesh source_mesh = parse_mesh(mesh_text(*drawn.source)).value();
    const HaloLayout source = parse_halo_layout(source_mesh, text_of(*drawn.source, drawn.dtype)).value();
    drawn.move.source = source.owned;
    if (std::ranges::count(source.halos, Halo{}) < std::ssize(source.halos)) drawn.move.source_halos = source.halos;
    return drawn;
}

std::string describe(const Drawn& drawn) {
    return fmt::format("{}: {} from {}", mesh_text(drawn.target), text_of(drawn.target, drawn.dtype),
                       drawn.source ? mesh_text(*drawn.source) + ": " + text_of(*drawn.source, drawn.dtype) : "itself");
}

// The memory of one array on one rank, and the elements that belong there.
class Field {
public:
    Field(const Drawn& drawn, Backend& backend)
        : rank_(backend.rank()),
          bytes_(size_of(drawn.move.target.owned.dtype)),
          in_place_(!drawn.source),
          cells_(array_of(drawn.target, rank_)),
          owned_(tile_of(drawn.target, rank_)),
          array_(shape_of(drawn, rank_), drawn.pad, bytes_, drawn.kind, backend),
          memory_(array_.bytes()),
          expected_(memory_.size()) {
        if (drawn.source) {
            read_ = tile_of(*drawn.source, rank_);
            in_core_ = block_of(*drawn.source, rank_);
        }
        const std::vector<Index> shape = shape_of(drawn, rank_);
        EXPECT_EQ(array_shape(drawn.move.target, rank_), shape);
        expect_core(drawn, shape);
        source_.resize(in_core_.size() * static_cast<std::size_t>(bytes_));
    }
    [[nodiscard]] HaloStorages storages() const { return {array_.storage(), std::nullopt}; }
    [[nodiscard]] Buffers buffers() { return {source_, memory_, {}}; }

    // Before a run: sentinels, and values in the blocks or in the source.
    void prepare(Index run) {
        for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::byte>(0xa0 + i % 7);
        std::ranges::fill(source_, std::byte{0x77});
        for (std::size_t cell = 0, i = 0; cell < in_core_.size(); ++cell)
            if (in_core_[cell]) put(source_, static_cast<Index>(cell), read_[i++], run);
        if (in_place_)
            for (const Index cell : core_) put(memory_, array_.places()[at(cell)], cells_[at(cell)], run);
        std::ranges::copy(memory_, expected_.begin());
        for (std::size_t cell = 0; cell < cells_.size(); ++cell)
            if (cells_[cell] >= 0) put(expected_, array_.places()[cell], cells_[cell], run);
    }
    [[nodiscard]] bool is_right() const { return std::ranges::equal(memory_, expected_); }
    // Elements that no other protocol can do without.
    [[nodiscard]] Index least_received() const {
        std::set<Index> wanted(cells_.begin(), cells_.end());
        wanted.erase(-1);
        for (const Index held : in_place_ ? owned_ : read_) wanted.erase(held);
        return std::ssize(wanted);
    }
    [[nodiscard]] Index element_bytes() const { return bytes_; }

private:
    static std::size_t at(Index index) { return static_cast<std::size_t>(index); }

    static std::vector<Index> shape_of(const Drawn& drawn, Index rank) {
        std::vector<Index> shape;
        for (std::size_t k = 0; k < drawn.target.dims.size(); ++k)
            shape.push_back(std::ssize(cells_of(drawn.target, k, rank)));
        return shape;
    }
    // The cells of the block, as numbers in the array. They must be where core_of says.
    void expect_core(const Drawn& drawn, const std::vector<Index>& shape) {
        const Box core = core_of(drawn.move.target, rank_);
        for (Index cell = 0; cell < std::ssize(cells_); ++cell) {
            Index rest = cell;
            bool inside = true;
            for (std::size_t k = shape.size(); k-- > 0; rest /= shape[k]) {
                const Index index = rest % shape[k];
                inside = inside && index >= core[k].begin && index < core[k].end;
            }
            if (inside) core_.push_back(cell);
        }
        std::vector<Index> elements;
        for (const Index cell : core_) elements.push_back(cells_[at(cell)]);
        EXPECT_EQ(elements, owned_);
    }
    void put(std::span<std::byte> memory, Index place, Index element, Index run) const {
        const auto value =
            static_cast<std::uint64_t>(element + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(run);
        std::memcpy(memory.data() + place * bytes_, &value, at(bytes_));
    }

    Index rank_;
    Index bytes_;
    bool in_place_;
    std::vector<Index> cells_;  // the element in each, row-major
    std::vector<Index> owned_;
    std::vector<Index> read_;    // of the source
    std::vector<bool> in_core_;  // the cells of the source's array
    std::vector<Index> core_;    // cells
    PaddedArray array_;
    std::span<std::byte> memory_;
    Bytes expected_;
    Bytes source_;
};

// Arrays that are filled together.
struct DrawnList {
    std::vector<Drawn> arrays;
    std::optional<HaloWay> way;
};

DrawnList draw_list(Random& random, Index ranks) {
    DrawnList list;
    const Index arrays = 1 + below(random, 2);
    for (Index k = 0; k < arrays; ++k) list.arrays.push_back(draw(random, ranks));
    static const std::array<std::optional<HaloWay>, 3> ways = {std::nullopt, HaloWay::at_once, HaloWay::by_dimension};
    list.way = ways[static_cast<std::size_t>(below(random, std::ssize(ways)))];
    return list;
}

std::string describe(const DrawnList& list) {
    return fmt::format("{}\n{}\n{}", describe(list.arrays.front()), describe(list.arrays.back()),
                       list.way ? name(*list.way) : "by price");
}

void expect_exchange(Backend& backend, const DrawnList& list) {
    const std::vector<Drawn>& all = list.arrays;
    std::vector<HaloMove> moves;
    std::vector<Field> fields;
    fields.reserve(all.size());
    std::vector<HaloStorages> storages;
    for (const Drawn& drawn : all) {
        moves.push_back(drawn.move);
        fields.emplace_back(drawn, backend);
        storages.push_back(fields.back().storages());
    }
    auto exchange = HaloExchange::prepare(moves, backend, storages, {laptop(), list.way});
    ASSERT_TRUE(exchange) << exchange.error().message;
    std::vector<Buffers> buffers;
    Index least = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        buffers.push_back(fields[i].buffers());
        least += fields[i].least_received() * fields[i].element_bytes();
        if (!all[i].source) {
            EXPECT_EQ(received_elements(moves[i].target, backend.rank()), fields[i].least_received());
        }
    }
    EXPECT_EQ(exchange->received_bytes(), least);
    auto bound = exchange->bind(buffers);
    ASSERT_TRUE(bound) << bound.error().message;
    expect_two_runs(**bound, fields, backend.rank());
    bound->reset();
    if (all.size() > 1 || all.front().source) return;
    fields.front().prepare(2);
    const auto done = exchange->run(buffers.front().target);  // a registered array needs a run, any other one does not
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_TRUE(fields.front().is_right());
}

TEST(Halos, EveryCellIsRightAndNothingElseIsTouched) {
    expect_each(draw_cases([](Random& random) { return draw_list(random, harness().ranks()); }), expect_exchange);
}

HaloLayout line(Index ranks, const std::string& halo) {
    return parse_halo_layout(Mesh{{"x", ranks}}, fmt::format("i32[{}@x~{}]", 4 * ranks, halo)).value();
}

// Small and large halos; memory of the caller, of the backend, and of the backend again, perhaps at the same place.
TEST(Halos, RunFillsOneArray) {
    const Index ranks = harness().ranks();
    for (const Index width : {1, 30'000}) {
        const Index block = 4 * width;
        const HaloLayout layout =
            parse_halo_layout(Mesh{{"x", ranks}}, fmt::format("i32[{}@x~{}%]", block * ranks, width)).value();
        harness().on_every_rank([&](Backend& backend) {
            auto exchange = HaloExchange::prepare(layout, backend);
            ASSERT_TRUE(exchange) << exchange.error().message;
            std::vector<int> own(static_cast<std::size_t>(block + 2 * width));
            for (int run = 0; run < 5; ++run) {
                const auto taken = run < 2 ? nullptr : backend.allocate(std::ssize(own) * Index{sizeof(int)}).value();
                const std::span<int> array =
                    taken ? std::span(reinterpret_cast<int*>(taken->bytes().data()), own.size()) : std::span(own);
                const auto expected = [&](Index cell) {
                    const Index all = block * ranks;
                    return static_cast<int>((block * backend.rank() + cell - width + all) % all + run);
                };
                for (Index cell = 0; cell < std::ssize(array); ++cell)
                    array[static_cast<std::size_t>(cell)] = cell < width || cell >= width + block ? -1 : expected(cell);
                const auto done = exchange->run(array);
                ASSERT_TRUE(done) << done.error().message;
                Index wrong = 0;
                for (Index cell = 0; cell < std::ssize(array); ++cell)
                    wrong += array[static_cast<std::size_t>(cell)] == expected(cell) ? 0 : 1;
                EXPECT_EQ(wrong, 0) << "run " << run << ", halos of " << width << " cells";
            }
        });
    }
}

// A halo that is too large for mailboxes, so peers read the blocks themselves.
TEST(Halos, ARankMayChangeItsBlockOnceItsRunIsOver) {
    const Index ranks = harness().ranks(), width = 30'000;
    const HaloLayout layout =
        parse_halo_layout(Mesh{{"x", ranks}}, fmt::format("i32[{}@x~{}%]", 2 * width * ranks, width)).value();
    harness().on_every_rank([&](Backend& backend) {
        auto exchange = HaloExchange::prepare(layout, backend);
        ASSERT_TRUE(exchange) << exchange.error().message;
        const auto memory = backend.allocate(4 * width * Index{sizeof(int)}).value();
        const std::span cells(reinterpret_cast<int*>(memory->bytes().data()), 4 * width);
        std::ranges::fill(cells, static_cast<int>(backend.rank()));
        if (run_ahead(backend, *exchange, memory->bytes())) return;
        EXPECT_EQ(std::ranges::count(cells.first(width), (backend.rank() + ranks - 1) % ranks), width);
        EXPECT_EQ(std::ranges::count(cells.last(width), (backend.rank() + 1) % ranks), width);
    });
}

TEST(Halos, RanksWithOtherHalosAreToldSo) {
    if (harness().ranks() < 2) GTEST_SKIP() << "one rank agrees with itself";
    harness().on_every_rank([&](Backend& backend) {
        auto made = HaloExchange::prepare(line(backend.size(), backend.rank() == 1 ? "2" : "1"), backend);
        std::vector<int> array(backend.rank() == 1 ? 8 : 6, 0);
        // Ranks in one process that prepared first are told when they start.
        const auto done = made ? made->run(array) : tl::unexpected(made.error());
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::mismatch) << done.error().message;
    });
}

TEST(Halos, BuffersThatDoNotFitAreRefused) {
    harness().on_every_rank([&](Backend& backend) {
        const HaloLayout layout = line(backend.size(), "1");
        const std::vector<HaloMove> moves = {{layout}, {layout}};
        auto exchange = HaloExchange::prepare(moves, backend);
        ASSERT_TRUE(exchange) << exchange.error().message;
        std::vector<int> memory(11, 0);
        const auto bytes = std::as_writable_bytes(std::span(memory));
        const auto bind = [&](std::span<std::byte> one, std::span<std::byte> other) {
            const std::vector<Buffers> buffers = {{{}, one, {}}, {{}, other, {}}};
            const auto bound = exchange->bind(buffers);
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
