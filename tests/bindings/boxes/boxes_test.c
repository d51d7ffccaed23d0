// Boxes and rebuilds from C, between ranks of this process, driven by one thread. Every element is checked.
#include <stdlib.h>

#include "../expect.h"

enum { ranks = 4, rows = 12, columns = 10, band = rows / ranks };
static const int64_t shape[] = {rows, columns};

/// Rank r owns three rows. It wants the columns [2r, 2r + 4) of all rows, in memory of 6 columns, and rows 5 and 6
/// behind that. Both wanted boxes overlap.
enum { wide = 6, tall_cells = rows * wide, want_cells = tall_cells + 2 * columns };

static int32_t element(int64_t row, int64_t column) { return (int32_t)(100 * row + column); }

static int64_t wrong_wants(const int32_t* want, int64_t rank) {
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < wide; ++column) {
            const int32_t expected = column < 4 ? element(row, 2 * rank + column) : -7;  // -7: between the rows
            wrong += want[row * wide + column] != expected;
        }
    for (int64_t i = 0; i < 2 * columns; ++i) wrong += want[tall_cells + i] != element(5 + i / columns, i % columns);
    return wrong;
}

static void exchange_boxes(void) {
    static const int64_t tall_strides[] = {wide, 1}, wide_strides[] = {columns, 1};
    reshard_storage places[2] = {RESHARD_STORAGE_INITIALIZER, RESHARD_STORAGE_INITIALIZER};
    places[0].strides = tall_strides, places[0].dims = 2;
    places[1].strides = wide_strides, places[1].dims = 2, places[1].offset = tall_cells;
    int64_t have[ranks][4], want[ranks][8];
    reshard_rank_boxes all[ranks];
    for (int64_t rank = 0; rank < ranks; ++rank) {
        const int64_t owned[] = {band * rank, band * (rank + 1), 0, columns};
        const int64_t wanted[] = {0, rows, 2 * rank, 2 * rank + 4, 5, 7, 0, columns};
        memcpy(have[rank], owned, sizeof owned);
        memcpy(want[rank], wanted, sizeof wanted);
        const reshard_rank_boxes empty = RESHARD_RANK_BOXES_INITIALIZER;
        all[rank] = empty;
        all[rank].have = have[rank], all[rank].have_count = 1;
        all[rank].want = want[rank], all[rank].want_count = 2, all[rank].want_places = places;
    }
    reshard_local* world = NULL;
    reshard_backend* backends[ranks];
    reshard_boxes* boxes[ranks];
    reshard_ticket* tickets[ranks];
    int32_t owned[ranks][band * columns], wanted[ranks][want_cells];
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    for (int64_t rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_boxes_make_known(backends[rank], "i32", shape, 2, all, ranks, &boxes[rank], &error));
        EXPECT(strcmp(reshard_boxes_dtype(boxes[rank]), "i32") == 0);
        EXPECT(reshard_boxes_have_bytes(boxes[rank]) == (int64_t)sizeof owned[0]);
        EXPECT(reshard_boxes_want_bytes(boxes[rank]) == (int64_t)sizeof wanted[0]);
        // Four columns of 12 rows and the other six columns of two rows, less the rows that the rank owns.
        const int64_t of_two = rank == 1 || rank == 2 ? 6 : 12;  // ranks 1 and 2 own one of the two rows
        EXPECT(reshard_boxes_received_bytes(boxes[rank]) == 4 * (4 * (rows - band) + of_two));
    }
    FAILS(RESHARD_MISMATCH, "needs",
          reshard_boxes_start(boxes[0], owned[0], 4, wanted[0], sizeof wanted[0], &tickets[0], &error));
    for (int32_t again = 0; again < 2; ++again) {
        for (int64_t rank = 0; rank < ranks; ++rank) {
            for (int64_t i = 0; i < band * columns; ++i)
                owned[rank][i] = element(band * rank + i / columns, i % columns);
            for (int64_t i = 0; i < want_cells; ++i) wanted[rank][i] = -7;
            SUCCEEDS(reshard_boxes_start(boxes[rank], owned[rank], sizeof owned[rank], wanted[rank],
                                         sizeof wanted[rank], &tickets[rank], &error));
        }
        for (int64_t rank = 0; rank < ranks; ++rank) {
            SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
            reshard_release(tickets[rank]);
            EXPECT(wrong_wants(wanted[rank], rank) == 0);
        }
    }
    for (int64_t rank = 0; rank < ranks; ++rank) reshard_release(boxes[rank]), reshard_release(backends[rank]);
    reshard_release(world);
}

