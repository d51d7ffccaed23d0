// Copies the rows that one rank of a subscriber takes from one rank of a publisher, and sums their digest on the way.
#pragma once

#include <optional>
#include <span>

#include "live/wanted_moves.hpp"
#include "reshard/model/rows.hpp"
#include "src/copy/kernels/dispatch.hpp"
#include "src/model/digest_sum.hpp"
#include "src/model/tile_places.hpp"

namespace reshard::live {

/// Each byte counts at its place in the publisher's array, as often as the weight of its move says.
class RowCopy {
public:
    /// Rows of the publisher's rank. `moves` must outlive the copy. Long runs are stored as `store` says.
    RowCopy(const WantedMoves& moves, Index publisher, Store store);

    /// Copies a row. `source` and `target` are the tiles that its offsets count from.
    void row(const Row& row, const std::byte* source, std::byte* target);
    /// Copies bytes of one run of a row, from byte `place` of the run on.
    void piece(const Row& row, Index run, Index place, std::span<const std::byte> bytes, std::byte* target);

    /// Ends the copy: no store of it is under way any more. Returns this rank's part of the digest of all its rows.
    [[nodiscard]] std::uint64_t end();

private:
    void enter(Index move);
    void leave();
    void copy(Index offset, Index bytes, const std::byte* from, std::byte* to);

    const WantedMoves& moves_;
    Index publisher_;
    Store large_;  // of long runs
    Index move_ = -1;
    std::optional<TilePlaces> places_;  // of the move's array
    std::optional<DigestSum> sum_;      // nullopt: nobody compares it
    std::uint64_t part_ = 0;
};

}  // namespace reshard::live
