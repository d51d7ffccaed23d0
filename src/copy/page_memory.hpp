// Page-aligned memory, for a backend that has no better memory of its own to hand out.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// Uninitialized. Errors: mismatch on a negative size, backend if there is not enough memory.
[[nodiscard]] Result<std::unique_ptr<Memory>> allocate_pages(Index bytes);

}  // namespace reshard
