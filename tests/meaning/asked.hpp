// A draft asked in process, through the functions behind `plan`, `explain` and `run --backend local`.
#pragma once

#include "meaning/holders.hpp"

namespace reshard::test {

/// What was met among the questions, so that a test can say that nothing of it is missing.
struct Tally {
    Index questions = 0;
    Index planned = 0;
    Index refused = 0;
    Index across = 0;         ///< other devices, or in another order
    Index uneven = 0;         ///< cuts that do not divide
    Index reduced = 0;        ///< with summands
    Index foreign = 0;        ///< in another notation
    Index referenced = 0;     ///< held against the exact reference
    Index complete = 0;       ///< of those, said to be complete
    Index bounded_sums = 0;   ///< sums on one mesh, for the fewest bytes
    Index sums_at_bound = 0;  ///< of those, at the lower bound
    double seconds = 0;       ///< of the slowest,
    std::string slowest;      ///< as a command
};

/// Why an answer is untrue; empty when all are right.
[[nodiscard]] std::string objection(const Draft& draft, Tally& tally);

/// Parts of it, each by itself.
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

/// Empty when the layout gives every device what `held` says; summands may be numbered otherwise.
[[nodiscard]] std::string difference(const Layout& layout, const std::vector<Holder>& held);

}  // namespace reshard::test
