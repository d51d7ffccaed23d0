/// \file
/// The planner: two layouts in, the cheapest plan out, judged, with its price.
#ifndef RESHARD_C_PLAN_H
#define RESHARD_C_PLAN_H

#include "reshard/c/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A machine to estimate times for.
typedef struct reshard_machine reshard_machine;

/// A machine of some size: `laptop`, `dgx-h100:nodes=N`, `tpu-v5p:AxBxC`, `ethernet:nodes=N,per_node=P`.
/// Errors: syntax, overflow.
int reshard_machine_make(const char* specification, reshard_machine** machine, reshard_error** error);
/// A machine as `reshard calibrate` writes it (docs/machines.md). Errors: syntax, overflow, mesh (levels do not nest).
int reshard_machine_parse(const char* text, reshard_machine** machine, reshard_error** error);
const char* reshard_machine_text(const reshard_machine* machine);  ///< what reshard_machine_parse reads; NULL for NULL

/// Plans that were made, found again by layouts and options. Any number of threads may use it.
typedef struct reshard_plan_cache reshard_plan_cache;

/// Holds at most so many plans, and drops the least recently used one first. Errors: usage (fewer than 1).
int reshard_plan_cache_make(int64_t plans_max, reshard_plan_cache** cache, reshard_error** error);

/// The ranks among which plans run (c/run.h).
typedef struct reshard_backend reshard_backend;

/// A way from one layout to another that the judge has passed, and how it runs.
typedef struct reshard_plan reshard_plan;

/// The cheapest plan found: the same on every rank, run and compiler. Errors: mismatch (different arrays), infeasible
/// (a limit is below what any plan needs; it names that need), syntax (an unknown rule), usage.
int reshard_plan_make(const reshard_layout* source, const reshard_layout* target, const reshard_options* options,
                      reshard_plan** plan, reshard_error** error);
/// Parses and judges a plan that is given as text. Errors: syntax; from the judge step, plan, infeasible.
int reshard_plan_parse(const char* text, const reshard_options* options, reshard_plan** plan, reshard_error** error);
const char* reshard_plan_text(const reshard_plan* plan);  ///< what reshard_plan_parse reads; NULL for NULL
/// The two ends, handles of the caller's; either may be NULL.
int reshard_plan_ends(const reshard_plan* plan, reshard_layout** source, reshard_layout** target,
                      reshard_error** error);
/// The plan as a table for people: a line for each step, and totals.
int reshard_plan_table(const reshard_plan* plan, reshard_text** text, reshard_error** error);
/// The same beside all other candidates, and why each of them lost. It plans again, so it takes longer.
/// Errors: usage (a plan that was written by hand has no other candidates).
int reshard_plan_explain(const reshard_plan* plan, reshard_text** text, reshard_error** error);
/// 64-bit hash of all that the ranks must agree on, equal on every machine; 0 for NULL.
uint64_t reshard_plan_fingerprint(const reshard_plan* plan);

/// Fills `verdict`, up to its size.
int reshard_plan_verdict(const reshard_plan* plan, reshard_verdict* verdict, reshard_error** error);

/// Many arrays with a plan for each, in buckets that run together.
typedef struct reshard_list reshard_list;

/// The plan of each pair of layouts, and buckets for all of them, as few as the footprint limit allows. `donate`,
/// `footprint_bytes_max` and `staging_bytes` hold for the whole list, the other options for each array. The cache is
/// not used. Errors: as reshard_plan_make, with the name of the array.
int reshard_list_make(const reshard_layout* const* sources, const reshard_layout* const* targets, int64_t count,
                      const reshard_options* options, reshard_list** list, reshard_error** error);
/// The plan of array number `array`, a handle of the caller's. Errors: usage (no such array).
int reshard_list_plan(const reshard_list* list, int64_t array, reshard_plan** plan, reshard_error** error);

/// The judge's numbers for a list. Bytes are bytes of full tiles, maxima over devices.
typedef struct reshard_list_verdict {
    size_t size;                ///< sizeof(reshard_list_verdict)
    int64_t arrays;             ///< how many
    int64_t buckets;            ///< how many; the arrays of a bucket run together
    int64_t footprint_bytes;    ///< the most that a device holds while a bucket runs, without staging
    int64_t ends_bytes;         ///< the same without workspaces
    int64_t floor_bytes;        ///< no order and no plans need less on every device
    int64_t messages;           ///< the most messages that one device receives, over all steps of all arrays
    int64_t received_bytes;     ///< by the busiest receiver, over all arrays
    int64_t picoseconds;        ///< estimated: bucket by bucket, the device that is busy longest
    int64_t sent_bytes;         ///< by the busiest sender, over all arrays
    int64_t lower_bound_bytes;  ///< no protocol lets every device receive less
    int32_t received_exact;     ///< 0: an upper bound, as there was too much to count
    int32_t sent_exact;         ///< 0: an upper bound
} reshard_list_verdict;

/// The defaults.
#define RESHARD_LIST_VERDICT_INITIALIZER \
    { sizeof(reshard_list_verdict), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/// Fills `verdict`, up to its size.
int reshard_list_judge(const reshard_list* list, reshard_list_verdict* verdict, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
