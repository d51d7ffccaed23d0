// From a program to its activities: infers the moves, plans them, and numbers places and resources.
#pragma once

#include "reshard/program/schedule.hpp"
#include "synth/program/activities.hpp"

namespace reshard::program {

/// A program in two forms. Activity i is task i, or move i - tasks.
struct Expanded {
    std::vector<ProgramMove> moves;
    std::vector<std::vector<int>> places;  ///< of each move, where it takes part, ascending
    Activities activities;
    std::vector<Index> devices;          ///< of each place, the smallest
    std::vector<std::string> resources;  ///< names for people
};

/// Errors: as schedule. pre: validate(program).
[[nodiscard]] Result<Expanded> expand(const Program& program, const Options& options);

}  // namespace reshard::program
