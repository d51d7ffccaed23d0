// Candidates, judged: which may be chosen, which is the best, and why the others lost.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// Steps that move between devices.
[[nodiscard]] Index moving_steps(const Plan& plan);

/// How a plan of this question runs. First steps that the user named run as steps.
[[nodiscard]] Execution execution_for(const Plan& plan, const Options& options);

/// Steps of plans of this question may go over different levels at once. Steps over one level add up all the same.
[[nodiscard]] bool overlaps_levels(const Options& options);

/// What collectives alone would answer is a candidate, too: one after the other their steps may end later than an
/// exchange, and sooner in pieces.
[[nodiscard]] bool weighs_collectives(const Options& options);
/// The same question for collectives alone.
[[nodiscard]] Options of_collectives(Options options);

/// It receives no more than any plan must.
[[nodiscard]] bool at_bound(const Judged<Plan>& plan);
/// No plan is better, whatever the vocabulary.
[[nodiscard]] bool unbeatable(const Judged<Plan>& best, Objective objective);

/// Why there is no plan where rules are off.
[[nodiscard]] Error no_rule_left(const Options& options);

/// Puts what was judged in place of `made`; false when it was not passed.
inline bool rejudge(Judged<Plan>& made, const Result<Judged<Plan>>& judged) {
    if (judged) made = *judged;
    return judged.has_value();
}

class Candidates {
public:
    Candidates(const Problem& problem, const Options& options);

    /// The whole: from the user's source, first steps included.
    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] Index floor_bytes() const { return floor_bytes_; }
    /// No plan may hold a larger tile: the floor, also of the user's first steps.
    [[nodiscard]] Index peak_bytes_max() const { return peak_bytes_max_; }

    /// Judges a candidate with the user's first steps in front, as it would run; one that would run as one exchange is
    /// that exchange. Keeps it when it is right and within the limits, else notes why not. True when it is kept.
    bool judge(std::string rule, Plan plan);
    /// The same after `shortcut`; and as it is, in pieces, where that makes the levels of its steps overlap.
    bool consider(std::string rule, Plan plan);
    /// The same for a candidate whose steps run as steps whatever the backend can do: it is there to be compared with.
    void show(std::string rule, Plan plan);
    /// What another question has answered, which has judged it as it runs, first steps included.
    void keep(std::string rule, Judged<Plan> judged);

    /// The cheapest that is kept; nullptr for none. Later ones must be cheaper, so that the first rule keeps a plan.
    [[nodiscard]] const Alternative* best() const;
    /// The best so far is chosen: what is judged from now on is only listed beside it, so that asking for the others
    /// changes no plan. pre: best().
    void settle();
    [[nodiscard]] bool settled() const { return chosen_.has_value(); }
    /// What was proposed so far, and how many of it are right, new and within the limits.
    struct Count {
        Index proposed = 0;
        Index kept = 0;
    };
    [[nodiscard]] Count count() const { return {proposed_, std::ssize(kept_)}; }
    /// Why there is none.
    [[nodiscard]] Error no_plan() const;
    /// All candidates, the winner first, with the reason against each. Leaves none behind.
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
