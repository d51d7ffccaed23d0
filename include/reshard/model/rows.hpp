// A move as data: which bytes of which rank go where, as a flat array, for a transport of one's own. No memory is
// touched and no transport assumed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reshard/planner/storage.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// So many runs of bytes, at one distance on each side: run i is `run_bytes` from source_offset + i * source_stride of
/// the sender's source tile on, and goes to target_offset + i * target_stride of the receiver's target tile. All in
/// bytes; eight integers of 64 bits and nothing else.
struct Row {
    Index array = 0;          ///< which array of the list
    Index peer = 0;           ///< the rank at the other end; this rank itself for what stays
    Index source_offset = 0;  ///< from the start of the sender's source tile
    Index target_offset = 0;  ///< from the start of the receiver's target tile
    Index run_bytes = 0;      ///< at least 1
    Index runs = 1;           ///< at least 1
    Index source_stride = 0;  ///< from one run to the next; 0 where there is one run
    Index target_stride = 0;  ///< the same of the target
    friend bool operator==(const Row&, const Row&) = default;
};

/// Whose rows: those of the bytes that a rank sends, or of those that it receives. Local copies are in both.
enum class RowSide { send, receive };

/// Where the tiles of an array lie on each rank: element r is rank r's, and extents and offsets of the rows count from
/// the start of its buffer. Empty: every tile is dense and row-major.
struct RankStorages {
    std::vector<Storage> source;  ///< of the source tiles
    std::vector<Storage> target;  ///< of the target tiles
};

/// A tensor, or one box of it, as a part of a fused one is.
struct TensorPart {
    std::shared_ptr<const Layout> layout;  ///< of the whole tensor, whose tiles are dense and row-major; never null
    std::optional<Box> box = {};           ///< in the tensor's indices; none: all of it
    /// Equal as values, wherever the layouts are kept.
    friend bool operator==(const TensorPart& a, const TensorPart& b);
};

/// A part of one tensor that becomes a part of another. Extents of 1 may be at one end only: a matrix becomes one of a
/// stack. The rows' offsets count from the start of the whole tensors' tiles.
struct PartProblem {
    TensorPart source;  ///< where it is
    TensorPart target;  ///< where it is wanted
    friend bool operator==(const PartProblem&, const PartProblem&) = default;
};

/// The layout of a part as an array of its own: every device has of it what it has of the tensor.
/// pre: validate(*part.layout). Errors: mismatch (the box is not within the tensor).
[[nodiscard]] Result<Layout> layout_of(const TensorPart& part);

/// The rows of the exchange of one or many arrays, on any rank.
///
/// Every rank that makes it from the same list gets rows that fit together: the k-th row that a rank sends to a peer is
/// the k-th that the peer receives from it, equal but for `peer`. Of each array a rank receives only what it does not
/// hold, and holders of one tile share the work: none sends more than ceil(elements that others want of the tile /
/// holders) (the stripe rule of schedule()).
/// The order is fixed: by array, then by peer, then by the boxes in which the two tiles overlap, row-major, each in the
/// order in which it lies in the target. A box is as few rows as its depth allows: extents that continue each other on
/// both sides are one, the longest that is left is the one with strides, and rows that continue each other are joined.
/// Equal questions of a list are kept and computed once. May be asked from several threads.
class RowSchedule {
public:
    /// Reshapes are taken in a view that both shapes have (unified). Errors: as validate; mismatch (element types or
    /// numbers of elements differ); unsupported (unreduced axes: a sum is no copy; more than 2^22 pieces).
    [[nodiscard]] static Result<RowSchedule> make(std::span<const Problem> arrays);
    /// Tensors and parts of tensors. Errors: the same; mismatch (a box is not within its tensor; extents other than 1
    /// differ between two parts of which one is no whole tensor).
    [[nodiscard]] static Result<RowSchedule> make(std::span<const PartProblem> parts);
    /// One array in storages of the caller's. Errors: the same; mismatch (storages that do not fit the tiles, or of
    /// fewer ranks than the layout has; a reshape in a storage); overflow.
    [[nodiscard]] static Result<RowSchedule> make(const Problem& array, RankStorages storages);

    /// What `rank` sends or receives; nothing for ranks that hold nothing. Cost: linear in the peers of the rank and in
    /// the rows, except for replicated sources (see schedule()).
    [[nodiscard]] std::vector<Row> rows(Index rank, RowSide side = RowSide::send) const;

    [[nodiscard]] Index rank_count() const { return ranks_; }  ///< ranks from 0 on that may have rows
    [[nodiscard]] std::size_t array_count() const { return question_of_.size(); }   ///< of the list
    [[nodiscard]] std::size_t question_count() const { return questions_.size(); }  ///< that differ

    struct Question;  ///< one array or part with its ends as they are asked; private to the schedule

private:
    RowSchedule() = default;
    template <class Asked>
    [[nodiscard]] static Result<RowSchedule> make_list(std::span<const Asked> list);

    std::vector<std::shared_ptr<const Question>> questions_;
    std::vector<std::uint32_t> question_of_;  // of each array
    Index ranks_ = 0;
};

/// The rows of one array on one rank: RowSchedule::make, then rows. `array` is 0 in all.
[[nodiscard]] Result<std::vector<Row>> schedule_rows(const Layout& source, const Layout& target, Index rank,
                                                     RowSide side = RowSide::send);
/// The same of a list; `array` is the index into it.
[[nodiscard]] Result<std::vector<Row>> schedule_rows(std::span<const Problem> arrays, Index rank,
                                                     RowSide side = RowSide::send);

}  // namespace reshard
