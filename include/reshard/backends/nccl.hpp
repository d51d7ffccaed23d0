// The NCCL backend: tiles in device memory, runs in the order of CUDA streams. Your communicator is borrowed: the
// backend splits one of its own off it, and whatever fails or is aborted is the backend's.
#pragma once

#include <nccl.h>

#include <chrono>

#include "reshard/backends/backend.hpp"

/// Ranks of an NCCL communicator, each with a GPU.
namespace reshard::nccl {

/// The same on all ranks, but for the stream.
struct Options {
    /// The stream that orders runs and everything else when no other is named; null: a stream of the backend's own.
    cudaStream_t stream = nullptr;
    /// A wait that takes longer aborts the communicators and fails instead of hanging. Work that was put on the stream
    /// before the run counts too.
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
    /// Most bytes that a prepared list may take for staging. A step that packs more runs in parts: one part is packed
    /// while the one before it moves.
    Index staging_bytes_max = Index{256} << 20;
    /// Most communicators of groups that are kept for later plans. Steps of further groups use the whole communicator.
    std::size_t communicators_max = 16;
    /// Sums are added in the order of the summands, the same on every run, instead of in NCCL's.
    bool ordered_sums = false;
    /// The groups' communicators share NCCL's resources with the whole one.
    bool share_resources = false;
    /// Staging is registered as a window of the communicators that use it, where NCCL has windows.
    bool windows = true;
    /// Copy engines carry the all-gathers and all-to-alls that NCCL itself does between windows on one node
    /// (NCCL 2.28): slower for short pieces, and no multiprocessor is taken from the computation beside them. Ends must
    /// lie in windows too (allocate_window); else, and with older versions, multiprocessors carry all.
    bool copy_engines = false;
};

/// Collective over `communicator`, to be called with its device current. Buffers that are bound lie on that device.
/// Errors: backend when CUDA or NCCL fails; unsupported when NCCL is older at run time than it was at compile time.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(ncclComm_t communicator, const Options& options = {});

/// Collective: this rank's part in a call of make_backend whose options it has refused before the call. The other
/// ranks, in make_backend, fail and do not wait for it.
void refuse(ncclComm_t communicator, const Error& why);

/// Bytes that NCCL has taken on this device for a backend's communicators, measured where they grew: by what was free
/// before and after, so whatever else happens on the device meanwhile counts too. Errors: usage (another backend).
[[nodiscard]] Result<Index> communicator_bytes(const Backend& backend);

/// Collective: the same number of bytes on every rank, registered as a window where NCCL has them, so that peers may
/// reach it without a copy. Backend::allocate is not collective and registers with this rank only. A rank that has
/// refused its own arguments brings that error in place of `bytes`. Errors: usage (another backend, bytes below 0);
/// backend; on all ranks the first failure of one.
[[nodiscard]] Result<std::unique_ptr<Memory>> allocate_window(Backend& backend, const Result<Index>& bytes);

/// As Bound::start with these options, in the order of `stream`, on which all pieces travel one after the other, each
/// when it has been offered; no look at the ticket is needed for that. A stream that is being captured, or becomes so
/// by offers on streams that are, takes the pieces into its graph; the ticket is then done with the last offer. What
/// computes on what has arrived belongs on another stream. Errors: as Bound::start_on; unsupported for what no executor
/// of this backend has bound.
[[nodiscard]] Result<std::unique_ptr<Ticket>> start(Bound& bound, cudaStream_t stream, const StartOptions& options);

/// Recorded when piece `piece` of the run is complete on this rank: cudaStreamWaitEvent(yours, event) lets a stream use
/// what has arrived while the host goes on. Pieces are those of an overlapped Split by their numbers, else the buckets
/// of a list. All pieces have set out when the start returns, or with the offers of theirs and of those before them.
/// The event belongs to what was bound, and the next start records it anew: ask for it in each run. It says nothing of
/// faults, of which wait, test and arrived tell: after one it counts as reached. Errors: usage for a piece that there
/// is not, or that has not set out; unsupported for a run of another backend; what the run failed of.
[[nodiscard]] Result<cudaEvent_t> event(Ticket& run, std::size_t piece);

/// As Ticket::offer, of a source that is made once all is done that is on `stream` now: the run's stream waits for
/// that, the host does not. The timeout of a piece counts from here, so it has to hold the work on `stream` too. Errors
/// also: unsupported for a run of another backend; backend.
[[nodiscard]] Result<void> offer(Ticket& run, std::size_t piece, cudaStream_t stream);

}  // namespace reshard::nccl
