// Converts files from one sharding to another, in stated memory.
#pragma once

#include <functional>
#include <optional>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// The form of the files of a target.
enum class Form {
    single,  ///< one .safetensors file; tensors whole
    index,   ///< model-00001-of-0000N.safetensors and model.safetensors.index.json; tensors whole
    ranks,   ///< model-rank-R-part-0.safetensors with the tiles of rank R, replicas too (vLLM's sharded state)
    npy,     ///< one .npy file; one tensor, whole, in C order
    zarr,    ///< a folder of zarr v3; one tensor, in chunks
    zarr2,   ///< a folder of zarr v2; one tensor, in chunks
    dcp,     ///< shard-0000R-model-00001-of-00001.safetensors with the offsets of torch DCP; replicas once
};

/// Returns the name of the form, as its enumerator.
[[nodiscard]] std::string_view name(Form form);
/// Returns the form of that name. Errors: usage.
[[nodiscard]] Result<Form> parse_form(std::string_view text);
/// Returns the form for the end of a path: .safetensors, .npy and .zarr, else Form::index.
[[nodiscard]] Form form_of_path(std::string_view path);

/// True for forms that are one file and no folder.
[[nodiscard]] bool is_one_file(Form form);
/// Returns the names of all forms, each with the end of a path that asks for it.
[[nodiscard]] std::string forms_in_words();
/// Returns everything that open_checkpoint reads: "an .npy file, a .safetensors file, ...".
[[nodiscard]] std::string paths_in_words();

/// An element type for some tensors.
struct Cast {
    std::string pattern;       ///< of target names, as in rules
    DType dtype = DType::f32;  ///< wanted
};

/// Reads `bf16` for all tensors, or `*.norm=f32` for some. Errors: as parse_dtype.
[[nodiscard]] Result<Cast> parse_cast(std::string_view text);

/// The progress of a conversion.
struct ConvertProgress {
    Index written_bytes = 0;  ///< of the target
    Index target_bytes = 0;   ///< in all
};

/// How a conversion is done.
struct ConvertOptions {
    Form form = Form::index;               ///< of the target
    std::string rules;                     ///< as apply_rules; without `source` lines tensors are as in the files
    std::vector<ListedTensor> list;        ///< the whole tensors of ranks' files, if their tiles do not say it
    std::vector<Cast> casts;               ///< the first whose pattern fits a floating tensor
    Index memory = Index{1} << 30;         ///< bytes of anonymous memory that the process may have
    Index granule = Index{1} << 20;        ///< bytes that the disk moves at once
    Index file_bytes_max = 5'000'000'000;  ///< of a file of Form::index; a larger tensor has a file of its own
    std::vector<Index> chunks = {};        ///< of Form::zarr and zarr2, indices per dimension; empty: all in one
    std::vector<Index> shards = {};        ///< of Form::zarr, multiples of the chunks; empty: a file for each chunk
    /// The codecs of the chunks, for Form::zarr and Form::zarr2: `zstd:3`, `gzip:5`, `blosc:lz4:5:shuffle`, `none`, or
    /// several such as `zstd:3,crc32c`. Empty: the codec of a zarr source, else none.
    std::string codec = {};
    /// A folder for an intermediate file. If the memory is so small that a conversion of one array would read or write
    /// much more often than twice, it makes two passes through this file. Empty: always one pass.
    std::string scratch = {};
    Index jobs = 0;        ///< threads; 0: as many as processors, at most 8
    bool verify = false;   ///< read the new files again and compare checksums
    bool resume = false;   ///< continue an earlier run of the same job, and keep an unfinished target
    bool dry_run = false;  ///< only plan
    std::function<void(const ConvertProgress&)> progress;  ///< called from time to time by one thread; may be empty
};

/// The result of a conversion, or of its plan.
struct Converted {
    Index source_bytes = 0;        ///< that the target needs, each counted once
    Index target_bytes = 0;        ///< of all target files
    Index files = 0;               ///< of the target
    Index tensors = 0;             ///< of the target
    Index read_bytes = 0;          ///< in all, including gaps
    Index batches = 0;             ///< number of times that the memory was filled
    Index granules = 0;            ///< read and written
    Index granules_bound = 0;      ///< of both ends, each counted once
    Index resumed = 0;             ///< batches from an earlier run
    bool finished_before = false;  ///< an earlier run had finished it
    Index passes = 1;              ///< 2: through an intermediate file in ConvertOptions::scratch
    bool verified = false;         ///< the new files were read again, and their checksums are right
};

/// Converts `from` to `to`, a file or a folder as the form is. Writes everything beside it, under a name that ends in
/// .reshard-partial. The target gets its name when it is complete and on the disk. reshard.json in the folder, or
/// beside the file under its name and .reshard.json, has the CRC-32C of every tensor in every file. Errors: as
/// open_checkpoint, joined and apply_rules; io (the disk is full; a source became shorter; something that no run of
/// this user left has a needed name: the output, its checksums, the folder beside it); infeasible (too little memory);
/// unsupported (a cast between types that cannot be cast, a tile of several boxes in DCP, a sum).
[[nodiscard]] Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options);

}  // namespace reshard::files
