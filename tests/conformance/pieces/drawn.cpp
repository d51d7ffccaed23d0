#include "drawn.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "reshard/check.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/chains.hpp"

namespace reshard::conformance {
namespace {

constexpr std::size_t of_none = ~std::size_t{0};

using Random = std::mt19937_64;

// Not std::uniform_int_distribution, because its results differ between libraries.
Index below(Random& random, Index end) { return static_cast<Index>(random() % static_cast<std::uint64_t>(end)); }

// A plan by `kind`: many steps that copy; sums; few steps of any kind; any devices and cuts.
std::optional<Plan> drawn_plan(Random& random, std::uint64_t kind, Index ranks) {
    const auto seed = random() % 1'000'000 + 1;
    if (kind == 0) return test::random_chain(seed, ranks);
    const Problem problem =
        test::problem_of(kind < 3 ? test::random_pair(seed, ranks) : test::random_question(seed, ranks));
    const Index summands = summand_count(problem.target);
    if (kind == 1 && summands >= summand_count(problem.source)) return std::nullopt;
    // If summands arise on the way, the plan chooses which device keeps the value.
    if (summands > 1 && summands != summand_count(problem.source)) return std::nullopt;
    const auto made = synthesize(problem);
    if (!made) return std::nullopt;
    return made->plan();
}

// A block as long as some tile's side on the way, the common divisor of these sides, or any length.
Index drawn_block(Random& random, const Plan& plan, std::size_t dim) {
    const Index extent = std::max<Index>(plan.source.dims[dim].extent, 1);
    Index common = 0;
    for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
        if (shape(layout_before(plan, i)) != shape(plan.source)) continue;  // a view
        const Dim& on_the_way = layout_before(plan, i).dims[dim];
        if (on_the_way.pieces.empty()) common = std::gcd(common, tile_extent(on_the_way));
    }
    switch (random() % 4) {
        case 0: {
            const Dim& end = (random() % 2 == 0 ? plan.source : plan.target).dims[dim];
            return end.pieces.empty() ? std::max<Index>(tile_extent(end), 1) : extent;
        }
        case 1:
            return 1 + below(random, extent);
        default:
            return std::max<Index>(common, 1);
    }
}

std::optional<Split> drawn_split(Random& random, const Plan& plan) {
    if (plan.source.dims.empty()) return std::nullopt;
    Split split;
    split.dim = static_cast<std::size_t>(below(random, std::ssize(plan.source.dims)));
    split.block = drawn_block(random, plan, split.dim);
    split.overlapped = true;
    std::vector<Index> ends = {split.block};
    for (Index more = below(random, 6); more > 0; --more) ends.push_back(1 + below(random, split.block));
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    split.ends = ends;
    if (random() % 2 == 0) {
        split.order.resize(ends.size());
        std::iota(split.order.begin(), split.order.end(), std::size_t{0});
        for (std::size_t i = ends.size(); i > 1; --i) std::swap(split.order[i - 1], split.order[random() % i]);
    }
    return split;
}

// Calls visit(first byte of the element, piece) for every element of a rank's tile. It repeats the definition of a
// piece.
template <class Visit>
void visit_pieces(const Layout& layout, Index rank, Style style, const Split& split, const Visit& visit) {
    const auto tile = tile_by_arithmetic(layout, rank);
    if (!tile) return;
    const Storage storage = storage_of(style, *tile);
    Index elements = 1;
    for (const std::vector<Index>& indices : *tile) elements *= std::ssize(indices);
    for (Index i = 0; i < elements; ++i) {
        Index rest = i;
        Index place = storage.offset;
        Index cut = 0;
        for (std::size_t k = tile->size(); k-- > 0;) {
            const Index within = rest % std::ssize((*tile)[k]);
            rest /= std::ssize((*tile)[k]);
            place += within * storage.strides[k];
            if (k == split.dim) cut = (*tile)[k][static_cast<std::size_t>(within)] % split.block;
        }
        std::size_t piece = 0;
        while (split.ends[piece] <= cut) ++piece;
        visit(static_cast<std::size_t>(place * size_of(layout.dtype)), piece);
    }
}

}  // namespace

