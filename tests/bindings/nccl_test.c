// The NCCL backend from C, on one rank: made, refused, and run in the order of a stream.
#include <cuda_runtime_api.h>

#include "expect.h"
#include "reshard/c_nccl.h"

int main(void) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        puts("skipped: there is no GPU here");
        return 77;
    }
    ncclUniqueId id;
    ncclComm_t communicator = NULL;
    cudaStream_t stream = NULL;
    EXPECT(ncclGetUniqueId(&id) == ncclSuccess && ncclCommInitRank(&communicator, 1, id, 0) == ncclSuccess);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    reshard_nccl_options options = RESHARD_NCCL_OPTIONS_INITIALIZER;
    reshard_backend* backend = NULL;
    FAILS(RESHARD_BACKEND, "", reshard_nccl_backend(NULL, NULL, &backend, &error));
    options.size = 1;
    FAILS(RESHARD_USAGE, "struct reshard_nccl_options of 1 bytes",
          reshard_nccl_backend(communicator, &options, &backend, &error));
    options.size = sizeof options;
    SUCCEEDS(reshard_nccl_backend(communicator, &options, &backend, &error));
    EXPECT(strcmp(reshard_backend_name(backend), "nccl") == 0 && reshard_backend_size(backend) == 1);

    enum { n = 64 };
    reshard_layout *source = layout_of("x=1", "f32[64@x,64]"), *target = layout_of("x=1", "f32[64,64@x]");
    reshard_plan* plan = NULL;
    reshard_executor* executor = NULL;
    reshard_memory *in = NULL, *out = NULL;
    reshard_bound* bound = NULL;
    reshard_ticket* ticket = NULL;
    SUCCEEDS(reshard_plan_make(source, target, NULL, &plan, &error));
    SUCCEEDS(reshard_executor_make(backend, plan, NULL, NULL, &executor, &error));
    SUCCEEDS(reshard_nccl_allocate_window(backend, n * n * 4, &in, &error));
    SUCCEEDS(reshard_memory_allocate(backend, n * n * 4, &out, &error));
    static float sent[n * n], got[n * n];
    for (int i = 0; i < n * n; ++i) sent[i] = (float)i;
    EXPECT(cudaMemcpyAsync(reshard_memory_address(in), sent, sizeof sent, cudaMemcpyHostToDevice, stream) ==
           cudaSuccess);
    reshard_buffers buffers = RESHARD_BUFFERS_INITIALIZER;
    buffers.source = reshard_memory_address(in), buffers.source_bytes = sizeof sent;
    buffers.target = reshard_memory_address(out), buffers.target_bytes = sizeof sent;
    SUCCEEDS(reshard_executor_bind(executor, &buffers, 1, &bound, &error));
    SUCCEEDS(reshard_bound_start_on(bound, stream, &ticket, &error));
    SUCCEEDS(reshard_ticket_wait(ticket, &error));
    EXPECT(cudaMemcpyAsync(got, reshard_memory_address(out), sizeof got, cudaMemcpyDeviceToHost, stream) ==
           cudaSuccess);
    EXPECT(cudaStreamSynchronize(stream) == cudaSuccess && memcmp(sent, got, sizeof sent) == 0);

    // The same array, cast, transposed and padded on the device. The second call finds what the first one kept.
    enum { padded = 72 };
    reshard_layout* larger = layout_of("x=1", "f64[72,72@x]");
    reshard_memory* wide = NULL;
    static double cast[padded * padded];
    const int64_t backwards[] = {1, 0};
    const double fill = -2.5;
    reshard_move_options changes = RESHARD_MOVE_OPTIONS_INITIALIZER;
    changes.cast = 1;
    changes.permute = backwards, changes.permute_count = 2;
    changes.pad = 1, changes.fill = &fill;
    SUCCEEDS(reshard_memory_allocate(backend, sizeof cast, &wide, &error));
    for (int again = 0; again < 2; ++again) {
        SUCCEEDS(reshard_redistribute_with(backend, source, larger, &changes, reshard_memory_address(in), sizeof sent,
                                           reshard_memory_address(wide), sizeof cast, &error));
        EXPECT(cudaMemcpyAsync(cast, reshard_memory_address(wide), sizeof cast, cudaMemcpyDeviceToHost, stream) ==
               cudaSuccess);
        EXPECT(cudaStreamSynchronize(stream) == cudaSuccess);
        int wrong = 0;
        for (int i = 0; i < padded; ++i)
            for (int j = 0; j < padded; ++j)
                wrong += cast[i * padded + j] != (i < n && j < n ? (double)sent[j * n + i] : fill);
        EXPECT(wrong == 0);
    }
    reshard_release(wide), reshard_release(larger);
    const void* all[] = {backend, plan, executor, bound, ticket, in, out, source, target};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) reshard_release(all[i]);
    cudaStreamDestroy(stream);
    ncclCommDestroy(communicator);
    printf("%d failed\n", failures);
    return failures == 0 ? 0 : 1;
}
