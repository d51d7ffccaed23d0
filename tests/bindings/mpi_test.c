// Moves from C under MPI: on a communicator, by its Fortran handle, by executors, and with a mistake on one rank.
#include <stdlib.h>

#include "expect.h"
#include "reshard/c_mpi.h"

static int rank, ranks;

/// This rank's tile of an f64 array. Each element is its own global index, or 0 if `wiped`.
static double* tile_of(const reshard_layout* layout, int wiped) {
    int64_t shape[2], tile[2], first[2];
    SUCCEEDS(reshard_layout_shape(layout, shape, 2, &error));
    SUCCEEDS(reshard_layout_tile(layout, rank, tile, first, 2, &error));
    double* elements = calloc((size_t)reshard_layout_tile_count(layout, rank) + 1, sizeof *elements);
    for (int64_t i = 0; i < tile[0] && !wiped; ++i)
        for (int64_t j = 0; j < tile[1]; ++j)
            elements[i * tile[1] + j] = (double)((first[0] + i) * shape[1] + first[1] + j);
    return elements;
}

typedef struct problem {
    reshard_layout *source, *target;
    double *in, *out, *wanted;
    int64_t in_bytes, out_bytes;
} problem;

static problem problem_of(const char* rows, const char* columns) {
    char mesh[32];
    snprintf(mesh, sizeof mesh, "x=%d", ranks);
    problem one = {layout_of(mesh, rows), layout_of(mesh, columns), NULL, NULL, NULL, 0, 0};
    one.in = tile_of(one.source, 0), one.out = tile_of(one.target, 1), one.wanted = tile_of(one.target, 0);
    one.in_bytes = reshard_layout_tile_bytes(one.source, rank);
    one.out_bytes = reshard_layout_tile_bytes(one.target, rank);
    return one;
}

static int arrived(problem* one) {
    const int equal = memcmp(one->out, one->wanted, (size_t)one->out_bytes) == 0;
    memset(one->out, 0, (size_t)one->out_bytes);
    return equal;
}

static void free_problem(problem* one) {
    free(one->in), free(one->out), free(one->wanted);
    reshard_release(one->source), reshard_release(one->target);
}

static void one_call(void) {
    problem one = problem_of("f64[37@x,11]", "f64[37,11@x]");
    for (int again = 0; again < 3; ++again) {
        SUCCEEDS(reshard_mpi_redistribute(MPI_COMM_WORLD, one.source, one.target, one.in, one.in_bytes, one.out,
                                          one.out_bytes, &error));
        EXPECT(arrived(&one));
    }
    const MPI_Fint fortran = MPI_Comm_c2f(MPI_COMM_WORLD);
    SUCCEEDS(reshard_mpi_redistribute_f(fortran, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes,
                                        &error));
    EXPECT(arrived(&one));
    SUCCEEDS(reshard_mpi_clear(MPI_COMM_WORLD, &error));
    SUCCEEDS(reshard_mpi_clear_f(fortran, &error));
    FAILS(RESHARD_BACKEND, "MPI_COMM_NULL",
          reshard_mpi_redistribute(MPI_COMM_NULL, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes,
                                   &error));
    free_problem(&one);
}

