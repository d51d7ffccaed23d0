// The banker (Dijkstra 1965): whether the activities that have not started can still run one by one.
#pragma once

#include <span>

#include "synth/program/activities.hpp"

namespace reshard::program {

/// Keeps back this many quarters of the memory that the fallback leaves free. Arrays that are fetched early
/// then leave room for arrays that are due.
using Margin = int;
inline constexpr Margin margin_max = 4;

/// Answers for a fallback order, by a tree for each place: the most bytes that are held from a position of the order
/// on. Starting an activity early changes a few ranges of positions. Each question costs O(places log activities).
class Banker {
public:
    /// pre: fits(program, fallback).
    Banker(const Activities& program, const Order& fallback, Margin margin);

    /// True when the rest of the fallback still fits after the activity has started now. Then it counts as started.
    /// pre: it has not started, and its inputs have.
    bool start(int activity);

private:
    struct Change {
        int place = 0;
        int begin = 0;  // of positions
        int end = 0;
        Index bytes = 0;
        int buffer = -1;  // that is freed at another position from now on
        int freed_at = -1;
    };
    void add(int place, int begin, int end, Index bytes);
    void find_changes(int activity);
    void add_changes(int sign);

    const Activities& program_;
    int size_ = 1;  // leaves of a tree
    std::vector<int> position_;
    std::vector<char> started_;              // by position
    std::vector<std::vector<int>> users_;    // of each buffer, the positions that it waits for, descending
    std::vector<int> freed_at_;              // of each buffer, a position; -1: never, or already
    std::vector<std::vector<Index>> most_;   // of each place, a tree: the most bytes below a node
    std::vector<std::vector<Index>> added_;  // to all leaves below a node
    std::vector<Index> allowed_;             // of each place
    std::vector<int> limited_;               // the places with a limit
    std::vector<Change> changes_;
};

}  // namespace reshard::program
