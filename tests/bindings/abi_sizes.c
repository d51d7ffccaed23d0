// Prints the sizes of all structures and the offsets of their fields, one per line, for abi.py.
#include <stdio.h>

#include "reshard/c.h"
#ifdef RESHARD_HAS_FILES
#include "reshard/c/files.h"
#include "reshard/c/program.h"
#endif
#ifdef RESHARD_HAS_LIVE
#include "reshard/c/live.h"
#endif
#ifdef RESHARD_HAS_MPI
#include "reshard/c_mpi.h"
#endif
#ifdef RESHARD_HAS_NCCL
#include "reshard/c_nccl.h"
#endif

#define SIZE(name) printf("size %s %zu\n", #name, sizeof(name))
#define LAST(name, field) printf("last %s.%s %zu\n", #name, #field, offsetof(name, field))

int main(void) {
    printf("abi %d\n", reshard_abi());
    SIZE(reshard_options), LAST(reshard_options, reserved_2);
    SIZE(reshard_verdict), LAST(reshard_verdict, pieces);
    SIZE(reshard_list_verdict), LAST(reshard_list_verdict, sent_exact);
    SIZE(reshard_row), LAST(reshard_row, target_stride);
    SIZE(reshard_digest), LAST(reshard_digest, bytes);
    SIZE(reshard_nested_row), LAST(reshard_nested_row, target_strides);
    SIZE(reshard_strided_memory), LAST(reshard_strided_memory, count);
    SIZE(reshard_paged_cache), LAST(reshard_paged_cache, page_stride);
    SIZE(reshard_page_request), LAST(reshard_page_request, end_token);
    SIZE(reshard_peer_rows), LAST(reshard_peer_rows, end);
    SIZE(reshard_local_options), LAST(reshard_local_options, timeout_ms);
    SIZE(reshard_move_options), LAST(reshard_move_options, permute_count);
    SIZE(reshard_storage), LAST(reshard_storage, dims);
    SIZE(reshard_sizes), LAST(reshard_sizes, footprint_bytes);
    SIZE(reshard_buffers), LAST(reshard_buffers, workspace_bytes);
    SIZE(reshard_rank_boxes), LAST(reshard_rank_boxes, want_places);
#ifdef RESHARD_HAS_FILES
    SIZE(reshard_files_options), LAST(reshard_files_options, scratch);
    SIZE(reshard_files_converted), LAST(reshard_files_converted, passes);
    SIZE(reshard_checkpoint_tensor), LAST(reshard_checkpoint_tensor, reserved);
    SIZE(reshard_checkpoint_box), LAST(reshard_checkpoint_box, dims);
    SIZE(reshard_files_tile), LAST(reshard_files_tile, bytes);
    SIZE(reshard_schedule_options), LAST(reshard_schedule_options, rounds_max);
    SIZE(reshard_task_run), LAST(reshard_task_run, moves);
#endif
#ifdef RESHARD_HAS_LIVE
    SIZE(reshard_live_tensor), LAST(reshard_live_tensor, held);
    SIZE(reshard_live_options), LAST(reshard_live_options, in_place);
#endif
#ifdef RESHARD_HAS_MPI
    SIZE(reshard_mpi_options), LAST(reshard_mpi_options, register_after);
#endif
#ifdef RESHARD_HAS_NCCL
    SIZE(reshard_nccl_options), LAST(reshard_nccl_options, reserved);
#endif
    return 0;
}
