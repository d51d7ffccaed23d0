// The example of boxes in docs/c.md: a coupler between bands of rows and the poles in columns.
#include <reshard/c_mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(reshard_error* error) {
    puts(reshard_error_describe(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    reshard_error* error;
    reshard_backend* backend;
    if (reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error)) stop(error);
    const int64_t rank = reshard_backend_rank(backend);
    // [README c_boxes]
    // Ranks 0 and 1 run the ocean and own 60 rows each. Ranks 2 and 3 run the ice and want 120 columns of both poles.
    int64_t shape[] = {120, 240};
    int64_t have[] = {60 * rank, 60 * (rank + 1), 0, 240};
    int64_t want[] = {0, 30, 120 * (rank - 2), 120 * (rank - 1), 90, 120, 120 * (rank - 2), 120 * (rank - 1)};
    reshard_rank_boxes own = RESHARD_RANK_BOXES_INITIALIZER;
    if (rank < 2) own.have = have, own.have_count = 1;
    if (rank >= 2) own.want = want, own.want_count = 2;
    reshard_boxes* boxes;
    if (reshard_boxes_make(backend, "f64", shape, 2, &own, &boxes, &error)) stop(error);  // once, on all ranks
    int64_t have_bytes = reshard_boxes_have_bytes(boxes), want_bytes = reshard_boxes_want_bytes(boxes);
    double *ocean = malloc(have_bytes), *ice = malloc(want_bytes);
    for (int step = 1; step <= 10; ++step) {
        for (int64_t i = 0; i < have_bytes / 8; ++i) ocean[i] = step + rank;
        if (reshard_boxes_run(boxes, ocean, have_bytes, ice, want_bytes, &error)) stop(error);
    }
    // [README c_boxes end]
    int right = 1, all_right = 0;
    for (int64_t i = 0; i < want_bytes / 8; ++i) right &= ice[i] == (i < 30 * 120 ? 10 : 11);
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 2) printf("%s: %d bytes\n", all_right ? "right" : "wrong", (int)reshard_boxes_received_bytes(boxes));
    free(ocean), free(ice);
    reshard_release(boxes), reshard_release(backend);
    return MPI_Finalize();
}
