#include "synth/policy.hpp"

#include <algorithm>

#include "synth/rules/cross_mesh.hpp"

namespace reshard {

namespace {

// Which questions a row is for.

bool between_orders(const Inquiry& asked) { return !same_order(asked.problem.source.mesh, asked.problem.target.mesh); }

bool nothing_moves(const Inquiry& asked) {
    return !between_orders(asked) && equivalent(asked.problem.source, asked.problem.target) &&
           !is_off(asked.options, "identity");
}

bool exchanges_all(const Inquiry& asked) {
    return asked.options.capabilities.one_exchange && asked.options.vocabulary == Vocabulary::all &&
           asked.options.first_steps.empty() && !equivalent(asked.problem.source, asked.problem.target);
}

bool in_digits(const Inquiry& asked) { return searchable(asked.problem); }

bool in_one_order(const Inquiry& asked) { return !between_orders(asked); }

// When a stage runs.

bool always(const Inquiry& /*asked*/) { return true; }

bool is_settled(const Inquiry& asked) { return asked.candidates.settled(); }

bool searched_estimates(const Inquiry& asked) { return asked.searched.estimates; }

// New numbers cost a permute and an all-to-all, which receive at least 3/2 of the bound.
bool may_gain_by_numbers(const Inquiry& asked) {
    const Alternative* best = asked.candidates.best();
    if (best == nullptr || asked.options.vocabulary != Vocabulary::collectives) return false;
    const Verdict& verdict = best->verdict();
    return std::ranges::count(best->plan().steps, StepKind::permute, &Step::kind) > 1 ||
           verdict.received_bytes_max_device / 3 > verdict.lower_bound_bytes / 2;
}

bool is_open_between_orders(const Inquiry& asked) { return !is_settled(asked) && between_orders(asked); }

bool for_least_time(const Inquiry& asked) { return asked.options.objective == Objective::time; }

bool for_least_time_on_levels(const Inquiry& asked) {
    return for_least_time(asked) && asked.options.machine.levels.size() > 1;
}

// An exchange receives the least and moves once. Collectives in digits can only take less time, on several levels.
bool may_gain_by_digits(const Inquiry& asked) {
    const bool wanted = asked.options.vocabulary == Vocabulary::collectives || for_least_time_on_levels(asked);
    return wanted && asked.candidates.best() != nullptr && !unbeaten(asked) && asked.options.first_steps.empty() &&
           divides(asked.problem.source) && divides(asked.problem.target);
}

// Within a limit on memory, collectives may run in pieces even if no exchange fits.
bool collectives_may_win(const Inquiry& asked) {
    if (asked.candidates.best() == nullptr) return true;
    return weighs_collectives(asked.options) && !is_settled(asked) && !unbeaten(asked);
}

// When the best candidate is the answer.

bool never(Inquiry& /*asked*/) { return false; }

// If one exchange is as good as any steps, no plan beats one step that receives only what it must.
bool receives_the_least(Inquiry& asked) {
    return asked.candidates.best() != nullptr && at_bound(*asked.candidates.best());
}

bool one_step_is_best(Inquiry& asked) { return unbeaten(asked) && moving_steps(asked.candidates.best()->plan()) <= 1; }

// Nothing that the other rules propose can beat the search.
bool search_is_enough(Inquiry& asked) {
    const SearchReport& searched = asked.searched;
    const Options& options = asked.options;
    if (asked.candidates.best() == nullptr) return false;
    // If cuts are mixed, the price of an exchange is an upper estimate, so the exchange itself must be a candidate.
    if (searched.estimates && !all_on(options, RuleGroup::one_step)) return false;
    const bool timed = options.objective == Objective::time;
    // The search skips some reductions in pieces of mixed cuts, and their times on several levels.
    if (!searched.exhausted || (has_summands(asked.problem) && (timed || !searched.sums_settled))) return false;
    const Alternative& best = *asked.candidates.best();
    // The search adds up the steps. If steps overlap, another plan may end sooner.
    if (timed && overlaps_levels(options)) return false;
    // For the least time the search visits only some states by exchanges, and a plan in pieces takes longer than its
    // price.
    const bool all_kinds =
        options.vocabulary == Vocabulary::collectives ||
        (searched.sums_settled && searched.even && !searched.estimates && !options.capabilities.one_exchange);
    const bool skips_digits = may_gain_by_digits(asked) && is_off(options, "split_dims");
    asked.complete =
        options.first_steps.empty() && !skips_digits && (!timed || (all_kinds && piece_count(best.execution()) == 1));
    // For the least time the search skips some exchanges between ragged tiles, and does not price their messages. The
    // busiest device may also receive less in all than the sum over the steps, which the search minimizes.
    const auto even = [](const Step& step) { return divides(step.layout); };
    if (timed)
        return asked.complete ||
               (!searched.estimates && divides(asked.problem.source) && std::ranges::all_of(best.plan().steps, even));
    return searched.even || at_bound(best);
}

}  // namespace

std::span<const Row> policy() {
    using enum RuleGroup;
    static constexpr Enough go_on = {never};

    static constexpr Stage at_once[] = {{identity, always, go_on}, {collectives, collectives_may_win, go_on}};

    static constexpr Stage by_one_exchange[] = {{one_step, always, {receives_the_least, true}},
                                                {baseline, is_settled, go_on}};

    static constexpr Stage by_search[] = {{search, always, go_on},
                                          {one_step, searched_estimates, {search_is_enough}},
                                          {split, may_gain_by_digits, go_on, true},
                                          {renumber, may_gain_by_numbers, go_on, true},
                                          {one_step, always, {one_step_is_best, true}},
                                          {built, always, go_on},
                                          {level, for_least_time, go_on},
                                          {baseline, always, go_on},
                                          {collectives, collectives_may_win, go_on}};

    static constexpr Stage by_pieces[] = {{search, always, go_on},
                                          {one_step, searched_estimates, {search_is_enough}},
                                          {one_step, always, go_on},
                                          {between, always, go_on},
                                          {level, for_least_time_on_levels, go_on},
                                          {baseline, always, go_on},
                                          {reorder, is_open_between_orders, go_on},
                                          {collectives, collectives_may_win, go_on}};

    static constexpr Row rows[] = {
        {{"nothing_moves", "both ends hold the same elements"}, nothing_moves, at_once},
        {{"one_exchange", "the backend runs one exchange as fast as any steps"}, exchanges_all, by_one_exchange, true},
        {{"one_mesh", "both ends are written in the digits of one mesh"}, in_digits, by_search},
        {{"pieces", "both ends list the devices in one order, and cut a dimension in pieces"}, in_one_order, by_pieces},
        {{"two_orders", "the ends are on different devices, or list them in different orders"}, always, by_pieces},
    };

    return rows;
}

PolicyRow halves_row() {
    return {"two_reductions",
            "one reduction becomes another; each half from or to the reduced array is answered alone"};
}

bool weighs_collectives(const Options& options) {
    return options.objective == Objective::time && options.vocabulary == Vocabulary::all && overlaps_levels(options);
}

}  // namespace reshard
