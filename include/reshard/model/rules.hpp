// Rules: lines `pattern = layout` that map the names of a model's tensors to layouts at both ends of a move. Rules also
// rename, fuse and split tensors. docs/rules.md explains them with examples.
#pragma once

#include <string>
#include <string_view>

#include "reshard/model/rows.hpp"
#include "reshard/notations/notation.hpp"

namespace reshard {

/// A tensor of a model, as a checkpoint lists it.
struct ListedTensor {
    std::string name;          ///< without blanks
    DType dtype = DType::f32;  ///< type of the elements
    std::vector<Index> shape;  ///< in elements
    friend bool operator==(const ListedTensor&, const ListedTensor&) = default;
};

/// Parses lines `name dtype[shape]`, as in `model.norm.weight bf16[7168]`. Empty lines and comments after # are
/// ignored. In a name {n:61} stands for the numbers below 61, and {n:3:61} for the numbers from 3 on. Consecutive lines
/// that begin with the same number are repeated together: all lines for 0, then all lines for 1. Errors, with the line
/// and the place: syntax; mismatch (a name that is listed twice); overflow; unsupported (over 2^20 tensors by numbers).
[[nodiscard]] Result<std::vector<ListedTensor>> parse_tensors(std::string_view text);

/// A tensor at one end of a move.
struct ShardedTensor {
    std::string name;                      ///< its name at this end
    std::shared_ptr<const Layout> layout;  ///< never null; tensors of one layout share it
    /// Its own shape. With a home, `{e}@axes`, the layout has one more dimension. A layout that flattens the tensor has
    /// one dimension.
    std::vector<Index> shape = {};
    bool padded = false;  ///< elements that no move writes are 0; the mover writes them

