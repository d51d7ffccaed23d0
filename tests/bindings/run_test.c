// Moves from C between ranks of this process: in one call, by executors, of lists, and by rows.
#include <stdlib.h>

#include "problem.h"

/// A transport that does not use the library.
static void carry_out(const reshard_row* rows, int64_t count, int64_t sender, const problem* one) {
    for (int64_t k = 0; k < count; ++k)
        for (int64_t run = 0; run < rows[k].runs; ++run)
            memcpy((char*)one->out.data[rows[k].peer] + rows[k].target_offset + run * rows[k].target_stride,
                   (const char*)one->in.data[sender] + rows[k].source_offset + run * rows[k].source_stride,
                   (size_t)rows[k].run_bytes);
}

static void moves_and_rows(void) {
    static const char* const pairs[][3] = {
        {"x=2,y=3", "f32[13@x,7]", "f32[13@y,7]"},
        {"x=2,y=3", "f32[13@x,7@y]", "f32[13,7@(y,x)]"},
        {"x=2,y=3", "i32[13@x[9,4],7]", "i32[13,7@y[0,5,2]]"},
        {"x=4", "f32[10@x[balanced],3]", "f32[10,3@x]"},
        {"x=6[5,3,1,0,2,4]", "u32[24@x,8]", "u32[24,8@x]"},
        {"x=8", "f32[5@x,3]", "f32[5,3@x]"},
        {"x=4", "f32[16,16]", "f32[16@x,16]"},
        {"x=4", "f32[0@x,4]", "f32[0,4@x]"},
    };
    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks_max, NULL, &world, &error));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        problem one = problem_of(pairs[i][0], pairs[i][1], pairs[i][2], ranks_max);
        for (int again = 0; again < 2; ++again) {
            wipe(&one.out);
            SUCCEEDS(reshard_local_redistribute(world, one.source, one.target, (const void* const*)one.in.data,
                                                one.in.bytes, one.out.data, one.out.bytes, &error));
            EXPECT(same(&one.out, &one.wanted));
        }
        wipe(&one.out);
        for (int64_t rank = 0; rank < ranks_max; ++rank) {
            reshard_rows* rows = NULL;
            SUCCEEDS(reshard_schedule_rows(one.source, one.target, rank, RESHARD_SEND, &rows, &error));
            carry_out(reshard_rows_data(rows), reshard_rows_count(rows), rank, &one);
            reshard_release(rows);
        }
        EXPECT(same(&one.out, &one.wanted));
        free_problem(&one);
    }
    problem one = problem_of("x=8", "f32[64@x,4]", "f32[64,4@x]", ranks_max);
    one.in.bytes[3] -= 4;
    FAILS(RESHARD_MISMATCH, "rank 3 holds 32 elements",
          reshard_local_redistribute(world, one.source, one.target, (const void* const*)one.in.data, one.in.bytes,
                                     one.out.data, one.out.bytes, &error));
    FAILS(RESHARD_USAGE, "an entry for each rank",
          reshard_local_redistribute(world, one.source, one.target, NULL, one.in.bytes, one.out.data, one.out.bytes,
                                     &error));
    free_problem(&one);
    reshard_release(world);
}

