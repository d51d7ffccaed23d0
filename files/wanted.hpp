// Applies rules to a list of tensors: the wanted tensors, and the moves to them. Also the steps that all jobs share.
#pragma once

#include "files/engine/job.hpp"

namespace reshard::files {

struct Wanted {
    std::vector<ShardedTensor> sources;  ///< as the rules place them
    std::vector<NewTensor> targets;      ///< cast
    std::vector<Move> moves;             ///< by target
    std::vector<PartProblem> parts;      ///< of each move, before casts
};

/// Checks all numbers among the options but chunks and shards. Errors: usage.
[[nodiscard]] Result<void> sensible(const ConvertOptions& options);

/// The path of a new file or folder.
struct NewPath {
    std::string path;  ///< without slashes at its end
    std::string name;  ///< of the file or folder
};
/// Errors: usage (a path that ends in no plain name).
[[nodiscard]] Result<NewPath> new_path(const std::string& given);

/// Adds the ends that rules do not say. Sources are whole in the files. Targets are whole on the mesh `target`, unless
/// it is empty.
[[nodiscard]] std::string with_ends(std::string rules, std::string_view target);
[[nodiscard]] std::string with_ends(std::string rules, Form form);  ///< a form of whole tensors has a target

/// Applies the rules. Errors: as apply_rules; unsupported (a cast between types that cannot be cast).
[[nodiscard]] Result<Wanted> wanted_of(const std::string& rules, std::span<const ListedTensor> list,
                                       std::span<const Cast> casts);

/// A source, and the result of the rules.
struct OpenedSource {
    Checkpoint source;
    Wanted wanted;
};
/// Gives each target the type of its sources, if they are only copied. Errors: unsupported (a cast of such elements);
/// mismatch (sources of several types).
[[nodiscard]] Result<void> keep_types(OpenedSource& opened, std::span<const Cast> casts);

/// Opens a checkpoint and applies the rules to it. Errors: as open_checkpoint, joined and wanted_of; io (boxes of a
/// moved tensor overlap or leave gaps).
[[nodiscard]] Result<OpenedSource> open_source(const std::string& path, const std::string& rules,
                                               const ConvertOptions& options);

/// Completes a job whose source, target and moves are set. The job may not move in memory after it.
void complete(Job& job, const ConvertOptions& options);

}  // namespace reshard::files
