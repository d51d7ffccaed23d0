// The examples of docs/c.md for planning, loops and rows, in one process.
#include <reshard/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(reshard_error* error) {
    puts(reshard_error_describe(error));
    exit(1);
}

int main(void) {
    // [README c_plan]
    reshard_error* error;
    reshard_mesh* mesh;
    reshard_layout *source, *target;
    if (reshard_mesh_parse("x=2,y=3", &mesh, &error)) stop(error);
    if (reshard_layout_parse(mesh, "f32[12288@x,4096]", &source, &error)) stop(error);
    if (reshard_layout_parse(mesh, "f32[12288@y,4096]", &target, &error)) stop(error);
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.vocabulary = RESHARD_COLLECTIVES;
    reshard_plan* plan;
    if (reshard_plan_make(source, target, &options, &plan, &error)) stop(error);
    reshard_verdict verdict = RESHARD_VERDICT_INITIALIZER;
    if (reshard_plan_verdict(plan, &verdict, &error)) stop(error);
    printf("%s", reshard_plan_text(plan));  // slice, permute, all_gather
    printf("receives %lld bytes a device, peak %lld\n", (long long)verdict.received_bytes_max_device,
           (long long)verdict.peak_bytes);
    // [README c_plan end]

    // [README c_error]
    reshard_layout* wrong;
    if (reshard_layout_parse(mesh, "f32[12288@z,4096]", &wrong, &error)) {
        printf("%s at byte %lld\n", reshard_code_name(reshard_error_code(error)),
               (long long)reshard_error_offset(error));
        puts(reshard_error_describe(error));
        reshard_release(error);
    }
    // [README c_error end]

    // [README c_rows]
    reshard_rows* rows;
    if (reshard_schedule_rows(source, target, 4, RESHARD_SEND, &rows, &error)) stop(error);
    int64_t sent = 0;
    for (int64_t i = 0; i < reshard_rows_count(rows); ++i) {
        const reshard_row* row = reshard_rows_data(rows) + i;
        if (row->peer != 4) sent += row->run_bytes * row->runs;  // those with peer == rank stay here
    }
    printf("rank 4 sends %lld bytes in %lld rows\n", (long long)sent, (long long)reshard_rows_count(rows));
    // [README c_rows end]
    reshard_release(rows), reshard_release(plan);
    reshard_release(source), reshard_release(target), reshard_release(mesh);
    return 0;
}
