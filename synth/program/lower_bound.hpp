// Times before which no schedule of a program ends.
#pragma once

#include "synth/program/activities.hpp"

namespace reshard::program {

/// For each activity the least time before its start, and after its end.
struct Paths {
    std::vector<int> sorted;  ///< all activities, each after its inputs
    std::vector<Index> head;
    std::vector<Index> tail;
};
[[nodiscard]] Paths paths_of(const Activities& program);

/// The part of the program that gives the bound.
enum class Binding { path, resource, memory };

/// No schedule ends before `end`.
struct LowerBound {
    Index end = 0;
    Binding binding = Binding::path;
    int number = -1;  ///< of the resource or the place
};

/// The largest of: the longest path; for each resource the preemptive schedule of its activities with their heads and
/// tails (Jackson 1955); for each place with a limit the product of bytes and least lifetimes, divided by the limit;
/// for each resource whose activities take memory and free it, such as a stage of a pipeline: the work before the last
/// of them has room.
[[nodiscard]] LowerBound lower_bound(const Activities& program, const Paths& paths);

}  // namespace reshard::program
