/// \file
/// Moves that change the array: they cast, transpose, and pad or strip.
#ifndef RESHARD_C_CHANGE_H
#define RESHARD_C_CHANGE_H

#include "reshard/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How an array changes while it moves. The changes work together: transposed, then cast, then padded.
typedef struct reshard_move_options {
    size_t size;             ///< sizeof(reshard_move_options)
    int32_t cast;            ///< 1: the target may have another element type, as with reshard_options.cast
    int32_t pad;             ///< 1: the extents may differ; elements that the target lacks are dropped
    const void* fill;        ///< one element of the target's type, for elements that the source lacks; NULL: zeros
    const int64_t* permute;  ///< dimension i of the target is dimension permute[i] of the source; NULL: their order
    int64_t permute_count;   ///< entries of permute: the number of dimensions, or 0
} reshard_move_options;

/// No change; a NULL in place of options means the same.
#define RESHARD_MOVE_OPTIONS_INITIALIZER \
    { sizeof(reshard_move_options), 0, 0, NULL, NULL, 0 }

/// As reshard_local_redistribute, and the array changes as the options say. Errors: mismatch (the permutation does not
/// name each dimension once, the extents do not fit), unsupported (a cast that a move does not make).
int reshard_local_redistribute_with(reshard_local* world, const reshard_layout* source, const reshard_layout* target,
                                    const reshard_move_options* options, const void* const* in, const int64_t* in_bytes,
                                    void* const* out, const int64_t* out_bytes, reshard_error** error);

/// As reshard_redistribute, and the array changes as the options say. All ranks bring the same options. Errors: as
/// reshard_local_redistribute_with.
int reshard_redistribute_with(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                              const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                              int64_t out_bytes, reshard_error** error);
/// The same, but does not wait for the end, as reshard_redistribute_start.
int reshard_redistribute_start_with(reshard_backend* backend, const reshard_layout* source,
                                    const reshard_layout* target, const reshard_move_options* options, const void* in,
                                    int64_t in_bytes, void* out, int64_t out_bytes, reshard_ticket** ticket,
                                    reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
