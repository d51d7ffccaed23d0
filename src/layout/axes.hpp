// Axes one after the other, each checked against those before it.
#pragma once

#include <unordered_set>

#include "reshard/planner/atoms.hpp"

namespace reshard {

/// Checks axes one by one, with the rules of validate(Mesh). Its cost is linear in the number of axes.
class AxisRules {
public:
    /// Errors: as validate(Mesh). pre: the axes before `axis` were allowed.
    [[nodiscard]] Result<void> allow(const Axis& axis);
    /// Product of the sizes.
    [[nodiscard]] Index devices() const { return devices_; }

private:
    std::unordered_set<std::string> names_;
    Index devices_ = 1;
};

}  // namespace reshard
