// Casts elements from one type to another.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard {

/// Casts the elements of one region into another. A float is rounded once, to nearest even. A number that is too large
/// becomes infinity, or NaN in a type without infinity. A NaN stays a NaN. An integer keeps its value.
class BoxCast {
public:
    /// pre: tables::can_cast; same extents.
    BoxCast(DType from, DType to, const Region& source, const Region& target);
    void run(const std::byte* source, std::byte* target) const;

private:
    using Line = void (*)(const LoopNest::Loop&, const std::byte* source, std::byte* target);
    LoopNest nest_;  // without the innermost loop
    LoopNest::Loop inner_{1, 0, 0};
    Line line_;
};

}  // namespace reshard
