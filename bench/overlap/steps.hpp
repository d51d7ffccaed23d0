// A plan of several steps between nodes: one after the other, and in the pieces in which the synthesizer cuts it.
#pragma once

#include "overlap/common.hpp"

namespace reshard::overlap {

struct StepsProblem {
    std::string mesh;
    std::string source;  // f32
    std::string target;
};

/// Collective. What was measured, and how many elements were wrong.
[[nodiscard]] nlohmann::json measure(const StepsProblem& problem, const Machine& machine, Backend& backend, int rounds);

}  // namespace reshard::overlap
