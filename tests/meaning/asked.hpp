// Answers a draft in process, through the functions behind `plan`, `explain` and `run --backend local`.
#pragma once

#include "meaning/holders.hpp"

namespace reshard::test {

/// Counts the kinds of problems, so that a test can check that no kind is missing.
struct Tally {
    Index questions = 0;
    Index planned = 0;
    Index refused = 0;
    Index across = 0;         ///< the ends have different devices or orders
    Index uneven = 0;         ///< cuts do not divide
    Index reduced = 0;        ///< problems with summands
    Index foreign = 0;        ///< problems in another notation
    Index referenced = 0;     ///< compared with the exact reference
    Index complete = 0;       ///< compared, and called complete
    Index bounded_sums = 0;   ///< sums on one mesh, for the fewest bytes
    Index sums_at_bound = 0;  ///< such sums that meet the lower bound
    double seconds = 0;       ///< time of the slowest problem
    std::string slowest;      ///< the slowest problem as a command
};

/// The reason why an answer is wrong; empty if all answers are right.
[[nodiscard]] std::string objection(const Draft& draft, Tally& tally);

/// The parts of objection(), each alone.
struct Answer {
    const Draft& draft;
    const cli::Request& asked;
    const Synthesis& made;
};
[[nodiscard]] std::string objection_to_bounds(const Answer& answer, const std::vector<Holder>& before,
                                              const std::vector<Holder>& after, Tally& tally);
[[nodiscard]] std::string objection_to_notations(const Draft& draft, const cli::Request& asked);
[[nodiscard]] std::string objection_to_move(const Answer& answer);
[[nodiscard]] std::string objection_to_completeness(const Answer& answer, Tally& tally);

/// Empty if the layout gives every device what `held` says. Summands may have other numbers.
[[nodiscard]] std::string difference(const Layout& layout, const std::vector<Holder>& held);

}  // namespace reshard::test
