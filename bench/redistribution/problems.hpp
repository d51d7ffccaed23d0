// The problems of the redistribution benchmark, and arrays whose values are known everywhere.
#pragma once

#include <string>
#include <vector>

#include "reshard/backends/backend.hpp"
#include "reshard/execute.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::bench {

struct Question {
    std::string name;
    std::string mesh;
    std::string source;
    std::string target;
    bool turned = false;           ///< the target's tiles are stored column-major
    std::string target_mesh = {};  ///< the source's when empty
};

/// For 8, 4 or 2 ranks; none for other numbers. The extents of the arrays are divided by `divisor`.
[[nodiscard]] std::vector<Question> questions(int ranks, Index divisor = 1);

/// One problem on one rank: the move as a plan, and as the exchange that any MPI program would make.
struct Case {
    Question question;
    Problem problem;
    Plan plan;       ///< the synthesizer's
    RankPlan whole;  ///< the exchange from source to target: boxes, peers, and where they lie
    Storages storages;
};

[[nodiscard]] Result<Case> make_case(const Question& question, Index rank);

/// Writes the values of this rank's source tile; every bit of an element depends on its place in the array.
void fill(const Case& one, std::span<std::byte> source);

/// Makes every element of the target wrong.
void wipe(std::span<std::byte> target);

/// The number of wrong elements in this rank's target tile; checks every element.
[[nodiscard]] Index count_wrong(const Case& one, std::span<const std::byte> target);
[[nodiscard]] Index target_elements(const Case& one);

}  // namespace reshard::bench
