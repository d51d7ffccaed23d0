// The MPI backend. The communicator is borrowed and duplicated once; MPI_Init is never called behind your back.
#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>

#include "reshard/backends/backend.hpp"
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
struct Options {
    /// Ranks of one node move through shared memory; without, everything is messages.
    bool shared_memory = true;
    /// So many consecutive ranks count as one node, to see on one machine what several nodes do; 0: as
    /// MPI_Comm_split_type finds.
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
    /// Where that is more, messages are smaller; where they would be too small, it is as with messages of 0 bytes.
    Index staging_bytes = Index{1} << 25;
    /// How long a rank waits for a peer that does not come before a run, or what prepares one, fails. Peers that fail,
    /// or that drop what others wait for, say so and are not waited for.
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

/// Collective over `communicator`. Errors: backend when MPI is not initialized, already finalized, or fails.
/// Peers on the same node write straight into memory that this backend has allocated: the fastest way there is.
/// Threads: prepare, and runs that send messages, follow the level that MPI_Init_thread granted. Runs between ranks of
/// one node send no messages, so different executors may run in different threads at any level.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator, const Options& options = {});

/// Collective: this rank's part in a call of make_backend whose options it has refused before the call. The other
/// ranks, in make_backend, fail and do not wait for it.
void refuse(MPI_Comm communicator, const Error& why);

/// Collective. The options with the `unregistered_buffers` under which `seconds` is least. `seconds` is called on a
/// backend with each, runs there what the caller wants, as often and on the buffers that the caller wants, and returns
/// its time; the slowest rank counts.
/// Errors: what `seconds` returns, on the ranks where it does, and backend on the others.
[[nodiscard]] Result<Options> tune(MPI_Comm communicator, const Options& options,
                                   const std::function<Result<double>(Backend&)>& seconds);

/// As reshard::redistribute, on a backend of the communicator's own with default options. That backend and what is
/// prepared on it hang on the communicator as an attribute: they go with MPI_Comm_free, or in MPI_Finalize, and a
/// duplicate has none of them. Calls on one communicator are collective and in one order.
[[nodiscard]] Result<void> redistribute(MPI_Comm communicator, const Layout& source, const Layout& target,
                                        ConstElements in, Elements out);

/// The backend that redistribute keeps on this communicator, made by the first who asks: that call is collective. What
/// is allocated on it is memory that peers reach in redistribute. It outlives its communicator while someone holds it,
/// and MPI_Finalize too, but moves nothing then. Errors: as make_backend.
[[nodiscard]] Result<std::shared_ptr<Backend>> backend_of(MPI_Comm communicator);

/// Collective: gives back all that redistribute keeps on the communicator.
void clear(MPI_Comm communicator);

}  // namespace reshard::mpi
