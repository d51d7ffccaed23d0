// Memory that a process of the other job maps to read. It is anonymous (memfd), so it vanishes with its last user: a
// killed process leaves nothing behind.
#pragma once

#include <cstddef>
#include <span>

#include "live/transport/socket.hpp"

namespace reshard::live {

class Segment {
public:
    /// Zeroed memory with all its pages. Errors: backend (memory is short, before any is taken).
    [[nodiscard]] static Result<Segment> make(Index bytes);
    /// Maps a segment of another process, to read. Errors: backend (it is shorter than `bytes`, or cannot be mapped).
    [[nodiscard]] static Result<Segment> open(Descriptor descriptor, Index bytes);
    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&& other) noexcept;
    ~Segment();

    /// True if the descriptor is of this very memory.
    [[nodiscard]] bool is(const Descriptor& other) const;

    [[nodiscard]] int number() const { return descriptor_.number(); }
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

private:
    Segment(Descriptor descriptor, std::span<std::byte> bytes) : descriptor_(std::move(descriptor)), bytes_(bytes) {}
    Descriptor descriptor_;
    std::span<std::byte> bytes_;
};

}  // namespace reshard::live
