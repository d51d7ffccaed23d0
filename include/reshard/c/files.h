/// \file
/// Checkpoints and arrays on disk: reads their headers, converts their sharding, and moves them to and from the
/// memory of ranks. A library of its own, reshard_c_files. docs/checkpoints.md has the forms of files, the rules and
/// what runs cost.
#ifndef RESHARD_C_FILES_H
#define RESHARD_C_FILES_H

#include "reshard/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How files are written and read; each call says what it uses. Texts are read during the call; NULL: none.
typedef struct reshard_files_options {
    size_t size;             ///< sizeof(reshard_files_options)
    const char* form;        ///< the form to write, a name of `reshard convert --to`; NULL: as its path ends
    const char* rules;       ///< where tensors are and belong
    const char* list;        ///< whole tensors of ranks' files, `name dtype[shape]` a line
    const char* casts;       ///< `dtype` or `pattern=dtype` a line; the first that fits a floating tensor counts
    int64_t memory_bytes;    ///< anonymous memory in all (convert), or buffers on each rank (load, save)
    int64_t granule_bytes;   ///< bytes that the disk moves at once
    int64_t file_bytes_max;  ///< the largest file of the form index, as far as tensors allow
    const int64_t* chunks;   ///< for zarr, indices per dimension; NULL: all in one
    const int64_t* shards;   ///< for zarr, multiples of the chunks; NULL: a file for each chunk
    int64_t dims;            ///< entries of `chunks` and of `shards`
    int64_t jobs;            ///< threads; 0: as many as processors, at most 8
    int32_t verify;          ///< not 0: convert and save read the new files again, load reads the old ones before
    int32_t resume;          ///< not 0: convert and save continue an earlier run of the same job
    int32_t dry_run;         ///< not 0: convert only plans
    int32_t reserved;        ///< 0
    /// Called by one thread of convert from time to time, and by rank 0 of save after each round; NULL: no call.
    void (*progress)(int64_t written_bytes, int64_t target_bytes, void* context);
    void* context;        ///< for `progress`
    const char* codec;    ///< for zarr, convert only: `zstd:3`, `none`; NULL: the codec of a zarr source, else none
    const char* scratch;  ///< convert only: a folder for an intermediate file of two passes; NULL: one pass
} reshard_files_options;

/// The defaults. NULL in place of options means the same.
#define RESHARD_FILES_OPTIONS_INITIALIZER                                                                            \
    {                                                                                                                \
        sizeof(reshard_files_options), NULL, NULL, NULL, NULL, 1073741824, 1048576, 5000000000, NULL, NULL, 0, 0, 0, \
            0, 0, 0, NULL, NULL, NULL, NULL                                                                          \
    }

/// The result of a conversion, or of a dry run.
typedef struct reshard_files_converted {
    size_t size;              ///< sizeof(reshard_files_converted)
    int64_t source_bytes;     ///< source bytes that the target needs, each once
    int64_t target_bytes;     ///< bytes of all target files
    int64_t files;            ///< target files
    int64_t tensors;          ///< target tensors
    int64_t read_bytes;       ///< bytes read in all, with gaps between tensors
    int64_t batches;          ///< how often the memory was filled
    int64_t granules;         ///< granules read and written
    int64_t granules_bound;   ///< granules that both ends have, each once
    int64_t resumed;          ///< batches that an earlier run finished
    int32_t finished_before;  ///< 1: an earlier run finished the conversion
    int32_t verified;         ///< 1: all files were read again, and their checksums agree
    int64_t passes;           ///< 2: through an intermediate file in `scratch`
} reshard_files_converted;

