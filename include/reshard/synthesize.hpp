// The front door of the search: two layouts in, the cheapest plan it can find out, judged before it is returned.
#pragma once

#include "reshard/planner/list.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// Why the search ended.
enum class StopReason {
    one_step,    ///< an optimum of one step was recognized
    exhausted,   ///< every state worth looking at was looked at
    budget,      ///< the state budget ended the search; the best plan so far is returned
    unsearched,  ///< the plan was built, not searched for
};
[[nodiscard]] std::string_view name(StopReason reason);  ///< one_step, exhausted, budget, unsearched

/// A way to find plans.
struct Rule {
    std::string_view name;   ///< in Alternative::rule and Options::without
    std::string_view about;  ///< what it does, in one line
};
/// All that there are, in the order in which they are asked: of plans that cost the same the first is chosen.
[[nodiscard]] std::vector<Rule> rules();

/// How one rule fared, for `explain`.
struct RuleReport {
    std::string_view rule;  ///< its name
    Index candidates = 0;   ///< plans that it proposed
    Index kept = 0;         ///< of them those that are right, within the limits, and no earlier rule's
    Index nanoseconds = 0;  ///< spent on finding and judging them, by Options::clock; 0 without one
};

/// One candidate the synthesizer considered, for `explain`, and how it would run. What is over a limit was judged
/// without.
struct Alternative : Judged<Plan> {
    std::string rule;       ///< one of rules()
    Index picoseconds = 0;  ///< estimated on the machine of the options
    std::string lost;       ///< why it was not chosen; empty for the winner
};

/// The plan that was chosen, within the limits of the options, and what is known of it. It runs as one exchange only
/// where that is its one step.
struct Synthesis : Judged<Plan> {
    Index picoseconds = 0;  ///< estimated on the machine of the options
    std::string rule;       ///< the rule that gave the plan
    bool optimal = false;   ///< received_bytes_max_device == lower_bound_bytes
    /// Nothing better for this objective exists in this vocabulary: no plan over the axes and sub-axes of the mesh with
    /// ceil-div tiles and the peak at the floor whose steps add up to less (in bytes: of each its busiest receiver).
    /// Where sizes do not divide also none that cuts whole axes by turns (cut_by_turns) throughout, but for the time on
    /// several levels; where an end is cut so, that alone, axes of prime size. Not meant are plans that number devices
    /// in another order on the way, or that make summands between ends without.
    bool search_complete = false;
    StopReason stop_reason = StopReason::unsearched;  ///< why the search ended
    Index states = 0;                                 ///< states the search expanded
    std::vector<Alternative> alternatives = {};       ///< with Options::explain all candidates, the winner first
    std::vector<RuleReport> rules = {};               ///< with Options::explain the rules that were asked
};

/// The cheapest plan found. Same question, same answer on every rank, run and compiler; never a plan that the judge has
/// not passed. peak <= floor whenever sizes divide (theorem memory_bounded_existence), and always with
/// Vocabulary::all. A reshape is planned in a view that both shapes have (unified). With first steps the floor is that
/// of the ends and those steps. Errors: layout, mismatch (different arrays), step (a first step that is not typed),
/// syntax (no rule of that name in Options::without), infeasible (names the floor, or the rules that are off).
[[nodiscard]] Result<Synthesis> synthesize(const Problem& problem, const Options& options = {});
/// The same for two layouts.
[[nodiscard]] Result<Synthesis> synthesize(const Layout& source, const Layout& target, const Options& options = {});

/// Gather every axis, then slice: what XLA does when it "involuntarily rematerializes", and the naive baseline here.
/// A valid plan of every pair without summand changes; its peak is the whole array.
[[nodiscard]] Result<Plan> gather_then_slice(const Problem& problem);

/// Many arrays, what each of them moves by, and when.
struct ListSynthesis : Judged<ListPlan> {
    std::vector<Synthesis> arrays;  ///< of each array
    Index floor_bytes = 0;          ///< no order and no plans let every device do with less
    Index picoseconds = 0;          ///< list_picoseconds
    /// Arrays that would end sooner in a run of their own, in pieces whose steps overlap (Capabilities::steps_overlap);
    /// in a list of several no plan is cut so.
    Index cut_alone = 0;
};

/// The plan of each problem by itself, and buckets for all of them, as few as the limit of the list allows, in an order
/// that the judge has passed. `options` and their limits are of each array, but whether sources are donated is
/// the list's to say. Plans without limit come first; where their workspaces do not fit, plans that need less are
/// looked for. Errors: as for one problem, the array named; overflow; infeasible (what is needed, the limit, and the
/// floor).
[[nodiscard]] Result<ListSynthesis> synthesize(std::span<const Problem> problems, const Options& options = {},
                                               const MemoryPolicy& memory = {});

/// The time of a list on a machine: the sum over its buckets. A bucket takes as long as the device that is busy longest
/// with all of its arrays, and no less than any of them takes by itself (run_picoseconds). Saturating.
[[nodiscard]] Index list_picoseconds(const Judged<ListPlan>& list, const Machine& machine);

}  // namespace reshard
