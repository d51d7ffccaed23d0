// A plan of several steps between nodes: one after the other, and in the synthesizer's pieces.
#pragma once

#include "overlap/common.hpp"

namespace reshard::overlap {

struct StepsProblem {
    std::string mesh;
    std::string source;  // f32
    std::string target;
};

/// Collective. Returns the measurements and the number of wrong elements.
[[nodiscard]] nlohmann::json measure(const StepsProblem& problem, const Machine& machine, Backend& backend, int rounds);

}  // namespace reshard::overlap
