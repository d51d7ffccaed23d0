// The MPI backend. The communicator is borrowed and duplicated once; MPI_Init is never called behind your back.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>

#include "reshard/algebra/backend.hpp"
#include "reshard/elements.hpp"

/// Ranks of an MPI communicator.
namespace reshard::mpi {

/// How data moves between ranks of a node where no rank reaches the other's buffers: packed into a bounce buffer of the
/// receiver in shared memory, and copied out of it.
enum class UnregisteredBuffers {
    by_size,            ///< with non-temporal stores where what all ranks write does not fit the cache that they share
    bounce,             ///< through the caches: fast where a line is cheap to hand from core to core
    bounce_nontemporal  ///< with non-temporal stores: fast where it is not
};

/// The same on all ranks.
struct BackendOptions {
    /// Ranks of one node move through shared memory; without, everything is messages.
    bool shared_memory = true;
    /// So many consecutive ranks are taken for a node; 0: as MPI_Comm_split_type finds. To see what several nodes do on
    /// one machine.
    Index ranks_per_node = 0;
    /// For buffers that are not this backend's own memory.
    UnregisteredBuffers unregistered_buffers = UnregisteredBuffers::by_size;
    /// Of each rank, for such buffers: what peers write and the rank copies out.
    /// Where a list moves in several passes (between nodes, and with sums) each has such a window.
    Index window_bytes = Index{1} << 20;
    /// Of a message between nodes: longer transfers are cut, shorter ones to one peer share a message. 0:
    /// each transfer is one message, and MPI's datatypes move it, unstaged.
    Index piece_bytes = Index{1} << 18;
    /// Of each rank, for pieces that are packed or unpacked: four on their way to and from every peer. Where that is
    /// more, pieces are smaller; where they would be too small, it is as with pieces of 0.
    Index staging_bytes = Index{1} << 25;
    /// How long a rank waits for a peer that does not come before a run, or what prepares one, fails. Peers that fail,
    /// or drop what the others wait for, say so and are not waited for.
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

/// Collective over `communicator`. Errors: backend when MPI is not initialized, already finalized, or fails.
/// Of its memory (allocate) peers on the same node write straight into the target: the fastest there is.
/// Threads: as the level of MPI_Init_thread says for prepare and for runs that send messages. Runs between ranks of one
/// node send none, so different executors may run them in different threads at any level.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator, const BackendOptions& options = {});

/// Collective. The options under which `seconds` is least, of those that differ in `unregistered_buffers` alone: of a
/// backend with each it is told the time of what the caller runs there, on all ranks alike or not; the slowest rank
/// counts. What it runs, how often and on which buffers is the caller's: those of a run are overwritten as by any run.
/// Errors: what `seconds` returns, on the ranks where it does, and backend on the others.
[[nodiscard]] Result<BackendOptions> tune(MPI_Comm communicator, const BackendOptions& options,
                                          const std::function<Result<double>(Backend&)>& seconds);

/// As reshard::redistribute, on a backend of the communicator's own with default options. That backend and what is
/// prepared on it hang on the communicator as an attribute: they go with MPI_Comm_free, or in MPI_Finalize, and a
/// duplicate has none of them. Calls on one communicator are collective and in one order.
[[nodiscard]] Result<void> redistribute(MPI_Comm communicator, const Layout& source, const Layout& target,
                                        ConstElements in, Elements out);

/// Collective: gives back all that redistribute keeps on the communicator.
void clear(MPI_Comm communicator);

}  // namespace reshard::mpi
