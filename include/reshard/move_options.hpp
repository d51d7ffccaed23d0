// How an array changes while `redistribute` moves it.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// How the array changes while it moves.
struct MoveOptions {
    /// The target may have another element type (Options::cast).
    bool cast = false;
    /// Transposes: dimension i of the target is dimension permute[i] of the source. Empty: dimensions keep their order.
    std::vector<Index> permute = {};
    friend bool operator==(const MoveOptions&, const MoveOptions&) = default;
};

}  // namespace reshard
