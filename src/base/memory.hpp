// The available memory, before it is allocated. Linux promises more than it has, and kills processes that believe it.
#pragma once

#include <string>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard {

/// Bytes that this process may still take, and what bounds them.
struct AvailableMemory {
    Index bytes = index_max;             ///< index_max if the system does not say
    std::string holder = "the machine";  /// or its control group, with its path
};

/// The smaller of MemAvailable and the memory that the control groups of this process leave. Groups are v1 and v2, up
/// the hierarchy; pages of files that can be dropped count as left. If /proc is missing, nothing bounds it. Files are
/// read below `root`, which tests set.
[[nodiscard]] AvailableMemory available_memory(const std::string& root = "");

/// Memory that is about to be allocated. Claims of one machine stand in line. Each holds its place until its bytes are
/// allocated, so no other process is promised the same bytes. Small claims do not wait.
class MemoryClaim {
public:
    MemoryClaim() = default;  ///< of nothing
    MemoryClaim(MemoryClaim&& other) noexcept;
    MemoryClaim& operator=(MemoryClaim&& other) noexcept;
    ~MemoryClaim();

    /// Waits its turn, a minute at most. Errors: backend, with the bytes wanted and the bytes available.
    [[nodiscard]] static Result<MemoryClaim> make(Index bytes, const std::string& root = "");

private:
    explicit MemoryClaim(int place) : place_(place) {}
    int place_ = -1;  // a descriptor with the lock of the line
};

/// Makes the system provide the pages of `bytes` bytes at `start` now. Returns false if it lacks them. pre:
/// page-aligned, anonymous.
[[nodiscard]] bool take_anonymous(void* start, Index bytes);

}  // namespace reshard
