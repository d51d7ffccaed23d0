// The loop example of docs/c.md: prepared once, run often, with memory that peers reach. Then a move of docs/moves.md.
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
    reshard_layout *source, *target;
    if (reshard_mesh_parse("x=4", &mesh, &error)) stop(error);
    if (reshard_layout_parse(mesh, "f64[512@x,512]", &source, &error)) stop(error);
    if (reshard_layout_parse(mesh, "f64[512,512@x]", &target, &error)) stop(error);
    // [README c_loop]
    reshard_backend* backend;
    if (reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error)) stop(error);
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.backend = backend;  // the plan is made for what it can do
    reshard_plan* plan;
    reshard_executor* executor;
    reshard_memory *in, *out;
    if (reshard_plan_make(source, target, &options, &plan, &error)) stop(error);
    if (reshard_executor_make(backend, plan, NULL, NULL, &executor, &error)) stop(error);
    int64_t rank = reshard_backend_rank(backend);
    if (reshard_memory_allocate(backend, reshard_layout_tile_bytes(source, rank), &in, &error)) stop(error);
    if (reshard_memory_allocate(backend, reshard_layout_tile_bytes(target, rank), &out, &error)) stop(error);
    reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
    buffers.source = reshard_memory_address(in), buffers.source_bytes = reshard_memory_bytes(in);
    buffers.target = reshard_memory_address(out), buffers.target_bytes = reshard_memory_bytes(out);
    reshard_bound* bound;
    if (reshard_executor_bind(executor, &buffers, 1, &bound, &error)) stop(error);
    double* values = reshard_memory_address(in);
    for (int round = 0; round < 10; ++round) {
        for (int64_t i = 0; i < reshard_layout_tile_count(source, rank); ++i) values[i] = round;
        reshard_ticket* ticket;
        if (reshard_bound_start(bound, &ticket, &error)) stop(error);
        if (reshard_ticket_wait(ticket, &error)) stop(error);  // or compute, and ask reshard_ticket_test
        reshard_release(ticket);
    }
    // [README c_loop end]
    const double* moved = reshard_memory_address(out);
    printf("last round: %g\n", moved[0]);

    reshard_layout *weights, *padded;
    if (reshard_layout_parse(mesh, "f64[512@x,100]", &weights, &error)) stop(error);
    if (reshard_layout_parse(mesh, "f32[104@x,512]", &padded, &error)) stop(error);
    int64_t in_bytes = reshard_layout_tile_bytes(weights, rank), out_bytes = reshard_layout_tile_bytes(padded, rank);
    double* wide = malloc((size_t)in_bytes);
    float* narrow = malloc((size_t)out_bytes);
    for (int64_t i = 0; i < reshard_layout_tile_count(weights, rank); ++i) wide[i] = 1.0 / 3;
    // [README c_changes]
    const int64_t order[] = {1, 0};
    const float fill = -1;
    reshard_move_options changes = RESHARD_MOVE_OPTIONS_INITIALIZER;
    changes.cast = 1;
    changes.permute = order, changes.permute_count = 2;
    changes.pad = 1, changes.fill = &fill;  // f64[512@x,100] to f32[104@x,512]
    if (reshard_mpi_redistribute_with(MPI_COMM_WORLD, weights, padded, &changes, wide, in_bytes, narrow, out_bytes,
                                      &error))
        stop(error);
    // [README c_changes end]
    if (rank == 3) printf("row 99: %.7f, row 100: %g\n", narrow[21 * 512], narrow[22 * 512]);
    free(wide), free(narrow);
    reshard_release(weights), reshard_release(padded);
    reshard_release(bound), reshard_release(in), reshard_release(out), reshard_release(executor);
    reshard_release(plan), reshard_release(backend);
    reshard_release(source), reshard_release(target), reshard_release(mesh);
    return MPI_Finalize();
}
