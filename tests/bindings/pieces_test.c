// A run in pieces from C. Sources are offered as they are made, and pieces that have arrived are used before the rest.
#include "problem.h"

/// The target has all rows. The rows of a piece are complete once it has arrived, whatever the state of the others.
int main(void) {
    enum { ranks = 4, count = 3, rows = 6, columns = 5 };
    const int64_t ends[count] = {1, 3, rows}, order[count] = {2, 0, 1};
    problem one = problem_of("x=4", "f32[24@x,5]", "f32[24,5]", ranks);
    reshard_local* world = NULL;
    reshard_plan* plan = NULL;
    reshard_backend* backends[ranks];
    reshard_executor* made[ranks];
    reshard_bound* bound[ranks];
    reshard_ticket* tickets[ranks];
    SUCCEEDS(reshard_local_make(ranks, NULL, &world, &error));
    SUCCEEDS(reshard_plan_make(one.source, one.target, NULL, &plan, &error));
    tiles late = tiles_of(one.source, ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
        SUCCEEDS(reshard_local_backend(world, rank, &backends[rank], &error));
        SUCCEEDS(reshard_executor_make_as(backends[rank], plan, "split dim 0 block 6 ends 1,3,6 order 2,0,1 overlapped",
                                          NULL, NULL, &made[rank], &error));
        EXPECT(reshard_executor_arrivals(made[rank]) == count);
        reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
        buffers.source = late.data[rank], buffers.source_bytes = late.bytes[rank];
        buffers.target = one.out.data[rank], buffers.target_bytes = one.out.bytes[rank];
        SUCCEEDS(reshard_executor_bind(made[rank], &buffers, 1, &bound[rank], &error));
    }
    for (int again = 0; again < 2; ++again) {
        wipe(&late);
        wipe(&one.out);
        for (int64_t rank = 0; rank < ranks; ++rank)
            SUCCEEDS(reshard_bound_start_withheld(bound[rank], &tickets[rank], &error));
        FAILS(RESHARD_USAGE, "piece 2 has not been offered", reshard_ticket_wait(tickets[0], &error));
        FAILS(RESHARD_USAGE, "3", reshard_ticket_offer(tickets[0], count, &error));
        FAILS(RESHARD_USAGE, "", reshard_ticket_offer(tickets[0], -1, &error));
        for (int64_t place = 0; place < count; ++place) {
            const int64_t piece = order[place], begin = piece == 0 ? 0 : ends[piece - 1];
            for (int64_t rank = 0; rank < ranks; ++rank) {
                const int64_t at = begin * columns * 4, bytes = (ends[piece] - begin) * columns * 4;
                memcpy((char*)late.data[rank] + at, (char*)one.in.data[rank] + at, (size_t)bytes);
                SUCCEEDS(reshard_ticket_offer(tickets[rank], piece, &error));
                FAILS(RESHARD_USAGE, "offered before", reshard_ticket_offer(tickets[rank], piece, &error));
            }
            int64_t least = 0, arrived = 0;
            while (least <= place) {
                least = count;
                for (int64_t rank = 0; rank < ranks; ++rank) {
                    SUCCEEDS(reshard_ticket_arrived(tickets[rank], &arrived, &error));
                    if (arrived < least) least = arrived;
                }
            }
            for (int64_t rank = 0; rank < ranks; ++rank)
                for (int64_t shard = 0; shard < ranks; ++shard) {
                    const int64_t at = (shard * rows + begin) * columns * 4;
                    EXPECT(memcmp((char*)one.out.data[rank] + at, (char*)one.wanted.data[rank] + at,
                                  (size_t)((ends[piece] - begin) * columns * 4)) == 0);
                }
        }
        for (int64_t rank = 0; rank < ranks; ++rank) {
            SUCCEEDS(reshard_ticket_wait(tickets[rank], &error));
            reshard_release(tickets[rank]);
        }
        EXPECT(same(&one.out, &one.wanted));
    }
    reshard_executor* none = NULL;
    FAILS(RESHARD_SYNTAX, "expected ends",
          reshard_executor_make_as(backends[0], plan, "split dim 0 block 6", NULL, NULL, &none, &error));
    FAILS(RESHARD_PLAN, "the ends of pieces",
          reshard_executor_make_as(backends[0], plan, "split dim 0 block 6 ends 7", NULL, NULL, &none, &error));
    FAILS(RESHARD_USAGE, "the text of an execution",
          reshard_executor_make_as(backends[0], plan, NULL, NULL, NULL, &none, &error));
    for (int64_t rank = 0; rank < ranks; ++rank) {
        const void* all[] = {bound[rank], made[rank], backends[rank]};
        for (int i = 0; i < 3; ++i) reshard_release(all[i]);
    }
    reshard_release(plan);
    reshard_release(world);
    free_tiles(&late);
    free_problem(&one);
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
