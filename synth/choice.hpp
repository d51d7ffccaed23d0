// Candidates, judged: which may be chosen, which is the best, and why the others lost.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// Steps that move between devices.
[[nodiscard]] Index moving_steps(const Plan& plan);

class Choice {
public:
    Choice(const Problem& problem, const Options& options);

    [[nodiscard]] Index floor_bytes() const { return floor_bytes_; }

    /// Judges a candidate with the user's first steps in front; keeps it when it is right and within the limits, else
    /// notes why not. True when it is kept.
    bool judge(std::string rule, Plan plan);
    /// The same after `shortcut`.
    bool consider(std::string rule, Plan plan);

    /// The cheapest that is kept; nullptr for none. Later ones must be cheaper, so that the first rule keeps a plan.
    [[nodiscard]] const Alternative* best() const;
    /// Why there is none.
    [[nodiscard]] Error no_plan() const;
    /// All candidates, the winner first, with the reason against each. Leaves none behind.
    [[nodiscard]] std::vector<Alternative> take_all();

private:
    [[nodiscard]] std::string over_limit(Alternative& candidate);
    [[nodiscard]] std::string reason_against(const Alternative& loser, const Alternative& winner) const;

    const Problem& problem_;
    const Options& options_;
    const Index floor_bytes_;
    std::vector<Alternative> kept_;
    std::vector<Alternative> rejected_;
    std::optional<Error> limit_error_;
    Index nearest_footprint_ = 0;
};

}  // namespace reshard
