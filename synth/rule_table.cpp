#include "synth/rule_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "synth/answer.hpp"
#include "synth/rules/cross_mesh.hpp"
#include "synth/rules/fetch_once.hpp"
#include "synth/rules/fuse_steps.hpp"
#include "synth/rules/renumber.hpp"
#include "synth/rules/three_stage.hpp"
#include "synth/search/search.hpp"

namespace reshard {

namespace {

void do_nothing(Inquiry& asked) { asked.consider(Plan{asked.problem.source, asked.problem.target, {}}); }

constexpr std::string_view name_of_step(StepKind kind) {
    return kind == StepKind::exchange ? "direct_exchange" : "one_step";
}

// What the search finds in one space.
Found search_space(Inquiry& asked, const SearchSpace& space, const SearchOptions& limits) {
    const Problem& problem = asked.problem;
    const Options& options = asked.options;
    SearchReport& report = asked.searched;
    Found found = search(space, limits, options.machine);
    if (report.stopped != StopReason::budget)
        report.stopped = found.complete ? StopReason::exhausted : StopReason::budget;
    report.states += found.states;
    // What a search over digits takes for typed and priced is so where sizes divide, or all devices are looked at.
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

bool settled(const Inquiry& asked) {
    const Alternative* best = asked.candidates.best();
    return best != nullptr && unbeatable(*best, asked.options.objective);
}

bool has_sums(const Problem& problem) { return !problem.source.unreduced.empty() || !problem.target.unreduced.empty(); }

SearchOptions search_options(const Inquiry& asked) {
    SearchOptions limits;
    limits.objective = asked.options.objective;
    limits.vocabulary = asked.options.vocabulary;
    limits.tile_max = asked.candidates.peak_bytes_max() / size_of(asked.problem.source.dtype);
    return limits;
}

// True when the problem is in digits of which each was tried, so that coarser ones have nothing to add.
bool search_products(Inquiry& asked, SearchOptions& limits) {
    const Options& options = asked.options;
    const auto space =
        make_search_space(asked.problem, options.objective == Objective::time && options.machine.levels.size() > 1);
    const auto look = [&](const SearchSpace& digits, Index hops_max) {
        SearchOptions within = limits;
        within.hops_max = hops_max;
        const Found found = search_space(asked, digits, within);
        // An estimate may be less than the plan costs.
        if (found.arrived && found.exact_prices && (digits.even || digits.exact))
            limits.below = std::min(limits.below, found.price);
    };
    const bool sums = has_sums(asked.problem) && options.objective != Objective::time;
    if (space) look(*space, sums ? sums_hops_max : limits.hops_max);
    // In coarser digits a plan is found where primes are too many, or those without the idle axes miss it.
    if (settled(asked) || (space && space->whole && asked.searched.stopped == StopReason::exhausted))
        return space && space->even;
    // Exchanges can use up the budget before steps that add up in turn are looked at.
    if (space && limits.vocabulary == Vocabulary::all && has_sums(asked.problem)) {
        SearchOptions narrow = limits;
        narrow.vocabulary = Vocabulary::collectives;
        search_space(asked, *space, narrow);
        asked.searched.exhausted = false;
        if (settled(asked)) return space->even;
    }
    // In the same digits it would find the same.
    const auto coarse = make_coarse_space(asked.problem);
    if (!coarse || (space && same_digits(*space, *coarse))) return false;
    SearchOptions all = limits;
    all.below = {index_max, index_max};
    std::swap(all, limits);
    look(*coarse, limits.hops_max);
    limits.below = std::min(limits.below, all.below);
    return false;
}

// Where sizes do not divide: the digits cut one after another. On one level an exchange is the best already.
void search_turns(Inquiry& asked, SearchOptions limits) {
    const Problem& problem = asked.problem;
    const Options& options = asked.options;
    const bool timed = options.objective == Objective::time && options.machine.levels.size() > 1;
    if (settled(asked) || (!timed && !has_sums(problem) && options.vocabulary == Vocabulary::all)) return;
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

void search_digits(Inquiry& asked) {
    if (asked.options.machine.levels.size() > levels_max) return;
    if (!same_order(asked.problem.source.mesh, asked.problem.target.mesh)) return;
    SearchOptions limits = search_options(asked);
    if (searchable(asked.problem) && search_products(asked, limits)) return;
    search_turns(asked, limits);
}

void take_one_step(Inquiry& asked) {
    const Problem& problem = asked.problem;
    for (const StepKind kind : all_step_kinds) {
        if (name_of_step(kind) != asked.rule) continue;
        const Step step{kind, problem.target};
        if (type_valid_step(problem.source, step)) asked.consider(Plan{problem.source, problem.target, {step}});
    }
}

template <Index inside>
void build_in_three_stages(Inquiry& asked) {
    asked.consider(three_stage(asked.problem, asked.options.vocabulary, inside));
}

void build_in_three_stages_inside(Inquiry& asked) {
    const Index inside = asked.options.machine.levels[asked.level].devices;
    if (searchable(asked.problem) && inside < device_count(asked.problem.source))
        asked.consider(three_stage(asked.problem, asked.options.vocabulary, inside));
}

void fetch_once_inside(Inquiry& asked) {
    const Options& options = asked.options;
    if (searchable(asked.problem))
        asked.consider(fetch_once(asked.problem, options.vocabulary, options.machine, asked.level));
    else if (options.vocabulary == Vocabulary::all)
        asked.consider(fetch_once_between(asked.problem, options.machine, asked.level));
}

template <auto plan_of>
void plan_between(Inquiry& asked) {
    if constexpr (std::is_invocable_v<decltype(plan_of), const Problem&, const Machine&>)
        asked.consider(plan_of(asked.problem, asked.options.machine));
    else
        asked.consider(plan_of(asked.problem));
}

void search_even_blocks(Inquiry& asked) {
    const auto blocks = in_even_blocks(asked.problem);
    if (!blocks) return;
    std::vector<Step> steps = steps_in_one_order(*blocks, asked.options);
    if (!steps.empty() || same_tiles(blocks->source, blocks->target))
        asked.consider(between_pieces(asked.problem, *blocks, std::move(steps)));
}

// As it is: fused, it would not be naive any more. Where it holds too much it is only there to be shown.
void show_naive(Inquiry& asked) {
    if (!asked.options.explain && global_bytes(asked.problem.source) > asked.candidates.peak_bytes_max()) return;
    if (auto naive = gather_then_slice(asked.problem))
        asked.candidates.show(std::string(asked.rule), std::move(*naive));
}

// The problem between two orders leads to one in one order, and that to no other.
void reorder_last(Inquiry& asked) {
    if (const auto made = in_the_order_of_the_source(asked.problem))
        asked.consider(reordered(asked.problem, steps_in_one_order(*made, asked.options)));
}

void renumber(Inquiry& asked) {
    asked.consider(renumbered_to_target(asked.problem));
    asked.consider(renumbered_to_source(asked.problem));
}

void ask_collectives(Inquiry& asked) {
    Options narrow = of_collectives(asked.options);
    narrow.explain = false;
    const auto made = answer(asked.candidates.problem(), narrow);
    if (!made) return;
    asked.searched.states += made->states;
    asked.candidates.keep(std::string(asked.rule), *made);
}

// In the order in which they are asked: of plans that cost the same the first is chosen.
constexpr std::array<RuleEntry, 17> table = {{
    {{"identity", "both ends hold the same: nothing moves"}, Stage::nothing, do_nothing},
    {{"search", "the shortest path over typed steps, in the digits of the mesh"}, Stage::search, search_digits},
    {{"renumber", "the devices are numbered anew, so that digits cross the axes of the mesh; one permute"},
     Stage::numbers,
     renumber},
    {{"one_step", "one collective leads from end to end"}, Stage::one_step, take_one_step},
    {{"direct_exchange", "one universal exchange from end to end"}, Stage::one_step, take_one_step, Vocabulary::all},
    {{"three_stage", "slice, move equal tiles, gather; sliced no more than the ends make necessary"},
     Stage::built,
     build_in_three_stages<0>},
    {{"three_stage_deep", "the same, sliced by all that both ends leave unused"},
     Stage::built,
     build_in_three_stages<index_max>},
    {{"three_stage_inside", "the same, sliced further inside a level of the network only"},
     Stage::level,
     build_in_three_stages_inside},
    {{"fetch_once", "each element enters a level of the network once and is gathered there"},
     Stage::level,
     fetch_once_inside},
    {{"reduce_first", "sums are reduced where they lie; then one exchange"},
     Stage::between,
     plan_between<reduce_first>,
     Vocabulary::all},
    {{"scatter_then_gather", "one exchange brings each element once; a gather at the target spreads it"},
     Stage::between,
     plan_between<scatter_then_gather>,
     Vocabulary::all},
    {{"reduce_last", "summands are carried to where they are wanted and reduced there"},
     Stage::between,
     plan_between<reduce_last>,
     Vocabulary::all},
    {{"even_blocks", "the search between even blocks; an exchange leads from and to the intervals that the ends have"},
     Stage::between,
     search_even_blocks,
     Vocabulary::all},
    {{"gather_differing", "dimensions that are cut differently are gathered, then sliced"},
     Stage::between,
     plan_between<gather_differing>},
    {{"gather_then_slice", "the whole array on every device, then a slice: the naive baseline"},
     Stage::baseline,
     show_naive},
    {{"reorder", "the target is made in the source's order of devices, then whole tiles are permuted"},
     Stage::orders,
     reorder_last},
    {{"collectives", "what the collectives alone would answer: in pieces its steps may overlap, or hold less"},
     Stage::collectives,
     ask_collectives,
     Vocabulary::all},
}};

}  // namespace

std::span<const RuleEntry> rule_table() { return table; }

std::vector<Rule> rules() {
    std::vector<Rule> all_rules;
    std::ranges::transform(table, std::back_inserter(all_rules), &RuleEntry::rule);
    return all_rules;
}

bool is_off(const Options& options, std::string_view rule) {
    return std::ranges::find(options.without, rule) != options.without.end();
}

Result<Index> rules_off(const Options& options) {
    Index off = 0;
    for (const std::string& name : options.without) {
        const auto* const found =
            std::ranges::find(table, name, [](const RuleEntry& entry) { return entry.rule.name; });
        if (found == table.end()) {
            std::string names;
            for (const RuleEntry& entry : table)
                names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.rule.name);
            return fail(Code::syntax, fmt::format("'{}' is no rule: {}", name.substr(0, 40), names));
        }
        off |= Index{1} << (found - table.begin());
    }
    return off;
}

}  // namespace reshard