static void row_schedules(void) {
    const reshard_layout* sources[] = {layout_of("x=4", "f32[64@x,64]"), layout_of("x=4", "bf16[64,64]")};
    const reshard_layout* targets[] = {layout_of("x=4", "f32[64,64@x]"), layout_of("x=4", "bf16[64@x,64]")};
    reshard_row_schedule* schedule = NULL;
    SUCCEEDS(reshard_row_schedule_make(sources, targets, 2, &schedule, &error));
    EXPECT(reshard_row_schedule_ranks(schedule) == 4 && reshard_row_schedule_arrays(schedule) == 2);
    int64_t sent = 0, received = 0;
    for (int64_t rank = 0; rank < 4; ++rank) {
        reshard_rows* rows = NULL;
        SUCCEEDS(reshard_row_schedule_rows(schedule, rank, RESHARD_SEND, &rows, &error));
        for (int64_t k = 0; k < reshard_rows_count(rows); ++k) {
            const reshard_row* row = reshard_rows_data(rows) + k;
            sent += row->run_bytes * row->runs;
        }
        reshard_release(rows);
        SUCCEEDS(reshard_row_schedule_rows(schedule, rank, RESHARD_RECEIVE, &rows, &error));
        for (int64_t k = 0; k < reshard_rows_count(rows); ++k) {
            const reshard_row* row = reshard_rows_data(rows) + k;
            received += row->run_bytes * row->runs;
        }
        reshard_release(rows);
    }
    EXPECT(sent == received && sent == 64 * 64 * 4 + 64 * 64 * 2);
    reshard_rows* rows = NULL;
    FAILS(RESHARD_USAGE, "`side` is 2", reshard_row_schedule_rows(schedule, 0, 2, &rows, &error));
    FAILS(RESHARD_USAGE, "`rank` is -1", reshard_row_schedule_rows(schedule, -1, 0, &rows, &error));
    reshard_layout* sum = layout_of("x=4", "f32[64,64]{U:x}");
    FAILS(RESHARD_UNSUPPORTED, "", reshard_schedule_rows(sum, targets[0], 0, RESHARD_SEND, &rows, &error));
    EXPECT(reshard_rows_count(NULL) == -1 && reshard_rows_data(NULL) == NULL);
    const void* all[] = {schedule, sum, sources[0], sources[1], targets[0], targets[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
}

/// Packs for every peer, unpacks there, and compares; the source lies column by column.
static void packed_rows(void) {
    enum { ranks = 4, rows_max = 64 };
    problem one = problem_of("x=4", "i32[64@x,40]", "i32[64,40@x]", ranks);
    const reshard_layout *source = one.source, *target = one.target;
    reshard_row_schedule* schedule = NULL;
    SUCCEEDS(reshard_row_schedule_make(&source, &target, 1, &schedule, &error));
    uint64_t bases[ranks];
    for (int64_t rank = 0; rank < ranks; ++rank) bases[rank] = (uint64_t)(uintptr_t)one.out.data[rank];
    for (int64_t rank = 0; rank < ranks; ++rank) {
        reshard_rows* rows = NULL;
        SUCCEEDS(reshard_row_schedule_rows(schedule, rank, RESHARD_SEND, &rows, &error));
        const reshard_row* all = reshard_rows_data(rows);
        const int64_t count = reshard_rows_count(rows);
        reshard_strided_memory local[rows_max], remote[rows_max];
        const uint64_t own = (uint64_t)(uintptr_t)one.in.data[rank];
        EXPECT(0 < count && count <= rows_max);
        SUCCEEDS(reshard_rows_address(all, count, RESHARD_SEND, &own, 3, bases, NULL, 1, ranks, local, remote, &error));
        for (int64_t k = 0; k < count; ++k) {
            EXPECT(local[k].address == own + (uint64_t)all[k].source_offset && local[k].device == 3);
            EXPECT(remote[k].address == bases[all[k].peer] + (uint64_t)all[k].target_offset && remote[k].device == 0);
            EXPECT(local[k].count == (uint64_t)all[k].runs && remote[k].bytes == (uint64_t)all[k].run_bytes);
            const void* from = one.in.data[rank];
            void* to = one.out.data[all[k].peer];
            int64_t bytes = 0;
            SUCCEEDS(reshard_rows_bytes(&all[k], 1, &bytes, &error));
            void* staging = malloc((size_t)bytes);
            SUCCEEDS(reshard_rows_pack(&all[k], 1, &from, &one.in.bytes[rank], 1, staging, bytes, 2, &error));
            SUCCEEDS(reshard_rows_unpack(&all[k], 1, staging, bytes, &to, &one.out.bytes[all[k].peer], 1, 2, &error));
            FAILS(RESHARD_MISMATCH, "the packed buffer",
                  reshard_rows_pack(&all[k], 1, &from, &one.in.bytes[rank], 1, staging, bytes - 1, 1, &error));
            free(staging);
        }
        FAILS(RESHARD_MISMATCH, "peer",
              reshard_rows_address(all, count, RESHARD_SEND, &own, 0, bases, NULL, 1, 0, local, remote, &error));
        reshard_release(rows);
    }
    EXPECT(same(&one.out, &one.wanted));
    reshard_release(schedule);
    const char* const storages[] = {"order 1,0"};
    SUCCEEDS(reshard_row_schedule_make_stored(&source, &target, storages, NULL, 1, &schedule, &error));
    reshard_nested_rows* nested = NULL;
    SUCCEEDS(reshard_row_schedule_nested_rows(schedule, 0, RESHARD_SEND, &nested, &error));
    int64_t bytes = 0;
    for (int64_t k = 0; k < reshard_nested_rows_count(nested); ++k) {
        const reshard_nested_row* row = reshard_nested_rows_data(nested) + k;
        EXPECT(row->run_bytes == 4);
        bytes += row->run_bytes * row->runs[0] * row->runs[1] * row->runs[2] * row->runs[3];
    }
    EXPECT(bytes == one.in.bytes[0]);
    reshard_release(nested);
    const char* const wrong[] = {"order 1,1"};
    reshard_row_schedule* none = NULL;
    FAILS(RESHARD_MISMATCH, "each of the 2 dimensions once",
          reshard_row_schedule_make_stored(&source, &target, NULL, wrong, 1, &none, &error));
    reshard_release(schedule);
    free_problem(&one);
}

/// Executors of all ranks in a single thread. The objects they were made from are released first.
static void executors(void) {
    enum { ranks = 4 };
    problem one = problem_of("x=4", "f32[12@x,9]", "f32[12,9@x]", ranks);
    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    reshard_plan* plan = NULL;
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    options.vocabulary = RESHARD_COLLECTIVES;
    reshard_backend* backends[ranks];
    reshard_executor* made[ranks];
    reshard_bound* bound[ranks];
    reshard_ticket* tickets[ranks];
    SUCCEEDS(reshard_plan_make(one.source, one.target, &options, &plan, &error));
    for (int64_t rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        EXPECT(reshard_backend_rank(backends[rank]) == rank && reshard_backend_size(backends[rank]) == ranks);
        EXPECT(strcmp(reshard_backend_name(backends[rank]), "local") == 0);
        // The target lies in a wider buffer, column by column.
        const int64_t strides[2] = {1, 20};
        reshard_storage storage = RESHARD_STORAGE_INITIALIZER;
        storage.offset = 5, storage.strides = strides, storage.dims = 2;
        SUCCEEDS(reshard_executor_make(backends[rank], plan, NULL, &storage, &made[rank], &error));
        storage.dims = 1;
        reshard_executor* none = NULL;
        if (rank == ranks - 1)  // the other ranks would wait
            FAILS(RESHARD_MISMATCH, "has 2 dimensions",
                  reshard_executor_make(backends[rank], plan, NULL, &storage, &none, &error));
    }
    reshard_release(plan);
    reshard_release(world);
    static int32_t wide[ranks][100];
    memset(wide, 0xff, sizeof wide);
    for (int64_t rank = 0; rank < ranks; ++rank) {
        reshard_sizes sizes = RESHARD_SIZES_INITIALIZER;
        SUCCEEDS(reshard_executor_sizes(made[rank], &sizes, &error));
        EXPECT(sizes.arrays == 1 && sizes.buckets == 1 && sizes.source_bytes == one.in.bytes[rank]);
        EXPECT(sizes.target_bytes <= (int64_t)sizeof wide[rank] && sizes.footprint_bytes > 0);
        reshard_text* how = NULL;
        SUCCEEDS(reshard_executor_describe(made[rank], &how, &error));
        reshard_release(how);
        reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
        buffers.source = one.in.data[rank], buffers.source_bytes = one.in.bytes[rank];
        buffers.target = wide[rank], buffers.target_bytes = sizeof wide[rank];
        FAILS(RESHARD_USAGE, "no bucket 1 of 1",
              reshard_executor_bind_bucket(made[rank], 1, &buffers, 1, &bound[rank], &error));
        SUCCEEDS(reshard_executor_bind(made[rank], &buffers, 1, &bound[rank], &error));
        buffers.size = 1;
        reshard_bound* none = NULL;
        FAILS(RESHARD_USAGE, "struct reshard_buffers of 1 bytes",
              reshard_executor_bind(made[rank], &buffers, 1, &none, &error));
        reshard_release(made[rank]);
        reshard_release(backends[rank]);
    }
    for (int again = 0; again < 2; ++again) {
        for (int64_t rank = 0; rank < ranks; ++rank) SUCCEEDS(reshard_bound_start(bound[rank], &tickets[rank], &error));
        for (int64_t rank = 0; rank < ranks; ++rank) {
            int done = -1;
            SUCCEEDS(reshard_ticket_test(tickets[rank], &done, &error));
            EXPECT(done == 0 || done == 1);
            SUCCEEDS(reshard_ticket_wait_for(tickets[rank], 1000000, &done, &error));
            EXPECT(done == 1);
            SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
            reshard_release(tickets[rank]);
        }
    }
    reshard_ticket* none = NULL;
    FAILS(RESHARD_UNSUPPORTED, "", reshard_bound_start_on(bound[0], &failures, &none, &error));
    int wrong = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
        const int32_t* wanted = one.wanted.data[rank];
        const int64_t columns = one.wanted.bytes[rank] / 4 / 12;
        for (int64_t i = 0; i < 12; ++i)
            for (int64_t j = 0; j < columns; ++j) wrong += wide[rank][5 + i + 20 * j] != wanted[i * columns + j];
        wrong += wide[rank][4] != -1 || wide[rank][17] != -1;
        reshard_release(bound[rank]);
    }
    EXPECT(wrong == 0);
    free_problem(&one);
}

/// Two arrays in two buckets, in registered memory.
static void lists(void) {
    enum { ranks = 2 };
    problem pair[2] = {problem_of("x=2", "f32[64@x,32]", "f32[64,32@x]", ranks),
                       problem_of("x=2", "f32[32@x,32]", "f32[32,32@x]", ranks)};
    const reshard_layout* sources[] = {pair[0].source, pair[1].source};
    const reshard_layout* targets[] = {pair[0].target, pair[1].target};
    reshard_list* list = NULL;
    SUCCEEDS(reshard_list_make(sources, targets, 2, NULL, &list, &error));
    reshard_local* world = NULL;
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    reshard_backend* backends[ranks];
    reshard_executor* made[ranks];
    reshard_bound* bound[ranks];
    reshard_ticket* tickets[ranks];
    reshard_memory* memory[ranks][2];
    for (int64_t rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_executor_make_list(backends[rank], list, NULL, NULL, &made[rank], &error));
        FAILS(RESHARD_USAGE, "of a list", reshard_executor_run(made[rank], NULL, 0, NULL, 0, &error));
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
        reshard_buffers buffers[2] = {RESHARD_BUFFERS_INITIALIZER, RESHARD_BUFFERS_INITIALIZER};
        for (int i = 0; i < 2; ++i) {
            const int64_t bytes = pair[i].out.bytes[rank];
            SUCCEEDS(reshard_memory_allocate(backends[rank], bytes, &memory[rank][i], &error));
            EXPECT(reshard_memory_bytes(memory[rank][i]) >= bytes && reshard_memory_address(memory[rank][i]) != NULL);
            buffers[i].source = pair[i].in.data[rank], buffers[i].source_bytes = pair[i].in.bytes[rank];
            buffers[i].target = reshard_memory_address(memory[rank][i]), buffers[i].target_bytes = bytes;
        }
        FAILS(RESHARD_MISMATCH, "", reshard_executor_bind(made[rank], buffers, 1, &bound[rank], &error));
        SUCCEEDS(reshard_executor_bind(made[rank], buffers, 2, &bound[rank], &error));
        SUCCEEDS(reshard_bound_start(bound[rank], &tickets[rank], &error));
        reshard_release(bound[rank]);  // the ticket keeps it
        reshard_release(made[rank]);
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
        for (int i = 0; i < 2; ++i) {
            EXPECT(memcmp(reshard_memory_address(memory[rank][i]), pair[i].wanted.data[rank],
                          (size_t)pair[i].wanted.bytes[rank]) == 0);
        }
    }
    reshard_release(world);
    reshard_release(list);
    for (int64_t rank = 0; rank < ranks; ++rank) {
        reshard_release(backends[rank]);
        reshard_release(tickets[rank]);
        for (int i = 0; i < 2; ++i) reshard_release(memory[rank][i]);
    }
    for (int i = 0; i < 2; ++i) free_problem(&pair[i]);
}

