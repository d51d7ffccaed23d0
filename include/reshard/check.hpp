// The judge. It trusts nothing from the search: it types every step again and adds everything up again.
#pragma once

#include <memory>

#include "reshard/execution.hpp"

namespace reshard {

/// Limits in bytes per device; no limit when empty.
struct Limits {
    std::optional<Index> peak_bytes_max = std::nullopt;  ///< the largest tile on the way
    /// Even a donated source is held to the end, so the footprint of one array is never less than source + target.
    MemoryPolicy memory = {};
};

/// The result of the judge, in bytes. Each figure is the maximum over devices.
struct Verdict {
    std::vector<Move> moves;  ///< one per step that runs; one exchange is a single step
    Index peak_bytes = 0;     ///< largest tile on the path
    Index floor_bytes = 0;    ///< larger of source and target tile
    /// source + target + the executor's workspace, without staging; counted in full, row-major tiles
    Index footprint_bytes = 0;
    Index received_bytes = 0;             ///< what the busiest receiver of each step receives, summed over the steps
    Index received_bytes_max_device = 0;  ///< the most that one device receives in total
    Index sent_bytes_max_device = 0;      ///< no device sends more
    Index lower_bound_bytes = 0;          ///< in any protocol the busiest receiver receives at least this
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Accepts a plan if it is typed, arrives at its target, can run with this execution and then keeps the limits.
/// Fails with the first reason against it. Errors: layout, mismatch, step (with its number), plan (it does not arrive,
/// or cannot run so), infeasible (over a limit).
[[nodiscard]] Result<Verdict> check(const Plan& plan, const Execution& execution, const Limits& limits = {});
[[nodiscard]] Result<Verdict> check(const Plan& plan, const Limits& limits = {});  ///< the plan run as steps

/// A value that the judge has passed. Only the judge makes one, and nothing changes it, so no one need judge it again.
template <class Value>
class Judged;

/// As check, but returns the plan, the execution and the limits together with the verdict.
[[nodiscard]] Result<Judged<Plan>> judge(Plan plan, const Execution& execution, const Limits& limits = {});
/// As above, with the execution that choose_execution returns for a backend with these capabilities.
[[nodiscard]] Result<Judged<Plan>> judge(Plan plan, const Capabilities& capabilities, const Limits& limits = {});
/// The same plan under other limits. It is judged again only if they differ in `donate`.
[[nodiscard]] Result<Judged<Plan>> within(const Judged<Plan>& judged, const Limits& limits);

/// A plan that runs with this execution and keeps these limits. Copies share it.
template <>
class Judged<Plan> {
public:
    Judged(const Judged&) = default;             ///< a move copies too, so every Judged has a plan
    Judged& operator=(const Judged&) = default;  ///< the same

    [[nodiscard]] const Plan& plan() const { return passed_->plan; }                 ///< the plan that was judged
    [[nodiscard]] const Execution& execution() const { return passed_->execution; }  ///< how it runs
    [[nodiscard]] const Verdict& verdict() const { return passed_->verdict; }        ///< the result of the judge
    [[nodiscard]] const Limits& limits() const { return limits_; }                   ///< the limits that it keeps

private:
    friend Result<Judged<Plan>> judge(Plan plan, const Execution& execution, const Limits& limits);
    friend Result<Judged<Plan>> within(const Judged<Plan>& judged, const Limits& limits);
    struct Passed {
        Plan plan;
        Execution execution;
        Verdict verdict;
    };
    Judged(Passed passed, const Limits& limits)
        : passed_(std::make_shared<const Passed>(std::move(passed))), limits_(limits) {}

    std::shared_ptr<const Passed> passed_;
    Limits limits_;
};

/// The least number of elements that the busiest receiver gets, in any protocol among the devices of the two meshes
/// (theorems recv_lower_bound, reduce_lower_bound). It is missing_elements if neither layout is unreduced. With
/// summands it is at least the whole target tile of a device that wants sums, and its part of min_received for every
/// element.
[[nodiscard]] Index lower_bound(const Layout& source, const Layout& target);

}  // namespace reshard
