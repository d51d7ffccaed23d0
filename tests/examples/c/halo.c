// The halo example of docs/c.md: rows of a ring of ranks, filled in a loop.
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
    reshard_mesh* mesh;
    reshard_backend* backend;
    if (reshard_mesh_parse("x=4", &mesh, &error)) stop(error);
    if (reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error)) stop(error);
    // [README c_halo]
    reshard_halo_layout* layout;
    reshard_halo* halo;
    int64_t rank = reshard_backend_rank(backend);
    int64_t shape[2], begin[2], end[2];  // of this rank's array, and of its block in it
    if (reshard_halo_layout_parse(mesh, "f64[100@x~1%,50]", &layout, &error)) stop(error);
    if (reshard_halo_layout_array(layout, rank, shape, begin, end, 2, &error)) stop(error);
    if (reshard_halo_make(backend, layout, NULL, &halo, &error)) stop(error);  // once, on all ranks
    int64_t bytes = reshard_halo_layout_bytes(layout, rank);
    double* array = calloc(1, bytes);
    for (int step = 1; step <= 10; ++step) {
        for (int64_t i = begin[0] * shape[1]; i < end[0] * shape[1]; ++i) array[i] = rank + 10 * step;
        if (reshard_halo_fill(halo, array, bytes, &error)) stop(error);
    }
    // [README c_halo end]
    const int64_t last = (shape[0] - 1) * shape[1];
    const int right = array[0] == 100 + (rank + 3) % 4 && array[last] == 100 + (rank + 1) % 4;
    int all_right = 0;
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0) puts(all_right ? "filled by both neighbours" : "wrong");
    free(array);
    reshard_release(halo), reshard_release(layout), reshard_release(backend), reshard_release(mesh);
    return MPI_Finalize();
}
