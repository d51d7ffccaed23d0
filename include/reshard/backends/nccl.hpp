// The NCCL backend: tiles in device memory, runs in the order of CUDA streams. Your communicator is borrowed. The
// backend splits off a communicator of its own, and only that one fails or is aborted.
#pragma once

#include <nccl.h>

#include <chrono>

#include "reshard/backends/backend.hpp"

/// Ranks of an NCCL communicator, each with a GPU.
namespace reshard::nccl {

/// The same on all ranks, except for the stream.
struct Options {
    /// The stream that orders runs and everything else if no other is given. Null: a stream of the backend's own.
    cudaStream_t stream = nullptr;
    /// A wait that takes longer aborts the communicators and fails. The time includes work that was put on the stream
    /// before the run.
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
    /// A prepared list takes at most this many bytes for staging. A step that packs more runs in parts: one part is
    /// packed while the part before it moves.
    Index staging_bytes_max = Index{256} << 20;
    /// At most this many communicators of groups are kept for later plans. Steps of further groups use the whole
    /// communicator.
    std::size_t communicators_max = 16;
    /// Sums are added in the order of the summands, the same on every run, instead of in NCCL's.
    bool ordered_sums = false;
    /// The groups' communicators share NCCL's resources with the whole one.
    bool share_resources = false;
    /// Staging is registered as a window of the communicators that use it, if NCCL has windows.
    bool windows = true;
    /// Copy engines carry the all-gathers and all-to-alls that NCCL itself does between windows on one node
    /// (NCCL 2.28): slower for short pieces, and no multiprocessor is taken from the computation beside them. Ends must
    /// lie in windows too (allocate_window); else, and with older versions, multiprocessors carry all.
    bool copy_engines = false;
};

/// Collective over `communicator`, to be called with its device current. Buffers that are bound lie on that device.
/// Errors: backend when CUDA or NCCL fails; unsupported when NCCL is older at run time than it was at compile time.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(ncclComm_t communicator, const Options& options = {});

/// Collective: takes this rank's part in a call of make_backend if it refuses its options before the call. The other
/// ranks, in make_backend, fail and do not wait for it.
void refuse(ncclComm_t communicator, const Error& why);

/// Bytes that NCCL has taken on this device for a backend's communicators. They are measured as the fall of free memory
/// when a communicator grows, so other work on the device at that time counts too. Errors: usage (another backend).
[[nodiscard]] Result<Index> communicator_bytes(const Backend& backend);

/// Collective: allocates the same number of bytes on every rank. If NCCL has windows, the memory is registered as one,
/// so that peers may reach it without a copy. Backend::allocate is not collective and registers with this rank only. A
/// rank that has refused its own arguments brings that error in place of `bytes`. Errors: usage (another backend, bytes
/// below 0); backend. If a rank fails, all ranks get the first failure.
[[nodiscard]] Result<std::unique_ptr<Memory>> allocate_window(Backend& backend, const Result<Index>& bytes);

/// As Bound::start with these options, in the order of `stream`. All pieces travel on the stream one after the other,
/// each when it has been offered. The ticket need not be polled for that. A stream that is being captured takes the
/// pieces into its graph, and so does a stream that becomes captured by an offer on a captured stream. The ticket is
/// then done with the last offer. Computation on pieces that have arrived belongs on another stream. Errors: as
/// Bound::start_on; unsupported if `bound` is not from an executor of this backend.
[[nodiscard]] Result<std::unique_ptr<Ticket>> start(Bound& bound, cudaStream_t stream, const StartOptions& options);

/// An event, recorded when piece `piece` of the run is complete on this rank. cudaStreamWaitEvent(yours, event) lets a
/// stream use the piece while the host goes on. A piece is a piece of an overlapped Split, by its number, or else a
/// bucket of a list. A piece is sent when the start returns, or once it and all pieces before it have been offered.
/// The event belongs to the Bound, and the next start records it anew: ask for it in each run. After a fault the event
/// counts as reached; wait, test and arrived report the fault. Errors: usage if the piece does not exist or has not
/// been sent; unsupported for a run of another backend; the error of a run that failed.
[[nodiscard]] Result<cudaEvent_t> event(Ticket& run, std::size_t piece);

/// As Ticket::offer, for a source that is complete once all work that is on `stream` now is done. The run's stream
/// waits for that work; the host does not. The timeout of a piece counts from here, so it must cover the work on
/// `stream` too. Errors also: unsupported for a run of another backend; backend.
[[nodiscard]] Result<void> offer(Ticket& run, std::size_t piece, cudaStream_t stream);

}  // namespace reshard::nccl
