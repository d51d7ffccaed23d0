// A move as data for your own transport: a flat array of rows says which bytes go where. It touches no memory and
// assumes no transport.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reshard/planner/storage.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// Runs of bytes at a constant distance on each side. Run i takes `run_bytes` bytes at source_offset + i *
/// source_stride of the sender's source tile, to target_offset + i * target_stride of the receiver's target tile. A row
/// is eight integers of 64 bits and nothing else; offsets and strides are in bytes.
struct Row {
    Index array = 0;          ///< which array of the list
    Index peer = 0;           ///< the rank at the other end; this rank for a local copy
    Index source_offset = 0;  ///< from the start of the sender's source tile
    Index target_offset = 0;  ///< from the start of the receiver's target tile
    Index run_bytes = 0;      ///< at least 1
    Index runs = 1;           ///< at least 1
    Index source_stride = 0;  ///< from one run to the next; 0 for a single run
    Index target_stride = 0;  ///< the same in the target
    friend bool operator==(const Row&, const Row&) = default;
};

/// Runs of bytes in up to four nested loops: run (i_0, ..., i_3) is the sum of i_k * stride k away from the offset on
/// each side. Loops are outermost first; loops that are not used come first and have one run and stride 0.
struct NestedRow {
    static constexpr std::size_t depth = 4;        ///< a period and a block in each of two dimensions
    Index array = 0;                               ///< which array of the list
    Index peer = 0;                                ///< the rank at the other end; this rank for a local copy
    Index source_offset = 0;                       ///< bytes from the start of the sender's source tile
    Index target_offset = 0;                       ///< bytes from the start of the receiver's target tile
    Index run_bytes = 0;                           ///< at least 1
    std::array<Index, depth> runs = {1, 1, 1, 1};  ///< of each loop, at least 1
    std::array<Index, depth> source_strides = {};  ///< bytes from one run of a loop to the next
    std::array<Index, depth> target_strides = {};  ///< the same in the target
    friend bool operator==(const NestedRow&, const NestedRow&) = default;
};

/// Which rows: of the bytes that a rank sends, or of the bytes that it receives. Local copies are in both.
enum class RowSide { send, receive };

/// The storages of an array's tiles. Element r is for rank r, and the rows' offsets count from the start of its buffer.
/// If empty, every tile is dense and row-major.
struct RankStorages {
    std::vector<Storage> source;  ///< storages of the source tiles
    std::vector<Storage> target;  ///< storages of the target tiles
    friend bool operator==(const RankStorages&, const RankStorages&) = default;
};

/// The storages of all ranks, from text. `order 1,0` names the dimensions, outermost first, and tiles are dense: the
/// order of HND and NHD caches. `strides 64,1` or `strides 64,1 offset 8` has elements, for every rank; several, with
/// `;` between them, are for one rank each. An empty text has no storages: tiles are dense and row-major. Errors:
/// syntax; mismatch (a wrong number of dimensions or ranks).
[[nodiscard]] Result<std::vector<Storage>> parse_storages(const Layout& layout, std::string_view text);

/// A tensor, or one box of it, such as a part of a fused tensor.
struct TensorPart {
    std::shared_ptr<const Layout> layout;  ///< layout of the whole tensor, with dense, row-major tiles; never null
    std::optional<Box> box = {};           ///< in the layout's indices; empty: the whole tensor
    std::vector<std::size_t> order = {};  ///< the layout's dimension for each dimension of the part; empty: as they are
    /// Compares values, not the addresses of the layouts.
    friend bool operator==(const TensorPart& a, const TensorPart& b);
};

/// A part of one tensor that becomes a part of another. A dimension of extent 1 may be at one end only, so a matrix can
/// become one of a stack. The rows' offsets count from the start of the whole tensors' tiles. An end may be a view of
/// its tensor (in_parts, in_shape), since the tiles of both are equal in memory.
struct PartProblem {
    TensorPart source;  ///< where the part is
    TensorPart target;  ///< where it is wanted
    friend bool operator==(const PartProblem&, const PartProblem&) = default;
};

