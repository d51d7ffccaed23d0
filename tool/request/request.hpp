// A question as text, from the command line or from a line of JSON, and the same question understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reshard/notations/notation.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// What else is asked of a problem, still text.
struct QuestionOptions {
    std::optional<std::string> vocabulary;
    std::optional<std::string> objective;
    std::optional<std::string> machine;  ///< one that is built in, or a machine's text
    std::optional<std::string> peak_bytes_max;
    std::optional<std::string> footprint_bytes_max;
    bool donate = false;
    std::vector<std::string> without;  ///< rules by name
    friend bool operator==(const QuestionOptions&, const QuestionOptions&) = default;
};

/// Everything that `plan` and its relatives are asked, still text.
struct Question : QuestionOptions {
    std::string mesh;
    std::optional<std::string> target_mesh;  ///< the source's mesh when not given
    std::string source;
    std::string target;
    std::optional<std::string> notation;      ///< of meshes and layouts; our own when not given
    std::optional<std::string> array;         ///< f32[8,4], where the notation does not say it
    std::optional<std::string> target_array;  ///< of the target, when it is reshaped
    std::vector<std::string> first_steps;     ///< `kind layout` each, on the source's mesh
    friend bool operator==(const Question&, const Question&) = default;
};

struct Request {
    Problem problem;  ///< between ends of one shape
    Options options;
    Problem written = {};   ///< the same between the ends that the question has
    std::string note = {};  ///< note_on what is written
};

/// Whether what is written in it says its mesh.
[[nodiscard]] bool brings_mesh(Notation notation);

/// One layout in the question's notation. `mesh` may be empty where the text brings its own. Errors: as the parsers.
[[nodiscard]] Result<Layout> read_layout(const Question& question, const std::string& mesh,
                                         const std::optional<std::string>& array, const std::string& text);

/// What a backend would say that it can do with so many ranks, without asking it: mpi with `ranks_per_node` of them on
/// each node, 0 for all of them on one. Of no backend nothing. Errors: usage.
[[nodiscard]] Result<Capabilities> capabilities_of(const std::string& backend, Index ranks, Index ranks_per_node);

/// As many ranks as its devices need.
[[nodiscard]] Index rank_count(const Problem& problem);

/// Parses every part. Errors: as the parsers of the parts, the message led by the name of the part.
[[nodiscard]] Result<Request> understand(const Question& question);

}  // namespace reshard::cli
