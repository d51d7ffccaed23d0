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
/// replicas share the work. Tiles are dense and row-major.
typedef struct reshard_row_schedule reshard_row_schedule;

/// Makes the rows of `count` arrays. Errors: mismatch (element types or numbers of elements differ); unsupported
/// (unreduced axes: a sum is no copy); usage.
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

#ifdef __cplusplus
}
#endif

#endif
