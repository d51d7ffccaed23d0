// Programs from C: schedules, scripts, and a run on ranks of this process whose tasks are written here.
#include "reshard/c/program.h"

#include "expect.h"

enum { ranks = 4, rows = 8, columns = 6 };

/// Buckets go from two trainers, in rows, to two engines, in columns. The engines keep what they load.
static const char lines[] =
    "{\"limit\": 384, \"mesh\": \"t=2[0,1]\"}\n"
    "{\"array\": \"scale\", \"mesh\": \"t=2[0,1]\", \"layout\": \"i32[1]\"}\n"
    "{\"task\": \"pack0\", \"mesh\": \"t=2[0,1]\", \"seconds\": 0.004, \"uses\": {\"scale\": \"i32[1]\"}, "
    "\"makes\": {\"w0\": \"i32[8@t,6]\"}}\n"
    "{\"task\": \"load0\", \"mesh\": \"r=2[2,3]\", \"seconds\": 0.003, \"uses\": {\"w0\": \"i32[8,6@r]\"}, "
    "\"makes\": {\"v0\": {\"layout\": \"i32[8,6@r]\", \"kept\": true}}}\n"
    "{\"task\": \"pack1\", \"mesh\": \"t=2[0,1]\", \"seconds\": 0.004, \"uses\": {\"scale\": \"i32[1]\"}, "
    "\"makes\": {\"w1\": \"i32[8@t,6]\"}}\n"
    "{\"task\": \"load1\", \"mesh\": \"r=2[2,3]\", \"seconds\": 0.003, \"uses\": {\"w1\": \"i32[8,6@r]\"}, "
    "\"makes\": {\"v1\": {\"layout\": \"i32[8,6@r]\", \"kept\": true}}}\n";

static reshard_scheduled* scheduled_of(const char* text) {
    reshard_program* program = NULL;
    SUCCEEDS(reshard_program_parse(text, &program, &error));
    reshard_scheduled* scheduled = NULL;
    SUCCEEDS(reshard_program_schedule(program, NULL, &scheduled, &error));
    reshard_release(program);
    return scheduled;
}

static void schedules(void) {
    reshard_scheduled* scheduled = scheduled_of(lines);
    const int64_t end = reshard_scheduled_picoseconds(scheduled);
    EXPECT(end >= 11000000000 && end < 12000000000);
    EXPECT(reshard_scheduled_bound_picoseconds(scheduled) <= end);
    EXPECT(strcmp(reshard_scheduled_stop(scheduled), "bound") == 0 ||
           strcmp(reshard_scheduled_stop(scheduled), "exhausted") == 0);
    EXPECT(reshard_scheduled_peak_bytes(scheduled) == 384 / 4 * 3);
    reshard_text* text = NULL;
    SUCCEEDS(reshard_scheduled_table(scheduled, &text, &error));
    EXPECT(strstr(reshard_text_chars(text), "compute 0") != NULL);
    reshard_release(text);
    SUCCEEDS(reshard_scheduled_script(scheduled, 2, &text, &error));
    EXPECT(strstr(reshard_text_chars(text), "\"task\":\"load1\"") != NULL);
    EXPECT(strstr(reshard_text_chars(text), "pack0") == NULL);
    reshard_release(text);
    FAILS(RESHARD_USAGE, "device 9", reshard_scheduled_script(scheduled, 9, &text, &error));
    EXPECT(text == NULL);
    reshard_release(scheduled);
}

static void refuses(void) {
    reshard_program* program = NULL;
    FAILS(RESHARD_SYNTAX, "line 2", reshard_program_parse("\n{\"limit\": 1}\n", &program, &error));
    EXPECT(program == NULL);
    FAILS(RESHARD_SYNTAX, "stages", reshard_program_generate("1f1b rings=2", &program, &error));
    FAILS(RESHARD_USAGE, "`lines`", reshard_program_parse(NULL, &program, &error));
    SUCCEEDS(reshard_program_generate("refit buckets=2 bucket=1KiB pack=1ms load=1ms", &program, &error));
    reshard_scheduled* scheduled = NULL;
    reshard_schedule_options options = RESHARD_SCHEDULE_OPTIONS_INITIALIZER;
    options.footprint_bytes_max = 100;
    FAILS(RESHARD_INFEASIBLE, "its limit is 100", reshard_program_schedule(program, &options, &scheduled, &error));
    options.footprint_bytes_max = -2;
    FAILS(RESHARD_USAGE, "footprint_bytes_max", reshard_program_schedule(program, &options, &scheduled, &error));
    options.size = 8;
    FAILS(RESHARD_USAGE, "struct reshard_schedule_options",
          reshard_program_schedule(program, &options, &scheduled, &error));
    reshard_text* text = NULL;
    SUCCEEDS(reshard_program_lines(program, &text, &error));
    reshard_program* again = NULL;
    SUCCEEDS(reshard_program_parse(reshard_text_chars(text), &again, &error));
    reshard_text* same = NULL;
    SUCCEEDS(reshard_program_lines(again, &same, &error));
    EXPECT(strcmp(reshard_text_chars(text), reshard_text_chars(same)) == 0);
    reshard_release(same);
    reshard_release(again);
    reshard_release(text);
    reshard_release(program);
    EXPECT(reshard_scheduled_picoseconds(NULL) == -1 && reshard_scheduled_stop(NULL) == NULL);
    EXPECT(reshard_program_runner_most_bytes(NULL) == -1);
}

