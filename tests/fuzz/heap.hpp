// The heap of a test program, counted: how many bytes are allocated, and the most that were.
#pragma once

#include "reshard/planner/integer.hpp"

namespace reshard::fuzz {

/// True if this program counts its heap. Programs with sanitizers do not, since these have a heap of their own.
[[nodiscard]] bool counts_heap();
/// Returns the bytes that this thread holds now, and begins to look for the most from here.
[[nodiscard]] Index heap_begin();
/// Returns the most bytes that this thread has held since heap_begin.
[[nodiscard]] Index heap_most();

}  // namespace reshard::fuzz
