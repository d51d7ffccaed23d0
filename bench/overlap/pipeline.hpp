// A list of layers. One is gathered while the one before it computes, or the sums of its gradients are scattered while
// the gradients of the next are made.
#pragma once

#include "overlap/common.hpp"

namespace reshard::overlap {

struct PipelineProblem {
    bool gradients = false;  // sums that are made and scattered; else weights that are gathered and used
    Index layers = 0;
    Index width = 0;   // a layer's matrix has width x width elements
    double ratio = 1;  // product / transfer of a layer, in time
};

/// Collective. Returns the measurements and the number of wrong elements.
[[nodiscard]] nlohmann::json measure(const PipelineProblem& problem, Backend& backend, int rounds);

}  // namespace reshard::overlap
