// One way of moving the array that `bench` measures against the others, on one rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tool/data/verify.hpp"
#include "tool/ranks/session.hpp"

namespace reshard::cli {

/// The measurements of a contestant, equal on all ranks.
struct Score {
    std::string name;
    std::optional<Error> error;   ///< why it did not take part
    std::vector<double> seconds;  ///< a round
    MemoryTaken memory;
    Index target_bytes = 0;  ///< over all ranks
    Index wrong = 0;         ///< over all rounds and ranks
    Index verified = 0;
    double register_seconds = 0;  ///< there and back; the slowest rank's
};

/// How a contestant's plan runs: on the rank's own backend, or with MPI as a program without this library would use it.
/// The last two run the own backend on the program's own memory, unregistered and registered.
enum class Carrier { own, messages, alltoallw, messages_of_boxes, broadcasts, reductions, callers_memory, registered };

/// The array that a contestant moves.
struct Moved {
    Layout source;                    ///< as its tiles lie in memory
    std::vector<Index> permute = {};  ///< the plan begins at permuted(source, permute)
    bool reduced = false;             ///< an end has summands
};

class Contestant {
public:
    /// An error instead of a plan keeps it out, with the reason in its score.
    Contestant(std::string name, Result<Judged<Plan>> plan, Carrier carrier, Moved moved);

    /// Collective: everything it needs is taken, used once and given back while memory use is watched.
    void measure_memory(Rank& rank, Progress& progress);

    /// Collective: takes what it needs for the rounds, which start on memory that has been touched.
    void take_place(Rank& rank, Progress& progress);

    /// Collective: one timed move, and a look at every element after it.
    void round(Rank& rank, Progress& progress);

    [[nodiscard]] const Score& score() const { return score_; }

private:
    [[nodiscard]] Result<void> set_up(Rank& rank, Progress& progress);
    [[nodiscard]] Result<void> take_part(Rank& rank, Progress& progress);
    [[nodiscard]] Result<double> move_and_look(Rank& rank, Progress& progress);

    Result<Judged<Plan>> plan_;
    Carrier carrier_;
    Moved moved_;
    std::unique_ptr<Values> values_;
    Score score_;
    std::unique_ptr<Backend> baseline_;  // outlives the mover
    std::unique_ptr<Session> mover_;
};

}  // namespace reshard::cli
