// Arrays in two layouts on ranks of this process. Each element says where it belongs.
#ifndef RESHARD_TESTS_PROBLEM_H
#define RESHARD_TESTS_PROBLEM_H

#include <stdlib.h>

#include "expect.h"

enum { ranks_max = 8 };

/// The tiles of an array on all ranks. Each element of four bytes is its own global index.
typedef struct tiles {
    int64_t ranks;
    int64_t bytes[ranks_max];
    void* data[ranks_max];
} tiles;

static inline tiles tiles_of(const reshard_layout* layout, int64_t ranks) {
    tiles made = {ranks, {0}, {NULL}};
    int64_t shape[2], tile[2], first[2];
    SUCCEEDS(reshard_layout_shape(layout, shape, 2, &error));
    for (int64_t rank = 0; rank < ranks; ++rank) {
        made.bytes[rank] = reshard_layout_tile_bytes(layout, rank);
        if (made.bytes[rank] == 0) continue;
        int32_t* elements = made.data[rank] = malloc((size_t)made.bytes[rank]);
        SUCCEEDS(reshard_layout_tile(layout, rank, tile, first, 2, &error));
        for (int64_t i = 0; i < tile[0]; ++i)
            for (int64_t j = 0; j < tile[1]; ++j)
                elements[i * tile[1] + j] = (int32_t)((first[0] + i) * shape[1] + first[1] + j);
    }
    return made;
}

static inline void wipe(const tiles* all) {
    for (int64_t rank = 0; rank < all->ranks; ++rank)
        if (all->bytes[rank] > 0) memset(all->data[rank], 0xff, (size_t)all->bytes[rank]);
}

static inline void free_tiles(tiles* all) {
    for (int64_t rank = 0; rank < all->ranks; ++rank) free(all->data[rank]);
}

static inline int same(const tiles* a, const tiles* b) {
    for (int64_t rank = 0; rank < a->ranks; ++rank) {
        if (a->bytes[rank] != b->bytes[rank]) return 0;
        if (a->bytes[rank] > 0 && memcmp(a->data[rank], b->data[rank], (size_t)a->bytes[rank]) != 0) return 0;
    }
    return 1;
}

/// An array in two layouts, and the expected contents of the second.
typedef struct problem {
    reshard_layout *source, *target;
    tiles in, out, wanted;
} problem;

static inline problem problem_of(const char* mesh, const char* source, const char* target, int64_t ranks) {
    problem made = {
        layout_of(mesh, source), layout_of(mesh, target), {0, {0}, {NULL}}, {0, {0}, {NULL}}, {0, {0}, {NULL}}};
    made.in = tiles_of(made.source, ranks);
    made.out = tiles_of(made.target, ranks);
    made.wanted = tiles_of(made.target, ranks);
    wipe(&made.out);
    return made;
}

static inline void free_problem(problem* one) {
    free_tiles(&one->in);
    free_tiles(&one->out);
    free_tiles(&one->wanted);
    reshard_release(one->source);
    reshard_release(one->target);
}

#endif
