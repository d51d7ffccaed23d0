// The rows that one rank of a subscriber takes from one rank of a publisher, walked in pieces.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "reshard/model/rows.hpp"

namespace reshard::live {

[[nodiscard]] Index bytes_of(const std::vector<Row>& rows);  ///< saturating

/// Rows as the subscriber sends them: the side of the publisher only. `arrays` numbers the arrays at the publisher.
[[nodiscard]] std::string text_of(const std::vector<Row>& rows, const std::vector<Index>& arrays);
/// nullopt: these bytes are no rows, or reach outside the tiles, whose bytes are `tiles`.
[[nodiscard]] std::optional<std::vector<Row>> rows_of(std::string_view bytes, const std::vector<Index>& tiles);

/// A place in rows, from the first byte to the last.
class RowWalk {
public:
    explicit RowWalk(const std::vector<Row>& rows) : rows_(&rows) {}  ///< which must outlive the walk
    [[nodiscard]] bool is_over() const { return row_ == rows_->size(); }

    /// Walks at most `bytes` further, and calls piece(row, run, place in the run, bytes) for each contiguous part.
    /// Returns the bytes walked.
    template <class Piece>
    Index walk(Index bytes, const Piece& piece) {
        Index walked = 0;
        while (walked < bytes && !is_over()) {
            const Row& row = (*rows_)[row_];
            const Index count = std::min(bytes - walked, row.run_bytes - place_);
            piece(row, run_, place_, count);
            walked += count;
            place_ += count;
            if (place_ < row.run_bytes) continue;
            place_ = 0;
            if (++run_ < row.runs) continue;
            run_ = 0;
            ++row_;
        }
        return walked;
    }

private:
    const std::vector<Row>* rows_;
    std::size_t row_ = 0;
    Index run_ = 0;
    Index place_ = 0;  // in the run
};

}  // namespace reshard::live
