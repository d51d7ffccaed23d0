// The program of docs/c.md, on 4 ranks: two codes that exchange fields. The first has ranks 0 to 2, the second rank 3.
#include <mpi.h>
#include <reshard/c/program.h>
#include <reshard/c_mpi.h>
#include <stdio.h>

static void stop(reshard_error* error) {
    puts(reshard_error_describe(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// [README c_compute]
/// A window of either code: one more than the other code's field, if there is one yet.
static int compute(const reshard_task_run* run, void* context) {
    const double* theirs = run->uses > 0 ? run->used[0] : NULL;
    double* ours = run->made[0];
    for (int64_t i = 0; i < run->made_bytes[0] / (int64_t)sizeof(double); ++i) {
        if (i % 65536 == 0 && reshard_task_progress(run, NULL)) return 1;  // moves go on beside the loop
        ours[i] = theirs != NULL ? theirs[i] + 1 : 1;
    }
    *(double*)context = ours[0];
    return 0;
}
// [README c_compute end]

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    reshard_error* error;
    reshard_backend* backend;
    if (reshard_mpi_backend(MPI_COMM_WORLD, NULL, &backend, &error)) stop(error);
    // [README c_program]
    reshard_program *program, *measured;
    reshard_scheduled* scheduled;
    reshard_program_runner* runner;
    const char* codes = "coupled windows=6 devices_a=3 devices_b=1 a=1ms b=1ms field=1MiB";
    if (reshard_program_generate(codes, &program, &error)) stop(error);  // or parse lines of your own
    reshard_schedule_options limits = RESHARD_SCHEDULE_OPTIONS_INITIALIZER;
    limits.footprint_bytes_max = 8 << 20;
    if (reshard_program_schedule(program, &limits, &scheduled, &error)) stop(error);
    if (reshard_program_runner_make(backend, scheduled, &runner, &error)) stop(error);  // once, on all ranks
    double last = 0;
    if (reshard_program_runner_run(runner, compute, &last, &error)) stop(error);
    if (reshard_program_runner_measured(runner, &measured, &error)) stop(error);  // to schedule it again
    // [README c_program end]
    if (last != 6 || reshard_program_runner_most_bytes(runner) > limits.footprint_bytes_max) return 1;
    if (reshard_backend_rank(backend) == 0) printf("after 6 windows the field is %g\n", last);
    reshard_release(measured), reshard_release(runner), reshard_release(scheduled), reshard_release(program);
    reshard_release(backend);
    return MPI_Finalize();
}
