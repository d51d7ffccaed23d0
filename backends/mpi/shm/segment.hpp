// Memory that other processes of this machine can map. It is anonymous (memfd), so a small /dev/shm does not limit it.
// All its pages are allocated when it is made: missing memory is an error then, and never a signal later.
#pragma once

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::mpi {

/// How a process names its segment to others. Plain bytes: it travels in messages and in shared memory.
struct SegmentName {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::uint64_t inode = 0;  ///< tells a segment from a later one with the same descriptor
    std::int64_t bytes = 0;
    friend auto operator<=>(const SegmentName&, const SegmentName&) = default;
};

class Segment {
public:
    /// Page-aligned and zero. Errors: backend if memory is short, before any is taken, or if the system has no memfd.
    [[nodiscard]] static Result<Segment> make(Index bytes);

    /// Maps another process's segment. Errors: backend if it cannot be reached, or if another one has replaced it.
    [[nodiscard]] static Result<Segment> open(const SegmentName& name);

    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&&) = delete;
    ~Segment();  ///< if it is the maker's, its pages are freed at once, even if others map them

    /// Others may still read it: the pages and their contents then live as long as the last view.
    void leave_to_others() { left_ = true; }

    /// Whether its maker still has it.
    [[nodiscard]] bool is_kept() const;

    [[nodiscard]] const SegmentName& name() const { return name_; }
    [[nodiscard]] std::byte* data() const { return start_; }

private:
    Segment(const SegmentName& name, std::byte* start, int own_descriptor)
        : name_(name), start_(start), own_descriptor_(own_descriptor) {}

    SegmentName name_;
    std::byte* start_;
    int own_descriptor_;  // -1: another process made it
    bool left_ = false;
};

}  // namespace reshard::mpi
