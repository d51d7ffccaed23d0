// The routes of boxes that ranks name: senders, receivers, and the parts that move between them.
#pragma once

#include <map>

#include "reshard/boxes/boxes.hpp"
#include "src/base/hash.hpp"
#include "src/boxes/box_index.hpp"

namespace reshard {

/// The box for people: [0:16, 0:64].
[[nodiscard]] std::string box_text(const Box& box);

/// Adds the boxes of all ranks to a fingerprint.
void add(Hash& hash, const BoxTable& table);

/// A part that moves from box `from` of one rank to box `to` of another.
struct BoxMove {
    Index peer = 0;  ///< the other rank; this rank for a local copy
    Index from = 0;  ///< the number of the sender's box
    Index to = 0;    ///< the number of the receiver's box
    Box part;        ///< global indices
    friend bool operator==(const BoxMove&, const BoxMove&) = default;
};

/// A part of a wanted box that no earlier box of its rank wants.
struct FreshPart {
    Index number = 0;  ///< of the box
    Box part;
};

/// The wanted boxes of one rank without their overlaps.
struct Wants {
    std::vector<FreshPart> fresh;  ///< disjoint, by ascending number; together they are all wanted elements
    std::vector<BoxMove> repeats;  ///< local copies from an earlier wanted box to a later one
};

/// Returns the parts of these boxes. pre: each has `dims` dimensions.
[[nodiscard]] Wants wants_of(const std::vector<Box>& boxes, std::size_t dims, Index rank);

/// Fails unless each box of the rank has the dimensions of the shape and lies within it. Errors: mismatch, overflow.
[[nodiscard]] Result<void> check_within(const std::vector<Index>& shape, const RankBoxes& boxes, Index rank);

/// The routes of a table, which outlives them. A rank receives each element that it wants and does not own once.
class BoxRoutes {
public:
    /// Indexes all boxes. pre: check_within holds for each rank.
    explicit BoxRoutes(const BoxTable& table);

    /// Fails with Code::mismatch if another box owns an element of a box that the rank owns, or if nobody owns an
    /// element that it wants. The error names the element and the ranks.
    [[nodiscard]] Result<void> check(Index rank) const;
    /// The fresh parts of the rank's wants, each from its owner. Local copies have peer == rank. pre: check.
    [[nodiscard]] std::vector<BoxMove> receives(Index rank) const;
    /// The other side of the receives of other ranks, in the same order for each pair of ranks. pre: check.
    [[nodiscard]] std::vector<BoxMove> sends(Index rank) const;

private:
    const BoxTable& table_;
    BoxIndex owned_;
    BoxIndex wanted_;
};

}  // namespace reshard