/// To be filled.
#define RESHARD_FILES_CONVERTED_INITIALIZER \
    { sizeof(reshard_files_converted), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Converts `from` to `to`. The target gets its name when it is complete and on the disk. `converted` may be NULL.
/// Errors: io (a file that cannot be read or contradicts its header, a full disk, `to` exists), mismatch, syntax
/// (rules, lists), infeasible (too little memory), unsupported, usage.
int reshard_files_convert(const char* from, const char* to, const reshard_files_options* options,
                          reshard_files_converted* converted, reshard_error** error);

/// The tensors and files that the headers of a checkpoint list.
typedef struct reshard_checkpoint reshard_checkpoint;

/// Reads the headers of a file or a folder of any form. Errors: io, unsupported (types of elements).
int reshard_checkpoint_open(const char* path, reshard_checkpoint** checkpoint, reshard_error** error);

const char* reshard_checkpoint_format(const reshard_checkpoint* checkpoint);  ///< in words; NULL for NULL
int64_t reshard_checkpoint_files(const reshard_checkpoint* checkpoint);       ///< how many; -1 for NULL
int64_t reshard_checkpoint_tensors(const reshard_checkpoint* checkpoint);     ///< how many; -1 for NULL
/// How many ranks have files of their own, each with its part of the tensors; 0: whole tensors. -1 for NULL.
int64_t reshard_checkpoint_ranks(const reshard_checkpoint* checkpoint);

/// A tensor in files.
typedef struct reshard_checkpoint_tensor {
    size_t size;           ///< sizeof(reshard_checkpoint_tensor)
    const char* name;      ///< as the checkpoint calls it
    const char* dtype;     ///< f32, bf16, ...
    const int64_t* shape;  ///< in elements
    int64_t dims;          ///< of `shape`
    int64_t boxes;         ///< boxes that hold it
    int64_t missing;       ///< elements that no box has; not counted (0) if boxes overlap
    int32_t twice;         ///< 1: some element is in two boxes
    int32_t reserved;      ///< 0
} reshard_checkpoint_tensor;

/// To be filled.
#define RESHARD_CHECKPOINT_TENSOR_INITIALIZER \
    { sizeof(reshard_checkpoint_tensor), NULL, NULL, NULL, 0, 0, 0, 0, 0 }

/// Fills `tensor` with number `number`, from 0. Errors: usage (no such tensor).
int reshard_checkpoint_tensor_at(const reshard_checkpoint* checkpoint, int64_t number,
                                 reshard_checkpoint_tensor* tensor, reshard_error** error);

/// A box of a tensor in a file: element (i_0, ...) lies at offset + sum of (i_k - begin[k]) * strides[k], in bytes.
/// In a file of a compressed array these are decoded bytes, chunk after chunk.
typedef struct reshard_checkpoint_box {
    size_t size;             ///< sizeof(reshard_checkpoint_box)
    const char* file;        ///< its path
    int64_t offset;          ///< bytes from the start of the file
    const int64_t* begin;    ///< its first index in each dimension
    const int64_t* shape;    ///< in elements
    const int64_t* strides;  ///< bytes
    int64_t dims;            ///< of the three
} reshard_checkpoint_box;

/// To be filled.
#define RESHARD_CHECKPOINT_BOX_INITIALIZER \
    { sizeof(reshard_checkpoint_box), NULL, 0, NULL, NULL, NULL, 0 }

/// Fills `box` with number `number` of tensor `tensor`, both from 0. Errors: usage (no such box).
int reshard_checkpoint_box_at(const reshard_checkpoint* checkpoint, int64_t tensor, int64_t number,
                              reshard_checkpoint_box* box, reshard_error** error);

/// A rank's tile of a tensor, dense and row-major.
typedef struct reshard_files_tile {
    size_t size;           ///< sizeof(reshard_files_tile)
    const char* name;      ///< of the tensor
    const char* dtype;     ///< of its elements
    const int64_t* shape;  ///< of the whole tensor, in elements
    const int64_t* tile;   ///< of this rank's tile, in elements; save does not read it
    int64_t dims;          ///< of both
    void* address;         ///< of the tile; NULL if it has no bytes
    int64_t bytes;         ///< of the tile
} reshard_files_tile;

/// To be filled.
#define RESHARD_FILES_TILE_INITIALIZER \
    { sizeof(reshard_files_tile), NULL, NULL, NULL, NULL, 0, NULL, 0 }

/// The tiles of this rank, in memory that peers can reach.
typedef struct reshard_loaded reshard_loaded;

/// Fills this rank's tiles, as `target` lines of the rules say; without rules each rank gets all. Collective: all ranks
/// together read each byte once, or twice with verify. It uses the options rules, list, casts, memory_bytes,
/// granule_bytes, jobs and verify, which are the same on all ranks. Errors, on all ranks: as reshard_files_convert;
/// mismatch (options that differ, more ranks asked for than there are), backend.
int reshard_files_load(reshard_backend* backend, const char* path, const reshard_files_options* options,
                       reshard_loaded** loaded, reshard_error** error);
int64_t reshard_loaded_count(const reshard_loaded* loaded);  ///< number of tiles, the same on all ranks; -1 for NULL
int64_t reshard_loaded_read_bytes(const reshard_loaded* loaded);  ///< bytes that this rank read; -1 for NULL
/// Fills `tile` with number `number`, from 0, in the same order on all ranks. Errors: usage (no such tile).
int reshard_loaded_tile(const reshard_loaded* loaded, int64_t number, reshard_files_tile* tile, reshard_error** error);

/// Writes `count` tensors from the tiles of all ranks, as `source` lines of the rules say. Collective. Replicas are
/// written once, except in the form ranks. It uses the options form, rules, casts, memory_bytes, granule_bytes,
/// file_bytes_max, chunks, shards, jobs, verify, resume and progress. All ranks see one file system. Errors, on all
/// ranks: as reshard_files_convert; mismatch (tiles of another size than the rules say, tensors or options that
/// differ), usage (rules without `source` lines), backend.
int reshard_files_save(reshard_backend* backend, const char* path, const reshard_files_options* options,
                       const reshard_files_tile* tiles, int64_t count, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