/// The number of an element of the whole array, on a trainer (rows) or on an engine (columns).
static int number(int64_t rank, int i) {
    if (rank < 2) return (int)rank * rows / 2 * columns + i;
    return i / (columns / 2) * columns + (int)(rank - 2) * columns / 2 + i % (columns / 2);
}

typedef struct Counts {
    int tasks;
    const char* failing;  ///< a task that returns 7, or NULL
} Counts;

/// A trainer writes scale x number + bucket; an engine keeps what it gets.
static int computes(const reshard_task_run* run, void* context) {
    Counts* const counts = context;
    SUCCEEDS(reshard_task_progress(run, &error));
    if (counts->failing != NULL && strcmp(run->name, counts->failing) == 0) return 7;
    ++counts->tasks;
    EXPECT(run->size == sizeof *run && run->uses == 1 && run->makes == 1);
    const int* const used = run->used[0];
    int* const made = run->made[0];
    EXPECT(run->made_bytes[0] == (int64_t)(rows * columns / 2 * sizeof(int)));
    for (int i = 0; i < rows * columns / 2; ++i)
        made[i] = run->rank < 2 ? used[0] * number(run->rank, i) + run->name[4] : used[i];
    return 0;
}

/// Starts all ranks, and then waits for each: one thread runs them all. The first error that a rank returns.
static int run_all(reshard_program_runner** runners, Counts* counts, reshard_error** why) {
    reshard_ticket* tickets[ranks] = {NULL};
    int code = RESHARD_OK;
    for (int r = 0; r < ranks; ++r)
        SUCCEEDS(reshard_program_runner_start(runners[r], computes, counts, &tickets[r], &error));
    for (int done = 0; done < ranks && code == RESHARD_OK;) {
        done = 0;
        for (int r = 0; r < ranks && code == RESHARD_OK; ++r) {
            int ended = 0;
            code = reshard_ticket_test(tickets[r], &ended, why);
            done += ended;
        }
    }
    for (int r = 0; r < ranks; ++r) reshard_release(tickets[r]);
    return code;
}

static void runs(void) {
    reshard_scheduled* scheduled = scheduled_of(lines);
    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    reshard_backend* backends[ranks] = {NULL};
    reshard_program_runner* runners[ranks] = {NULL};
    for (int r = 0; r < ranks; ++r) SUCCEEDS(reshard_local_backend(world, r, &backends[r], &error));
    for (int r = 0; r < ranks; ++r) SUCCEEDS(reshard_program_runner_make(backends[r], scheduled, &runners[r], &error));
    for (int round = 1; round <= 2; ++round) {
        for (int r = 0; r < ranks; ++r) {
            void* address = NULL;
            int64_t bytes = 0;
            SUCCEEDS(reshard_program_runner_tile(runners[r], "scale", &address, &bytes, &error));
            EXPECT((address != NULL) == (r < 2));
            if (address != NULL) *(int*)address = round;
        }
        Counts counts = {0, NULL};
        EXPECT(run_all(runners, &counts, NULL) == RESHARD_OK && counts.tasks == 8);
        for (int r = 2; r < ranks; ++r)
            for (int bucket = 0; bucket < 2; ++bucket) {
                void* address = NULL;
                int64_t bytes = 0;
                SUCCEEDS(reshard_program_runner_tile(runners[r], bucket == 0 ? "v0" : "v1", &address, &bytes, &error));
                const int* const kept = address;
                EXPECT(kept != NULL && bytes == (int64_t)(rows * columns / 2 * sizeof(int)));
                for (int i = 0; kept != NULL && i < rows * columns / 2; ++i)
                    EXPECT(kept[i] == round * number(r, i) + '0' + bucket);
            }
    }
    EXPECT(reshard_program_runner_most_bytes(runners[0]) > 0);
    reshard_program* measured = NULL;
    SUCCEEDS(reshard_program_runner_measured(runners[3], &measured, &error));
    reshard_scheduled* again = NULL;
    SUCCEEDS(reshard_program_schedule(measured, NULL, &again, &error));
    EXPECT(reshard_scheduled_picoseconds(again) > 0);
    reshard_release(again);
    reshard_release(measured);
    void* address = NULL;
    int64_t bytes = 0;
    FAILS(RESHARD_USAGE, "w0", reshard_program_runner_tile(runners[0], "w0", &address, &bytes, &error));
    SUCCEEDS(reshard_program_runner_free_kept(runners[2], &error));
    SUCCEEDS(reshard_program_runner_tile(runners[2], "v0", &address, &bytes, &error));
    EXPECT(address == NULL && bytes == 0);
    for (int r = 0; r < ranks; ++r) {
        SUCCEEDS(reshard_program_runner_tile(runners[r], "scale", &address, &bytes, &error));
        if (address != NULL) *(int*)address = 1;
    }
    Counts counts = {0, "pack1"};
    reshard_error* why = NULL;
    EXPECT(run_all(runners, &counts, &why) != RESHARD_OK);
    EXPECT(strstr(reshard_error_message(why), "pack1") != NULL && strstr(reshard_error_message(why), "7") != NULL);
    reshard_release(why);
    for (int r = 0; r < ranks; ++r) {
        reshard_release(runners[r]);
        reshard_release(backends[r]);
    }
    reshard_release(world);
    reshard_release(scheduled);
}

int main(void) {
    schedules();
    refuses();
    runs();
    return failures == 0 ? 0 : 1;
}
