/// \file
/// The planner: two layouts in, the cheapest plan out, judged, with its price.
#ifndef RESHARD_C_PLAN_H
#define RESHARD_C_PLAN_H

#include "reshard/c/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What time is estimated on.
typedef struct reshard_machine reshard_machine;

/// A machine of some size: `laptop`, `dgx-h100:nodes=N`, `tpu-v5p:AxBxC`, `ethernet:nodes=N,per_node=P`.
/// Errors: syntax, overflow.
int reshard_machine_make(const char* specification, reshard_machine** machine, reshard_error** error);
/// A machine as `reshard calibrate` writes it (docs/machines.md). Errors: syntax, overflow, mesh (levels do not nest).
int reshard_machine_parse(const char* text, reshard_machine** machine, reshard_error** error);
const char* reshard_machine_text(const reshard_machine* machine);  ///< what reshard_machine_parse reads; NULL for NULL

/// Plans that were made, found again by what decides them. Any number of threads may ask.
typedef struct reshard_plan_cache reshard_plan_cache;

/// Remembers at most so many plans; the one that was asked for longest ago goes first. Errors: usage (fewer than 1).
int reshard_plan_cache_make(int64_t plans_max, reshard_plan_cache** cache, reshard_error** error);

/// The ranks among which plans run (c/run.h).
typedef struct reshard_backend reshard_backend;

/// What is least.
enum reshard_objective {
    RESHARD_TIME = 0,   ///< estimated time
    RESHARD_BYTES = 1,  ///< bytes that the busiest device receives
    RESHARD_STEPS = 2   ///< steps that communicate
};

/// Which steps a plan may have.
enum reshard_vocabulary {
    RESHARD_ALL = 0,         ///< with the universal exchange
    RESHARD_COLLECTIVES = 1  ///< slice, all_gather, all_to_all, permute and the reductions only
};

/// What a planner is asked for beside the two ends. Bytes are of a device; -1 is no limit.
typedef struct reshard_options {
    size_t size;                     ///< sizeof(reshard_options)
    int32_t objective;               ///< a ::reshard_objective
    int32_t vocabulary;              ///< a ::reshard_vocabulary
    int64_t peak_bytes_max;          ///< the largest tile on the way
    int64_t footprint_bytes_max;     ///< source, target, workspace and staging; of a list all that is held at once
    int64_t staging_bytes;           ///< of that limit, kept free for the backend
    int32_t donate;                  ///< 1: the memory of the source takes tiles between steps
    int32_t one_exchange;            ///< 1: all ranks reach each other's memory; of `backend` where one is given
    int32_t reserved;                ///< 0
    int32_t steps_overlap;           ///< 1: steps of two pieces go on at once; of `backend` where one is given
    int64_t ranks_per_node;          ///< that reach each other's memory; of `backend` where one is given
    const reshard_backend* backend;  ///< that is to run the plan; NULL: each step runs as a step
    const reshard_machine* machine;  ///< NULL: laptop
    reshard_plan_cache* cache;       ///< is asked first; NULL: none
    const char* without;             ///< rules that are not asked, with commas between them; NULL: none
} reshard_options;

/// The defaults; a NULL in place of options means the same.
#define RESHARD_OPTIONS_INITIALIZER \
    { sizeof(reshard_options), RESHARD_TIME, RESHARD_ALL, -1, -1, 0, 0, 0, 0, 0, 1, NULL, NULL, NULL, NULL }

/// A way from one layout to another that the judge has passed, and how it runs.
typedef struct reshard_plan reshard_plan;

/// The cheapest plan found: the same on every rank, run and compiler. Errors: mismatch (different arrays), infeasible
/// (a limit is below what any plan needs, and what that is), syntax (a rule of no known name), usage.
int reshard_plan_make(const reshard_layout* source, const reshard_layout* target, const reshard_options* options,
                      reshard_plan** plan, reshard_error** error);
/// A plan that somebody wrote down, judged. Errors: syntax, and whatever the judge says: step, plan, infeasible.
int reshard_plan_parse(const char* text, const reshard_options* options, reshard_plan** plan, reshard_error** error);
const char* reshard_plan_text(const reshard_plan* plan);  ///< what reshard_plan_parse reads; NULL for NULL
/// The two ends, handles of the caller's; either may be NULL.
int reshard_plan_ends(const reshard_plan* plan, reshard_layout** source, reshard_layout** target,
                      reshard_error** error);
