// The first example of docs/c.md: rows to columns under MPI, on 4 ranks.
// [README c_first]
#include <mpi.h>
#include <reshard/c_mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    reshard_mesh* mesh;
    reshard_layout *rows, *columns;
    reshard_error* error = NULL;
    if (reshard_mesh_parse("ranks=4", &mesh, &error) != RESHARD_OK ||
        reshard_layout_parse(mesh, "f64[840@ranks,840]", &rows, &error) != RESHARD_OK ||
        reshard_layout_parse(mesh, "f64[840,840@ranks]", &columns, &error) != RESHARD_OK) {
        puts(reshard_error_describe(error));
        return 1;
    }
    int64_t in_bytes = reshard_layout_tile_bytes(rows, rank), out_bytes = reshard_layout_tile_bytes(columns, rank);
    double *in = malloc(in_bytes), *out = malloc(out_bytes);
    for (int64_t i = 0; i < reshard_layout_tile_count(rows, rank); ++i) in[i] = rank;
    if (reshard_mpi_redistribute(MPI_COMM_WORLD, rows, columns, in, in_bytes, out, out_bytes, &error) != RESHARD_OK) {
        puts(reshard_error_describe(error));
        return 1;
    }
    printf("moved: %g to %g\n", out[0], out[reshard_layout_tile_count(columns, rank) - 1]);
    free(in), free(out);
    reshard_release(mesh), reshard_release(rows), reshard_release(columns);
    return MPI_Finalize();
}
// [README c_first end]
