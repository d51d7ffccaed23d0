// Two jobs from C: two publishing and three subscribing ranks, which are threads of this process; casts and errors.
#include "reshard/c/live.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/bindings/expect.h"

enum { rows = 12, columns = 6, publishers = 2, subscribers = 3, versions = 3, wait_ms = 240000 };

static char folder[] = "/tmp/reshard-live-c-XXXXXX";
static char endpoint[200], other_endpoint[200], meeting_place[200];

static void rest(void) {
    const struct timespec a_moment = {0, 1000000};
    nanosleep(&a_moment, NULL);
}

/// An element of the array, which has a value of its own in each version.
static float element(int64_t version, int64_t row, int64_t column) {
    return (float)(1000 * version + row * columns + column);
}

/// The broadcast of threads: rank 0 leaves the text, and the others wait for it.
static char left_text[4096];
static int is_left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

static int broadcast(char* text, int64_t bytes, void* context) {
    pthread_mutex_lock(&lock);
    if (*(int64_t*)context == 0) {
        memcpy(left_text, text, (size_t)bytes);
        is_left = 1;
        pthread_cond_broadcast(&change);
    }
    while (!is_left) pthread_cond_wait(&change, &lock);
    memcpy(text, left_text, (size_t)bytes);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int finished;  // subscribers that need the publisher no more

static int fail_to_broadcast(char* text, int64_t bytes, void* context) {
    return text != NULL && bytes > 0 && context == NULL ? 7 : 0;
}

static void* publish(void* place) {
    int64_t rank = *(int64_t*)place;
    reshard_live_group* group = NULL;
    SUCCEEDS(reshard_live_join_through(broadcast, &rank, rank, publishers, wait_ms, &group, &error));
    EXPECT(reshard_live_group_rank(group) == rank && reshard_live_group_size(group) == publishers);
    reshard_layout* layout = layout_of("x=2", "f32[12@x,6]");
    float tile[rows / publishers][columns];
    reshard_live_tensor tensor = RESHARD_LIVE_TENSOR_INITIALIZER;
    tensor.name = "w", tensor.layout = layout, tensor.tile = tile, tensor.tile_bytes = sizeof tile;
    reshard_publisher* out = NULL;
    tensor.tile_bytes = rank == 1 ? 4 : (int64_t)sizeof tile;  // a mistake of rank 1 is an error on both
    FAILS(rank == 1 ? RESHARD_MISMATCH : RESHARD_BACKEND, "the tile of tensor w has 4 bytes",
          reshard_live_publish(group, other_endpoint, &tensor, 1, NULL, &out, &error));
    EXPECT(out == NULL);
    FAILS(rank == 1 ? RESHARD_USAGE : RESHARD_BACKEND, "`endpoint`",
          reshard_live_publish(group, rank == 1 ? NULL : other_endpoint, &tensor, 1, NULL, &out, &error));
    tensor.tile_bytes = sizeof tile;
    SUCCEEDS(reshard_live_publish(group, endpoint, &tensor, 1, NULL, &out, &error));
    EXPECT(strcmp(reshard_publisher_endpoint(out), endpoint) == 0);
    while (failures == 0 && reshard_publisher_subscribers(out) < subscribers) rest();
    for (int64_t version = 1; version <= versions; ++version) {
        for (int64_t i = 0; i < rows / publishers; ++i)
            for (int64_t j = 0; j < columns; ++j) tile[i][j] = element(version, rank * rows / publishers + i, j);
        const void* tiles[] = {tile};
        SUCCEEDS(reshard_publisher_commit(out, version, version == 2 ? tiles : NULL, version == 2, &error));
        EXPECT(reshard_publisher_newest(out) == version);
    }
    FAILS(RESHARD_USAGE, "versions must grow", reshard_publisher_commit(out, versions, NULL, 0, &error));
    const void* none[] = {NULL, NULL};
    FAILS(rank == 1 ? RESHARD_MISMATCH : RESHARD_BACKEND, "2 tiles; wanted 1",
          reshard_publisher_commit(out, versions + 1, rank == 1 ? none : NULL, 2, &error));
    pthread_mutex_lock(&lock);
    while (finished < subscribers) pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
    reshard_release(group);  // the publisher keeps it
    reshard_release(out), reshard_release(layout);
    return NULL;
}

/// The bytes that have come, and the tensors.
typedef struct news {
    int64_t received, bytes, tensors;
    double last;
} news;

static void progress(int64_t received, int64_t bytes, void* context) {
    news* all = context;
    all->received = received, all->bytes = bytes;
}

static void arrived(int64_t tensor, const void* tile, int64_t bytes, void* context) {
    news* all = context;
    EXPECT(tensor == 0 && bytes == rows * columns / subscribers * 8);
    ++all->tensors;
    memcpy(&all->last, (const char*)tile + bytes - 8, 8);
}

static void* subscribe(void* place) {
    const int64_t rank = *(int64_t*)place;
    reshard_live_group* group = NULL;
    SUCCEEDS(reshard_live_join(meeting_place, rank, subscribers, wait_ms, &group, &error));
    reshard_layout* layout = layout_of("x=3", "f64[12,6@x]");  // another type than the publisher's
    reshard_live_tensor tensor = RESHARD_LIVE_TENSOR_INITIALIZER;
    tensor.name = "w", tensor.layout = layout;
    reshard_live_options options = RESHARD_LIVE_OPTIONS_INITIALIZER;
    news all = {0, 0, 0, 0};
    options.connect_ms = wait_ms;
    options.progress = progress, options.arrived = arrived, options.context = &all;
    reshard_subscriber* into = NULL;
    SUCCEEDS(reshard_live_subscribe(group, endpoint, &tensor, 1, &options, &into, &error));
    const void* tile = NULL;
    int64_t bytes = 0, version = 0;
    FAILS(RESHARD_USAGE, "no version yet", reshard_subscriber_tile(into, 0, &tile, &bytes, &error));
    while (failures == 0 && version < versions) {
        all.tensors = 0;
        SUCCEEDS(reshard_subscriber_update(into, wait_ms, &version, &error));
        SUCCEEDS(reshard_subscriber_tile(into, 0, &tile, &bytes, &error));
        EXPECT(version == reshard_subscriber_version(into) && bytes == rows * columns / subscribers * 8);
        if (tile == NULL) break;
        const double* elements = tile;
        const int64_t width = columns / subscribers;
        for (int64_t i = 0; i < rows * width; ++i)
            EXPECT(elements[i] == element(version, i / width, rank * width + i % width));
        EXPECT(all.tensors >= 1 && all.last == elements[rows * width - 1]);
        EXPECT(all.bytes == rows * width * 4 && all.received == all.bytes);  // they travel as f32
    }
    SUCCEEDS(reshard_subscriber_poll(into, &version, &error));
    EXPECT(version == 0);
    FAILS(RESHARD_USAGE, "tensor 1 of 1", reshard_subscriber_tile(into, 1, &tile, NULL, &error));
    FAILS(RESHARD_USAGE, "timeout_ms is -2", reshard_subscriber_update(into, -2, NULL, &error));
    SUCCEEDS(reshard_subscriber_reconnect(into, group, &error));
    EXPECT(reshard_subscriber_version(into) == versions);  // it never goes back
    pthread_mutex_lock(&lock);
    ++finished;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    SUCCEEDS(reshard_subscriber_close(into, &error));
    SUCCEEDS(reshard_subscriber_tile(into, 0, &tile, &bytes, &error));
    EXPECT(tile != NULL && ((const double*)tile)[0] == element(versions, 0, rank * columns / subscribers));
    FAILS(RESHARD_BACKEND, "not connected; reconnect", reshard_subscriber_update(into, 0, NULL, &error));
    reshard_release(into), reshard_release(group), reshard_release(layout);
    return NULL;
}

/// One process publishes and takes a cast version, over TCP.
static void alone(void) {
    reshard_live_group *mine = NULL, *theirs = NULL;
    SUCCEEDS(reshard_live_alone(&mine, &error));
    SUCCEEDS(reshard_live_alone(&theirs, &error));
    reshard_layout *narrow = layout_of("x=1", "bf16[3]"), *wide = layout_of("x=1", "f32[3]");
    reshard_live_tensor tensor = RESHARD_LIVE_TENSOR_INITIALIZER;
    tensor.name = "w", tensor.layout = narrow, tensor.held = "f32";
    reshard_publisher* out = NULL;
    reshard_live_options limits = RESHARD_LIVE_OPTIONS_INITIALIZER;
    limits.lease_ms = 1;
    FAILS(RESHARD_USAGE, "a lease of 1 ms",
          reshard_live_publish(mine, "127.0.0.1:0", &tensor, 1, &limits, &out, &error));
    SUCCEEDS(reshard_live_publish(mine, "127.0.0.1:0", &tensor, 1, NULL, &out, &error));
    const float elements[] = {1, 1.00390625F, -2};
    const void* tiles[] = {elements};
    SUCCEEDS(reshard_publisher_commit(out, 5, tiles, 1, &error));
    tensor.layout = wide, tensor.held = NULL;
    reshard_subscriber* into = NULL;
    limits.lease_ms = wait_ms, limits.in_place = 1;
    SUCCEEDS(reshard_live_subscribe(theirs, reshard_publisher_endpoint(out), &tensor, 1, &limits, &into, &error));
    int64_t version = 0;
    SUCCEEDS(reshard_subscriber_update(into, wait_ms, &version, &error));
    const void* tile = NULL;
    SUCCEEDS(reshard_subscriber_tile(into, 0, &tile, NULL, &error));
    const float rounded[] = {1, 1, -2};
    EXPECT(version == 5 && tile != NULL && memcmp(tile, rounded, sizeof rounded) == 0);
    FAILS(RESHARD_BACKEND, "no newer version than 5", reshard_subscriber_update(into, 1, NULL, &error));
    SUCCEEDS(reshard_publisher_commit(out, 6, tiles, 1, &error));
    const void* next = NULL;
    SUCCEEDS(reshard_subscriber_update(into, wait_ms, &version, &error));
    SUCCEEDS(reshard_subscriber_tile(into, 0, &next, NULL, &error));
    EXPECT(version == 6 && next == tile && memcmp(next, rounded, sizeof rounded) == 0);
    reshard_release(into), reshard_release(out);
    reshard_release(narrow), reshard_release(wide), reshard_release(mine), reshard_release(theirs);
}

static void mistakes(void) {
    reshard_live_group* group = NULL;
    FAILS(RESHARD_USAGE, "rank 2 of a group of 2", reshard_live_join(meeting_place, 2, 2, 0, &group, &error));
    FAILS(RESHARD_USAGE, "`endpoint`", reshard_live_join(NULL, 0, 2, 0, &group, &error));
    FAILS(RESHARD_USAGE, "`broadcast`", reshard_live_join_through(NULL, NULL, 0, 2, 0, &group, &error));
    FAILS(RESHARD_BACKEND, "the broadcast failed with 7",
          reshard_live_join_through(fail_to_broadcast, NULL, 0, 2, wait_ms, &group, &error));
    EXPECT(group == NULL && reshard_live_group_rank(NULL) == -1 && reshard_live_group_size(NULL) == -1);
    reshard_publisher* out = NULL;
    FAILS(RESHARD_USAGE, "a group is needed", reshard_live_publish(NULL, endpoint, NULL, 0, NULL, &out, &error));
    SUCCEEDS(reshard_live_alone(&group, &error));
    FAILS(RESHARD_USAGE, "an array of tensors", reshard_live_publish(group, endpoint, NULL, 1, NULL, &out, &error));
    FAILS(RESHARD_USAGE, "no tensors", reshard_live_publish(group, endpoint, NULL, 0, NULL, &out, &error));
    reshard_live_tensor tensor = RESHARD_LIVE_TENSOR_INITIALIZER;
    tensor.size = 8;
    FAILS(RESHARD_USAGE, "struct reshard_live_tensor",
          reshard_live_publish(group, endpoint, &tensor, 1, NULL, &out, &error));
    FAILS(RESHARD_USAGE, "a publisher is needed", reshard_publisher_commit(NULL, 1, NULL, 0, &error));
    FAILS(RESHARD_USAGE, "a subscriber is needed", reshard_subscriber_update(NULL, 0, NULL, &error));
    EXPECT(reshard_publisher_newest(NULL) == -1 && reshard_publisher_subscribers(NULL) == -1);
    EXPECT(reshard_publisher_endpoint(NULL) == NULL && reshard_subscriber_version(NULL) == -1);
    reshard_release(group);
}

int main(void) {
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(endpoint, sizeof endpoint, "%s/weights", folder);
    snprintf(other_endpoint, sizeof other_endpoint, "%s/other", folder);
    snprintf(meeting_place, sizeof meeting_place, "%s/engine", folder);
    alone();
    mistakes();
    int64_t ranks[publishers + subscribers];
    pthread_t threads[publishers + subscribers];
    for (int64_t i = 0; i < publishers + subscribers; ++i) {
        ranks[i] = i < publishers ? i : i - publishers;
        if (pthread_create(&threads[i], NULL, i < publishers ? publish : subscribe, &ranks[i]) != 0) return 1;
    }
    for (int64_t i = 0; i < publishers + subscribers; ++i) pthread_join(threads[i], NULL);
    rmdir(folder);
    printf("%d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
