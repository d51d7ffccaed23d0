// The data that one rank moves to another, cut into pieces that fit a slot of a bounce buffer. Both ranks cut it once.
#pragma once

#include <optional>

#include "backends/mpi/shm/peer_regions.hpp"

namespace reshard::mpi {

/// Walks the parts of one pair of ranks piece by piece, on the sender's or the receiver's side. It also walks the parts
/// that stay on a rank. Pieces are cut in the order of the target, and as squares if a part is transposed. The cut does
/// not depend on where the other side's boxes lie.
class BouncePieces {
public:
    enum class Side { sender, receiver, both };

    /// pre: slot_bytes is at least a cache line.
    BouncePieces(const std::vector<PeerRegion>& parts, Index slot_bytes, Side side);

    [[nodiscard]] Index bytes() const { return bytes_; }  ///< of all parts
    [[nodiscard]] bool in_rows() const;                   ///< whether a part moves as rows

    /// Starts over with the parts of the arrays that `staged` marks.
    void restart(const std::vector<char>& staged);
    [[nodiscard]] bool finished() const { return part_ == parts_.size(); }

    /// Adds to `copies` the next piece, from the arrays' sources into the slot, and adds its bytes to `used`. Returns
    /// false if no piece is left or the slot has no room for it.
    bool pack(std::byte* slot, Index& used, const std::vector<const std::byte*>& sources, DealtCopies& copies);
    /// Moves the next piece of the parts that stay. Returns false if no piece is left.
    bool move(const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets, Store store);
    /// Copies a whole slot into the arrays' targets.
    void unpack(const std::byte* slot, const std::vector<std::byte*>& targets, Store store);

private:
    // The blocks along one dimension. All have the same length, but the last one may be shorter.
    struct Cut {
        Index blocks = 1;
        Index source_stride = 0;  // from block to block
        Index target_stride = 0;
        bool shorter = false;  // the last block is shorter
    };
    // A part as a grid of pieces. Pieces have few shapes. The number of a shape has one bit for each cut with a shorter
    // last block, and the bit is set at that block.
    struct Grid {
        std::size_t array = 0;
        std::vector<Cut> cuts;  // outermost first
        std::vector<BoxCopy> copies;
        std::vector<Index> bytes;
    };

    [[nodiscard]] static Grid grid_of(const PeerRegion& part, Index slot_bytes, Side side);
    // The next piece, and its place in the array's source, in its target and in the slot.
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

/// The copy of a whole part: from its source into packed bytes (sender), from packed bytes into its target (receiver),
/// or from its source into its target (both).
[[nodiscard]] BoxCopy copy_of_part(const PeerRegion& part, BouncePieces::Side side);

/// The place of a part in a message, after `used` bytes.
[[nodiscard]] Index place_of(const PeerRegion& part, Index used);

/// The parts of one pair of ranks, one after the other in one message.
class PackedParts {
public:
    /// The parts that `peer` sends to this rank or receives from it.
    PackedParts(const std::vector<PeerRegion>& parts, std::size_t peer, BouncePieces::Side side);

    [[nodiscard]] Index bytes() const { return bytes_; }
    void pack(const std::vector<const std::byte*>& sources, std::byte* message) const;
    void unpack(const std::byte* message, const std::vector<std::byte*>& targets) const;

private:
    struct Part {
        std::size_t array;
        Index place;
        BoxCopy copy;
    };
    std::vector<Part> parts_;
    Index bytes_ = 0;
};

}  // namespace reshard::mpi
