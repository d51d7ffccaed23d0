// The whole generality at once: uneven, ragged and block-cyclic cuts, any devices, two meshes, summands.
#include <algorithm>
#include <set>

#include "reshard/schedule.hpp"
#include "reshard/simulate.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/movement.hpp"
#include "support/property.hpp"

namespace reshard::test {

namespace {

constexpr Index ranks = 8;

/// Numbers of the elements of a tile, in the order in which they lie.
std::vector<Index> numbers_of(const Layout& layout, Index device) {
    std::vector<Index> numbers;
    const Tile held = tile(layout, device);
    if (count(held) == 0) return numbers;
    numbers.push_back(0);
    for (std::size_t i = 0; i < held.size(); ++i) {
        std::vector<Index> longer;
        for (const Index number : numbers)
            for (const Interval& interval : held[i].intervals)
                for (Index index = interval.begin; index < interval.end; ++index)
                    longer.push_back(number * layout.dims[i].extent + index);
        numbers = std::move(longer);
    }
    return numbers;
}

Index most_foreign_elements(const Problem& problem) {
    Index most = 0;
    for (Index device = 0; device < ranks; ++device) {
        const auto held = numbers_of(problem.source, device);
        const std::set<Index> have(held.begin(), held.end());
        const bool same = summand(problem.source, device) == summand(problem.target, device);
        Index foreign = 0;
        for (const Index number : numbers_of(problem.target, device)) foreign += !same || !have.contains(number);
        most = std::max(most, foreign);
    }
    return most;
}

// Of sums on one mesh, in elements: what the busiest device would get if each fetched every summand of its tile that it
// does not hold. And whether every device holds one of each.
struct Fetched {
    Index most = 0;
    bool held = true;
};

Fetched fetch_every_summand(const Problem& problem) {
    Fetched fetched;
    const Index summands = summand_count(problem.source);
    for (Index device = 0; device < ranks; ++device) {
        const auto here = numbers_of(problem.source, device);
        const std::set<Index> have(here.begin(), here.end());
        Index receipts = 0;
        for (const Index number : numbers_of(problem.target, device)) {
            receipts += have.contains(number) ? summands - 1 : summands;
            fetched.held = fetched.held && have.contains(number);
        }
        fetched.most = std::max(fetched.most, receipts);
    }
    return fetched;
}

bool equal_everywhere(const Layout& a, const Layout& b) {
    for (Index device = 0; device < ranks; ++device)
        if (tile(a, device) != tile(b, device) || summand(a, device) != summand(b, device)) return false;
    return true;
}

void judge_and_simulate(const Problem& problem, const Synthesis& made) {
    RC_ASSERT(equal_everywhere(made.plan.source, problem.source));
    RC_ASSERT(equal_everywhere(made.plan.target, problem.target));
    RC_ASSERT(made.verdict.received_bytes_max_device >= made.verdict.lower_bound_bytes);
    RC_ASSERT(made.verdict.peak_bytes <= made.verdict.floor_bytes);
    const auto again = parse_plan(format(made.plan));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == made.plan);
    for (std::size_t i = 0; i < made.plan.steps.size(); ++i) {
        std::vector<Schedule> schedules;
        for (Index rank = 0; rank < ranks; ++rank)
            schedules.push_back(schedule(layout_before(made.plan, i), made.plan.steps[i], rank));
        const auto checked = check_schedules(layout_before(made.plan, i), made.plan.steps[i], schedules);
        if (!checked) RC_LOG(checked.error().message);
        RC_ASSERT(checked.has_value());
    }
    const Values array = make_array(shape(problem.source));
    const auto start = distribute(problem.source, array);
    RC_ASSERT(start.has_value());
    RC_ASSERT(denotes(problem.source, *start, array));
    const auto end = simulate(made.plan, *start);
    RC_ASSERT(end.has_value());
    RC_ASSERT(denotes(problem.target, *end, array));
}

// On one mesh, where sizes divide and devices want only what they hold a summand of, sums meet their bound. Elsewhere
// they may not: an element that none of its receivers holds a summand of needs a receipt more than the bound counts; of
// an uneven cut the member with the largest piece receives all its summands, while the bound lets all members share the
// receipts evenly; and a cut that would nest may be over the peak that every plan keeps. There a plan receives little
// more than would fetching every summand, and mostly less.
bool expect_sums_near_their_bound(const Problem& problem, const Verdict& verdict) {
    const Fetched fetched = fetch_every_summand(problem);
    const Index most = fetched.most * size_of(problem.source.dtype);
    const bool met = verdict.received_bytes_max_device == verdict.lower_bound_bytes;
    if (divides(problem.source) && divides(problem.target) && fetched.held)
        RC_ASSERT(met);
    else
        RC_ASSERT(3 * verdict.received_bytes_max_device <= 5 * most);
    return met;
}

TEST(AnywhereProperty, EveryPairHasAPlanThatIsRight) {
    int across = 0;
    int in_pieces = 0;
    int reduced = 0;
    int on_one_mesh = 0;
    int at_their_bound = 0;
    std::uint64_t seed = 0;
    check_property(long_run() ? 50'000 : cases(2000), [&] {
        const std::string question = random_question(++seed, ranks);
        RC_LOG(question);
        const Problem problem = problem_of(question);
        across += !same_order(problem.source.mesh, problem.target.mesh);
        in_pieces += has_pieces(problem.source) || has_pieces(problem.target);
        reduced += summand_count(problem.source) > 1;
        Options options;
        options.objective = Objective::bytes;
        const auto made = synthesize(problem, options);
        if (!made) RC_LOG(made.error().message);
        RC_ASSERT(made.has_value());
        judge_and_simulate(problem, *made);
        if (summand_count(problem.target) > 1) return;
        if (summand_count(problem.source) > 1) {
            if (!same_order(problem.source.mesh, problem.target.mesh)) return;
            ++on_one_mesh;
            at_their_bound += expect_sums_near_their_bound(problem, made->verdict);
            return;
        }
        RC_ASSERT(made->verdict.lower_bound_bytes == most_foreign_elements(problem) * size_of(problem.source.dtype));
        RC_ASSERT(made->verdict.received_bytes_max_device == made->verdict.lower_bound_bytes);
    });
    EXPECT_GT(across, 0);
    EXPECT_GT(in_pieces, 0);
    EXPECT_GT(reduced, 0);
    std::cout << reduced << " with sums, " << on_one_mesh << " of them on one mesh: " << at_their_bound
              << " at the bound\n";
    EXPECT_GT(2 * at_their_bound, on_one_mesh);
}

