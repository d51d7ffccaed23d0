// Rules: lines `pattern = layout` that map the names of a model's tensors to layouts at both ends of a move, with
// renames, and fused and split tensors as parts of one. docs/rows.md has the text with examples.
#pragma once

#include <string>
#include <string_view>

#include "reshard/model/rows.hpp"
#include "reshard/notations/notation.hpp"

namespace reshard {

/// A tensor of a model, as a checkpoint lists it.
struct ListedTensor {
    std::string name;          ///< without blanks
    DType dtype = DType::f32;  ///< of the elements
    std::vector<Index> shape;  ///< in elements
    friend bool operator==(const ListedTensor&, const ListedTensor&) = default;
};

/// Lines `name dtype[shape]`, as `model.norm.weight bf16[7168]`; empty lines and what follows a # say nothing.
/// Errors, with the line and the place: syntax; mismatch (a name that is listed twice); overflow.
[[nodiscard]] Result<std::vector<ListedTensor>> parse_tensors(std::string_view text);

/// A tensor at one end.
struct PlacedTensor {
    std::string name;                      ///< as it is called there
    std::shared_ptr<const Layout> layout;  ///< never null; tensors of one layout share it
    std::vector<Index> shape = {};         ///< its own; homes, `{e}` at axes, give the layout one of 1 more
};

/// What rules say of a list of tensors.
struct ModelMoves {
    /// Which tensor becomes which, or parts of them.
    struct Ends {
        std::uint32_t source = 0;  ///< of `sources`
        std::uint32_t target = 0;  ///< of `targets`
    };
    std::vector<PlacedTensor> sources;  ///< the list, in its order
    std::vector<PlacedTensor> targets;  ///< in the order in which the list has what they are made of
    std::vector<Ends> ends;             ///< of each move: by target, its parts in order
    std::vector<PartProblem> moves;     ///< for RowSchedule::make; a row's `array` is the index of its move
};

/// rules := {line}; what follows a # says nothing.
/// line := "source" mesh | "target" mesh                   what follows is about that end, on that mesh
///       | pattern "=" layout                              one end's tensors of such names
///       | "otherwise" "=" layout                          those that no other line has
///       | ["also"] pattern "=" layout "<-" from           target only: made of tensors of other names
///       | "drop" pattern                                  target only: tensors that go nowhere
/// from := part {("+" | "++") part} ["along" dimension];   + each part is cut by itself, ++ the whole is cut
/// part := pattern ["[" slice {"," slice} "]"];            slice := ":" | from ":" to | index | "{" name "}"
/// layout := "-" | "[" [entry {"," entry}] "]" | "blocks" n {"," n} "of" pattern
/// entry := "-" | axes [cut | "{" extent {"," extent} "}"] | "{" name "}@" axes;   axes and cut as in parse_layout
/// pattern := bytes of names, "*" (anything), "{" name "}" (no dot) and "{" name ":" n "}" (a number below n).
///
/// Of a pattern of the target every part takes what * and {name} stand for. A {name:n} that only the parts have makes a
/// stack of n along a new first dimension; one that only the target has makes n tensors, each of a slice.
/// Blocks of a tensor at the same end are cut where it is cut, in every dimension but that of a stack; several numbers
/// are those of its dimensions. Errors, with the line and the place: syntax; mesh, layout, overflow, unsupported (as
/// parse_mesh and parse_layout); mismatch: a name that no line or more than one has, a line that no name fits, a part
/// that is missing, taken twice or of another shape.
[[nodiscard]] Result<ModelMoves> apply_rules(std::string_view rules, std::span<const ListedTensor> tensors);

/// ModelMoves::sources alone: what the lines of the source say, whatever those of the target are. Errors: the same.
[[nodiscard]] Result<std::vector<PlacedTensor>> place_sources(std::string_view rules,
                                                              std::span<const ListedTensor> tensors);

}  // namespace reshard
