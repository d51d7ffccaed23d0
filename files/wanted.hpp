// What rules make of a list of tensors, as tensors that are wanted and moves to them; and what is common to all jobs.
#pragma once

#include "files/engine/job.hpp"

namespace reshard::files {

struct Wanted {
    std::vector<PlacedTensor> sources;  ///< as the rules place them
    std::vector<NewTensor> targets;     ///< cast
    std::vector<Move> moves;            ///< by target
    std::vector<PartProblem> parts;     ///< of each move, before casts
};

/// Checks all numbers among the options but chunks and shards. Errors: usage.
[[nodiscard]] Result<void> sensible(const ConvertOptions& options);

/// A path that is to be made.
struct NewPath {
    std::string path;  ///< without slashes at its end
    std::string name;  ///< of the file or folder
};
/// Errors: usage (a path that names none).
[[nodiscard]] Result<NewPath> new_path(const std::string& given);

/// True if a line of the rules begins with the word: source or target.
[[nodiscard]] bool says_end(std::string_view rules, std::string_view word);
/// The rules with what files say: where all is; and of a form of whole tensors, how all is wanted.
[[nodiscard]] std::string with_ends(std::string rules, Form form);
/// The same for ranks: each has all where nothing else is wanted.
[[nodiscard]] std::string with_target_ranks(std::string rules, Index ranks);

/// Errors: as apply_rules; unsupported (a cast of types that are not cast).
[[nodiscard]] Result<Wanted> wanted_of(const std::string& rules, std::span<const ListedTensor> list,
                                       std::span<const Cast> casts);

/// A source and what rules make of it.
struct Asked {
    Checkpoint source;
    Wanted wanted;
};
/// Opens what `path` names and applies the rules to it. Errors: as open_checkpoint, joined and wanted_of; io (boxes of
/// a tensor that is moved overlap or leave gaps).
[[nodiscard]] Result<Asked> ask(const std::string& path, const std::string& rules, const ConvertOptions& options);

/// The rest of a job whose source, target and moves are set. The checkpoints stay where they are from here on.
void complete(Job& job, const ConvertOptions& options);

/// The text of reshard.json.
[[nodiscard]] std::string manifest_of(const Job& job, const std::string& made_by, const std::string& fingerprint,
                                      std::span<const std::uint32_t> sums);

}  // namespace reshard::files
