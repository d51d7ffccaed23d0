// Counts the allocations of a thread. A program that links allocations.cpp has its operator new.
#pragma once

namespace reshard {

/// Begins at zero.
void count_allocations();
/// Ends counting, and returns the allocations of this thread since count_allocations.
[[nodiscard]] int counted_allocations();

}  // namespace reshard
