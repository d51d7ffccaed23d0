/// \file
/// Enumerations and structures of the C interface. src/tables/generate.py writes this file from the tables beside it.
#ifndef RESHARD_C_TABLES_H
#define RESHARD_C_TABLES_H

#include <stddef.h>
#include <stdint.h>

/// Why a call failed, coarse enough to switch on.
enum reshard_code {
    RESHARD_OK = 0,              ///< it did not fail
    RESHARD_SYNTAX = 1,          ///< text that does not parse
    RESHARD_MESH = 2,            ///< a wrong mesh: an empty name, a size below 1, or a name used twice
    RESHARD_LAYOUT = 3,          ///< a layout that breaks an invariant: axis unknown or used twice
    RESHARD_OVERFLOW = 4,        ///< a product or sum that leaves 64 bits
    RESHARD_MISMATCH = 5,        ///< two things that must agree do not: shapes, dtypes, device counts, ranks, sizes
    RESHARD_STEP = 6,            ///< a step whose typing rule fails
    RESHARD_PLAN = 7,            ///< a plan that does not arrive, or that the judge refuses
    RESHARD_INFEASIBLE = 8,      ///< a limit below what any plan needs
    RESHARD_UNSUPPORTED = 9,     ///< well formed, but not something this build or dtype can do
    RESHARD_IO = 10,             ///< a file that cannot be read or written, or lies about its contents
    RESHARD_USAGE = 11,          ///< a call that makes no sense: NULL, a handle of another kind, an unknown size
    RESHARD_BACKEND = 12,        ///< MPI, NCCL or a peer failed
    RESHARD_OUT_OF_MEMORY = 13,  ///< this process has not enough memory
    RESHARD_INTERNAL = 14        ///< a defect of the library
};

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

/// How a plan runs.
enum reshard_execution {
    RESHARD_AS_STEPS = 0,         ///< one step after the other
    RESHARD_AS_ONE_EXCHANGE = 1,  ///< one exchange from source to target
    RESHARD_SPLIT = 2             ///< all steps for one piece after the other
};

/// What a planner is asked beside the two ends. Bytes are bytes of a device. -1 is no limit, and NULL is nothing
/// given. A NULL in place of the structure means the defaults.
typedef struct reshard_options {
    size_t size;                            ///< sizeof(reshard_options)
    int32_t objective;                      ///< a ::reshard_objective
    int32_t vocabulary;                     ///< a ::reshard_vocabulary
    int64_t peak_bytes_max;                 ///< the largest tile allowed on the way
    int64_t footprint_bytes_max;            ///< the most bytes that a device may hold at once: source, target,
                                            ///< workspace and staging
    int64_t staging_bytes;                  ///< how much of the footprint limit is kept free for the backend
    int32_t donate;                         ///< the source is given away: its memory may hold tiles between steps once
                                            ///< it is read
    int32_t one_exchange;                   ///< all ranks reach each other's memory
    int32_t reserved;                       ///< 0
    int32_t steps_overlap;                  ///< steps of two pieces run at the same time
    int64_t ranks_per_node;                 ///< ranks of a node, which reach each other's memory
    const struct reshard_backend* backend;  ///< the backend that is to run the plan; its capabilities replace those
                                            ///< above
    const struct reshard_machine* machine;  ///< the machine to plan for: laptop (the default), dgx-h100:nodes=N,
                                            ///< tpu-v5p:AxBxC, ethernet:nodes=N,per_node=P, or your own
                                            ///< (docs/machines.md)
    struct reshard_plan_cache* cache;       ///< a cache that is asked first
    const char* disabled_rules;             ///< names of rules that are not asked for plans; `explain` names those that
                                            ///< are; commas between them
    int32_t cast;                           ///< source and target may differ in element type: the move casts, and
                                            ///< rounds to nearest even
    int32_t reserved_2;                     ///< 0
} reshard_options;

/// The defaults.
#define RESHARD_OPTIONS_INITIALIZER \
    { sizeof(reshard_options), RESHARD_TIME, RESHARD_ALL, -1, -1, 0, 0, 0, 0, 0, 1, NULL, NULL, NULL, NULL, 0, 0 }

/// What the judge derived from a plan. Bytes are maxima over devices.
typedef struct reshard_verdict {
    size_t size;                        ///< sizeof(reshard_verdict)
    int64_t steps;                      ///< of the plan; 0 when both ends hold the same
    int64_t peak_bytes;                 ///< the largest tile on the way
    int64_t floor_bytes;                ///< the larger tile of the two ends; no plan has a lower peak
    int64_t footprint_bytes;            ///< source, target and workspace together, in full tiles
    int64_t received_bytes;             ///< sum over steps of the busiest receiver's bytes
    int64_t received_bytes_max_device;  ///< bytes that the busiest device receives over all steps
    int64_t sent_bytes_max_device;      ///< the most bytes that one device sends over all steps
    int64_t lower_bound_bytes;          ///< no protocol's busiest receiver gets less
    int64_t picoseconds;                ///< estimated on the machine
    int64_t states;                     ///< states that the search expanded
    int32_t optimal;                    ///< whether the busiest device receives exactly the lower bound
    int32_t search_complete;            ///< whether nothing better for this objective exists in this vocabulary
    int32_t execution;                  ///< a ::reshard_execution
    int32_t reserved;                   ///< 0
    int64_t pieces;                     ///< pieces of a split run; else 1
} reshard_verdict;

/// The defaults.
#define RESHARD_VERDICT_INITIALIZER \
    { sizeof(reshard_verdict), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#endif