/// One rank, so that a single thread can make calls that wait.
static void one_rank(void) {
    problem one = problem_of("x=1", "f32[6@x,5]", "f32[6,5@x]", 1);
    reshard_local* world = NULL;
    reshard_local_options options = RESHARD_LOCAL_OPTIONS_INITIALIZER;
    options.timeout_ms = 1000;
    SUCCEEDS(reshard_local_make(1, &options, &world, &error));
    reshard_backend* backend = NULL;
    FAILS(RESHARD_USAGE, "no rank 1 in a world of 1", reshard_local_backend(world, 1, &backend, &error));
    SUCCEEDS(reshard_local_backend(world, 0, &backend, &error));
    SUCCEEDS(reshard_redistribute(backend, one.source, one.target, one.in.data[0], one.in.bytes[0], one.out.data[0],
                                  one.out.bytes[0], &error));
    EXPECT(same(&one.out, &one.wanted));
    wipe(&one.out);
    reshard_ticket* ticket = NULL;
    SUCCEEDS(reshard_redistribute_start(backend, one.source, one.target, one.in.data[0], one.in.bytes[0],
                                        one.out.data[0], one.out.bytes[0], &ticket, &error));
    SUCCEEDS(reshard_ticket_wait(ticket, &error));
    reshard_release(ticket);
    EXPECT(same(&one.out, &one.wanted));
    SUCCEEDS(reshard_redistribute_clear(backend, &error));
    FAILS(RESHARD_USAGE, "`in` is NULL",
          reshard_redistribute(backend, one.source, one.target, NULL, one.in.bytes[0], one.out.data[0],
                               one.out.bytes[0], &error));
    FAILS(RESHARD_MISMATCH, "overlap",
          reshard_redistribute(backend, one.source, one.target, one.in.data[0], one.in.bytes[0], one.in.data[0],
                               one.in.bytes[0], &error));
    reshard_plan* plan = NULL;
    reshard_executor* executor = NULL;
    reshard_options planned = RESHARD_OPTIONS_INITIALIZER;
    planned.backend = backend, planned.donate = 1;
    SUCCEEDS(reshard_plan_make(one.source, one.target, &planned, &plan, &error));
    SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
    reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
    buffers.donated = one.in.data[0], buffers.source_bytes = one.in.bytes[0];
    buffers.target = one.out.data[0], buffers.target_bytes = one.out.bytes[0];
    reshard_bound* bound = NULL;
    wipe(&one.out);
    SUCCEEDS(reshard_executor_bind(executor, &buffers, 1, &bound, &error));
    SUCCEEDS(reshard_bound_start(bound, &ticket, &error));
    SUCCEEDS(reshard_ticket_wait(ticket, &error));
    EXPECT(same(&one.out, &one.wanted));
    reshard_memory* memory = NULL;
    FAILS(RESHARD_USAGE, "`bytes` is -1", reshard_memory_allocate(backend, -1, &memory, &error));
    // Between ranks of one process, registration does nothing.
    reshard_registration* registered = NULL;
    SUCCEEDS(
        reshard_memory_register(backend, one.out.data[0], one.out.bytes[0], RESHARD_FORK_SHARES, &registered, &error));
    SUCCEEDS(reshard_registration_end(registered, &error));
    FAILS(RESHARD_USAGE, "a registration is needed, a backend was given",
          reshard_registration_end((reshard_registration*)backend, &error));
    const void* all[] = {world, backend, plan, executor, bound, ticket, registered};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
    reshard_registration* none = NULL;
    FAILS(RESHARD_USAGE, "a backend is needed, NULL", reshard_memory_register(NULL, &one, 1, 0, &none, &error));
    FAILS(RESHARD_USAGE, "a registration is needed, NULL", reshard_registration_end(NULL, &error));
    free_problem(&one);
}

