// The places of a tile's bytes in the whole array.
#pragma once

#include <algorithm>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard {

/// The positions in the whole array, row-major, of the bytes of a dense, row-major tile.
class TilePlaces {
public:
    TilePlaces(const Layout& layout, Index rank);

    /// Calls run(position, bytes) for the stretches of the array that a run of the tile covers, in the order of the
    /// tile. pre: the run is within the tile.
    template <class Run>
    void each(Index offset, Index bytes, const Run& run) {
        while (bytes > 0) {
            if (offset < begin_ || offset >= end_) find(offset);
            const Index size = std::min(bytes, end_ - offset);
            run(position_ + (offset - begin_), size);
            offset += size;
            bytes -= size;
        }
    }

private:
    // A dimension. The indices from starts[i] on to starts[i + 1] of the tile are those from begins[i] on of the array.
    struct Dimension {
        Index stride = 0;  // bytes in the array
        std::vector<Index> starts;
        std::vector<Index> begins;
    };
    void find(Index offset);

    std::vector<Dimension> dims_;  // the dimensions behind them are whole
    Index unit_ = 0;               // bytes of an index of the last of them
    Index begin_ = 0;              // the stretch that was used last, in the tile
    Index end_ = 0;
    Index position_ = 0;  // of its beginning in the array
};

}  // namespace reshard