/// One rank alone: no tickets, and every mistake.
static void make_mistakes(void) {
    static const int64_t have[] = {0, rows, 0, 5, 0, rows, 5, columns}, twice[] = {0, 4, 0, columns, 3, 5, 2, 3};
    static const int64_t middle[] = {4, 6, 4, 6}, outside[] = {0, 4, 0, 11};
    reshard_local* world = NULL;
    reshard_backend* only = NULL;
    reshard_boxes* boxes = NULL;
    reshard_rank_boxes own = RESHARD_RANK_BOXES_INITIALIZER;
    SUCCEEDS(reshard_local_make(1, NULL, &world, &error));
    SUCCEEDS(reshard_local_backend(world, 0, &only, &error));
    own.have = have, own.have_count = 2, own.want = middle, own.want_count = 1;
    SUCCEEDS(reshard_boxes_make(only, "f64", shape, 2, &own, &boxes, &error));
    double owned[rows * columns], wanted[4] = {0};
    for (int64_t i = 0; i < rows * columns; ++i)  // the left half, then the right half
        owned[i] = element(i % 60 / 5, i / 60 * 5 + i % 5);
    SUCCEEDS(reshard_boxes_run(boxes, owned, sizeof owned, wanted, sizeof wanted, &error));
    EXPECT(wanted[0] == 404 && wanted[1] == 405 && wanted[2] == 504 && wanted[3] == 505);
    EXPECT(reshard_boxes_received_bytes(boxes) == 0);
    FAILS(RESHARD_USAGE, "`want` is NULL", reshard_boxes_run(boxes, owned, sizeof owned, NULL, 32, &error));
    FAILS(RESHARD_USAGE, "NULL", reshard_boxes_start(boxes, owned, sizeof owned, wanted, sizeof wanted, NULL, &error));
    SUCCEEDS(reshard_boxes_run(boxes, owned, sizeof owned, wanted, sizeof wanted, &error));
    reshard_release(boxes);

    own.have_count = 1;
    FAILS(RESHARD_MISMATCH, "no rank owns element [4, 5]",
          reshard_boxes_make(only, "f64", shape, 2, &own, &boxes, &error));
    own.have = twice, own.have_count = 2, own.want_count = 0;
    FAILS(RESHARD_MISMATCH, "element [3, 2] is owned twice",
          reshard_boxes_make_known(only, "f64", shape, 2, &own, 1, &boxes, &error));
    own.have = outside, own.have_count = 1;
    FAILS(RESHARD_MISMATCH, "outside", reshard_boxes_make(only, "f64", shape, 2, &own, &boxes, &error));
    FAILS(RESHARD_SYNTAX, "f65", reshard_boxes_make(only, "f65", shape, 2, &own, &boxes, &error));
    FAILS(RESHARD_USAGE, "`shape` is NULL", reshard_boxes_make(only, "f64", NULL, 2, &own, &boxes, &error));
    FAILS(RESHARD_USAGE, "reshard_rank_boxes", reshard_boxes_make(only, "f64", shape, 2, NULL, &boxes, &error));
    FAILS(RESHARD_USAGE, "a backend", reshard_boxes_make(NULL, "f64", shape, 2, &own, &boxes, &error));
    own.size = 3;
    FAILS(RESHARD_USAGE, "3 bytes", reshard_boxes_make(only, "f64", shape, 2, &own, &boxes, &error));
    EXPECT(reshard_boxes_dtype(NULL) == NULL && reshard_boxes_have_bytes(NULL) == -1 &&
           reshard_boxes_want_bytes(NULL) == -1 && reshard_boxes_received_bytes(NULL) == -1);
    reshard_release(only), reshard_release(world);
}

