/// \file
/// Versions of arrays from one job to another that was started apart. A library of its own, reshard_c_live, for Linux.
/// The jobs need no MPI. docs/live.md has the endpoints and the promises.
///
/// Publishers and subscribers are collective over their group: all its ranks make the same calls in the same order. A
/// rank whose arguments are wrong tells the others, and all fail at once. One thread at a time uses a group and all
/// that is made on it.
#ifndef RESHARD_C_LIVE_H
#define RESHARD_C_LIVE_H

#include "reshard/c/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The processes of one job, and their way to agree.
typedef struct reshard_live_group reshard_live_group;

/// The group of a job with one process.
int reshard_live_alone(reshard_live_group** group, reshard_error** error);
/// Joins the processes of a job that were started by anything. All of them call it within `timeout_ms`. Rank 0 listens
/// at `endpoint`, a path of a Unix socket or `host:port`. Errors: usage (a rank outside the group; no endpoint);
/// backend (a rank does not come).
int reshard_live_join(const char* endpoint, int64_t rank, int64_t size, int64_t timeout_ms, reshard_live_group** group,
                      reshard_error** error);

/// Fills `text`, of `bytes` bytes, on all ranks with the text of rank 0, as MPI_Bcast(text, bytes, MPI_CHAR, 0, comm)
/// does. Returns 0, or any other number if it fails.
typedef int (*reshard_live_broadcast)(char* text, int64_t bytes, void* context);
/// Joins processes that can broadcast already. Each rank calls `broadcast` once. Rank 0 listens at a free port of its
/// host. Errors: as reshard_live_join; backend (the broadcast failed).
int reshard_live_join_through(reshard_live_broadcast broadcast, void* context, int64_t rank, int64_t size,
                              int64_t timeout_ms, reshard_live_group** group, reshard_error** error);
int64_t reshard_live_group_rank(const reshard_live_group* group);  ///< of this process; -1 for NULL
int64_t reshard_live_group_size(const reshard_live_group* group);  ///< processes of the job; -1 for NULL

/// A tensor of a job. Device r of its layout is rank r.
typedef struct reshard_live_tensor {
    size_t size;                   ///< sizeof(reshard_live_tensor)
    const char* name;              ///< without blanks; the same at both jobs
    const reshard_layout* layout;  ///< over the ranks of this job
    const void* tile;    ///< of a publisher: this rank's tile, dense and row-major; NULL: each commit brings it
    int64_t tile_bytes;  ///< of `tile`
    const char* held;    ///< the element type of tiles, if commits shall cast it to the layout's; else NULL
} reshard_live_tensor;

/// A tensor without anything.
#define RESHARD_LIVE_TENSOR_INITIALIZER \
    { sizeof(reshard_live_tensor), NULL, NULL, NULL, 0, NULL }

/// Options of both sides. Each side reads its own.
typedef struct reshard_live_options {
    size_t size;               ///< sizeof(reshard_live_options)
    int64_t lease_ms;          ///< a peer that is silent for so long counts as lost; at least 100
    int64_t connect_ms;        ///< of a subscriber: until the publisher must be there
    int64_t bytes_per_second;  ///< of a publisher: a rank sends at most so many over TCP; 0: no limit
    int64_t check_bytes;       ///< of a publisher: 1: each version has a digest that subscribers compare; 0: none
    /// Subscribers only; may be NULL. An update calls it with the bytes of this rank that have come, and their number in
    /// all.
    void (*progress)(int64_t received, int64_t bytes, void* context);
    /// Of a subscriber, or NULL: an update calls it with each tensor that has come, in their order. The tile is void if
    /// the update fails. Tensors come again, from the first one on, if the version is gone before it is whole.
    void (*arrived)(int64_t tensor, const void* tile, int64_t bytes, void* context);
    void* context;         ///< of both functions
    int64_t memory_bytes;  ///< of a publisher: a commit fails if the versions of a rank would take more; 0: no limit
    int64_t in_place;      ///< of a subscriber: 1: each version overwrites the version before it
} reshard_live_options;

