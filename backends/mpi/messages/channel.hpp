// The messages from one rank to another, all of about one size: long transfers are cut, short ones share a message. If
// a message is one run of bytes at an end, that end sends or receives it in place. Otherwise it is packed into a slot.
// There are a few slots, so that some are under way while another is packed.
#pragma once

#include <optional>
#include <span>

#include "backends/mpi/messages/datatype.hpp"
#include "backends/mpi/shm/node_map.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard::mpi {

/// A step whose transfers go between nodes, of an array of the list; null where MPI itself moves that array.
struct ChannelStep {
    std::size_t array = 0;
    const RankStep* step = nullptr;
    Index element_bytes = 1;
};

/// A copy between the memory of one array and the staging, or within the array's.
struct LocalCopy {
    std::size_t array = 0;
    BufferId from = BufferId::source;
    BufferId to = BufferId::target;
    BoxCopy copy;
};

/// One message of a channel: where it lies, or how it gets to its slot and from there.
struct Packet {
    Index bytes = 0;
    std::size_t step = 0;  ///< the first step of its transfers, counted in the stage
    std::size_t array = 0;
    BufferId where = BufferId::source;
    Index offset_bytes = 0;
    std::optional<Datatype> type;   ///< where it is not one run and not packed either
    std::vector<LocalCopy> copies;  ///< before it is sent or after it is received; none where it stays in place
    std::size_t slot = 0;           ///< of the channel, when there are copies
};

struct Channel {
    int peer = 0;
    bool sends = false;
    std::vector<Packet> pieces;
};

inline constexpr std::size_t channel_slots = 4;

/// How transfers become messages, the same on both ends.
struct Framing {
    Index piece_bytes = 0;  ///< 0: a message for each transfer, and nothing is packed
};

/// The channels between this rank and all others that are not on its node. `staged_bytes` is what their slots need of
/// the staging, from its start. Errors: MPI's, of datatypes.
[[nodiscard]] Result<std::vector<Channel>> make_channels(std::span<const ChannelStep> steps, const NodeMap& nodes,
                                                         const Framing& framing, Index& staged_bytes);

}  // namespace reshard::mpi
