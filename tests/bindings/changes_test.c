// Moves from C that cast, transpose and pad: in one call for all ranks, and rank by rank.
#include <stdint.h>

#include "expect.h"

enum { ranks = 4, rows_max = 6, columns_max = 5, tile_max = 64 };

/// Element (i, j) of the source, f64[6,5].
static double value(int64_t i, int64_t j) { return (double)i + (double)j / 3; }

/// An element of the target: transposed, rounded to float, and padded.
static float wanted(int64_t i, int64_t j) { return i < columns_max && j < rows_max ? (float)value(j, i) : -2.5f; }

static void fill_source(const reshard_layout* layout, int64_t rank, double* elements) {
    int64_t extents[2], first[2];
    SUCCEEDS(reshard_layout_tile(layout, rank, extents, first, 2, &error));
    for (int64_t i = 0; i < extents[0]; ++i)
        for (int64_t j = 0; j < extents[1]; ++j) elements[i * extents[1] + j] = value(first[0] + i, first[1] + j);
}

static int wrong_in(const reshard_layout* layout, int64_t rank, const float* elements) {
    int64_t extents[2], first[2];
    int wrong = 0;
    SUCCEEDS(reshard_layout_tile(layout, rank, extents, first, 2, &error));
    for (int64_t i = 0; i < extents[0]; ++i)
        for (int64_t j = 0; j < extents[1]; ++j)
            wrong += elements[i * extents[1] + j] != wanted(first[0] + i, first[1] + j);
    return wrong;
}

static const int64_t backwards[] = {1, 0};
static const float padding = -2.5f;

static reshard_move_options all_changes(void) {
    reshard_move_options options = RESHARD_MOVE_OPTIONS_INITIALIZER;
    options.cast = 1;
    options.pad = 1, options.fill = &padding;
    options.permute = backwards, options.permute_count = 2;
    return options;
}

static void all_ranks(void) {
    reshard_layout* source = layout_of("x=4", "f64[6@x,5]");
    reshard_layout* target = layout_of("x=4", "f32[8@x,7]");
    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    double in[ranks][tile_max];
    float out[ranks][tile_max];
    const void* from[ranks];
    void* to[ranks];
    int64_t in_bytes[ranks], out_bytes[ranks];
    for (int64_t rank = 0; rank < ranks; ++rank) {
        from[rank] = in[rank], in_bytes[rank] = reshard_layout_tile_bytes(source, rank);
        to[rank] = out[rank], out_bytes[rank] = reshard_layout_tile_bytes(target, rank);
        fill_source(source, rank, in[rank]);
    }
    reshard_move_options options = all_changes();
    for (int again = 0; again < 2; ++again) {
        memset(out, 0xff, sizeof out);
        SUCCEEDS(
            reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
        for (int64_t rank = 0; rank < ranks; ++rank) EXPECT(wrong_in(target, rank, out[rank]) == 0);
    }
    options.cast = 0;
    FAILS(RESHARD_MISMATCH, "element types differ: f64 and f32",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    options = all_changes(), options.pad = 0;
    FAILS(RESHARD_USAGE, "`fill` is given, but `pad` is 0",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    options = all_changes(), options.permute = NULL;
    FAILS(RESHARD_USAGE, "`permute` is NULL, 2 entries were promised",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    options = all_changes(), options.permute_count = 1;
    FAILS(RESHARD_MISMATCH, "once",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    options = all_changes(), options.permute_count = -1;
    FAILS(RESHARD_USAGE, "`permute_count` is -1",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    options = all_changes(), options.size = 3;
    FAILS(RESHARD_USAGE, "reshard_move_options of 3 bytes",
          reshard_local_redistribute_with(world, source, target, &options, from, in_bytes, to, out_bytes, &error));
    reshard_release(world), reshard_release(source), reshard_release(target);
}

/// One rank, so that a single thread can make calls that wait. Without a fill value the padding is zeros.
static void one_rank(void) {
    reshard_layout* source = layout_of("x=1", "f64[6@x,5]");
    reshard_layout* target = layout_of("x=1", "f32[8@x,7]");
    reshard_local* world = NULL;
    reshard_backend* backend = NULL;
    SUCCEEDS(reshard_local_make(1, NULL, &world, &error));
    SUCCEEDS(reshard_local_backend(world, 0, &backend, &error));
    double in[rows_max * columns_max];
    float out[8 * 7];
    fill_source(source, 0, in);
    reshard_move_options options = all_changes();
    SUCCEEDS(reshard_redistribute_with(backend, source, target, &options, in, sizeof in, out, sizeof out, &error));
    EXPECT(wrong_in(target, 0, out) == 0);
    memset(out, 0xff, sizeof out);
    reshard_ticket* ticket = NULL;
    SUCCEEDS(reshard_redistribute_start_with(backend, source, target, &options, in, sizeof in, out, sizeof out, &ticket,
                                             &error));
    SUCCEEDS(reshard_ticket_wait(ticket, &error));
    reshard_release(ticket);
    EXPECT(wrong_in(target, 0, out) == 0);
    options.fill = NULL;
    SUCCEEDS(reshard_redistribute_with(backend, source, target, &options, in, sizeof in, out, sizeof out, &error));
    EXPECT(out[0] == 0.0f && out[1] == 1.0f && out[6] == 0.0f && out[7 * 7] == 0.0f);
    FAILS(RESHARD_MISMATCH, "differ",
          reshard_redistribute_with(backend, source, target, NULL, in, sizeof in, out, sizeof out, &error));
    reshard_release(backend), reshard_release(world), reshard_release(source), reshard_release(target);
}

int main(void) {
    all_ranks();
    one_rank();
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
