// What one rank sends to another, or receives from it, in messages of about one size: long transfers are cut, short
// ones share a message. Where a piece is one run of bytes at an end, that end leaves it where it lies; else it is
// packed into a slot, of which there are a few: while some are on the wire or announced, another is copied.
#pragma once

#include <optional>
#include <span>

#include "backends/mpi/messages/datatype.hpp"
#include "backends/mpi/shm/node_map.hpp"
#include "reshard/algebra/storage.hpp"

namespace reshard::mpi {

/// A step whose transfers travel, of an array of the list; null where that array's are MPI's own business.
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

/// One message of a stream: where it lies, or how it gets to its slot and from there.
struct Packet {
    Index bytes = 0;
    std::size_t step = 0;  ///< the first of its transfers' steps, among those of the wave
    std::size_t array = 0;
    BufferId where = BufferId::source;
    Index offset_bytes = 0;
    std::optional<Datatype> type;   ///< where it is not one run and not packed either
    std::vector<LocalCopy> copies;  ///< before it is sent or after it is received; none where it stays in place
    std::size_t slot = 0;           ///< of the stream, when there are copies
};

struct Channel {
    int peer = 0;
    bool sends = false;
    std::vector<Packet> pieces;
};

inline constexpr std::size_t stream_slots = 4;

/// How transfers become messages, the same on both ends.
struct Framing {
    Index piece_bytes = 0;  ///< 0: a message for each transfer, and nothing is packed
};

/// The streams between this rank and all others that are not on its node; `staged_bytes` is what their slots need of
/// the staging, from its start. Errors: MPI's, of datatypes.
[[nodiscard]] Result<std::vector<Channel>> make_streams(std::span<const ChannelStep> steps, const NodeMap& nodes,
                                                        const Framing& framing, Index& staged_bytes);

}  // namespace reshard::mpi