/// The plan as a table for people: a line a step, and what it comes to.
int reshard_plan_table(const reshard_plan* plan, reshard_text** text, reshard_error** error);
/// The same beside everything else that was considered, and why each of those lost. Plans again, so it takes longer.
/// Errors: usage (a plan that was written by hand has lost to nothing).
int reshard_plan_explain(const reshard_plan* plan, reshard_text** text, reshard_error** error);
/// 64-bit hash of what decides what the ranks do, equal on every machine; 0 for NULL.
uint64_t reshard_plan_fingerprint(const reshard_plan* plan);

/// How a plan runs.
enum reshard_execution {
    RESHARD_AS_STEPS = 0,         ///< one step after the other
    RESHARD_AS_ONE_EXCHANGE = 1,  ///< one exchange from source to target
    RESHARD_SPLIT = 2             ///< all steps for one piece after the other
};

/// What the judge derived. Bytes; maxima over devices.
typedef struct reshard_verdict {
    size_t size;                        ///< sizeof(reshard_verdict)
    int64_t steps;                      ///< of the plan; 0 when both ends hold the same
    int64_t peak_bytes;                 ///< the largest tile on the path
    int64_t floor_bytes;                ///< the larger of the two ends: no plan has a lower peak
    int64_t footprint_bytes;            ///< source + target + workspace
    int64_t received_bytes;             ///< sum over steps of the busiest receiver's bytes
    int64_t received_bytes_max_device;  ///< the busiest receiver's total
    int64_t sent_bytes_max_device;      ///< at most this is sent by one device
    int64_t lower_bound_bytes;          ///< no protocol's busiest receiver gets less
    int64_t picoseconds;                ///< estimated; of a plan that was parsed too
    int64_t states;                     ///< states that the search expanded
    int32_t optimal;                    ///< 1: received_bytes_max_device == lower_bound_bytes
    int32_t search_complete;            ///< 1: nothing better for this objective exists in this vocabulary
    int32_t execution;                  ///< a ::reshard_execution
    int32_t reserved;                   ///< 0
    int64_t pieces;                     ///< of a split run; else 1
} reshard_verdict;

/// To be filled.
#define RESHARD_VERDICT_INITIALIZER \
    { sizeof(reshard_verdict), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Fills `verdict`, whose size says which fields there are.
int reshard_plan_verdict(const reshard_plan* plan, reshard_verdict* verdict, reshard_error** error);

/// Many arrays, what each of them moves by, and which of them run together.
typedef struct reshard_list reshard_list;

/// The plan of each pair of layouts, and buckets for all of them, as few as the footprint limit allows. `donate`,
/// `footprint_bytes_max` and `staging_bytes` are the list's, all else is each array's; no cache is asked.
/// Errors: as reshard_plan_make, the array named.
int reshard_list_make(const reshard_layout* const* sources, const reshard_layout* const* targets, int64_t count,
                      const reshard_options* options, reshard_list** list, reshard_error** error);
/// The plan of array number `array`, a handle of the caller's. Errors: usage (no such array).
int reshard_list_plan(const reshard_list* list, int64_t array, reshard_plan** plan, reshard_error** error);

/// What the judge derived of a list. Bytes, of full tiles; the most that any device holds.
typedef struct reshard_list_verdict {
    size_t size;                ///< sizeof(reshard_list_verdict)
    int64_t arrays;             ///< how many
    int64_t buckets;            ///< how many; the arrays of one run together
    int64_t footprint_bytes;    ///< the most that is held while a bucket runs, without staging
    int64_t ends_bytes;         ///< the same without workspaces
    int64_t floor_bytes;        ///< no order and no plans let every device do with less
    int64_t messages;           ///< that one device receives, over all steps of all arrays; at most
    int64_t received_bytes;     ///< by the busiest receiver, over all arrays
    int64_t picoseconds;        ///< estimated: bucket by bucket, the device that is busy longest
    int64_t sent_bytes;         ///< by the busiest sender, over all arrays
    int64_t lower_bound_bytes;  ///< no protocol lets every device receive less
    int32_t received_exact;     ///< 0: there was too much to count, and no device receives more
    int32_t sent_exact;         ///< 0: no device sends more
} reshard_list_verdict;

/// To be filled.
#define RESHARD_LIST_VERDICT_INITIALIZER \
    { sizeof(reshard_list_verdict), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Fills `verdict`, whose size says which fields there are.
int reshard_list_judge(const reshard_list* list, reshard_list_verdict* verdict, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