/// The element of a tile of f32[48@...,20] or f64[48@...], from its row. Tiles are bands of rows.
static double of_row(int64_t array, int64_t row, int64_t column) { return array == 0 ? 1000.0 * row + column : -row; }

static void set_tile(void* tile, int64_t array, int64_t first, int64_t height, double times) {
    for (int64_t i = 0; i < height * (array == 0 ? 20 : 1); ++i) {
        const double value = times * of_row(array, first + (array == 0 ? i / 20 : i), array == 0 ? i % 20 : 0);
        if (array == 0) ((float*)tile)[i] = (float)value;
        if (array == 1) ((double*)tile)[i] = value;
    }
}

/// Eight devices hold two arrays twice. Devices 3 and 6 are lost; the others are six ranks.
static void rebuild_arrays(void) {
    enum { left = 6 };
    static const int64_t lost[] = {6, 3}, devices[left] = {0, 1, 2, 4, 5, 7};
    static const char before[] = "data=2,model=4", after[] = "data=2,model=3[0,1,2,4,5,7]";
    const reshard_layout* sources[] = {layout_of(before, "f32[48@model,20]"), layout_of(before, "f64[48@model]")};
    const reshard_layout* targets[] = {layout_of(after, "f32[48@model,20]"), layout_of(after, "f64[48@model]")};
    reshard_local* world = NULL;
    reshard_backend* backends[left];
    reshard_rebuild* rebuilds[left];
    reshard_ticket* tickets[left];
    reshard_buffers buffers[left][2];
    int64_t received[2][8];
    SUCCEEDS(reshard_local_make(left, NULL, &world, &error));
    for (int64_t i = 0; i < 2; ++i)
        SUCCEEDS(reshard_rebuild_traffic(sources[i], targets[i], lost, 2, received[i], 8, &error));
    EXPECT(received[0][3] == 0 && received[0][6] == 0);
    for (int64_t rank = 0; rank < left; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_rebuild_make(backends[rank], sources, targets, 2, lost, 2, devices, &rebuilds[rank], &error));
        // Device d has rows [12 p, 12 p + 12), p = d mod 4. It wants [16 q, 16 q + 16), q = rank mod 3.
        const int64_t p = devices[rank] % 4, q = rank % 3, device = devices[rank];
        const int64_t begin = p * 12 > q * 16 ? p * 12 : q * 16,
                      end = p * 12 + 12 < q * 16 + 16 ? p * 12 + 12 : q * 16 + 16;
        const int64_t missing = 16 - (end > begin ? end - begin : 0);
        EXPECT(received[0][device] == missing * 80 && received[1][device] == missing * 8);
        EXPECT(reshard_rebuild_received_bytes(rebuilds[rank]) == missing * 88);
        EXPECT(strcmp(reshard_rebuild_dtype(rebuilds[rank], 1), "f64") == 0);
        EXPECT(reshard_rebuild_dtype(rebuilds[rank], 2) == NULL);
        for (int64_t i = 0; i < 2; ++i) {
            const reshard_buffers none = RESHARD_BUFFERS_INITIALIZER;
            reshard_buffers* one = &buffers[rank][i];
            *one = none;
            one->source_bytes = reshard_layout_tile_bytes(sources[i], device);
            one->target_bytes = reshard_layout_tile_bytes(targets[i], device);
            void* tile = malloc((size_t)one->source_bytes);
            set_tile(tile, i, p * 12, 12, 1);
            one->source = tile;
            one->target = malloc((size_t)one->target_bytes);
            set_tile(one->target, i, q * 16, 16, -3);
        }
    }
    FAILS(RESHARD_MISMATCH, "2 arrays were given 1",
          reshard_rebuild_start(rebuilds[0], buffers[0], 1, &tickets[0], &error));
    for (int64_t rank = 0; rank < left; ++rank)
        SUCCEEDS(reshard_rebuild_start(rebuilds[rank], buffers[rank], 2, &tickets[rank], &error));
    for (int64_t rank = 0; rank < left; ++rank) {
        SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
        for (int64_t i = 0; i < 2; ++i) {
            void* expected = malloc((size_t)buffers[rank][i].target_bytes);
            set_tile(expected, i, rank % 3 * 16, 16, 1);
            EXPECT(memcmp(expected, buffers[rank][i].target, (size_t)buffers[rank][i].target_bytes) == 0);
            free(expected), free((void*)buffers[rank][i].source), free(buffers[rank][i].target);
        }
        reshard_release(tickets[rank]), reshard_release(rebuilds[rank]), reshard_release(backends[rank]);
    }
    reshard_layout* alone = layout_of(before, "f32[48@(data,model),20]");
    FAILS(RESHARD_INFEASIBLE, "only lost devices held [18:24, 0:20], [36:42, 0:20]",
          reshard_rebuild_traffic(alone, targets[0], lost, 2, NULL, 0, &error));
    FAILS(RESHARD_USAGE, "`lost` is NULL", reshard_rebuild_traffic(alone, targets[0], NULL, 2, NULL, 0, &error));
    EXPECT(reshard_rebuild_received_bytes(NULL) == -1 && reshard_rebuild_dtype(NULL, 0) == NULL);
    for (int64_t i = 0; i < 2; ++i) reshard_release(sources[i]), reshard_release(targets[i]);
    reshard_release(alone), reshard_release(world);
}

