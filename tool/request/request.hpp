// A question as text, from the command line or from a line of JSON, and the same question understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reshard/move_options.hpp"
#include "reshard/notations/notation.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// The type of an option that is still text, by its kind in src/tables/options.def.
namespace option_text {
using choice = std::optional<std::string>;
using limit = std::optional<std::string>;
using machine = std::optional<std::string>;  ///< one that is built in, or a machine's text
using flag = bool;
using names = std::vector<std::string>;
}  // namespace option_text

/// The options of a question, still text.
struct QuestionOptions {
#define RESHARD_OPTION(kind, name, ...) option_text::kind name{};
#define RESHARD_OTHER_OPTION(...)
#include "src/tables/options.def"
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
    std::optional<std::string> permute;       ///< 1,0,2: the source's dimensions in the order of the target
    std::optional<std::string> pad;           ///< the value of elements that only the target has
    std::vector<std::string> first_steps;     ///< `kind layout` each, on the source's mesh
    friend bool operator==(const Question&, const Question&) = default;
};

struct Request {
    Problem problem;  ///< between ends of one shape
    Options options;
    Problem written = {};      ///< the same between the ends that the question has
    MoveOptions changes = {};  ///< how the array changes from the source to the target as they are written
    std::string note = {};     ///< note_on what is written

    /// True if the question neither transposes nor pads.
    [[nodiscard]] bool keeps_places() const { return changes.permute.empty() && !changes.fill; }
};

/// Whether texts in this notation contain their mesh.
[[nodiscard]] bool brings_mesh(Notation notation);

/// One layout in the question's notation. `mesh` may be empty where the text brings its own. Errors: as the parsers.
[[nodiscard]] Result<Layout> read_layout(const Question& question, const std::string& mesh,
                                         const std::optional<std::string>& array, const std::string& text);

/// The capabilities that a backend would report for so many ranks, or the defaults if `backend` is empty. mpi has
/// `ranks_per_node` ranks on each node, 0 for all of them on one. Errors: usage.
[[nodiscard]] Result<Capabilities> capabilities_of(const std::string& backend, Index ranks, Index ranks_per_node);

/// Reads the options that are given, and leaves the others. Errors: as the parsers.
[[nodiscard]] Result<void> read_options(const QuestionOptions& question, Options& options);

/// The ranks that the devices of a problem need.
[[nodiscard]] Index rank_count(const Problem& problem);

/// Parses every part. Errors: as the parsers of the parts, the message led by the name of the part.
[[nodiscard]] Result<Request> understand(const Question& question);

}  // namespace reshard::cli
