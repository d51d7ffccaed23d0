// How much memory there is before it is taken. Linux promises more than it has, and kills who believes it.
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

/// Memory that is about to be taken. Claims of one machine stand in line: each holds its place until its bytes are
/// taken, so that what it was promised is not promised to another process as well. Small claims do not wait.
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

/// Takes the pages of so many bytes at `start`, so that what is missing is missing now. pre: page-aligned, anonymous.
/// False when there is not that much.
[[nodiscard]] bool take_anonymous(void* start, Index bytes);

}  // namespace reshard
