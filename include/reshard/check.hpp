// The judge. It trusts nothing that a search says: it types every step again and adds everything up again.
#pragma once

#include <memory>

#include "reshard/execution.hpp"

namespace reshard {

/// Bounds in bytes a device; none when empty.
struct Limits {
    std::optional<Index> peak_bytes_max = std::nullopt;  ///< the largest tile on the way
    /// A donated source is held to the end all the same: the footprint of one array is never less than source + target.
    MemoryPolicy memory = {};
};

/// What the judge derived. Bytes; maxima over devices.
struct Verdict {
    std::vector<Move> moves;  ///< one per step that runs: of one exchange that one
    Index peak_bytes = 0;     ///< largest tile on the path
    Index floor_bytes = 0;    ///< larger of source and target tile
    /// source + target + workspace of the executor (no staging), in full tiles that lie row-major
    Index footprint_bytes = 0;
    Index received_bytes = 0;             ///< sum over steps of the busiest receiver's bytes
    Index received_bytes_max_device = 0;  ///< the busiest receiver's total
    Index sent_bytes_max_device = 0;      ///< at most this is sent by one device
    Index lower_bound_bytes = 0;          ///< no protocol's busiest receiver gets less
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Accepts a plan that is typed, arrives at its target, can run so, and run so keeps the limits; else the first reason
/// against it: Code::layout, mismatch, step (with its number), plan (does not arrive, or cannot run so) or infeasible
/// (limit exceeded).
[[nodiscard]] Result<Verdict> check(const Plan& plan, const Execution& execution, const Limits& limits = {});
[[nodiscard]] Result<Verdict> check(const Plan& plan, const Limits& limits = {});  ///< as steps

/// What the judge has passed. Only the judge makes one, and nothing changes it: whoever takes one need not judge again.
template <class Value>
class Judged;

/// As check, with all that the verdict is of.
[[nodiscard]] Result<Judged<Plan>> judge(Plan plan, const Execution& execution, const Limits& limits = {});
/// The plan as choose_execution says for a backend that can do this.
[[nodiscard]] Result<Judged<Plan>> judge(Plan plan, const Capabilities& capabilities, const Limits& limits = {});
/// The same plan under other limits; judged again only when they differ in what is donated.
[[nodiscard]] Result<Judged<Plan>> within(const Judged<Plan>& judged, const Limits& limits);

/// A plan that runs so and keeps these limits. Copies share it.
template <>
class Judged<Plan> {
public:
    Judged(const Judged&) = default;             ///< a move copies, so that there is none without a plan
    Judged& operator=(const Judged&) = default;  ///< likewise

    [[nodiscard]] const Plan& plan() const { return passed_->plan; }                 ///< that was judged
    [[nodiscard]] const Execution& execution() const { return passed_->execution; }  ///< how it runs
    [[nodiscard]] const Verdict& verdict() const { return passed_->verdict; }        ///< of the plan that runs so
    [[nodiscard]] const Limits& limits() const { return limits_; }                   ///< which it keeps

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

/// Lower bound in elements on what the busiest receiver gets, for any protocol among the devices of the two meshes
/// (theorems recv_lower_bound, reduce_lower_bound). Without summands foreign_elements; with them at least the whole
/// target tile of a device that wants sums, and its part of least_receipts for every element.
[[nodiscard]] Index lower_bound(const Layout& source, const Layout& target);

}  // namespace reshard
