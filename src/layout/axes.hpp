// Axes one after the other, each checked against those before it.
#pragma once

#include <unordered_set>

#include "reshard/planner/atoms.hpp"

namespace reshard {

/// What validate(Mesh) asks of axes, for those who read them one by one: linear in their number.
class AxisRules {
public:
    /// Errors: as validate(Mesh). pre: `axis` comes after those that were allowed.
    [[nodiscard]] Result<void> allow(const Axis& axis);
    /// Product of the sizes.
    [[nodiscard]] Index devices() const { return devices_; }

private:
    std::unordered_set<std::string> names_;
    Index devices_ = 1;
};

}  // namespace reshard
