// Halos from C: fills and sums between ranks of this process, driven by one thread. Every cell is checked.
#include <stdlib.h>

#include "expect.h"

enum { ranks = 4, rows = 3, columns = 2, pad = 1 };  // of a block; memory has a cell more at the end of each row

typedef struct {
    int64_t shape[2], begin[2], end[2], strides[2], bytes;
    int32_t* cells;
} array;

/// The element of a cell of a rank's array, from i32[6@x~1%,4@y~(2,0)]; -1 beyond the open border.
static int32_t element(int64_t rank, int64_t row, int64_t column) {
    const int64_t i = (rank / 2 * rows + row - 1 + 6) % 6, j = rank % 2 * columns + column - 2;
    return j < 0 ? -1 : (int32_t)(4 * i + j);
}

static int is_block(const array* one, int64_t row, int64_t column) {
    return row >= one->begin[0] && row < one->end[0] && column >= one->begin[1] && column < one->end[1];
}

static int32_t* cell(const array* one, int64_t row, int64_t column) {
    return one->cells + row * one->strides[0] + column * one->strides[1];
}

static array array_of(const reshard_halo_layout* layout, int64_t rank) {
    array one;
    SUCCEEDS(reshard_halo_layout_array(layout, rank, one.shape, one.begin, one.end, 2, &error));
    EXPECT(one.shape[0] == rows + 2 && one.shape[1] == columns + 2);
    EXPECT(one.begin[0] == 1 && one.end[0] == 1 + rows && one.begin[1] == 2 && one.end[1] == 2 + columns);
    EXPECT(reshard_halo_layout_bytes(layout, rank) == one.shape[0] * one.shape[1] * 4);
    one.strides[0] = one.shape[1] + pad, one.strides[1] = 1;
    one.bytes = one.shape[0] * one.strides[0] * 4;
    one.cells = malloc((size_t)one.bytes);
    return one;
}

/// Elements in the block, and -7 everywhere else.
static void set_block(array* one, int64_t rank) {
    for (int64_t i = 0; i < one->bytes / 4; ++i) one->cells[i] = -7;
    for (int64_t row = one->begin[0]; row < one->end[0]; ++row)
        for (int64_t column = one->begin[1]; column < one->end[1]; ++column)
            *cell(one, row, column) = element(rank, row, column);
}

static int64_t wrong_after_fill(const array* one, int64_t rank) {
    int64_t wrong = 0;
    for (int64_t row = 0; row < one->shape[0]; ++row) {
        for (int64_t column = 0; column < one->shape[1]; ++column) {
            const int32_t wanted = element(rank, row, column);
            wrong += *cell(one, row, column) != (wanted < 0 ? -7 : wanted);
        }
        wrong += *cell(one, row, one->shape[1]) != -7;  // the pad
    }
    return wrong;
}

/// After a fill and a sum, a block has its elements once for each cell that holds them.
static int64_t wrong_after_sum(const array* one, int64_t rank) {
    int64_t copies[24] = {0}, wrong = 0;
    for (int64_t other = 0; other < ranks; ++other)
        for (int64_t row = 0; row < one->shape[0]; ++row)
            for (int64_t column = 0; column < one->shape[1]; ++column)
                if (element(other, row, column) >= 0) ++copies[element(other, row, column)];
    for (int64_t row = 0; row < one->shape[0]; ++row)
        for (int64_t column = 0; column < one->shape[1]; ++column) {
            const int32_t held = element(rank, row, column);
            const int64_t times = held >= 0 && is_block(one, row, column) ? copies[held] : 1;
            wrong += *cell(one, row, column) != (held < 0 ? -7 : times * held);
        }
    return wrong;
}

