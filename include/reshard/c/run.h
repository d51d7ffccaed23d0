/// \file
/// Moves: ranks of this process, one call that moves an array, and executors for loops.
#ifndef RESHARD_C_RUN_H
#define RESHARD_C_RUN_H

#include "reshard/c/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How ranks of this process are made.
typedef struct reshard_local_options {
    size_t size;         ///< sizeof(reshard_local_options)
    int64_t timeout_ms;  ///< milliseconds after which a wait for an absent peer fails
} reshard_local_options;

/// The defaults; a NULL in place of options means the same.
#define RESHARD_LOCAL_OPTIONS_INITIALIZER \
    { sizeof(reshard_local_options), 60000 }

/// Ranks that share this process.
typedef struct reshard_local reshard_local;

/// So many ranks, at most 65536. Errors: usage (fewer than 1, or more).
int reshard_local_make(int64_t ranks, const reshard_local_options* options, reshard_local** world,
                       reshard_error** error);
/// One of its ranks. Each may be driven by a thread of its own, or all by one thread that starts every rank before it
/// waits on any. Errors: usage (no such rank).
int reshard_local_backend(reshard_local* world, int64_t rank, reshard_backend** backend, reshard_error** error);
/// Moves all tiles of an array, by this one thread: in[r] and out[r] are rank r's, dense and row-major, with so many
/// bytes; NULL where those are 0. Plans and prepares the first time and remembers the last 64 pairs of layouts.
/// Errors: mismatch (sizes, arrays, overlaps), and as reshard_plan_make.
int reshard_local_redistribute(reshard_local* world, const reshard_layout* source, const reshard_layout* target,
                               const void* const* in, const int64_t* in_bytes, void* const* out,
                               const int64_t* out_bytes, reshard_error** error);

const char* reshard_backend_name(const reshard_backend* backend);  ///< local, mpi, nccl; NULL for NULL
int64_t reshard_backend_rank(const reshard_backend* backend);      ///< this rank, from 0; -1 for NULL
int64_t reshard_backend_size(const reshard_backend* backend);      ///< how many ranks there are; -1 for NULL

/// A run in flight. Releasing it waits.
typedef struct reshard_ticket reshard_ticket;

/// Moves this rank's tile of `source` to its tile of `target`, both dense and row-major; returns when `out` is
/// complete. Collective: ranks call with the same layouts in the same order. The first call of a pair of layouts
/// prepares what it needs, and that is kept with the backend for the last 64 pairs. Errors, on all ranks before any
/// byte moves: mismatch (sizes, overlaps, layouts that differ between ranks, too few ranks), backend, and as
/// reshard_plan_make.
int reshard_redistribute(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                         const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error);
/// The same, but does not wait for the end. Nothing else is called on the backend until the ticket is done.
int reshard_redistribute_start(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                               const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_ticket** ticket,
                               reshard_error** error);
/// Collective: gives back what reshard_redistribute keeps with the backend.
int reshard_redistribute_clear(reshard_backend* backend, reshard_error** error);

/// Memory that peers reach without a copy.
typedef struct reshard_memory reshard_memory;

/// So many bytes, with unspecified contents. Errors: usage (below 0), backend (there is not that much).
int reshard_memory_allocate(reshard_backend* backend, int64_t bytes, reshard_memory** memory, reshard_error** error);
void* reshard_memory_address(const reshard_memory* memory);  ///< its first byte; NULL for NULL
int64_t reshard_memory_bytes(const reshard_memory* memory);  ///< at least what was asked for; -1 for NULL

/// Memory of the caller's that peers reach without a copy.
typedef struct reshard_registration reshard_registration;

/// Whether a forked process sees registered memory.
enum reshard_on_fork {
    RESHARD_FORK_SHARES = 0,    ///< it does, and both see all writes until either ends the registration
    RESHARD_FORK_WITHHOLDS = 1  ///< it has no such memory: a touch there ends it
};

/// Makes memory of the caller's as fast as reshard_memory_allocate's; its address and contents stay. Not collective. No
/// other thread writes it, and nobody forks, during this call and the one that ends it. docs/memory.md has the rules
/// and the price. Errors: usage (a kind of memory that is not taken, with the reason; a value that is no
/// ::reshard_on_fork), backend (memory or a limit does not suffice); then the memory is as it was.
int reshard_memory_register(reshard_backend* backend, void* address, int64_t bytes, int on_fork,
                            reshard_registration** registration, reshard_error** error);
/// Ends the registration. Call it before the memory is freed or resized; a second call does nothing. Releasing the
/// handle does the same without an error. Errors: usage (a run is in flight that uses it), backend (it was freed or
/// mapped anew meanwhile, or the system does not say): then it may be ended again.
int reshard_registration_end(reshard_registration* registration, reshard_error** error);

/// The place of a tile in a buffer: element (i_0, ...) lies at offset + sum of i_k * strides[k], in elements.
typedef struct reshard_storage {
    size_t size;             ///< sizeof(reshard_storage)
    int64_t offset;          ///< elements from the start of the buffer to the first of the tile
    const int64_t* strides;  ///< elements, `dims` of them, at least 0
    int64_t dims;            ///< dimensions of the array
} reshard_storage;

/// To be filled; a NULL in place of a storage means dense and row-major.
#define RESHARD_STORAGE_INITIALIZER \
    { sizeof(reshard_storage), 0, NULL, 0 }

/// A plan, or a list of them, ready to run on one rank any number of times.
typedef struct reshard_executor reshard_executor;

/// Collective. NULL in place of a storage: row-major. Errors: mismatch (ranks bring different plans, the backend has
/// too few ranks, a storage does not fit), infeasible (the footprint limit of the plan), backend.
int reshard_executor_make(reshard_backend* backend, const reshard_plan* plan, const reshard_storage* source,
                          const reshard_storage* target, reshard_executor** executor, reshard_error** error);
