// The MPI backend. The communicator is borrowed and duplicated once; MPI_Init is never called behind your back.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/move_options.hpp"

/// Ranks of an MPI communicator.
namespace reshard::mpi {

/// How data moves between two ranks of a node if neither reaches the other's buffers. The sender packs it into a bounce
/// buffer of the receiver in shared memory, and the receiver copies it out.
enum class UnregisteredBuffers {
    by_size,            ///< Each sender measures both of the other ways as it packs, and keeps the faster. It begins
                        ///< with non-temporal stores if all ranks write more than a sixth of the last cache.
    bounce,             ///< through the caches: fast if cores hand cache lines to each other cheaply
    bounce_nontemporal  ///< with non-temporal stores: fast if they do not
};

/// Options::register_after: as many moves as repay a registration, which make_backend measures in some milliseconds.
inline constexpr Index when_repaid = -1;

/// The same on all ranks.
struct Options {
    /// Ranks of one node move data through shared memory. If false, all data moves by messages.
    bool shared_memory = true;
    /// This many consecutive ranks count as one node, to try several nodes on one machine. 0: nodes are as
    /// MPI_Comm_split_type finds them.
    Index ranks_per_node = 0;
    /// For buffers that are not this backend's own memory.
    UnregisteredBuffers unregistered_buffers = UnregisteredBuffers::by_size;
    /// Bytes of the bounce buffer of each rank, for unregistered buffers: peers write into it and the rank copies out.
    /// A list that moves in several passes (between nodes, and with sums) has one for each.
    Index bounce_bytes = Index{1} << 20;
    /// Bytes of a message between nodes: longer transfers are cut, shorter ones to one peer share a message. Over Open
    /// MPI's TCP at most its eager limit. 0: each transfer is one message, moved by MPI's datatypes without staging.
    Index piece_bytes = Index{1} << 18;
    /// Bytes of staging of each rank, for messages that are packed or unpacked: four under way to and from every peer.
    /// If that needs more, messages are smaller. If they would be too small, transfers move as with piece_bytes 0.
    Index staging_bytes = Index{1} << 25;
    /// How long a rank waits for a missing peer before a run, or its preparation, fails. Peers that fail, or that drop
    /// an executor that others wait for, say so, and no rank waits for them.
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
    /// A buffer of the caller's that went through bounce buffers in so many runs is registered before the next one, as
    /// by register_memory with OnFork::withhold. The caller then keeps its memory as it is until the backend and its
    /// executors are gone: that ends the registration. 0: never. Buffers of less than 1 MiB are not registered.
    Index register_after = 0;
};

/// Collective over `communicator`. Errors: backend if MPI is not initialized, already finalized, or fails.
/// Peers on the same node write straight into memory that this backend has allocated: the fastest way there is.
/// Threads: prepare, and runs that send messages, follow the level that MPI_Init_thread granted. Runs between ranks of
/// one node send no messages, so different executors may run in different threads at any level.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator, const Options& options = {});

/// Collective: takes this rank's part in a call of make_backend if it refuses its options before the call. The other
/// ranks, in make_backend, fail and do not wait for it.
void refuse(MPI_Comm communicator, const Error& why);

/// Collective. Returns the options with the `unregistered_buffers` that make `seconds` least. Calls `seconds` once for
/// each, on a backend with it. `seconds` runs moves of the caller's and returns their time; the slowest rank counts.
/// Errors: what `seconds` returns, on the ranks where it does, and backend on the others.
[[nodiscard]] Result<Options> tune(MPI_Comm communicator, const Options& options,
                                   const std::function<Result<double>(Backend&)>& seconds);

/// Collective. Returns how many moves of an unregistered buffer take as much longer as registering it, and ending that,
/// would take. It measures both on all ranks at once. Errors: backend.
[[nodiscard]] Result<Index> moves_that_repay(MPI_Comm communicator);

/// As reshard::redistribute, on a backend of the communicator's own with default options. The backend and its executors
/// are an attribute of the communicator. MPI_Comm_free or MPI_Finalize frees them, and a duplicate does not inherit
/// them. Calls on one communicator are collective and in one order.
[[nodiscard]] Result<void> redistribute(MPI_Comm communicator, const Layout& source, const Layout& target,
                                        ConstElements in, Elements out, const MoveOptions& options = {});

/// The backend that redistribute keeps on this communicator. The first call makes it and is collective. In
/// redistribute, peers reach the memory that was allocated on it. It outlives its communicator, and MPI_Finalize, while
/// the caller holds it, but then it moves no data. Errors: as make_backend.
[[nodiscard]] Result<std::shared_ptr<Backend>> backend_of(MPI_Comm communicator);

/// The same backend, or null if the communicator has none. It never makes one, so it is not collective and waits for no
/// rank. Errors: backend (MPI does not run, MPI_COMM_NULL).
[[nodiscard]] Result<std::shared_ptr<Backend>> known_backend(MPI_Comm communicator);

/// Collective: gives back everything that redistribute keeps on the communicator.
void clear(MPI_Comm communicator);

}  // namespace reshard::mpi
