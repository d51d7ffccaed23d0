// Moves between buffers that no peer reaches: in rounds, each rank packs the next pieces of what it sends into its
// peers' windows, and copies out of its own what they packed. Pieces are small enough that windows stay in the caches.
#pragma once

#include "backends/mpi/parts.hpp"

namespace reshard::mpi {

/// Where one sender's pieces land in a window: in one of two halves, in turn.
struct WindowSlot {
    std::int64_t offset = 0;  ///< in a half
    std::int64_t bytes = 0;   ///< 0: the sender has none
    std::int64_t half_bytes = 0;
};

/// Deals out a window of about `window_bytes` to senders of so many bytes each.
[[nodiscard]] std::vector<WindowSlot> deal_window(const std::vector<Index>& incoming, Index window_bytes);

/// Walks the parts of one pair of ranks in pieces, the same on both sides. Where they lie on the other side than one's
/// own decides nothing: pieces are cut in the order of the target, or of the source
/// where the part is turned.
class Pieces {
public:
    explicit Pieces(std::vector<Part> parts);

    /// Starts over with the parts of those arrays that `staged` marks.
    void restart(const std::vector<char>& staged);
    [[nodiscard]] bool finished() const { return part_ == parts_.size(); }

    /// The next slot's worth: pack(part, source region, region in the slot) for a sender, likewise for a receiver.
    void pack(std::byte* slot, Index slot_bytes, const std::vector<const std::byte*>& sources);
    void unpack(const std::byte* slot, Index slot_bytes, const std::vector<std::byte*>& targets, Store store);

private:
    struct Piece {
        std::size_t array;
        Region source;
        Region packed;
        Region target;
    };
    bool next(Index room, Index& used, Piece& piece);
    void skip();
    void begin_part();

    std::vector<Part> parts_;  // dimensions in the order of the cut, outermost first
    std::vector<char> staged_;
    std::size_t part_ = 0;
    std::vector<Index> at_;  // the next element
};

}  // namespace reshard::mpi
