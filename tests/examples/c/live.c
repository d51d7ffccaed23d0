// The program of docs/c.md: a trainer and an engine of one process each, which are two threads here.
#include <pthread.h>
#include <reshard/c/live.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 5 };

static void stop(reshard_error* error) {
    puts(reshard_error_describe(error));
    exit(1);
}

static reshard_layout* layout_of(const char* text) {
    reshard_mesh* mesh;
    reshard_layout* layout;
    reshard_error* error;
    if (reshard_mesh_parse("x=1", &mesh, &error) || reshard_layout_parse(mesh, text, &layout, &error)) stop(error);
    reshard_release(mesh);
    return layout;
}

static void* engine(void* endpoint) {
    reshard_layout* halves = layout_of("bf16[6,6]");
    reshard_error* error;
    // [README c_engine]
    reshard_live_group* job;
    reshard_subscriber* into;
    if (reshard_live_alone(&job, &error)) stop(error);
    reshard_live_tensor wanted = RESHARD_LIVE_TENSOR_INITIALIZER;
    wanted.name = "weights", wanted.layout = halves;  // this job's own layout and type
    if (reshard_live_subscribe(job, endpoint, &wanted, 1, NULL, &into, &error)) stop(error);
    int64_t version = 0, bytes;
    const void* tile;
    while (version < steps)
        if (reshard_subscriber_update(into, 60000, &version, &error)) stop(error);
    if (reshard_subscriber_tile(into, 0, &tile, &bytes, &error)) stop(error);
    printf("version %lld: %lld bytes\n", (long long)version, (long long)bytes);
    // [README c_engine end]
    const unsigned short* elements = tile;
    for (int i = 0; i < 36; ++i)
        if (elements[i] != 0x40a0) exit(1);  // 5
    reshard_release(into), reshard_release(job), reshard_release(halves);
    return NULL;
}

int main(void) {
    reshard_layout* layout = layout_of("f32[6,6]");
    reshard_error* error;
    // [README c_trainer]
    float weights[6][6];
    reshard_live_group* job;
    reshard_publisher* out;
    if (reshard_live_alone(&job, &error)) stop(error);
    reshard_live_tensor tensor = RESHARD_LIVE_TENSOR_INITIALIZER;
    tensor.name = "weights", tensor.layout = layout, tensor.tile = weights, tensor.tile_bytes = sizeof weights;
    if (reshard_live_publish(job, "127.0.0.1:0", &tensor, 1, NULL, &out, &error)) stop(error);
    for (int64_t step = 1; step <= steps; ++step) {
        for (int i = 0; i < 36; ++i) weights[i / 6][i % 6] = (float)step;
        if (reshard_publisher_commit(out, step, NULL, 0, &error)) stop(error);
    }
    // [README c_trainer end]
    pthread_t thread;
    if (pthread_create(&thread, NULL, engine, (void*)reshard_publisher_endpoint(out)) != 0) return 1;
    pthread_join(thread, NULL);
    reshard_release(out), reshard_release(job), reshard_release(layout);
    return 0;
}