/// A mistake on one rank is an error on all ranks, and the next call works.
static void one_rank_does_wrong(void) {
    problem one = problem_of("f64[24@x,8]", "f64[24,8@x]");
    const int wrong = rank == ranks - 1;
    reshard_error* why = NULL;
    EXPECT(reshard_mpi_redistribute(MPI_COMM_WORLD, wrong ? NULL : one.source, one.target, one.in, one.in_bytes,
                                    one.out, one.out_bytes, &why) == RESHARD_USAGE);
    EXPECT(why != NULL && strstr(reshard_error_message(why), "a layout is needed, NULL was given") != NULL);
    reshard_release(why);
    EXPECT(reshard_mpi_redistribute(MPI_COMM_WORLD, one.source, one.target, one.in, one.in_bytes - wrong, one.out,
                                    one.out_bytes, NULL) == RESHARD_MISMATCH);
    SUCCEEDS(reshard_mpi_redistribute(MPI_COMM_WORLD, one.source, one.target, one.in, one.in_bytes, one.out,
                                      one.out_bytes, &error));
    EXPECT(arrived(&one));
    reshard_backend* backend = NULL;
    reshard_plan* plan = NULL;
    reshard_executor* executor = NULL;
    SUCCEEDS(reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error));
    SUCCEEDS(reshard_plan_make(one.source, one.target, NULL, &plan, &error));
    EXPECT(reshard_executor_make(backend, wrong ? NULL : plan, NULL, NULL, &executor, NULL) != RESHARD_OK);
    EXPECT(reshard_redistribute(backend, one.source, wrong ? NULL : one.target, one.in, one.in_bytes, one.out,
                                one.out_bytes, NULL) != RESHARD_OK);
    SUCCEEDS(
        reshard_redistribute(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes, &error));
    // Now the move is prepared on all ranks. After an error of redistribute it is prepared on no rank.
    EXPECT(reshard_executor_make(backend, wrong ? NULL : plan, NULL, NULL, &executor, NULL) != RESHARD_OK);
    SUCCEEDS(
        reshard_redistribute(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes, &error));
    EXPECT(reshard_redistribute(backend, one.source, wrong ? NULL : one.target, one.in, one.in_bytes, one.out,
                                one.out_bytes, NULL) != RESHARD_OK);
    SUCCEEDS(
        reshard_redistribute(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes, &error));
    EXPECT(arrived(&one));
    // A null pointer for the handle is a wrong argument like any other.
    EXPECT(reshard_executor_make(backend, plan, NULL, NULL, wrong ? NULL : &executor, NULL) == RESHARD_USAGE);
    reshard_ticket* ticket = NULL;
    EXPECT(reshard_redistribute_start(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes,
                                      wrong ? NULL : &ticket, NULL) == RESHARD_USAGE);
    // The other ranks get an error in the run because one rank does not start it.
    SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
    EXPECT(reshard_executor_run(executor, one.in, one.in_bytes, wrong ? NULL : one.out, one.out_bytes, NULL) ==
           (wrong ? RESHARD_USAGE : RESHARD_BACKEND));
    reshard_release(executor);
    SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
    reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
    buffers.source = one.in, buffers.source_bytes = one.in_bytes;
    buffers.target = one.out, buffers.target_bytes = one.out_bytes;
    reshard_bound* bound = NULL;
    const int made = reshard_executor_bind(executor, &buffers, wrong ? -1 : 1, &bound, NULL);
    EXPECT(made == (wrong ? RESHARD_USAGE : RESHARD_OK));
    if (!wrong) SUCCEEDS(reshard_bound_start(bound, &ticket, &error));
    if (!wrong) EXPECT(reshard_ticket_wait(ticket, NULL) == RESHARD_BACKEND);
    reshard_release(ticket), reshard_release(bound), reshard_release(executor);
    reshard_release(plan), reshard_release(backend);
    // The same for making a backend.
    reshard_mpi_options options = RESHARD_MPI_OPTIONS_INITIALIZER;
    options.unregistered_buffers = wrong ? 99 : 0;
    EXPECT(reshard_mpi_backend(MPI_COMM_WORLD, &options, &backend, NULL) == (wrong ? RESHARD_USAGE : RESHARD_BACKEND));
    SUCCEEDS(reshard_mpi_redistribute(MPI_COMM_WORLD, one.source, one.target, one.in, one.in_bytes, one.out,
                                      one.out_bytes, &error));
    EXPECT(arrived(&one));
    free_problem(&one);
}

