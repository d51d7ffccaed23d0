#include "synth/rule_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "synth/rules/cross_mesh.hpp"
#include "synth/rules/fetch_once.hpp"
#include "synth/rules/fuse_steps.hpp"
#include "synth/rules/renumber.hpp"
#include "synth/rules/three_stage.hpp"

namespace reshard {

namespace {

void do_nothing(Inquiry& asked) { asked.consider(Plan{asked.problem.source, asked.problem.target, {}}); }

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

// The steps of the answer to a question in one order of devices, without limits; empty if it has no plan.
std::vector<Step> steps_between(const Inquiry& asked, const Problem& problem) {
    Options options = asked.options;
    options.explain = false;
    options.limits = {};
    options.capabilities = {};
    options.first_steps.clear();
    options.disabled_rules.emplace_back("collectives");
    const auto made = asked.answer(problem, options);
    return made ? made->plan().steps : std::vector<Step>{};
}

void search_even_blocks(Inquiry& asked) {
    const auto blocks = in_even_blocks(asked.problem);
    if (!blocks) return;
    std::vector<Step> steps = steps_between(asked, *blocks);
    if (!steps.empty() || equivalent(blocks->source, blocks->target))
        asked.consider(between_pieces(asked.problem, *blocks, std::move(steps)));
}

// Not fused, since it would not be naive then. If it holds too much, only explain lists it.
void show_naive(Inquiry& asked) {
    if (!asked.options.explain && global_bytes(asked.problem.source) > asked.candidates.peak_bytes_max()) return;
    if (auto naive = gather_then_slice(asked.problem))
        asked.candidates.show(std::string(asked.rule), std::move(*naive));
}

// A question between two orders poses one in one order, which poses no other.
void reorder_last(Inquiry& asked) {
    if (const auto made = in_the_order_of_the_source(asked.problem))
        asked.consider(reordered(asked.problem, steps_between(asked, *made)));
}

void renumber_devices(Inquiry& asked) {
    asked.consider(renumbered_to_target(asked.problem));
    asked.consider(renumbered_to_source(asked.problem));
}

void ask_collectives(Inquiry& asked) {
    Options narrow = of_collectives(asked.options);
    narrow.explain = false;
    const auto made = asked.answer(asked.candidates.problem(), narrow);
    if (!made) return;
    asked.searched.states += made->states;
    asked.candidates.keep(std::string(asked.rule), *made);
}

}  // namespace

std::span<const RuleEntry> rule_table() {
    using enum RuleGroup;
    constexpr Vocabulary all = Vocabulary::all;
    // Among plans of equal cost the first one wins, so the order of rules within a group decides ties.
    // clang-format off
    static constexpr std::array<RuleEntry, 18> table = {{
        {{"identity", "both ends hold the same: nothing moves"}, identity, do_nothing},
        {{"search", "the shortest path over typed steps, in the digits of the mesh"}, search, search_digits},
        {{"split_dims", "the search in a view: each digit of a dimension is a dimension, and axes cut any of them"}, split, search_split_dims},
        {{"renumber", "the devices are numbered anew, so that digits cross the axes of the mesh; one permute"}, renumber, renumber_devices},
        {{"one_step", "one collective leads from end to end"}, one_step, take_one_step},
        {{"direct_exchange", "one universal exchange from end to end"}, one_step, take_one_step, all},
        {{"three_stage", "slice, move equal tiles, gather; sliced no more than the ends make necessary"}, built, build_in_three_stages<0>},
        {{"three_stage_deep", "the same, sliced by all that both ends leave unused"}, built, build_in_three_stages<index_max>},
        {{"three_stage_inside", "the same, sliced further inside a level of the network only"}, level, build_in_three_stages_inside},
        {{"fetch_once", "each element enters a level of the network once and is gathered there"}, level, fetch_once_inside},
        {{"reduce_first", "sums are reduced where they lie; then one exchange"}, between, plan_between<reduce_first>, all},
        {{"scatter_then_gather", "one exchange brings each element once; a gather at the target spreads it"}, between, plan_between<scatter_then_gather>, all},
        {{"reduce_last", "summands are carried to where they are wanted and reduced there"}, between, plan_between<reduce_last>, all},
        {{"even_blocks", "the search between even blocks; an exchange leads from and to the intervals that the ends have"}, between, search_even_blocks, all},
        {{"gather_differing", "dimensions that are cut differently are gathered, then sliced"}, between, plan_between<gather_differing>},
        {{"gather_then_slice", "the whole array on every device, then a slice: the naive baseline"}, baseline, show_naive},
        {{"reorder", "the target is made in the source's order of devices, then whole tiles are permuted"}, reorder, reorder_last},
        {{"collectives", "what the collectives alone would answer: in pieces its steps may overlap, or hold less"}, collectives, ask_collectives, all},
    }};
    // clang-format on
    return table;
}

std::vector<Rule> rules() {
    std::vector<Rule> all_rules;
    std::ranges::transform(rule_table(), std::back_inserter(all_rules), &RuleEntry::rule);
    return all_rules;
}

bool is_off(const Options& options, std::string_view rule) {
    return std::ranges::find(options.disabled_rules, rule) != options.disabled_rules.end();
}

bool all_on(const Options& options, RuleGroup group) {
    return std::ranges::none_of(
        rule_table(), [&](const RuleEntry& entry) { return entry.group == group && is_off(options, entry.rule.name); });
}

Options of_collectives(Options options) {
    options.vocabulary = Vocabulary::collectives;
    return options;
}

Result<Index> rules_off(const Options& options) {
    Index off = 0;
    for (const std::string& name : options.disabled_rules) {
        const auto found =
            std::ranges::find(rule_table(), name, [](const RuleEntry& entry) { return entry.rule.name; });
        if (found == rule_table().end()) {
            std::string names;
            for (const RuleEntry& entry : rule_table())
                names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.rule.name);
            return fail(Code::syntax, fmt::format("'{}' is no rule: {}", name.substr(0, 40), names));
        }
        off |= Index{1} << (found - rule_table().begin());
    }
    return off;
}

}  // namespace reshard
