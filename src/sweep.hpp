// Many copies as one pass over memory: the parts of one tile go to (or come from) many other memories, in the order in
// which the tile lies in memory, all of them at once. Each line of the tile is touched once, however many others want
// it.
#pragma once

#include "copy.hpp"

namespace reshard {

class Sweep {
public:
    /// Which side the one tile is: a push reads it, a pull writes it.
    enum class Kind { push, pull };

    explicit Sweep(Kind kind) : kind_(kind) {}

    /// One more copy; `memory` is the number of the memory on the other side, from 0.
    void add(std::size_t memory, const Region& source, const Region& target);

    /// Puts the copies in order. Copies at regular distances become one. Called once, after the last add.
    void arrange();

    [[nodiscard]] Index bytes() const { return bytes_; }
    [[nodiscard]] bool empty() const { return parts_.empty(); }

    /// For a push. `others[m]` is memory m; those of null are left out. Allocates nothing.
    void push(const std::byte* tile, std::span<std::byte* const> others, Store store);
    /// For a pull, likewise.
    void pull(std::byte* tile, std::span<const std::byte* const> others, Store store);

private:
    struct Part {
        std::size_t memory = 0;
        Index source_offset = 0;
        Index target_offset = 0;
        std::vector<LoopNest::Loop> loops;  // outermost first, in the order of the tile; the last one goes over blocks
        Leaf block;
        Leaf last_block;  // of the last loop
    };
    struct Cursor {
        Index source = 0;
        Index target = 0;
        std::vector<Index> at;  // per loop of the part
    };

    [[nodiscard]] Part part_of(std::size_t memory, LoopNest nest) const;
    void merge_repeated();
    [[nodiscard]] Index place(std::size_t part) const;
    bool advance(std::size_t part);
    template <class Visit>
    void walk(const Visit& visit);

    Kind kind_;
    Index bytes_ = 0;
    std::vector<std::pair<std::size_t, LoopNest>> nests_;  // until arrange()
    std::vector<Part> parts_;
    std::vector<Cursor> cursors_;     // one per part
    std::vector<std::size_t> order_;  // a heap of the parts whose cursor is not at its end
};

}  // namespace reshard