/// One rank again: floats become doubles on the way.
static void casts(void) {
    reshard_layout* source = layout_of("x=1", "f32[6@x,5]");
    reshard_layout* target = layout_of("x=1", "f64[6,5@x]");
    reshard_local* world = NULL;
    reshard_backend* backend = NULL;
    SUCCEEDS(reshard_local_make(1, NULL, &world, &error));
    SUCCEEDS(reshard_local_backend(world, 0, &backend, &error));
    reshard_options options = RESHARD_OPTIONS_INITIALIZER;
    reshard_plan* plan = NULL;
    FAILS(RESHARD_MISMATCH, "element types differ: f32 and f64",
          reshard_plan_make(source, target, &options, &plan, &error));
    options.cast = 1;
    SUCCEEDS(reshard_plan_make(source, target, &options, &plan, &error));
    reshard_executor* executor = NULL;
    SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
    float in[30];
    double out[30];
    for (int i = 0; i < 30; ++i) in[i] = (float)i / 7, out[i] = -1;
    SUCCEEDS(reshard_executor_run(executor, in, sizeof in, out, sizeof out, &error));
    for (int i = 0; i < 30; ++i) EXPECT(out[i] == (double)in[i]);
    reshard_release(executor);
    reshard_release(plan);
    reshard_release(backend);
    reshard_release(world);
    reshard_release(source);
    reshard_release(target);
}

