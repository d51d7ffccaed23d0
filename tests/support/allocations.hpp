// Counts the allocations of a thread. A program that links allocations.cpp has its operator new, except with the
// address sanitizer: then the count stays 0.
#pragma once

namespace reshard {

/// Begins at zero.
void count_allocations();
/// Ends counting, and returns the allocations of this thread since count_allocations.
[[nodiscard]] int counted_allocations();

}  // namespace reshard
