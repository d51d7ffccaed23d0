// The tile program: a plan of collectives as operations on the local tile. Every array framework has each of them.
#pragma once

#include "reshard/planner/schedule.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// The kinds of operation on the local tile. Tiles are dense, row-major and of one shape on all devices. A *group* is a
/// list of positions. Each collective names all groups; every position is in one group, and all groups have size g.
enum class OperationKind {
    reshape,         ///< another shape of the same elements in row-major order
    transpose,       ///< dimension i of the output is dimension permutation[i] of the input
    reorder,         ///< dimension 1 of the output is these runs of dimension 1 of the input, one after another
    slice,           ///< the block of the output's shape that begins at starts[position] of the input
    update_slice,    ///< the input becomes the block at starts[position] of an output whose other elements are neutral
    mask,            ///< positions of `keeps` keep the tile, all others get a tile of neutral elements
    scale,           ///< each element times factor.times, divided by factor.over
    cast,            ///< each element as one of `dtype`, rounded once to nearest even
    reduce,          ///< dimension 0 goes: its entries are combined in order
    all_gather,      ///< dimension 0 becomes g times as long: the tiles of the group's members, in order
    all_to_all,      ///< dimension 0 is g blocks: block j goes to member j, and the block of member j takes its place
    reduce_scatter,  ///< dimension 0 is g blocks: member j gets the sum over the group of all blocks j
    all_reduce,      ///< the members' tiles combined, on every member
    permute,  ///< the tile of each pair's source goes to its target; each position is once a source, once a target
};

/// Every kind, in order.
inline constexpr std::array<OperationKind, 14> all_operation_kinds = {
    OperationKind::reshape,      OperationKind::transpose,  OperationKind::reorder,    OperationKind::slice,
    OperationKind::update_slice, OperationKind::mask,       OperationKind::scale,      OperationKind::cast,
    OperationKind::reduce,       OperationKind::all_gather, OperationKind::all_to_all, OperationKind::reduce_scatter,
    OperationKind::all_reduce,   OperationKind::permute};

[[nodiscard]] std::string_view name(OperationKind kind);  ///< reshape, transpose, ...
[[nodiscard]] bool is_collective(OperationKind kind);     ///< data leaves the device

/// A whole tile that changes its place; the same place for one that stays.
struct SourceTargetPair {
    Index source = 0;  ///< position
    Index target = 0;  ///< position
    friend bool operator==(const SourceTargetPair&, const SourceTargetPair&) = default;
};

/// One operation on the local tile. Fields that its kind does not name are empty. A position is a row-major number in
/// TileProgram::source.mesh, from 0.
struct Operation {
    OperationKind kind = OperationKind::reshape;  ///< what it does
    std::vector<Index> input;                     ///< shape of the tile before, in elements
    std::vector<Index> output;                    ///< and after
    std::vector<std::size_t> permutation = {};    ///< transpose
    std::vector<Interval> runs = {};              ///< reorder: of dimension 1 of the input, each index once
    /// slice, update_slice: for each position one start per dimension, in elements.
    std::vector<std::vector<Index>> starts = {};
    /// slice, update_slice: the same by digits of the position, per dimension: starts[p][d] is value_of(digits[d], p)
    /// times the smaller extent. mask: digits[0] are zero where the tile is kept. Collectives: member j of the group of
    /// p has value_of(digits[0], .) == j and agrees with p on all other digits. Empty where the devices have changed
    /// their order meanwhile, so that no digits of the position say it.
    std::vector<AtomList> digits = {};
    std::vector<std::vector<Index>> groups = {};  ///< all_gather, all_to_all, reduce_scatter, all_reduce
    std::vector<SourceTargetPair> pairs = {};     ///< permute: by ascending target
    std::vector<Index> keeps = {};                ///< mask: positions, ascending
    Scale factor = {};                            ///< scale
    DType dtype = DType::f32;                     ///< cast: the type of the elements after it
    /// reduce, all_reduce: how to combine; reduce_scatter: sum. update_slice, mask: whose neutral element fills: 0 of a
    /// sum, 1 of a prod, lowest of a max (-inf of a float), highest of a min.
    Combine combine = Combine::copy;
    friend bool operator==(const Operation&, const Operation&) = default;
};

/// The most elements that a device receives from others in one run of the operation. In tiles: g-1 inputs for an
/// all_gather, (g-1)/g for an all_to_all, g-1 outputs for a reduce_scatter, 2(g-1)/g (rounded up) for an all_reduce, 1
/// for a permute that moves a tile, otherwise 0.
[[nodiscard]] Index received_elements(const Operation& operation);

/// One line for people: the kind, both shapes, and what else it has: transpose [2,8,4] -> [8,2,4] by [1,0,2].
[[nodiscard]] std::string format(const Operation& operation);

/// Digits of positions as whole axes of the mesh, major to minor; nullopt when one is a part of an axis.
[[nodiscard]] std::optional<std::vector<std::string>> whole_axes(const Mesh& mesh, const AtomList& digits);

/// The operations of every device that move the array from `source` to `target`. They begin at the tile shape and
/// element type of the source and end at the tile shape and element type of the target. The device at position i of
/// source.mesh runs as position i, and ends with its own tile of the target.
struct TileProgram {
    Layout source;                      ///< where the array is
    Layout target;                      ///< where it is wanted
    std::vector<Operation> operations;  ///< in order; output shape of one is input shape of the next
    friend bool operator==(const TileProgram&, const TileProgram&) = default;
};

/// The ends and the operations, a line each.
[[nodiscard]] std::string format(const TileProgram& program);

/// Whether a question can have a tile program at all. Errors: as validate; unsupported if the tiles of an end differ in
/// shape (why_uneven), or if the two ends stand on different devices.
[[nodiscard]] Result<void> has_program(const Problem& asked);

/// Lowers a plan to a program with one collective for each step that communicates and few copies of the tile between
/// them. Transposes are merged, and each runs where it copies the fewest bytes. An avg is a sum and a factor. A scatter
/// of max, min or prod is an all_to_all and a reduce. A gather of several dimensions is split by dimension if that
/// saves copies of more than a mebibyte. An all_reduce of prod is a scatter and an all_gather if the tile divides by
/// the group, otherwise an all_gather and a reduce. A cast stays where the plan has it. A view is a reshape. A
/// dimension in pieces is gathered in the order of its shards, and a reorder brings its indices to the order of the
/// array. Errors: as the judge; unsupported if a step is an exchange (plan with Vocabulary::collectives), a layout on
/// the way does not divide, an all_to_all has axes without a common refinement, f64 becomes a type of less than 32 bits
/// (frameworks round twice), or there are more than 4194304 devices.
[[nodiscard]] Result<TileProgram> portable(const Plan& plan);

/// The same between the ends of the question that the plan answers. The plan may write these ends in another shape
/// (Synthesis of a reshape) and number the devices differently. `permute` is as MoveOptions::permute: the plan begins
/// at permuted(asked.source, permute), and the program at the tile of asked.source. The transposition is part of a
/// copy that the program has anyway, if it can be. Errors: also mismatch if the plan has other ends, or if `permute` is
/// no order of the dimensions.
[[nodiscard]] Result<TileProgram> portable(const Plan& plan, const Problem& asked, std::span<const Index> permute = {});

}  // namespace reshard
