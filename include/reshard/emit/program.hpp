// The tile program: a plan of collectives as operations on the local tile, each of which every array framework has.
#pragma once

#include "reshard/planner/schedule.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// What an operation does to the local tile. Tiles are dense, row-major and of one shape on all devices. A *group* is a
/// list of positions; each collective names all groups, each position is in one of them, and all have one size g.
enum class OperationKind {
    reshape,         ///< another shape of the same elements in row-major order
    transpose,       ///< dimension i of the output is dimension permutation[i] of the input
    slice,           ///< the block of the output's shape that begins at starts[position] of the input
    update_slice,    ///< the input becomes the block at starts[position] of an output whose other elements are neutral
    mask,            ///< positions of `keeps` keep the tile, all others get a tile of neutral elements
    scale,           ///< each element times factor.times, divided by factor.over
    reduce,          ///< dimension 0 goes: its entries are combined in order
    all_gather,      ///< dimension 0 becomes g times as long: the tiles of the group's members, in order
    all_to_all,      ///< dimension 0 is g blocks: block j goes to member j, and the block of member j takes its place
    reduce_scatter,  ///< dimension 0 is g blocks: member j gets the sum over the group of all blocks j
    all_reduce,      ///< the members' tiles combined, on every member
    permute,  ///< the tile of each pair's source goes to its target; each position is once a source, once a target
};

/// Every kind, in order.
inline constexpr std::array<OperationKind, 12> all_operation_kinds = {
    OperationKind::reshape,    OperationKind::transpose,      OperationKind::slice,      OperationKind::update_slice,
    OperationKind::mask,       OperationKind::scale,          OperationKind::reduce,     OperationKind::all_gather,
    OperationKind::all_to_all, OperationKind::reduce_scatter, OperationKind::all_reduce, OperationKind::permute};

[[nodiscard]] std::string_view name(OperationKind kind);  ///< reshape, transpose, ...
[[nodiscard]] bool is_collective(OperationKind kind);     ///< data leaves the device

/// A whole tile that changes its place; the same place for one that stays.
struct SourceTargetPair {
    Index source = 0;  ///< position
    Index target = 0;  ///< position
    friend bool operator==(const SourceTargetPair&, const SourceTargetPair&) = default;
};

/// One operation on the local tile. Fields that its kind does not name are empty. Positions are those of
/// TileProgram::source.mesh, row-major from 0.
struct Operation {
    OperationKind kind = OperationKind::reshape;  ///< what it does
    std::vector<Index> input;                     ///< shape of the tile before, in elements
    std::vector<Index> output;                    ///< and after
    std::vector<std::size_t> permutation = {};    ///< transpose
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
    /// reduce, all_reduce: how to combine; reduce_scatter: sum. update_slice, mask: whose neutral element fills: 0 of a
    /// sum, 1 of a prod, lowest of a max (-inf of a float), highest of a min.
    Combine combine = Combine::copy;
    friend bool operator==(const Operation&, const Operation&) = default;
};

/// Elements that a device receives from others in one run of the operation, at most: (g-1) tiles of the input in an
/// all_gather, (g-1)/g in an all_to_all, (g-1) tiles of the output in a reduce_scatter, 2(g-1)/g in an all_reduce
/// (rounded up), one tile in a permute in which any moves, 0 where nothing leaves the device.
[[nodiscard]] Index received_elements(const Operation& operation);

/// One line for people: the kind, both shapes, and what else it has: transpose [2,8,4] -> [8,2,4] by [1,0,2].
[[nodiscard]] std::string format(const Operation& operation);

/// Digits of positions as whole axes of the mesh, major to minor; nullopt when one is a part of an axis.
[[nodiscard]] std::optional<std::vector<std::string>> whole_axes(const Mesh& mesh, const AtomList& digits);

/// What each device does to its tile so that the array comes from `source` to `target`. The operations begin at the
/// tile shape of the source and end at that of the target; the device at position i of source.mesh runs as position i,
/// and ends with the tile that target has on that device.
struct TileProgram {
    Layout source;                      ///< where the array is
    Layout target;                      ///< where it is wanted
    std::vector<Operation> operations;  ///< in order; output shape of one is input shape of the next
    friend bool operator==(const TileProgram&, const TileProgram&) = default;
};

/// The ends and the operations, a line each.
[[nodiscard]] std::string format(const TileProgram& program);

/// Whether a question can have a tile program at all. Errors: as validate; unsupported when an end is not cut into
/// equal blocks in order (why_uneven), and when the two ends stand on different devices.
[[nodiscard]] Result<void> has_program(const Problem& asked);

/// The plan as a program: one collective for each step that communicates, and as few copies of the tile between them as
/// were found (transposes are merged, and each is where least bytes are copied). An avg is a sum and a factor. A max,
/// min or prod is scattered by all_to_all and reduce. A gather of several dimensions is one for each where that saves
/// copies of more than a mebibyte. Where the elements of a tile divide by the group an all_reduce of
/// prod is that and an all_gather, else an all_gather and a reduce. Errors: unsupported when a step is an exchange
/// (plan with Vocabulary::collectives), when a layout on the way does not divide, on more than 4194304
/// devices, or when an all_to_all has axes
/// without a common refinement; those of the judge where the plan is none.
[[nodiscard]] Result<TileProgram> portable(const Plan& plan);

/// The same between the ends of the question, of which the plan is the answer: the plan may see them in another shape
/// (Synthesis of a reshape) and number the devices differently. Errors: also mismatch when the plan's ends are not
/// these.
[[nodiscard]] Result<TileProgram> portable(const Plan& plan, const Problem& asked);

}  // namespace reshard
