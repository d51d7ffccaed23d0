// From files in one sharding to files in another, in stated memory.
#pragma once

#include <functional>
#include <optional>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// How a conversion is written.
enum class Form {
    single,  ///< one .safetensors file; tensors whole
    index,   ///< model-00001-of-0000N.safetensors and model.safetensors.index.json; tensors whole
    ranks,   ///< model-rank-R-part-0.safetensors, a rank's tiles each, replicas in every file (vLLM's sharded state)
    npy,     ///< one .npy file; one tensor, whole, in C order
    zarr,    ///< a folder of zarr v3; one tensor, in chunks
    dcp,     ///< shard-0000R-model-00001-of-00001.safetensors with the offsets of torch DCP; replicas once
};

/// The name of the form, as its enumerator.
[[nodiscard]] std::string_view name(Form form);
/// The form of that name. Errors: usage.
[[nodiscard]] Result<Form> parse_form(std::string_view text);
/// The form that the end of a path asks for: .safetensors, .npy and .zarr, else Form::index.
[[nodiscard]] Form form_of_path(std::string_view path);

/// True for forms that are one file and no folder.
[[nodiscard]] bool is_one_file(Form form);
/// The names of all forms, each with the end of a path that asks for it.
[[nodiscard]] std::string forms_in_words();
/// All that open_checkpoint reads: "an .npy file, a .safetensors file, ...".
[[nodiscard]] std::string paths_in_words();

/// Which tensors become which element type.
struct Cast {
    std::string pattern;       ///< of target names, as in rules
    DType dtype = DType::f32;  ///< wanted
};

/// `bf16` for all tensors, or `*.norm=f32` for some. Errors: as parse_dtype.
[[nodiscard]] Result<Cast> parse_cast(std::string_view text);

/// A conversion that has come so far.
struct ConvertProgress {
    Index written_bytes = 0;  ///< of the target
    Index target_bytes = 0;   ///< in all
};

/// How a conversion is done.
struct ConvertOptions {
    Form form = Form::index;               ///< of the target
    std::string rules;                     ///< as apply_rules; without `source` lines the files say where all is
    std::vector<ListedTensor> list;        ///< the whole tensors of ranks' files, where their tiles do not say it
    std::vector<Cast> casts;               ///< the first whose pattern fits a floating tensor
    Index memory = Index{1} << 30;         ///< bytes of anonymous memory that the process may have
    Index granule = Index{1} << 20;        ///< bytes that the disk moves at once
    Index file_bytes_max = 5'000'000'000;  ///< of a file of Form::index, as far as tensors allow
    std::vector<Index> chunks = {};        ///< of Form::zarr, indices per dimension; empty: all in one
    std::vector<Index> shards = {};        ///< of Form::zarr, multiples of the chunks; empty: a file for each chunk
    Index jobs = 0;                        ///< threads; 0: as many as processors, at most 8
    bool verify = false;                   ///< read all that was written again and compare checksums
    bool resume = false;                   ///< go on where an earlier run of the same job ended, and keep what is there
    bool dry_run = false;                  ///< only plan
    std::function<void(const ConvertProgress&)> progress;  ///< called from time to time by one thread; may be empty
};

/// What was done, or would be.
struct Converted {
    Index source_bytes = 0;        ///< that the target needs, each once
    Index target_bytes = 0;        ///< of all target files
    Index files = 0;               ///< of the target
    Index tensors = 0;             ///< of the target
    Index read_bytes = 0;          ///< in all, with what lay between
    Index batches = 0;             ///< the memory was filled so often
    Index granules = 0;            ///< read and written
    Index granules_bound = 0;      ///< that both ends have, each once
    Index resumed = 0;             ///< batches that an earlier run had done
    bool finished_before = false;  ///< an earlier run had ended it
    bool verified = false;         ///< all was read again and is as it was written
};

/// Converts `from` to `to`, a file or a folder as the form is. All is written beside it, under a name that ends
/// in .reshard-partial, and takes its name when it is whole and on the disk; reshard.json in the folder, or beside the
/// file under its name and .reshard.json, has the CRC-32C of every tensor in every file.
/// Errors: as open_checkpoint, joined and apply_rules; io (the disk is full; a source became shorter; a name that the
/// conversion needs is taken, and no run of this user left what has it: the output, its checksums, the folder beside
/// it); infeasible (less memory than any way needs); unsupported (a cast of types that are not cast, a tile of several
/// boxes in DCP, a sum).
[[nodiscard]] Result<Converted> convert(const std::string& from, const std::string& to, const ConvertOptions& options);

}  // namespace reshard::files