int main(void) {
    static const char text[] = "i32[6@x~(1,1)%,4@y~(2,0)]";
    reshard_mesh* mesh = mesh_of("x=2,y=2");
    reshard_halo_layout *layout = NULL, *none = NULL;
    SUCCEEDS(reshard_halo_layout_parse(mesh, text, &layout, &error));
    EXPECT(strcmp(reshard_halo_layout_text(layout), "i32[6@x~1%,4@y~(2,0)]") == 0);
    FAILS(RESHARD_SYNTAX, "the cells of a halo", reshard_halo_layout_parse(mesh, "i32[6@x~]", &none, &error));
    FAILS(RESHARD_UNSUPPORTED, "several blocks", reshard_halo_layout_parse(mesh, "i32[6@x/1~1]", &none, &error));
    FAILS(RESHARD_MISMATCH, "2 dimensions", reshard_halo_layout_array(layout, 0, NULL, NULL, NULL, 1, &error));
    FAILS(RESHARD_USAGE, "device", reshard_halo_layout_array(layout, -1, NULL, NULL, NULL, 2, &error));
    FAILS(RESHARD_USAGE, "a layout with halos is needed",
          reshard_halo_layout_array((reshard_halo_layout*)mesh, 0, NULL, NULL, NULL, 2, &error));
    EXPECT(reshard_halo_layout_bytes(NULL, 0) == -1 && reshard_halo_layout_bytes(layout, -1) == -1);
    EXPECT(reshard_halo_received_bytes(NULL) == -1 && reshard_halo_dtype(NULL) == NULL &&
           reshard_halo_layout_text(NULL) == NULL);

    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    reshard_backend* backends[ranks];
    reshard_halo* halos[ranks];
    reshard_ticket* tickets[ranks];
    array arrays[ranks];
    for (int64_t rank = 0; rank < ranks; ++rank) {
        arrays[rank] = array_of(layout, rank);
        reshard_storage storage = RESHARD_STORAGE_INITIALIZER;
        storage.strides = arrays[rank].strides, storage.dims = 2;
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_halo_make(backends[rank], layout, &storage, &halos[rank], &error));
        EXPECT(strcmp(reshard_halo_dtype(halos[rank]), "i32") == 0);
        // The cells of other ranks: two rows of four on ranks with columns before theirs, and else two rows of two.
        EXPECT(reshard_halo_received_bytes(halos[rank]) == 4 * (rank % 2 == 1 ? 2 * 4 + 3 * 2 : 2 * 2));
    }
    FAILS(RESHARD_USAGE, "NULL", reshard_halo_fill_start(halos[0], NULL, 4, &tickets[0], &error));
    FAILS(RESHARD_MISMATCH, "needs", reshard_halo_fill_start(halos[0], arrays[0].cells, 4, &tickets[0], &error));
    for (int again = 0; again < 2; ++again) {
        for (int64_t rank = 0; rank < ranks; ++rank) set_block(&arrays[rank], rank);
        for (int sum = 0; sum < 2; ++sum) {
            for (int64_t rank = 0; rank < ranks; ++rank) {
                int (*const start)(reshard_halo*, void*, int64_t, reshard_ticket**, reshard_error**) =
                    sum ? reshard_halo_sum_start : reshard_halo_fill_start;
                SUCCEEDS(start(halos[rank], arrays[rank].cells, arrays[rank].bytes, &tickets[rank], &error));
            }
            for (int64_t rank = 0; rank < ranks; ++rank) {
                SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
                reshard_release(tickets[rank]);
            }
            for (int64_t rank = 0; rank < ranks; ++rank)
                EXPECT((sum ? wrong_after_sum(&arrays[rank], rank) : wrong_after_fill(&arrays[rank], rank)) == 0);
        }
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
        free(arrays[rank].cells);
        reshard_release(halos[rank]);
        reshard_release(backends[rank]);
    }

    // One rank alone fills and sums without tickets.
    reshard_local* alone = NULL;
    reshard_backend* only = NULL;
    reshard_halo* ring = NULL;
    reshard_halo_layout* line = NULL;
    reshard_mesh* one = mesh_of("x=1");
    int32_t cells[4] = {0, 5, 6, 0};
    SUCCEEDS(reshard_local_make(1, NULL, &alone, &error));
    SUCCEEDS(reshard_local_backend(alone, 0, &only, &error));
    SUCCEEDS(reshard_halo_layout_parse(one, "i32[2@x~1%]", &line, &error));
    FAILS(RESHARD_USAGE, "a backend is needed", reshard_halo_make(NULL, line, NULL, &ring, &error));
    SUCCEEDS(reshard_halo_make(only, line, NULL, &ring, &error));
    SUCCEEDS(reshard_halo_fill(ring, cells, sizeof cells, &error));
    EXPECT(cells[0] == 6 && cells[1] == 5 && cells[2] == 6 && cells[3] == 5);
    SUCCEEDS(reshard_halo_sum(ring, cells, sizeof cells, &error));
    EXPECT(cells[0] == 6 && cells[1] == 10 && cells[2] == 12 && cells[3] == 5);
    const void* all[] = {ring, only, line, one, alone, layout, mesh, world};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
    printf("%d failed\n", failures);
    return failures != 0;
}