/// The layout of a part as a separate array. Every device holds of the part what it holds of the tensor.
/// pre: validate(*part.layout). Errors: mismatch (the box is not within the tensor; the order does not name each
/// dimension once).
[[nodiscard]] Result<Layout> layout_of(const TensorPart& part);

/// The rows of the exchange of one or many arrays, on any rank.
///
/// Ranks that make it from the same list get rows that fit together. The k-th row that a rank sends to a peer is the
/// k-th row that the peer receives from it; they differ only in `peer`. A rank receives only elements that it does not
/// hold, and holders of one tile share the work: no holder sends more than ceil(elements that others want of the tile /
/// holders) (the stripe rule of schedule()).
/// The order is fixed: by array, then by peer, then by the repeated segments that the two tiles share, row-major. The
/// rows of a segment are in the order of the target's memory. Rows are few: runs that touch on both sides are one run,
/// repeats of a cyclic cut are folded by their period, the longest loop has the strides, and consecutive rows are
/// joined. Equal problems of a list are computed once. Several threads may use one schedule.
class RowSchedule {
public:
    /// Makes the schedule of a list of arrays. A reshape uses a view that both shapes have (to_common_shape). Errors:
    /// as validate; mismatch (element types or numbers of elements differ); unsupported (unreduced axes, since rows
    /// only copy; more than 2^22 pieces).
    [[nodiscard]] static Result<RowSchedule> make(std::span<const Problem> arrays);
    /// Makes the schedule of tensors and parts of tensors. Errors: the same; mismatch (a box is not within its tensor;
    /// extents other than 1 differ, and one end is not a whole tensor).
    [[nodiscard]] static Result<RowSchedule> make(std::span<const PartProblem> parts);
    /// Makes the schedule of one array in the caller's storages. Errors: the same; mismatch (storages that do not fit
    /// the tiles, or for fewer ranks than the layout has; a reshape in a storage); overflow.
    [[nodiscard]] static Result<RowSchedule> make(const Problem& array, const RankStorages& storages);
    /// Makes the schedule of a list in the caller's storages, one for each array. Errors: the same; mismatch (another
    /// number of storages).
    [[nodiscard]] static Result<RowSchedule> make(std::span<const Problem> arrays,
                                                  std::span<const RankStorages> storages);

    /// The rows that `rank` sends or receives; empty for ranks that hold nothing. Cost: linear in the peers of the rank
    /// and in the rows, except for replicated sources (see schedule()).
    [[nodiscard]] std::vector<Row> rows(Index rank, RowSide side = RowSide::send) const;

    /// The same bytes in nested loops: fewer rows if tiles repeat in more than one way, as block-cyclic tiles do.
    [[nodiscard]] std::vector<NestedRow> nested_rows(Index rank, RowSide side = RowSide::send) const;

    [[nodiscard]] Index rank_count() const { return ranks_; }  ///< ranks from 0 on that may have rows
    [[nodiscard]] std::size_t array_count() const { return question_of_.size(); }   ///< arrays of the list
    [[nodiscard]] std::size_t question_count() const { return questions_.size(); }  ///< different ones among them

    struct Question;  ///< one array or part with its two ends; private to the schedule

private:
    RowSchedule() = default;
    template <class AnyRow>
    [[nodiscard]] std::vector<AnyRow> all_rows(Index rank, RowSide side) const;
    template <class Asked>
    [[nodiscard]] static Result<RowSchedule> make_list(std::span<const Asked> list);

    std::vector<std::shared_ptr<const Question>> questions_;
    std::vector<std::uint32_t> question_of_;  // of each array
    Index ranks_ = 0;
};

/// The rows of one array on one rank: RowSchedule::make, then rows. `array` is 0 in every row.
[[nodiscard]] Result<std::vector<Row>> schedule_rows(const Layout& source, const Layout& target, Index rank,
                                                     RowSide side = RowSide::send);
/// The rows of a list on one rank; `array` is the index into the list.
[[nodiscard]] Result<std::vector<Row>> schedule_rows(std::span<const Problem> arrays, Index rank,
                                                     RowSide side = RowSide::send);

}  // namespace reshard