/// A rank whose tile is lost gives no source, and gets its tile again. One rank that is no device fails on its own.
static void replace_rank(void) {
    static const int64_t lost[] = {1};
    reshard_layout* layout = layout_of("data=2", "i64[3]");
    const reshard_layout* const both = layout;
    reshard_local* world = NULL;
    reshard_backend* backends[2];
    reshard_rebuild* rebuilds[2];
    reshard_ticket* tickets[2];
    int64_t kept[] = {7, 8, 9}, again[2][3] = {{0}};
    SUCCEEDS(reshard_local_make(2, NULL, &world, &error));
    for (int64_t rank = 0; rank < 2; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_rebuild_make(backends[rank], &both, &both, 1, lost, 1, NULL, &rebuilds[rank], &error));
        reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
        if (rank == 0) buffers.source = kept, buffers.source_bytes = sizeof kept;
        buffers.target = again[rank], buffers.target_bytes = sizeof again[rank];
        SUCCEEDS(reshard_rebuild_start(rebuilds[rank], &buffers, 1, &tickets[rank], &error));
    }
    for (int64_t rank = 0; rank < 2; ++rank) {
        SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
        EXPECT(memcmp(again[rank], kept, sizeof kept) == 0);
        reshard_release(tickets[rank]), reshard_release(rebuilds[rank]), reshard_release(backends[rank]);
    }
    reshard_local* small = NULL;
    reshard_backend* only = NULL;
    reshard_rebuild* none = NULL;
    SUCCEEDS(reshard_local_make(1, NULL, &small, &error));
    SUCCEEDS(reshard_local_backend(small, 0, &only, &error));
    FAILS(RESHARD_MISMATCH, "device 1 wants a tile",
          reshard_rebuild_make(only, &both, &both, 1, lost, 1, NULL, &none, &error));
    FAILS(RESHARD_USAGE, "a backend", reshard_rebuild_make(NULL, &both, &both, 1, lost, 1, NULL, &none, &error));
    FAILS(RESHARD_USAGE, "a rebuild is needed", reshard_rebuild_run(none, NULL, 0, &error));
    reshard_release(only), reshard_release(small), reshard_release(layout), reshard_release(world);
}

int main(void) {
    exchange_boxes();
    make_mistakes();
    rebuild_arrays();
    replace_rank();
    printf("%d failed\n", failures);
    return failures != 0;
}
