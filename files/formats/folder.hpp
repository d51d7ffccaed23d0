// Folders of .safetensors files, and one such file.
#pragma once

#include "files/formats/formats.hpp"
#include "files/formats/safetensors.hpp"

namespace reshard::files {

/// Returns the error with the path before its sentence.
[[nodiscard]] tl::unexpected<Error> in_file(const std::string& path, const Error& error);

/// Reads a file of JSON. Errors: io (more than 100 MB, too).
[[nodiscard]] Result<std::string> json_of(const std::string& path);

/// Lists the plain names in a folder, in order. Errors: io.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::string& folder);

/// The header and the size of a file. Errors: as parse_safetensors, with the file's name.
struct OpenedSafetensors {
    SafetensorsHeader header;
    Index bytes = 0;
};
[[nodiscard]] Result<OpenedSafetensors> open_safetensors(const std::string& path);

/// Returns R of model-rank-R-part-P.safetensors, and nullopt for other names.
[[nodiscard]] std::optional<Index> rank_in(std::string_view name);

/// The saved_offsets of each tensor in the metadata that torch DCP writes. nullopt if the file has no such metadata.
using SavedOffsets = std::map<std::string, std::vector<Index>>;
[[nodiscard]] Result<std::optional<SavedOffsets>> saved_offsets(const SafetensorsHeader& header);
/// Returns the metadata of torch DCP with these offsets.
[[nodiscard]] std::map<std::string, std::string> dcp_metadata(const SavedOffsets& offsets);

/// Returns the .safetensors files among the names.
[[nodiscard]] std::vector<std::string> safetensors_in(const Found& found);

/// The forms of safetensors: how each is opened and created. Errors: as open_checkpoint, as new_files.
[[nodiscard]] Result<Checkpoint> open_single(const Found& found);
[[nodiscard]] Result<Checkpoint> open_index(const Found& found);
[[nodiscard]] Result<Checkpoint> open_ranks(const Found& found);
[[nodiscard]] Result<Checkpoint> open_folder(const Found& found);  ///< of torch DCP, or of whole tensors
[[nodiscard]] Result<NewFiles> new_single(const NewContents& contents);
[[nodiscard]] Result<NewFiles> new_index(const NewContents& contents);
[[nodiscard]] Result<NewFiles> new_ranks(const NewContents& contents);
[[nodiscard]] Result<NewFiles> new_dcp(const NewContents& contents);

inline constexpr const char* index_name = "model.safetensors.index.json";

/// Returns the name of each tensor's file. Errors: io.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_index(std::string_view text);

}  // namespace reshard::files
