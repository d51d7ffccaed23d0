// Many copies as one pass over memory. The parts of one tile go to many other memories, or come from them. All move at
// once, in the order of the tile in memory. Each line of the tile is touched once, however many memories want it.
#pragma once

#include <optional>

#include "src/copy/copy.hpp"

namespace reshard {

class MultiCopy {
public:
    /// The side of the one tile: a push reads it, a pull writes it.
    enum class Kind { push, pull };

    /// All copies apply one cast, or none.
    explicit MultiCopy(Kind kind, const ElementCast& cast = {}) : kind_(kind), cast_(cast) {}

    /// Adds a copy. `memory` is the number of the memory on the other side, from 0.
    void add(std::size_t memory, const Region& source, const Region& target);

    /// Puts the copies in order, and makes one of copies at regular distances. Call it once, after the last add.
    void arrange();

    [[nodiscard]] Index bytes() const { return bytes_; }

    /// For a push. `others[m]` is memory m; null leaves it out. Allocates nothing.
    void push(const std::byte* tile, std::span<std::byte* const> others, Store store);
    /// For a pull. `others` is as for a push.
    void pull(std::byte* tile, std::span<const std::byte* const> others, Store store);

private:
    // The share of one memory in a part: where it starts, and its strides on the side of that memory.
    struct Share {
        std::size_t memory = 0;
        Index tile_offset = 0;
        Index other_offset = 0;
        std::vector<Index> other_strides;  // per loop of the part
        Index other_row_stride = 0;
        Index run_bytes = 0;
    };
    struct Loop {
        Index extent = 1;
        Index tile_stride = 0;
    };
    // Shares that lie side by side in the tile and repeat in the same way, for one walk; or a single share that is
    // transposed or cast, whose leaf moves by itself.
    struct Part {
        std::vector<Loop> loops;  // outermost first, in the order of the tile
        Index rows = 1;
        Index tile_row_stride = 0;
        Index block_rows = 1;   // moved at once, before parts further on get their turn
        Index block_turns = 1;  // how often a block turns the innermost loop; 1 unless it has all rows
        std::vector<Share> shares;
        std::optional<Leaf> alone;
    };
    struct Cursor {
        Index place = 0;  // in the tile
        Index row = 0;
        std::vector<Index> at;  // per loop
    };

    // The rows that a visit moves, and how often the innermost loop turns meanwhile.
    struct Block {
        Index rows = 1;
        Index turns = 1;
    };

    [[nodiscard]] static Block block_at(const Part& part, const Cursor& cursor, bool last);
    [[nodiscard]] Part part_of(std::size_t memory, LoopNest nest) const;
    [[nodiscard]] static bool joins(const Part& part, const Part& other);
    void merge_repeated();
    bool advance(std::size_t number, const Block& block);
    template <class Visit>
    void walk(const Visit& visit);
    template <class At>
    void move(const Part& part, const Cursor& cursor, const Block& block, Store store, const At& at);
    static void move_alone(const Part& part, Index row, Index rows, Store store, const Lane& lane);
    static void move_transposed(const Part& part, Index row, Index rows, Store store, const Lane& lane);

    Kind kind_;
    ElementCast cast_;
    Index bytes_ = 0;
    std::vector<std::pair<std::size_t, LoopNest>> nests_;  // until arrange()
    std::vector<Part> parts_;
    std::vector<Cursor> cursors_;     // one per part
    std::vector<std::size_t> order_;  // a heap of the parts whose cursor is not at its end
    // From the end of a lane's rows to its first row in the next turn.
    struct Jump {
        Index source = 0;
        Index target = 0;
    };
    std::vector<Lane> lanes_;  // of the block that moves
    std::vector<Jump> jumps_;  // one per lane
};

}  // namespace reshard
