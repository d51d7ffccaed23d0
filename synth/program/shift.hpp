// Changes of an order that keep every activity behind its inputs.
#pragma once

#include "synth/program/activities.hpp"

namespace reshard::program {

class Shift {
public:
    explicit Shift(const Activities& program) : program_(program), marked_(program.all.size()) {}

    /// Moves the activity at `at` forward to the position `to`, and with it the activities between that it needs.
    /// pre: to <= at.
    void pull(Order& order, int at, int to);

    /// Moves the activity at `at` back behind the others before the position `to`, and with it the activities between
    /// that need it. pre: at < to.
    void push(Order& order, int at, int to);

private:
    void mark(const std::vector<int>& activities, char value);

    const Activities& program_;
    std::vector<char> marked_;
    std::vector<int> moved_;
};

}  // namespace reshard::program
