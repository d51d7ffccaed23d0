// The data that one rank moves to another, cut once into pieces that fit a slot of a bounce buffer. Both sides cut
// equally.
#pragma once

#include <optional>

#include "backends/mpi/shm/peer_regions.hpp"

namespace reshard::mpi {

/// Walks the parts of one pair of ranks piece by piece, on the side of the sender or of the receiver, or the parts that
/// stay on a rank. Pieces are cut in the order of the target, and as squares where a part is transposed. The cut does
/// not depend on where the other side's boxes lie.
class BouncePieces {
public:
    enum class Side { sender, receiver, both };

    /// pre: slot_bytes hold a cache line.
    BouncePieces(const std::vector<PeerRegion>& parts, Index slot_bytes, Side side);

    [[nodiscard]] Index bytes() const { return bytes_; }  ///< of all parts
    [[nodiscard]] bool in_rows() const;                   ///< whether any is moved as rows

    /// Starts over with the parts of those arrays that `staged` marks.
    void restart(const std::vector<char>& staged);
    [[nodiscard]] bool finished() const { return part_ == parts_.size(); }

    /// Adds the next piece to `copies`, out of the arrays' sources into the slot. `used` bytes of the slot are taken.
    /// False if no piece is left, or if the slot has no room for it.
    bool pack(std::byte* slot, Index& used, const std::vector<const std::byte*>& sources, DealtCopies& copies);
    /// Copies the next piece that stays on this rank. False if none is left.
    bool move(const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets, Store store);
    /// A whole slot, into the arrays' targets.
    void unpack(const std::byte* slot, const std::vector<std::byte*>& targets, Store store);

private:
    // Blocks of one length along one dimension. The last block has the rest.
    struct Cut {
        Index blocks = 1;
        Index source_stride = 0;  // from block to block
        Index target_stride = 0;
        bool shorter = false;  // the last one
    };
    // A part as a grid of pieces. There are few shapes of them: a number with one bit for each cut that has a shorter
    // last block, set at that block.
    struct Grid {
        std::size_t array = 0;
        std::vector<Cut> cuts;  // outermost first
        std::vector<BoxCopy> copies;
        std::vector<Index> bytes;
    };

    [[nodiscard]] static Grid grid_of(const PeerRegion& part, Index slot_bytes, Side side);
    // The next piece: its place in the array's source and target, and in the slot.
    struct Piece {
        const BoxCopy* copy;
        std::size_t array;
        Index source;
        Index target;
        Index place;
    };
    std::optional<Piece> next(Index& used);
    void skip();
    void advance();

    std::vector<Grid> parts_;
    Index slot_bytes_;
    Index bytes_ = 0;
    std::vector<char> staged_;
    std::size_t part_ = 0;
    std::vector<Index> at_;  // the next block, per cut
};

}  // namespace reshard::mpi
