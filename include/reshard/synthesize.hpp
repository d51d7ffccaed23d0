// The front door of the planner: it takes two layouts and returns the cheapest plan it finds, judged.
#pragma once

#include "reshard/planner/list.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// Why the search ended.
enum class StopReason {
    one_step,    ///< one step was recognized as an optimum
    exhausted,   ///< the search visited every state that could matter
    budget,      ///< the state budget ended the search; the best plan so far is returned
    unsearched,  ///< the plan was built, not searched for
};
[[nodiscard]] std::string_view name(StopReason reason);  ///< one_step, exhausted, budget, unsearched

/// A way to find plans.
struct Rule {
    std::string_view name;   ///< in Alternative::rule and Options::disabled_rules
    std::string_view about;  ///< what it does, in one line
};
/// All rules in order. Among plans of equal cost the planner keeps the one of the earlier rule.
[[nodiscard]] std::vector<Rule> rules();

/// One row of the planner's policy: a class of questions, with its rules, their order, and when to stop.
struct PolicyRow {
    std::string_view name;   ///< one_mesh, pieces, ...
    std::string_view about;  ///< the questions it is for, in one line
};

/// How one rule fared, for `explain`.
struct RuleReport {
    std::string_view rule;  ///< its name
    Index candidates = 0;   ///< plans that the rule proposed
    Index kept = 0;         ///< proposed plans that are right, new and within the limits
    Index nanoseconds = 0;  ///< time to find and judge its plans, by Options::clock; 0 if there is no clock
};

/// One candidate that the planner considered, for `explain`, and how it would run. A candidate over a limit is judged
/// without that limit.
struct Alternative : Judged<Plan> {
    std::string rule;       ///< one of rules()
    Index picoseconds = 0;  ///< estimated on the machine of the options
    std::string lost;       ///< why it was not chosen; empty for the winner
};

/// The chosen plan, which keeps the limits of the options, and what the planner knows about it. It runs as one exchange
/// only if that is its single step.
struct Synthesis : Judged<Plan> {
    Index picoseconds = 0;  ///< estimated on the machine of the options
    std::string rule;       ///< the rule that gave the plan
    bool optimal = false;   ///< received_bytes_max_device == lower_bound_bytes
    /// No better plan for this objective exists in the vocabulary. The claim covers plans over axes and sub-axes of the
    /// mesh with ceil-div tiles and the peak at the floor. It compares sums over steps; bytes are those of the busiest
    /// receiver of each step. If sizes do not divide, it also covers cuts of whole axes by turns (chunked_per_axis),
    /// except for the time on several levels. If an end is cut by turns, it covers only such cuts, by axes of
    /// prime size. If sizes divide, the claim also covers layouts on the way that cut single digits of a dimension, for
    /// collectives and for the time on several levels. These are the prime digits that the cuts of both ends share; the
    /// rest of a dimension is split as the digits need. A plan over digits cuts each axis of mixed primes in one order
    /// throughout: any order on one level, else the least prime first. If the cuts of a dimension do not align, the
    /// claim covers no digits of that dimension. The time of copied runs counts in the view with the fewest runs.
    /// Excludes plans that renumber devices, and plans that introduce partial sums if neither end has any.
    bool search_complete = false;
    StopReason stop_reason = StopReason::unsearched;  ///< why the search ended
    Index states = 0;                                 ///< states the search expanded
    PolicyRow row = {};                               ///< the row of the policy that gave the answer
    std::vector<Alternative> alternatives = {};       ///< with Options::explain all candidates, the winner first
    std::vector<RuleReport> rules = {};               ///< with Options::explain the rules that were asked
};

/// Returns the cheapest plan that the planner finds and the judge passes. The same question has the same answer on
/// every rank, run and compiler. The peak is at the floor if sizes divide (theorem memory_bounded_existence), and
/// always with Vocabulary::all. With first steps the floor includes their layouts. A reshape is planned in a view that
/// both shapes have (to_common_shape). Errors: layout; mismatch (different arrays); step (a first step is not typed);
/// syntax (no rule has a name in Options::disabled_rules); infeasible (names the floor, or the rules that are off).
[[nodiscard]] Result<Synthesis> synthesize(const Problem& problem, const Options& options = {});
/// The same for two layouts.
[[nodiscard]] Result<Synthesis> synthesize(const Layout& source, const Layout& target, const Options& options = {});

/// Gathers every axis, then slices. This is the naive baseline, and what XLA does when it "involuntarily
/// rematerializes". It fits every pair of layouts with equal summands; its peak is the whole array.
[[nodiscard]] Result<Plan> gather_then_slice(const Problem& problem);

/// Many arrays: the plan of each, and the buckets in which they run.
struct ListSynthesis : Judged<ListPlan> {
    std::vector<Synthesis> arrays;  ///< one for each array
    Index floor_bytes = 0;          ///< no order and no plans need less on every device
    Index picoseconds = 0;          ///< list_picoseconds
    /// Arrays that would end sooner in a run of their own, in pieces whose steps overlap (Capabilities::steps_overlap).
    /// A list of several arrays never cuts a plan so.
    Index cut_alone = 0;
};

/// Plans each problem by itself, and puts all of them into as few buckets as the limit of the list allows, in an order
/// that the judge passes. `options` and their limits apply to each array. Donation is set once for the whole list, in
/// `memory`. The planner first ignores the limit; if the workspaces do not fit, it looks for plans that need less.
/// Errors: as for one problem, with the array named; overflow; infeasible (what the list needs, the limit, the floor).
[[nodiscard]] Result<ListSynthesis> synthesize(std::span<const Problem> problems, const Options& options = {},
                                               const MemoryPolicy& memory = {});

/// The time of a list on a machine: the sum over its buckets. A bucket takes as long as its busiest device needs for
/// all arrays, and at least as long as each array by itself (run_picoseconds). Saturates.
[[nodiscard]] Index list_picoseconds(const Judged<ListPlan>& list, const Machine& machine);

}  // namespace reshard
