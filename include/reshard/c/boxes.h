/// \file
/// Boxes that ranks name: each rank says which boxes of an array it has and which it wants, and one exchange moves all.
/// And rebuilds: arrays from the replicas that are left when devices are lost. docs/boxes.md and docs/elastic.md have
/// the rules.
#ifndef RESHARD_C_BOXES_H
#define RESHARD_C_BOXES_H

#include "reshard/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The boxes of one rank, in global indices. A box is 2 numbers for each dimension: its first index, and the index
/// after its last. Boxes may be empty. Wanted boxes may overlap each other and the owned boxes.
typedef struct reshard_rank_boxes {
    size_t size;                         ///< sizeof(reshard_rank_boxes)
    const int64_t* have;                 ///< owned boxes, one after another
    int64_t have_count;                  ///< boxes at `have`
    const int64_t* want;                 ///< wanted boxes, one after another
    int64_t want_count;                  ///< boxes at `want`
    const reshard_storage* have_places;  ///< one for each owned box; NULL: one after another, each row-major
    const reshard_storage* want_places;  ///< one for each wanted box; NULL: one after another, each row-major
} reshard_rank_boxes;

/// To be filled.
#define RESHARD_RANK_BOXES_INITIALIZER \
    { sizeof(reshard_rank_boxes), NULL, 0, NULL, 0, NULL, NULL }

/// The boxes of all ranks, ready to be exchanged any number of times.
typedef struct reshard_boxes reshard_boxes;

/// Collective. Each rank gives its own boxes of an array with `dims` extents, and the ranks tell each other. The call
/// waits for all ranks, so each needs a thread of its own. Errors: syntax (no such dtype), mismatch (a box lies outside
/// of the array; two boxes own one element; nobody owns a wanted element: the error names the element and the ranks;
/// ranks bring other shapes or types; two wanted elements share a place), overflow, backend.
int reshard_boxes_make(reshard_backend* backend, const char* dtype, const int64_t* shape, int64_t dims,
                       const reshard_rank_boxes* own, reshard_boxes** boxes, reshard_error** error);
/// The same if every rank knows the boxes of all `ranks` ranks. It waits for nobody if the backend does not. Places of
/// other ranks are not read. Errors also: mismatch (ranks bring different boxes, or the backend has too few ranks).
int reshard_boxes_make_known(reshard_backend* backend, const char* dtype, const int64_t* shape, int64_t dims,
                             const reshard_rank_boxes* all, int64_t ranks, reshard_boxes** boxes,
                             reshard_error** error);
/// f32, bf16, ...; NULL for NULL.
const char* reshard_boxes_dtype(const reshard_boxes* boxes);
int64_t reshard_boxes_have_bytes(const reshard_boxes* boxes);  ///< least bytes of the owned buffer; -1 for NULL
int64_t reshard_boxes_want_bytes(const reshard_boxes* boxes);  ///< least bytes of the wanted buffer; -1 for NULL
/// Bytes that a run brings to this rank from others, the fewest possible; -1 for NULL.
int64_t reshard_boxes_received_bytes(const reshard_boxes* boxes);

/// Copies owned elements to all wanted boxes, and writes nothing else. Collective. Errors: mismatch (a buffer is too
/// small, or both overlap), usage (NULL), backend; then it must be made anew.
int reshard_boxes_run(reshard_boxes* boxes, const void* have, int64_t have_bytes, void* want, int64_t want_bytes,
                      reshard_error** error);
/// The same, but does not wait for the end. One run is in flight at a time.
int reshard_boxes_start(reshard_boxes* boxes, const void* have, int64_t have_bytes, void* want, int64_t want_bytes,
                        reshard_ticket** ticket, reshard_error** error);

/// Writes what each device receives when an array is rebuilt from the tiles that `lost` devices do not hold: `devices`
/// numbers at `received_bytes`, which may be NULL. Needs no backend. Errors: mismatch (other shapes or types),
/// unsupported (summands), infeasible (only lost devices held some element: the error names the boxes).
int reshard_rebuild_traffic(const reshard_layout* source, const reshard_layout* target, const int64_t* lost,
                            int64_t lost_count, int64_t* received_bytes, int64_t devices, reshard_error** error);

/// Arrays that are rebuilt together in one round, from the replicas that are left.
typedef struct reshard_rebuild reshard_rebuild;

/// Collective. `sources` are `count` layouts before the loss, `targets` afterwards; both name devices as before the
/// loss. `devices`: the device that each rank of the backend is, or NULL: rank r is device r.
/// Errors: as reshard_rebuild_traffic; mismatch also (a device that holds or wants a tile is no rank, two ranks are one
/// device, ranks bring different arrays), backend.
int reshard_rebuild_make(reshard_backend* backend, const reshard_layout* const* sources,
                         const reshard_layout* const* targets, int64_t count, const int64_t* lost, int64_t lost_count,
                         const int64_t* devices, reshard_rebuild** rebuild, reshard_error** error);
/// f32, bf16, ..., of an array from 0. NULL for NULL, or for a number that names no array.
const char* reshard_rebuild_dtype(const reshard_rebuild* rebuild, int64_t array);
/// Bytes that a run brings to this rank from others, the fewest possible; -1 for NULL.
int64_t reshard_rebuild_received_bytes(const reshard_rebuild* rebuild);
/// Rebuilds all arrays: one structure for each of the `count` arrays, with its source tile and its target tile, both
/// row-major. A rank whose tiles are lost gives no source. Collective. Errors: mismatch (count, a buffer that is too
/// small or overlaps another), usage (NULL), backend; then it must be made anew.
int reshard_rebuild_run(reshard_rebuild* rebuild, const reshard_buffers* buffers, int64_t count, reshard_error** error);
/// The same, but does not wait for the end. One run is in flight at a time.
int reshard_rebuild_start(reshard_rebuild* rebuild, const reshard_buffers* buffers, int64_t count,
                          reshard_ticket** ticket, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