std::string drawn_in_pieces(std::uint64_t seed, Index ranks) {
    Random random(seed);
    const auto kind = random() % 4;
    for (;;) {
        const auto plan = drawn_plan(random, kind, ranks);
        for (int attempt = 0; plan && attempt < 8; ++attempt) {
            const auto split = drawn_split(random, *plan);
            if (split && check(*plan, *split)) return format(Execution(*split)) + "\n" + format(*plan);
        }
    }
}

std::string chosen_in_pieces(std::uint64_t seed, Index ranks) {
    Random random(seed);
    for (;;) {
        const Problem problem = test::problem_of(test::random_pair(random() % 1'000'000 + 1, ranks));
        // If summands arise on the way, the plan chooses which device keeps the value.
        const Index summands = summand_count(problem.target);
        if (summands > 1 && summands != summand_count(problem.source)) continue;
        Options options;
        options.capabilities.steps_overlap = true;
        options.vocabulary = random() % 4 == 0 ? Vocabulary::all : Vocabulary::collectives;
        options.machine = {"drawn",
                           {{"inside", 2, 0, 1'000'000},
                            {"outside", index_max, 0, 1'000'000 / (1 + below(random, 4)), 0, random() % 2 == 0}},
                           index_max};
        const auto made = synthesize(problem, options);
        if (made && overlaps(made->execution())) return format(made->execution()) + "\n" + format(made->plan());
    }
}

std::optional<InPieces> in_pieces_of(const std::string& text, std::uint64_t seed) {
    const std::size_t line = text.find('\n');
    const auto execution = parse_execution(std::string_view(text).substr(0, line));
    auto plan = parse_plan(std::string_view(text).substr(line + 1));
    if (!execution || !plan) {
        ADD_FAILURE() << (execution ? plan.error() : execution.error()).message << '\n' << text;
        return std::nullopt;
    }
    return InPieces{{std::move(*plan), all_styles[seed % all_styles.size()], all_styles[seed / 6 % all_styles.size()]},
                    std::get<Split>(*execution)};
}

PieceBench::PieceBench(const InPieces& drawn, Index rank, std::uint64_t salt, Index workspace_bytes)
    : bench_(drawn.item, rank, salt, workspace_bytes),
      place_of_(drawn.split.ends.size()),
      source_pieces_(bench_.source.bytes.size(), of_none),
      target_places_(bench_.target.bytes.size(), of_none),
      made_(bench_.source),
      untouched_(bench_.target) {
    for (std::size_t place = 0; place < place_of_.size(); ++place) place_of_[piece_at(drawn.split, place)] = place;
    const Plan& plan = drawn.item.plan;
    const auto bytes = static_cast<std::size_t>(size_of(plan.source.dtype));
    visit_pieces(plan.source, rank, drawn.item.source, drawn.split, [&](std::size_t at, std::size_t piece) {
        std::fill_n(source_pieces_.begin() + static_cast<std::ptrdiff_t>(at), bytes, piece);
        for (std::size_t i = at; i < at + bytes; ++i) bench_.source.bytes[i] = ~bench_.source.bytes[i];
    });
    visit_pieces(plan.target, rank, drawn.item.target, drawn.split, [&](std::size_t at, std::size_t piece) {
        std::fill_n(target_places_.begin() + static_cast<std::ptrdiff_t>(at), bytes, place_of_[piece]);
    });
}

void PieceBench::make(std::size_t piece) {
    for (std::size_t i = 0; i < source_pieces_.size(); ++i)
        if (source_pieces_[i] == piece) bench_.source.bytes[i] = made_.bytes[i];
}

std::string PieceBench::wrong(std::size_t arrived, std::size_t set_out) const {
    for (std::size_t i = 0; i < target_places_.size(); ++i) {
        const std::size_t place = target_places_[i];
        if (place < arrived && bench_.target.bytes[i] != bench_.target_wanted.bytes[i])
            return fmt::format("byte {} is wrong, of place {} when {} have arrived", i, place, arrived);
        if (place >= set_out && bench_.target.bytes[i] != untouched_.bytes[i])
            return fmt::format("byte {} is written, of place {} when {} have set out", i, place, set_out);
    }
    return {};
}

}  // namespace reshard::conformance
