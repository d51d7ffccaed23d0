/// \file
/// Digests of moved bytes: the receiver of a move checks all that its senders have sent by one sum.
#ifndef RESHARD_C_DIGEST_H
#define RESHARD_C_DIGEST_H

#include "reshard/c/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The digest of a set of bytes at positions. Digests of two sets add to the digest of both sets; n replicas have n
/// times the digest. Equal if and only if both fields are equal. It never grows and has no size field.
typedef struct reshard_digest {
    uint64_t sum;   ///< of the keyed bytes, below 2^61 - 1
    int64_t bytes;  ///< how many, replicas counted
} reshard_digest;

/// The digest of both sets of bytes.
reshard_digest reshard_digest_add(reshard_digest a, reshard_digest b);
/// The digest of so many replicas. pre: copies >= 0.
reshard_digest reshard_digest_times(int64_t copies, reshard_digest one);

/// The keys of digests. Both ends of a move use the same seed. Different bytes always have different digests if their
/// numbers differ, or if they differ within one aligned word of 4 bytes. Any other difference is missed for at most one
/// in 2^31 seeds. It is no protection against a person who knows the seed.
typedef struct reshard_digest_keys reshard_digest_keys;
/// Makes the keys of a seed. reshard_release frees them. Errors: usage (no place for the keys).
int reshard_digest_keys_make(uint64_t seed, reshard_digest_keys** keys, reshard_error** error);

/// The digest of bytes at positions from `position` on of array number `array`. Errors: usage (a negative number).
int reshard_digest_of(const reshard_digest_keys* keys, const void* data, int64_t bytes, int64_t position, int64_t array,
                      reshard_digest* digest, reshard_error** error);
/// Copies bytes that do not overlap, and returns their digest. One pass over memory. Errors: the same.
int reshard_digest_copy(const reshard_digest_keys* keys, const void* source, void* target, int64_t bytes,
                        int64_t position, int64_t array, reshard_digest* digest, reshard_error** error);
/// The digest of the bytes of rows. tiles[a], of tile_bytes[a] bytes, is this rank's source tile of array a, for
/// ::RESHARD_RECEIVE its target tile. Positions are offsets in the receiver's target tile, so both ends of a row have
/// the same digest. The digests of all rows that a rank receives add up to reshard_digest_of its target tiles
/// from position 0. Errors: mismatch (a row past the end of its tile); usage.
int reshard_digest_rows(const reshard_digest_keys* keys, const reshard_row* rows, int64_t count,
                        const void* const* tiles, const int64_t* tile_bytes, int64_t arrays, int side,
                        reshard_digest* digest, reshard_error** error);
/// The digest of the tile that a rank holds, dense and row-major. Positions are the bytes' places in the whole array.
/// So the sum over all tiles of an array is the same in every layout, if replicas are counted. Errors: mismatch (the
/// bytes of the tile); unsupported (unreduced axes).
int reshard_digest_tile(const reshard_digest_keys* keys, const reshard_layout* layout, int64_t rank, const void* tile,
                        int64_t bytes, int64_t array, reshard_digest* digest, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