/// The defaults. NULL in place of options means the same.
#define RESHARD_LIVE_OPTIONS_INITIALIZER \
    { sizeof(reshard_live_options), 30000, 60000, 0, 1, NULL, NULL, NULL, 0, 0 }

/// A job that publishes versions of its tensors.
typedef struct reshard_publisher reshard_publisher;

/// Listens for subscribers at a path, for subscribers on this machine, or at `host:port`. Errors on all ranks: usage,
/// mismatch (names, tiles or layouts; ranks that name different tensors); unsupported (unreduced axes, a cast); backend
/// (another process listens there; a rank is lost).
int reshard_live_publish(reshard_live_group* group, const char* endpoint, const reshard_live_tensor* tensors,
                         int64_t count, const reshard_live_options* options, reshard_publisher** publisher,
                         reshard_error** error);
/// Copies the tiles and offers them as a version, from 1 on and larger than all before. They may change when it
/// returns, and it never waits for a subscriber. `tiles` has one tile for each of `count` tensors, dense and row-major.
/// NULL: the tiles that were given to reshard_live_publish. Errors: usage (a version that does not grow; no tile);
/// backend (memory; a rank is lost or fails: subscribers then keep the version before).
int reshard_publisher_commit(reshard_publisher* publisher, int64_t version, const void* const* tiles, int64_t count,
                             reshard_error** error);
/// The endpoint for subscribers, with the port in place of 0; NULL for NULL.
const char* reshard_publisher_endpoint(const reshard_publisher* publisher);
int64_t reshard_publisher_newest(const reshard_publisher* publisher);       ///< version; 0: none; -1 for NULL
int64_t reshard_publisher_subscribers(const reshard_publisher* publisher);  ///< connected to this rank; -1 for NULL

/// The newest whole version that a job has taken.
typedef struct reshard_subscriber reshard_subscriber;

/// Connects to a publisher. A tensor has a name and the layout that this job wants; its element type may be another
/// one, and is cast then. Errors on all ranks: mismatch (a tensor that the publisher does not have, or of another
/// shape); unsupported (a cast); backend (no publisher in time, another protocol, a rank is lost).
int reshard_live_subscribe(reshard_live_group* group, const char* endpoint, const reshard_live_tensor* tensors,
                           int64_t count, const reshard_live_options* options, reshard_subscriber** subscriber,
                           reshard_error** error);
/// Takes the newest version. Waits until there is one that is newer than the version of the subscriber; -1 waits for
/// ever. `version` is the same on all ranks, and may be NULL. Errors on all ranks: backend (no newer version within
/// `timeout_ms`; a process that is lost or silent; wrong bytes). The version before stays.
int reshard_subscriber_update(reshard_subscriber* subscriber, int64_t timeout_ms, int64_t* version,
                              reshard_error** error);
/// The same without waiting for a newer version. `version` becomes 0 if no newer one has come.
int reshard_subscriber_poll(reshard_subscriber* subscriber, int64_t* version, reshard_error** error);
/// The version of the tiles. 0: none, or the result of the last vote is unknown until reshard_subscriber_reconnect;
/// -1 for NULL.
int64_t reshard_subscriber_version(const reshard_subscriber* subscriber);
/// This rank's tile of a tensor, dense and row-major. It stays unchanged until the second update after this one.
/// Errors: usage (no such tensor; no version); backend (the result of the last vote is unknown).
int reshard_subscriber_tile(const reshard_subscriber* subscriber, int64_t tensor, const void** tile, int64_t* bytes,
                            reshard_error** error);
/// Connects again after an error, with a new group of as many ranks. Each process has its rank of before. Versions
/// never go back. Errors: as reshard_live_subscribe; usage (another rank).
int reshard_subscriber_reconnect(reshard_subscriber* subscriber, reshard_live_group* group, reshard_error** error);
/// Closes the connections. The version and its tiles stay. Errors: usage.
int reshard_subscriber_close(reshard_subscriber* subscriber, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
