// Page-aligned memory: what a backend hands out that has no better memory of its own.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// Uninitialized. Errors: mismatch on a negative size, backend when there is not that much.
[[nodiscard]] Result<std::unique_ptr<Memory>> allocate_pages(Index bytes);

}  // namespace reshard
