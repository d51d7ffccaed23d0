// The rule `search`: the shortest path over typed steps, first in fine digits of the mesh, then in coarser ones.

#include <algorithm>

#include "synth/rule_table.hpp"
#include "synth/rules/cross_mesh.hpp"
#include "synth/search/search.hpp"

namespace reshard {

namespace {

// Searches one space and proposes its plan.
Found search_space(Inquiry& asked, const SearchSpace& space, const SearchOptions& limits) {
    const Problem& problem = asked.problem;
    const Options& options = asked.options;
    SearchReport& report = asked.searched;
    Found found = search(space, limits, options.machine);
    if (report.stopped != StopReason::budget)
        report.stopped = found.complete ? StopReason::exhausted : StopReason::budget;
    report.states += found.states;
    // The types and prices of a search over digits hold if sizes divide, or if it looks at every device.
    const bool exact = space.even || space.exact;
    if (space.whole && !space.by_turns) report.exhausted = found.complete && exact;
    if (!found.arrived) return found;
    Plan plan{problem.source, problem.target, std::move(found.steps)};
    const std::string_view one = plan.steps.size() == 1 ? name_of_step(plan.steps[0].kind) : asked.rule;
    std::string rule(is_off(options, one) ? asked.rule : one);
    const bool priced = exact || std::ranges::all_of(plan.steps, [](const Step& step) { return divides(step.layout); });
    const bool kept = priced ? asked.candidates.judge(std::move(rule), std::move(plan))
                             : asked.candidates.consider(std::move(rule), std::move(plan));
    if (!space.whole || space.by_turns) return found;
    report.exhausted = kept && found.complete && exact && found.exact_prices;
    report.even = space.even;
    report.estimates = options.vocabulary == Vocabulary::all && space.mixed;
    report.sums_settled = !space.mixed && found.all_exchanges;
    return found;
}

SearchOptions search_options(const Inquiry& asked) {
    SearchOptions limits;
    limits.objective = asked.options.objective;
    limits.vocabulary = asked.options.vocabulary;
    limits.tile_max = asked.candidates.peak_bytes_max() / size_of(asked.problem.source.dtype);
    return limits;
}

// True if the search tried every digit of the problem, so coarser digits add nothing.
bool search_products(Inquiry& asked, SearchOptions& limits) {
    const Options& options = asked.options;
    const auto space =
        make_search_space(asked.problem, options.objective == Objective::time && options.machine.levels.size() > 1);
    const auto look = [&](const SearchSpace& digits, Index hops_max) {
        SearchOptions within = limits;
        within.hops_max = hops_max;
        const Found found = search_space(asked, digits, within);
        // An estimate may be lower than the real cost of the plan.
        if (found.arrived && found.exact_prices && (digits.even || digits.exact))
            limits.below = std::min(limits.below, found.price);
    };
    const bool sums = has_summands(asked.problem) && options.objective != Objective::time;
    if (space) look(*space, sums ? sums_hops_max : limits.hops_max);
    // Coarser digits find a plan if there are too many primes, or if the digits without idle axes miss it.
    if (unbeaten(asked) || (space && space->whole && asked.searched.stopped == StopReason::exhausted))
        return space && space->even;
    // Exchanges can use up the budget before the search reaches reductions in several steps.
    if (space && limits.vocabulary == Vocabulary::all && has_summands(asked.problem)) {
        SearchOptions narrow = limits;
        narrow.vocabulary = Vocabulary::collectives;
        search_space(asked, *space, narrow);
        asked.searched.exhausted = false;
        if (unbeaten(asked)) return space->even;
    }
    // A search over the same digits would find the same plan.
    const auto coarse = make_coarse_space(asked.problem);
    if (!coarse || (space && same_digits(*space, *coarse))) return false;
    SearchOptions all = limits;
    all.below = {index_max, index_max};
    std::swap(all, limits);
    look(*coarse, limits.hops_max);
    limits.below = std::min(limits.below, all.below);
    return false;
}

// If sizes do not divide: one digit after another cuts the dimension. On one level an exchange is already the best.
void search_turns(Inquiry& asked, SearchOptions limits) {
    const Problem& problem = asked.problem;
    const Options& options = asked.options;
    const bool timed = options.objective == Objective::time && options.machine.levels.size() > 1;
    if (unbeaten(asked) || (!timed && !has_summands(problem) && options.vocabulary == Vocabulary::all)) return;
    const auto space = make_space_by_turns(problem);
    if (!space) return;
    SearchReport& report = asked.searched;
    const Found found = search_space(asked, *space, limits);
    const bool done = found.complete && found.exact_prices && !timed;
    if (searchable(problem)) {
        report.exhausted = report.exhausted && (done || timed);
        report.sums_settled = report.sums_settled && found.all_exchanges;
    } else {
        report.exhausted = done && found.arrived && space->whole;
        report.sums_settled = found.all_exchanges;
    }
}

}  // namespace

void search_digits(Inquiry& asked) {
    if (asked.options.machine.levels.size() > levels_max) return;
    if (!same_order(asked.problem.source.mesh, asked.problem.target.mesh)) return;
    SearchOptions limits = search_options(asked);
    if (searchable(asked.problem) && search_products(asked, limits)) return;
    search_turns(asked, limits);
}

}  // namespace reshard
