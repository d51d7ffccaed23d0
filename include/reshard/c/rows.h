/// \file
/// A move as data: a flat array of byte ranges with their ranks, for a transport of your own.
#ifndef RESHARD_C_ROWS_H
#define RESHARD_C_ROWS_H

#include "reshard/c/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Runs of bytes at a constant distance on each side. Run i has `run_bytes` bytes. It begins at source_offset +
/// i * source_stride of the sender's source tile, and goes to target_offset + i * target_stride of the receiver's
/// target tile. All numbers are bytes. The structure is an element of an array, so it never grows and has no size
/// field.
typedef struct reshard_row {
    int64_t array;          ///< which array of the list
    int64_t peer;           ///< the rank at the other end; this rank for local copies
    int64_t source_offset;  ///< from the start of the sender's source tile
    int64_t target_offset;  ///< from the start of the receiver's target tile
    int64_t run_bytes;      ///< at least 1
    int64_t runs;           ///< at least 1
    int64_t source_stride;  ///< from one run to the next; 0 for a single run
    int64_t target_stride;  ///< the same of the target
} reshard_row;

/// Whose rows. Local copies are in both.
enum reshard_side {
    RESHARD_SEND = 0,    ///< rows of the bytes that a rank sends
    RESHARD_RECEIVE = 1  ///< rows of the bytes that it receives
};

/// The rows of the exchange of one or many arrays, on any rank. All ranks that make it from the same layouts get rows
/// that fit together: the k-th that a rank sends to a peer is the k-th that the peer receives from it. Holders of
/// replicas share the work.
typedef struct reshard_row_schedule reshard_row_schedule;

/// Makes the rows of `count` arrays, whose tiles are dense and row-major. Errors: mismatch (element types or numbers of
/// elements differ); unsupported (unreduced axes: a sum is no copy); usage.
int reshard_row_schedule_make(const reshard_layout* const* sources, const reshard_layout* const* targets, int64_t count,
                              reshard_row_schedule** schedule, reshard_error** error);
int64_t reshard_row_schedule_ranks(const reshard_row_schedule* schedule);   ///< ranks that may have rows; -1 for NULL
int64_t reshard_row_schedule_arrays(const reshard_row_schedule* schedule);  ///< arrays of the list; -1 for NULL

/// Rows of one rank, by array, then by peer.
typedef struct reshard_rows reshard_rows;

/// The rows of a rank and a ::reshard_side; no rows for ranks that hold nothing. Several threads may call.
int reshard_row_schedule_rows(const reshard_row_schedule* schedule, int64_t rank, int side, reshard_rows** rows,
                              reshard_error** error);
/// The same of one array in one call.
int reshard_schedule_rows(const reshard_layout* source, const reshard_layout* target, int64_t rank, int side,
                          reshard_rows** rows, reshard_error** error);
const reshard_row* reshard_rows_data(const reshard_rows* rows);  ///< the first of them; NULL for NULL
int64_t reshard_rows_count(const reshard_rows* rows);            ///< how many; -1 for NULL

/// Makes the rows of arrays whose tiles lie in the caller's storages, one text for each array at each end. `order
/// 0,2,1` names the dimensions, outermost first, and tiles are dense. `strides 64,1 offset 8` has elements; several,
/// with `;` between them, are for one rank each. NULL in place of a text or of all texts: dense and row-major. Errors:
/// as reshard_row_schedule_make; syntax; mismatch (a storage that does not fit).
int reshard_row_schedule_make_stored(const reshard_layout* const* sources, const reshard_layout* const* targets,
                                     const char* const* source_storages, const char* const* target_storages,
                                     int64_t count, reshard_row_schedule** schedule, reshard_error** error);

/// Runs of bytes in four nested loops, outermost first. Loops that are not used come first, with one run and stride 0.
/// All numbers are bytes, except the counts. The structure never grows.
typedef struct reshard_nested_row {
    int64_t array;              ///< which array of the list
    int64_t peer;               ///< the rank at the other end; this rank for local copies
    int64_t source_offset;      ///< from the start of the sender's source tile
    int64_t target_offset;      ///< from the start of the receiver's target tile
    int64_t run_bytes;          ///< at least 1
    int64_t runs[4];            ///< of each loop, at least 1
    int64_t source_strides[4];  ///< from one run of a loop to the next
    int64_t target_strides[4];  ///< the same of the target
} reshard_nested_row;

/// Nested rows of one rank, by array, then by peer.
typedef struct reshard_nested_rows reshard_nested_rows;

/// The bytes of reshard_row_schedule_rows in nested loops: far fewer rows if tiles are block-cyclic.
int reshard_row_schedule_nested_rows(const reshard_row_schedule* schedule, int64_t rank, int side,
                                     reshard_nested_rows** rows, reshard_error** error);
const reshard_nested_row* reshard_nested_rows_data(const reshard_nested_rows* rows);  ///< the first; NULL for NULL
int64_t reshard_nested_rows_count(const reshard_nested_rows* rows);                   ///< how many; -1 for NULL

/// `count` blocks of `bytes` bytes, `stride` bytes apart; `stride` is `bytes` for a single block. NIXL takes an array
/// of these five numbers as it is.
typedef struct reshard_strided_memory {
    uint64_t address, bytes, device, stride, count;
} reshard_strided_memory;

/// The memory of `count` rows at this rank and at the peers: element k of `local` and of `remote` for row k; both have
/// place for `count` elements. `own` has the addresses of this rank's tiles, one for each of `arrays` arrays: sources
/// if `side` is RESHARD_SEND, else targets. `peers` has the addresses of the tiles at the other end: array a of rank r
/// at peers[r * arrays + a], of `ranks` ranks; 0 is no address. `peer_devices` has a device for each rank, or is NULL:
/// 0. Errors: mismatch (a row of an array or a peer without an address), overflow, usage.
int reshard_rows_address(const reshard_row* rows, int64_t count, int side, const uint64_t* own, uint64_t own_device,
                         const uint64_t* peers, const uint64_t* peer_devices, int64_t arrays, int64_t ranks,
                         reshard_strided_memory* local, reshard_strided_memory* remote, reshard_error** error);

/// The bytes of all runs of the rows. Errors: mismatch (a row without runs or bytes, a negative number), overflow.
int reshard_rows_bytes(const reshard_row* rows, int64_t count, int64_t* bytes, reshard_error** error);
/// Copies the runs of the rows from the source tiles into `packed`, one after another. tiles[a] is the memory of array
/// a, of tile_bytes[a] bytes. At most `threads` threads share the work. Errors: mismatch (a run outside its tile, a
/// buffer that is too small), usage. Nothing is written if it fails.
int reshard_rows_pack(const reshard_row* rows, int64_t count, const void* const* tiles, const int64_t* tile_bytes,
                      int64_t arrays, void* packed, int64_t packed_bytes, int threads, reshard_error** error);
/// Copies runs that were packed by the same rows to the target tiles. Errors: as reshard_rows_pack.
int reshard_rows_unpack(const reshard_row* rows, int64_t count, const void* packed, int64_t packed_bytes,
                        void* const* tiles, const int64_t* tile_bytes, int64_t arrays, int threads,
                        reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