TEST(AnywhereProperty, EveryObjectiveAndVocabularyIsRightWhereItHasAPlan) {
    int planned = 0;
    std::uint64_t seed = 1'000'000;
    check_property(cases(500), [&] {
        const std::string question = random_question(++seed, ranks);
        RC_LOG(question);
        const Problem problem = problem_of(question);
        for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives})
            for (const Objective objective : {Objective::time, Objective::steps}) {
                Options options;
                options.vocabulary = vocabulary;
                options.objective = objective;
                const auto made = synthesize(problem, options);
                RC_ASSERT(made.has_value() || vocabulary == Vocabulary::collectives);
                if (!made) continue;
                judge_and_simulate(problem, *made);
                planned += vocabulary == Vocabulary::collectives;
            }
    });
    EXPECT_GT(planned, 0);
}

TEST(AnywhereProperty, CutsAreWhatTheirRulesSay) {
    check_property(cases(500), [] {
        const auto extent = *rc::gen::inRange<Index>(0, 60);
        const auto shards = *rc::gen::inRange<Index>(1, 7);
        const auto block = *rc::gen::inRange<Index>(1, 9);
        const AtomList atoms = canonical({{shards, 1}});
        const Dim cyclic = cut_in_blocks(extent, atoms, block);
        for (Index index = 0; index < extent; ++index) {
            const Side held = side(cyclic, index / block % shards);
            RC_ASSERT(intersect(held, Side{{{index, index + 1}}}).size() == 1);
        }
        Index all = 0;
        for (const Side& held : sides(cyclic)) all += held.size();
        RC_ASSERT(all == extent);
        RC_ASSERT(tile_extent(cyclic) >= tile_extent_min(cyclic));
        // A cut that ceil-div makes as well is no cut of its own.
        const Index tile = std::max<Index>(1, ceil_divide(extent, shards));
        RC_ASSERT(cut_in_blocks(extent, atoms, tile).pieces.empty());
    });
}

}  // namespace

}  // namespace reshard::test