/// The same of a list: one storage for each array at `sources` and at `targets`, or NULL: all row-major.
int reshard_executor_make_list(reshard_backend* backend, const reshard_list* list, const reshard_storage* sources,
                               const reshard_storage* targets, reshard_executor** executor, reshard_error** error);

/// Runs the plan as the text of an execution says: `split dim 0 block 128 ends 8,32,64,128 overlapped` in pieces that
/// travel one after the other (docs/overlap.md), `steps`, `one_exchange`. Errors also: syntax, plan (it does not run
/// so).
int reshard_executor_make_as(reshard_backend* backend, const reshard_plan* plan, const char* execution,
                             const reshard_storage* source, const reshard_storage* target, reshard_executor** executor,
                             reshard_error** error);
/// The last value of reshard_ticket_arrived: the pieces of an overlapped split, or the buckets of a list; -1 for NULL.
int64_t reshard_executor_arrivals(const reshard_executor* executor);

/// The memory that an executor needs on this rank, in bytes.
typedef struct reshard_sizes {
    size_t size;              ///< sizeof(reshard_sizes)
    int64_t arrays;           ///< arrays that it moves
    int64_t buckets;          ///< buckets of its list
    int64_t source_bytes;     ///< least size of all source buffers together
    int64_t target_bytes;     ///< least size of all target buffers together
    int64_t workspace_bytes;  ///< the workspace, which its arrays share
    int64_t staging_bytes;    ///< memory of the backend beyond all of the above
    int64_t footprint_bytes;  ///< the most that this rank holds
} reshard_sizes;

/// To be filled.
#define RESHARD_SIZES_INITIALIZER \
    { sizeof(reshard_sizes), 0, 0, 0, 0, 0, 0, 0 }

/// Fills `sizes`, up to its size.
int reshard_executor_sizes(const reshard_executor* executor, reshard_sizes* sizes, reshard_error** error);
/// How bytes move, for people.
int reshard_executor_describe(const reshard_executor* executor, reshard_text** text, reshard_error** error);

/// Runs an executor of one array from start to end. Bytes outside of the target tile stay as they are. The workspace is
/// taken by the first run that needs one, and kept. Errors: mismatch (a buffer is too small or overlaps another),
/// usage (a list), backend. After a failed run an executor does not run again.
int reshard_executor_run(reshard_executor* executor, const void* source, int64_t source_bytes, void* target,
                         int64_t target_bytes, reshard_error** error);

/// The memory of one array.
typedef struct reshard_buffers {
    size_t size;              ///< sizeof(reshard_buffers)
    const void* source;       ///< is read; NULL if `donated` is given
    void* donated;            ///< the source of a plan that was made with `donate`: it may be written
    int64_t source_bytes;     ///< of either
    void* target;             ///< is written
    int64_t target_bytes;     ///< of it
    void* workspace;          ///< NULL: one is allocated if it is needed
    int64_t workspace_bytes;  ///< of it
} reshard_buffers;

/// To be filled.
#define RESHARD_BUFFERS_INITIALIZER \
    { sizeof(reshard_buffers), NULL, NULL, 0, NULL, 0, NULL, 0 }

/// Buffers bound to an executor: they may be started any number of times, one run of an executor at a time.
typedef struct reshard_bound reshard_bound;

/// One structure for each of the `count` arrays, in the order of the list. Errors: mismatch (count, a buffer that is
/// too small or overlaps another that is written, a source that is donated but not given so).
int reshard_executor_bind(reshard_executor* executor, const reshard_buffers* buffers, int64_t count,
                          reshard_bound** bound, reshard_error** error);
/// The same for the arrays of one bucket, numbered from 0, in its order. Errors also: usage (no such bucket).
int reshard_executor_bind_bucket(reshard_executor* executor, int64_t bucket, const reshard_buffers* buffers,
                                 int64_t count, reshard_bound** bound, reshard_error** error);
/// Begins a run. Errors: backend.
int reshard_bound_start(reshard_bound* bound, reshard_ticket** ticket, reshard_error** error);
/// The same for sources that are still computed: no piece travels before reshard_ticket_offer. Ranks may differ.
int reshard_bound_start_withheld(reshard_bound* bound, reshard_ticket** ticket, reshard_error** error);
/// The same in the order of a queue, a cudaStream_t for NCCL. Errors: unsupported (a backend without queues).
int reshard_bound_start_on(reshard_bound* bound, void* queue, reshard_ticket** ticket, reshard_error** error);

/// `*done` is 1 once all is delivered on this rank; makes progress, never blocks. Errors: backend.
int reshard_ticket_test(reshard_ticket* ticket, int* done, reshard_error** error);
/// Returns when all is delivered on this rank. Errors: backend; usage if only unoffered pieces remain.
int reshard_ticket_wait(reshard_ticket* ticket, reshard_error** error);
/// The same, but `*done` is 0 when that takes longer than about so many microseconds.
int reshard_ticket_wait_for(reshard_ticket* ticket, int64_t microseconds, int* done, reshard_error** error);
/// The first `*pieces` pieces of the target, in the order of travel, are complete on this rank and may be read. Takes
/// all data that has come and never blocks: call it about every half millisecond while you compute. Errors: backend.
int reshard_ticket_arrived(reshard_ticket* ticket, int64_t* pieces, reshard_error** error);
/// The source of a piece, counted from 0, is ready on this rank. A piece travels once all ranks have offered it and all
/// pieces before it. Never blocks. Errors: usage (nothing is withheld, no such piece, offered before); the run
/// goes on.
int reshard_ticket_offer(reshard_ticket* ticket, int64_t piece, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