static void nothing_given(void) {
    int done = 0;
    void* place = NULL;
    FAILS(RESHARD_USAGE, "a backend is needed", reshard_redistribute(NULL, NULL, NULL, NULL, 0, NULL, 0, &error));
    FAILS(RESHARD_USAGE, "a ticket is needed", reshard_ticket_test(NULL, &done, &error));
    FAILS(RESHARD_USAGE, "a ticket is needed", reshard_ticket_wait(NULL, &error));
    FAILS(RESHARD_USAGE, "a ticket is needed", reshard_ticket_offer(NULL, 0, &error));
    FAILS(RESHARD_USAGE, "a ticket is needed", reshard_ticket_arrived(NULL, NULL, &error));
    EXPECT(reshard_executor_arrivals(NULL) == -1);
    FAILS(RESHARD_USAGE, "an executor is needed", reshard_executor_run(NULL, NULL, 0, NULL, 0, &error));
    FAILS(RESHARD_USAGE, "bound buffers", reshard_bound_start(NULL, (reshard_ticket**)&place, &error));
    FAILS(RESHARD_USAGE, "`ranks` is 0", reshard_local_make(0, NULL, (reshard_local**)&place, &error));
    EXPECT(reshard_backend_name(NULL) == NULL && reshard_backend_rank(NULL) == -1 && reshard_backend_size(NULL) == -1);
    EXPECT(reshard_memory_address(NULL) == NULL && reshard_memory_bytes(NULL) == -1);
}

int main(void) {
    moves_and_rows();
    row_schedules();
    packed_rows();
    executors();
    lists();
    one_rank();
    casts();
    nothing_given();
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
