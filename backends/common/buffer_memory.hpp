// The memory of an array's buffers. Each backend has its own staging.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// Null of a source that is not donated.
[[nodiscard]] inline std::byte* writable_memory(const Buffers& buffers, BufferId buffer) {
    if (buffer == BufferId::source) return buffers.donated.data();
    return buffer == BufferId::target ? buffers.target.data() : buffers.workspace.data();
}

[[nodiscard]] inline const std::byte* readable_memory(const Buffers& buffers, BufferId buffer) {
    return buffer == BufferId::source ? buffers.source.data() : writable_memory(buffers, buffer);
}

}  // namespace reshard