    /// Consecutive indices of the tensor, and the place of the first one in the layout.
    struct Stretch {
        Interval indices;  ///< of the tensor
        Index begin = 0;   ///< the first one's place in the layout
    };
    /// Sources only. If shards share blocks of scales, the layout has such a block once for each of them. For each
    /// dimension of `shape`: the indices of each shard, in the order of the layout; empty: the layout has all once.
    std::vector<std::vector<Stretch>> held = {};
};

/// Returns the shape of a tensor as its layout has it, with a block once for each shard that holds it.
[[nodiscard]] std::vector<Index> held_shape(const ShardedTensor& tensor);

/// The result of rules on a list of tensors.
struct CheckpointMapping {
    /// The tensors at the ends of one move.
    struct Ends {
        std::uint32_t source = 0;  ///< index into `sources`
        std::uint32_t target = 0;  ///< index into `targets`
    };
    std::vector<ShardedTensor> sources;  ///< the list, in its order
    std::vector<ShardedTensor> targets;  ///< in the order of their sources in the list; their layouts have the types
                                         ///< of the targets
    std::vector<Ends> ends;              ///< one per move: by target, its parts in order, their heads in order
    std::vector<PartProblem> moves;      ///< for RowSchedule::make; a row's `array` is the index of its move. Both
                                         ///< layouts have the type of the elements that move
};

/// Applies rules to a list of tensors. A # begins a comment.
/// rules := {line};
/// line := "source" mesh | "target" mesh                   the next lines are about this end, on this mesh
///       | pattern "=" layout [cast]                       tensors of this end with such names
///       | "otherwise" "=" layout [cast]                   tensors that no other line names
///       | ["also"] pattern "=" layout [cast] "<-" from    target only: made of tensors with other names
///       | "drop" pattern                                  target only: tensors that are not moved
/// from := part {("+" | "++") part} ["along" dimension] ["in" n "groups"];   + each part is cut by itself, ++ the whole
/// part := pattern ["shape" "(" extent {"," extent} ")"] ["[" slice {"," slice} "]"]
///         [".T" | "permute" "(" dimension {"," dimension} ")"];   .T is permute(1,0), behind a shape or slices
/// extent := n | ":" | "-1";   the extent of the dimension at the same place; all that the others leave
/// slice := [from] ":" [to] [":" step] | from ":" to "of" period ["in" [from] ":" [to]] | index | "{" name "}"
///          from, to and index may be negative and then count from the end, but not with a period
/// cast := "as" dtype;                                      target only
/// layout := "-" | "[" [entry {"," entry}] "]" | "blocks" n {"," n} "of" pattern
///         | "[" "(" entry {"," entry} ")" "@" axes ["[" n {"," n} "]"] "]"             each tile flattened, in units
/// entry := "-" [pad] | axes [pad] [cut | "{" extent {"," extent} "}"] [("heads" | "blocks") "of" size] | owner;
/// axes, cut: as in parse_layout;   pad := "pad" "0" "to" ["multiple" "of"] (n | axis) {"*" (n | axis)}, target only
/// size := n | "{" n {"," n} "}";   several are one for each part
/// owner := "{" name "}@" axes [cut] | ("first" | "last" | shard) "@" axes;   no dimension
/// pattern := bytes of names, "*" (anything), "{" name "}" (no dot), "{" name ":" n "}" (a number below n) and
///            "{" name ":" first ":" n "}" (a number from first on and below n).
///
/// In every part, * and {name} stand for the same as in the target's pattern. A {name:n} in the parts alone makes a
/// stack of n along a new first dimension; `along 1` behind a single part makes another dimension of it. A {name:n} in
/// the target alone makes n tensors, each from a slice. The owner `{name}@axes` divides the numbers from 0 to n.
/// `blocks n of pattern` cuts a tensor of blocks (scales) as another tensor at the same end is cut, in every dimension
/// except the dimension of a stack. Several numbers are one for each dimension. Shards that share a block all hold it.
/// The shape of the target then counts it once for each of them; at a source the list has each block once.
/// `heads of n`: n indices are a head, and no head is cut. If there are fewer heads than shards, consecutive shards
/// share a head. In a part of a fused tensor (+) such a head stands once for each shard, unless all parts share it by
/// the same shards. The target is then longer than its parts, and each copy of a head has its own move.
/// `pad 0 to n` in the dimension of parts that are fused with + pads each part by itself. A cut of such a dimension,
/// `tp[balanced]`, `tp[5,3]` or `tp/2`, cuts each part.
/// `tp blocks of n`: n indices are a block, and no block is cut. Each shard has ceil(blocks / shards) blocks, the last
/// ones fewer, and no block is shared.
/// `as bf16`: the target has this element type, and its parts may have others: any floating types, or narrower
/// integers. The elements of a move have the narrower type of both ends, or the source's if both have one size. So the
/// layouts in CheckpointMapping::moves have that type, and rows count its bytes. The end that has the other type casts
/// its tile: the source before the move, or the target after it.
/// `shape(4,-1)`: the elements of a tensor, in row-major order, in another shape. Slices and permute see that shape.
/// `from:to of period`: these indices of each period, of all indices or of a range. `in n groups`: the parts follow
/// each other in each group, which has its share of each part. Each stretch of equal windows is one move. Its two ends
/// are views (in_parts) of the tensors, or each window is a move if a layout has no such view. `permute(1,0)`:
/// dimension i of the part is the slice's dimension permute[i]. Padding is not written by any move. Errors, with the
/// line and the place: syntax; mesh, overflow, unsupported (as parse_mesh and parse_layout); layout (as parse_layout; a
/// head or a block that would be cut); unsupported (a cast between other types; a shape that a cut does not fit);
/// mismatch (no line fits a name or more than one does; a line fits no name; a part is missing, taken twice or of
/// another shape).
[[nodiscard]] Result<CheckpointMapping> apply_rules(std::string_view rules, std::span<const ListedTensor> tensors);

/// A tensor of the target that is a tensor of the source as it is, under any name.
struct WholeMove {
    std::size_t source = 0;  ///< index into CheckpointMapping::sources
    std::size_t target = 0;  ///< index into CheckpointMapping::targets
    Problem ends;            ///< both layouts have the same dimensions
    std::size_t owners = 0;  ///< the first dimensions; they only say who owns the tensor, and have one index
};

/// Returns the moves of a mapping of whole tensors, such as a rebuild takes (boxes/rebuild.hpp). Errors: unsupported (a
/// target that is made of parts, or is padded, cast or in another shape; the error names it).
[[nodiscard]] Result<std::vector<WholeMove>> whole_moves(const CheckpointMapping& mapping);

/// CheckpointMapping::sources alone, from the lines of the source; the lines of the target do not matter. Errors: the
/// same.
[[nodiscard]] Result<std::vector<ShardedTensor>> place_sources(std::string_view rules,
                                                               std::span<const ListedTensor> tensors);

}  // namespace reshard
