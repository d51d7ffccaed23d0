// Page-aligned memory, for backends that have no better memory of their own.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// Uninitialized. Errors: mismatch on a negative size, backend if the host lacks that much memory.
[[nodiscard]] Result<std::unique_ptr<Memory>> allocate_pages(Index bytes);

}  // namespace reshard
