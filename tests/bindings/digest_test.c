// Digests from C: both ends of a move agree, pieces add, and a flipped bit is found.
#include "expect.h"

enum { elements = 64, ranks = 2 };

static void moves(const reshard_digest_keys* keys) {
    reshard_layout* source = layout_of("x=2", "f32[8@x,8]");
    reshard_layout* target = layout_of("x=2", "f32[8,8@x]");
    float sources[ranks][elements / ranks], targets[ranks][elements / ranks] = {{0}};
    for (int rank = 0; rank < ranks; ++rank)
        for (int i = 0; i < elements / ranks; ++i) sources[rank][i] = (float)(100 * rank + i);
    reshard_digest sent[ranks] = {{0, 0}};  // to each receiver
    for (int rank = 0; rank < ranks; ++rank) {
        const void* tile = sources[rank];
        const int64_t bytes = sizeof sources[rank];
        reshard_rows* rows = NULL;
        SUCCEEDS(reshard_schedule_rows(source, target, rank, RESHARD_SEND, &rows, &error));
        for (int64_t i = 0; i < reshard_rows_count(rows); ++i) {
            const reshard_row* row = reshard_rows_data(rows) + i;
            for (int64_t run = 0; run < row->runs; ++run)
                memcpy((char*)targets[row->peer] + row->target_offset + run * row->target_stride,
                       (const char*)tile + row->source_offset + run * row->source_stride, (size_t)row->run_bytes);
            reshard_digest one;
            SUCCEEDS(reshard_digest_rows(keys, row, 1, &tile, &bytes, 1, RESHARD_SEND, &one, &error));
            sent[row->peer] = reshard_digest_add(sent[row->peer], one);
        }
        FAILS(RESHARD_MISMATCH, "the tile has 8",
              reshard_digest_rows(keys, reshard_rows_data(rows), 1, &tile, &(int64_t){8}, 1, RESHARD_SEND,
                                  &(reshard_digest){0, 0}, &error));
        reshard_release(rows);
    }
    reshard_digest held = {0, 0}, wanted = {0, 0}, one;
    for (int rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_digest_of(keys, targets[rank], sizeof targets[rank], 0, 0, &one, &error));
        EXPECT(one.sum == sent[rank].sum && one.bytes == sent[rank].bytes && one.bytes == 128);
        SUCCEEDS(reshard_digest_tile(keys, source, rank, sources[rank], sizeof sources[rank], 0, &one, &error));
        held = reshard_digest_add(held, one);
        SUCCEEDS(reshard_digest_tile(keys, target, rank, targets[rank], sizeof targets[rank], 0, &one, &error));
        wanted = reshard_digest_add(wanted, one);
        ((unsigned char*)targets[rank])[77] ^= 4;
        SUCCEEDS(reshard_digest_of(keys, targets[rank], sizeof targets[rank], 0, 0, &one, &error));
        EXPECT(one.sum != sent[rank].sum);
    }
    EXPECT(held.sum == wanted.sum && held.bytes == wanted.bytes);
    reshard_release(source), reshard_release(target);
}

int main(void) {
    reshard_digest_keys* keys = NULL;
    SUCCEEDS(reshard_digest_keys_make(3, &keys, &error));
    moves(keys);
    char from[1000], to[1000];
    for (int i = 0; i < 1000; ++i) from[i] = (char)i;
    reshard_digest all, copied, head, tail;
    SUCCEEDS(reshard_digest_of(keys, from, 1000, 10, 2, &all, &error));
    SUCCEEDS(reshard_digest_copy(keys, from, to, 1000, 10, 2, &copied, &error));
    SUCCEEDS(reshard_digest_of(keys, from, 333, 10, 2, &head, &error));
    SUCCEEDS(reshard_digest_of(keys, from + 333, 667, 343, 2, &tail, &error));
    EXPECT(memcmp(from, to, 1000) == 0 && copied.sum == all.sum && copied.bytes == 1000);
    EXPECT(reshard_digest_add(head, tail).sum == all.sum && reshard_digest_add(head, tail).bytes == 1000);
    EXPECT(reshard_digest_times(2, all).sum == reshard_digest_add(all, all).sum);
    FAILS(RESHARD_USAGE, "`position` is -1", reshard_digest_of(keys, from, 8, -1, 0, &all, &error));
    FAILS(RESHARD_USAGE, "does not fit", reshard_digest_of(keys, from, 8, INT64_MAX, 0, &all, &error));
    FAILS(RESHARD_USAGE, "digest keys is needed", reshard_digest_of(NULL, from, 8, 0, 0, &all, &error));
    FAILS(RESHARD_USAGE, "no place", reshard_digest_of(keys, from, 8, 0, 0, NULL, &error));
    reshard_release(keys);
    return failures != 0;
}
