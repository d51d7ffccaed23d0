// Judges, prices and orders the plans that rules propose: which may be chosen, which is best, why the others lost.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// The number of steps that communicate.
[[nodiscard]] Index moving_steps(const Plan& plan);

/// How a plan of this question runs. With first steps of the user it runs step by step.
[[nodiscard]] Execution execution_for(const Plan& plan, const Options& options);

/// True if steps may use different levels at the same time. Steps over one level still add up.
[[nodiscard]] bool overlaps_levels(const Options& options);

/// True if the plan receives no more than every plan must.
[[nodiscard]] bool at_bound(const Judged<Plan>& plan);
/// True if no plan is better in any vocabulary.
[[nodiscard]] bool unbeatable(const Judged<Plan>& best, Objective objective);

/// The error if rules are off and the others find no plan.
[[nodiscard]] Error no_rule_left(const Options& options);

/// Replaces `made` by the judged plan; false if the judge refused it.
inline bool rejudge(Judged<Plan>& made, const Result<Judged<Plan>>& judged) {
    if (judged) made = *judged;
    return judged.has_value();
}

class Candidates {
public:
    /// No plan that holds a larger tile than the ends is kept, or than `least_peak_bytes` if that is more.
    Candidates(const Problem& problem, const Options& options, Index least_peak_bytes = 0);

    /// The whole problem, from the user's source on.
    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] Index floor_bytes() const { return floor_bytes_; }
    /// No plan may hold a larger tile. This is the floor, raised to the tiles of the user's first steps.
    [[nodiscard]] Index peak_bytes_max() const { return peak_bytes_max_; }

    /// Judges a candidate as it would run, behind the user's first steps. If it would run as one exchange, it becomes
    /// that exchange. Returns true and keeps it if it is right and within the limits; otherwise notes the reason.
    bool judge(std::string rule, Plan plan);
    /// The same after `shortcut`. Also judges the plan unchanged, in pieces, if its levels then overlap.
    bool consider(std::string rule, Plan plan);
    /// The same for a baseline, whose steps run one by one on every backend.
    void show(std::string rule, Plan plan);
    /// Adds the answer of another question, which is already judged as it runs, with the first steps.
    void keep(std::string rule, Judged<Plan> judged);

    /// The cheapest kept candidate, or nullptr. A later candidate must be cheaper, so the first rule wins ties.
    [[nodiscard]] const Alternative* best() const;
    /// Chooses the best candidate so far. Later ones are only listed, so `explain` changes no plan. pre: best().
    void settle();
    [[nodiscard]] bool settled() const { return chosen_.has_value(); }
    /// The plans proposed so far, and how many of them are right, new and within the limits.
    struct Count {
        Index proposed = 0;
        Index kept = 0;
    };
    [[nodiscard]] Count count() const { return {proposed_, std::ssize(kept_)}; }
    /// The error if no candidate is kept.
    [[nodiscard]] Error no_plan() const;
    /// Moves out all candidates, the winner first, with the reason against each.
    [[nodiscard]] std::vector<Alternative> take_all();

private:
    [[nodiscard]] Plan completed(Plan plan) const;
    bool judge_as(std::string rule, Plan plan, const Execution& execution, bool may_overlap);
    void judge_in_pieces(std::string rule, Plan plan);
    [[nodiscard]] Result<Judged<Plan>> judged_as(Plan plan, const Execution& execution) const;
    bool note(std::string rule, Judged<Plan> judged);
    [[nodiscard]] std::optional<bool> known(const Plan& plan) const;
    [[nodiscard]] std::size_t best_place() const;
    [[nodiscard]] std::string over_limit(const Judged<Plan>& candidate);
    [[nodiscard]] std::string reason_against(const Alternative& loser, const Alternative& winner) const;

    const Problem& problem_;
    const Options& options_;
    const Index floor_bytes_;
    const Index peak_bytes_max_;
    std::optional<std::size_t> chosen_;  // in kept_
    std::vector<Alternative> kept_;
    std::vector<Alternative> rejected_;
    std::optional<Error> limit_error_;
    Index nearest_footprint_ = 0;
    Index proposed_ = 0;
};

}  // namespace reshard
