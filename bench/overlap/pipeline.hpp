// A list of layers: one is gathered while the one before it computes; or the sums of one's gradients are scattered
// while those of the next are made.
#pragma once

#include "overlap/common.hpp"

namespace reshard::overlap {

struct PipelineProblem {
    bool gradients = false;  // sums that are made and scattered; else weights that are gathered and used
    Index layers = 0;
    Index width = 0;   // a layer's matrix has width x width elements
    double ratio = 1;  // product / transfer of a layer, in time
};

/// Collective. What was measured, and how many elements were wrong.
[[nodiscard]] nlohmann::json measure(const PipelineProblem& problem, Backend& backend, int rounds);

}  // namespace reshard::overlap
