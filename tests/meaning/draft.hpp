// A problem as a person may write it, kept as drawn: names, lists and cuts, without the library's digits.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "reshard/notations/notation.hpp"
#include "tool/request/request.hpp"

namespace reshard::test {

/// A part of axis number `axis` of the mesh, written x:(before)size; the whole axis if `size` is the axis's size.
struct Part {
    std::size_t axis = 0;
    Index before = 1;
    Index size = 1;
    friend bool operator==(const Part&, const Part&) = default;
};

/// The cut of a dimension.
struct Cut {
    enum class Kind {
        even,      ///< ceil-div
        balanced,  ///< the first shards have an index more
        blocks,    ///< block-cyclic
        shares,    ///< the indices of each shard
        pieces,    ///< the end of each piece, and its owner
        chunks,    ///< ceil-div axis by axis; DTensor only
    } kind = Kind::even;
    Index block = 1;
    std::vector<Index> shares = {};
    std::vector<std::pair<Index, Index>> pieces = {};
};

struct DraftDim {
    Index extent = 1;
    std::vector<Part> parts;  ///< major to minor
    Cut cut = {};
};

struct DraftMesh {
    std::string names;  ///< names of the axes, one letter each
    std::vector<Index> sizes;
    std::optional<std::vector<Index>> devices;
    friend bool operator==(const DraftMesh&, const DraftMesh&) = default;
};

/// One end of a move.
struct End {
    DraftMesh mesh;
    std::vector<DraftDim> dims;
    std::vector<Part> unreduced;
    Reduction reduction = Reduction::sum;
};

struct Draft {
    DType dtype = DType::f32;
    End source;
    End target;
    Objective objective = Objective::time;
    Vocabulary vocabulary = Vocabulary::all;
    std::string machine;              ///< a name or a text; empty: the default
    std::optional<double> peak;       ///< a limit, in floors
    std::optional<double> footprint;  ///< a limit, in bytes of both ends
    bool donate = false;
    Notation notation = Notation::jax;
    bool named = false;  ///< HLO with named axes (V3)
};

/// The draft for this number, the same on every machine.
[[nodiscard]] Draft draw(std::uint64_t number);

/// Simpler drafts. The first of them that fails too replaces a failing draft.
[[nodiscard]] std::vector<Draft> simpler(const Draft& draft);

[[nodiscard]] Index positions(const DraftMesh& mesh);
[[nodiscard]] Index shards(const DraftDim& dim);
[[nodiscard]] std::string mesh_text(const DraftMesh& mesh);
[[nodiscard]] std::string layout_text(DType dtype, const End& end);

/// The end in the text of its notation, by the notation's own rules; nullopt if the notation cannot express it.
[[nodiscard]] std::optional<std::string> foreign_text(const Draft& draft, const End& end);

/// The question for the tool.
[[nodiscard]] cli::Question question_of(const Draft& draft);

/// The question as `reshard COMMAND ...` for a shell, and as a line of `plan --batch`.
[[nodiscard]] std::string command_line(const cli::Question& question, const std::string& command = "plan");
[[nodiscard]] std::vector<std::string> arguments_of(const cli::Question& question, const std::string& command);
[[nodiscard]] std::string problem_line(const cli::Question& question);

}  // namespace reshard::test