static void loops(void) {
    problem one = problem_of("f64[40@x,16]", "f64[40,16@x]");
    reshard_mpi_options made_with = RESHARD_MPI_OPTIONS_INITIALIZER;
    made_with.shared_memory = 0;
    made_with.register_after = -1;
    for (int messages = 0; messages < 2; ++messages) {
        reshard_backend* backend = NULL;
        const MPI_Fint fortran = MPI_Comm_c2f(MPI_COMM_WORLD);
        if (messages)
            SUCCEEDS(reshard_mpi_backend_f(fortran, &made_with, &backend, &error));
        else
            SUCCEEDS(reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error));
        EXPECT(strcmp(reshard_backend_name(backend), "mpi") == 0 && reshard_backend_size(backend) == ranks);
        reshard_options options = RESHARD_OPTIONS_INITIALIZER;
        options.backend = backend;
        reshard_plan* plan = NULL;
        reshard_executor* executor = NULL;
        SUCCEEDS(reshard_plan_make(one.source, one.target, &options, &plan, &error));
        SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
        for (int again = 0; again < 3; ++again) {
            SUCCEEDS(reshard_executor_run(executor, one.in, one.in_bytes, one.out, one.out_bytes, &error));
            EXPECT(arrived(&one));
        }
        reshard_memory* memory = NULL;
        SUCCEEDS(reshard_memory_allocate(backend, one.in_bytes, &memory, &error));
        memcpy(reshard_memory_address(memory), one.in, (size_t)one.in_bytes);
        reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
        buffers.source = reshard_memory_address(memory), buffers.source_bytes = one.in_bytes;
        buffers.target = one.out, buffers.target_bytes = one.out_bytes;
        reshard_bound* bound = NULL;
        reshard_ticket* ticket = NULL;
        SUCCEEDS(reshard_executor_bind(executor, &buffers, 1, &bound, &error));
        SUCCEEDS(reshard_bound_start(bound, &ticket, &error));
        for (int done = 0; !done && failures == 0;) SUCCEEDS(reshard_ticket_test(ticket, &done, &error));
        EXPECT(arrived(&one));
        const void* all[] = {backend, plan, memory, executor, bound, ticket};  // parents first
        for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
    }
    made_with.size = 4;
    reshard_backend* none = NULL;
    FAILS(RESHARD_USAGE, "struct reshard_mpi_options of 4 bytes",
          reshard_mpi_backend(MPI_COMM_WORLD, &made_with, &none, &error));
    free_problem(&one);
}

/// Memory from malloc, at an odd offset: registered, moved, and unregistered before it is freed.
static void registered(void) {
    problem one = problem_of("f64[1030@x,64]", "f64[1030,64@x]");
    reshard_backend* backend = NULL;
    SUCCEEDS(reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error));
    reshard_registration *in = NULL, *out = NULL, *none = NULL;
    SUCCEEDS(reshard_memory_register(backend, one.in, one.in_bytes, RESHARD_FORK_SHARES, &in, &error));
    SUCCEEDS(reshard_memory_register(backend, one.out, one.out_bytes, RESHARD_FORK_WITHHOLDS, &out, &error));
    FAILS(RESHARD_USAGE, "it lies in what was registered",
          reshard_memory_register(backend, one.in, one.in_bytes, RESHARD_FORK_SHARES, &none, &error));
    EXPECT(none == NULL);
    for (int again = 0; again < 3; ++again) {
        SUCCEEDS(reshard_redistribute(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes,
                                      &error));
        EXPECT(arrived(&one));
    }
    reshard_ticket* ticket = NULL;
    SUCCEEDS(reshard_redistribute_start(backend, one.source, one.target, one.in, one.in_bytes, one.out, one.out_bytes,
                                        &ticket, &error));
    FAILS(RESHARD_USAGE, "a run is in flight", reshard_registration_end(in, &error));
    SUCCEEDS(reshard_ticket_wait(ticket, &error));
    reshard_release(ticket);
    for (int again = 0; again < 2; ++again) SUCCEEDS(reshard_registration_end(in, &error));
    EXPECT(arrived(&one));
    reshard_release(backend);
    reshard_release(out);  // the last owner of the backend
    reshard_release(in);
    one.in[0] = one.out[0] = 1;
    // The pages of a stack are never exchanged.
    SUCCEEDS(reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error));
    char stack[16384];
    FAILS(RESHARD_USAGE, "stack",
          reshard_memory_register(backend, stack, sizeof stack, RESHARD_FORK_SHARES, &none, &error));
    FAILS(RESHARD_USAGE, "`on_fork` is 2", reshard_memory_register(backend, one.in, 8, 2, &none, &error));
    reshard_release(backend);
    free_problem(&one);
}

int main(int argc, char** argv) {
    reshard_backend* early = NULL;
    FAILS(RESHARD_BACKEND, "MPI", reshard_mpi_backend(MPI_COMM_NULL, NULL, &early, &error));
    FAILS(RESHARD_BACKEND, "MPI", reshard_mpi_backend_f(0, NULL, &early, &error));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    one_call();
    one_rank_does_wrong();
    loops();
    registered();
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    printf("%d failed\n", all);
    return all == 0 ? 0 : 1;
}
