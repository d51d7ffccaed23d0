// The messages from one rank to another, all of about one size: long transfers are cut, and short ones share a message.
// If a message is one run of bytes at an end, that end sends or receives it in place. Otherwise it is packed into a
// slot. A few slots let some messages travel while another one is packed. The end that casts always packs.
#pragma once

#include <optional>
#include <span>

#include "backends/mpi/messages/datatype.hpp"
#include "backends/mpi/shm/node_map.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard::mpi {

/// A step of an array whose transfers go between nodes. `step` is null if MPI itself moves the array.
struct ChannelStep {
    std::size_t array = 0;
    const RankStep* step = nullptr;
    Index element_bytes = 1;  ///< of an element in a message
};

/// A copy between the memory of one array and the staging, or within that memory.
struct LocalCopy {
    std::size_t array = 0;
    BufferId from = BufferId::source;
    BufferId to = BufferId::target;
    BoxCopy copy;
};

/// One message of a channel: where it lies, or how it is copied into its slot and out of it.
struct Packet {
    Index bytes = 0;
    std::size_t step = 0;  ///< the step of its first transfer, as the stage counts them
    std::size_t array = 0;
    BufferId where = BufferId::source;
    Index offset_bytes = 0;
    std::optional<Datatype> type;   ///< set if it is neither one run nor packed
    std::vector<LocalCopy> copies;  ///< before it is sent or after it is received; empty if it is in place
    std::size_t slot = 0;           ///< of the channel, if there are copies
};

struct Channel {
    int peer = 0;
    bool sends = false;
    std::vector<Packet> pieces;
};

inline constexpr std::size_t channel_slots = 4;

/// How transfers become messages; the same on both ends.
struct Framing {
    Index piece_bytes = 0;  ///< 0: one message for each transfer, and nothing is packed unless it is cast
};

/// The channels between this rank and all ranks outside its node. Their slots follow `staged_bytes` in the staging, and
/// this adds the bytes that they need. Errors: MPI's, for datatypes.
[[nodiscard]] Result<std::vector<Channel>> make_channels(std::span<const ChannelStep> steps, const NodeMap& nodes,
                                                         const Framing& framing, Index& staged_bytes);

}  // namespace reshard::mpi
