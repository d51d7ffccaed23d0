// Steps as MPI will run them: messages with their datatypes, copies and collectives. They are made once, relative to
// buffers that are bound later.
#pragma once

#include <memory>

#include "backends/mpi/messages/channel.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard::mpi {

/// Staged boxes and parts of a reduction alternate between two slots: one arrives while the other is added.
inline constexpr Index staging_slots = 2;
/// If the boxes of a sum are cut into pieces there may be more slots, so that MPI need not buffer early messages.
inline constexpr Index piece_slots = 8;

/// A message between this rank and a peer, and where its data lies.
struct Message {
    int peer = 0;
    BufferId where = BufferId::source;
    Index offset_bytes = 0;
    Index bytes = 0;
    Datatype type;
};

struct LocalCombine {
    BufferId from = BufferId::source;
    BufferId to = BufferId::target;
    BoxCombine combine;
};

/// The messages of a sum to one peer, in their order.
struct Sends {
    int peer = 0;
    std::vector<Message> messages;
};

/// One receive of a sum. `message` is empty for the rank's own share. A message that only stores is received in place.
/// A message that adds is received into a staging slot, and then added. Landings follow the order of the schedule. If
/// boxes are cut into pieces, all landings of a piece come before the next piece, each in that order.
struct Landing {
    std::optional<Message> message;
    std::vector<LocalCopy> stores;
    std::vector<LocalCombine> adds;
};

/// MPI's own reduction over a group, part by part. MPI cannot take back a collective, and it writes into its buffer
/// when a late rank comes at last. So each part is reduced in a staging slot, and never in the caller's tiles.
struct Reduction {
    struct Part {
        LocalCopy in;
        LocalCopy out;
        Index slot_offset = 0;
        int elements = 0;
    };
    std::vector<Index> members;
    MPI_Comm communicator = MPI_COMM_NULL;
    Datatype type;
    Operation sum;
    std::vector<Part> parts;  ///< cut in the same way on all members; they take the slots in turn
};

/// The work of one step of one array, except for copies between ranks, which go through channels or the node. It runs
/// fills, then messages, the collective and landings, then scaling.
struct MessageStep {
    std::string name;  ///< for errors: "array 0, step 2 (all_gather)"
    std::size_t array = 0;
    std::vector<std::pair<BufferId, BoxFill>> fills;
    std::vector<Sends> sends;       ///< of a sum
    std::vector<LocalCopy> copies;  ///< the share that the rank keeps
    std::vector<Landing> landings;
    Index slots = staging_slots;  ///< staged landings take them in turn
    std::shared_ptr<Reduction> reduction;
    std::vector<std::pair<BufferId, BoxScale>> scales;
};

/// The part of a step's work that the step does itself.
struct Carriage {
    bool own_share = true;     ///< it copies the share that the rank keeps
    bool sums = true;          ///< it adds up by messages; false: the node adds up
    Index staging_bytes = 0;   ///< for a sum: see staged_bytes
    Index part_bytes_max = 0;  ///< of MPI's own reductions; the same on all ranks
    Index piece_bytes = 0;     ///< of the messages of a sum; 0: each box is one message
};

/// True if all boxes that this rank receives in a sum are the same box, each from another rank. Pieces may then come in
/// turn from all peers, and each element is still added up in the order of the schedule.
[[nodiscard]] bool receives_alike(const Schedule& schedule);

[[nodiscard]] Result<MessageStep> make_message_step(const RankStep& step, DType dtype, std::size_t array,
                                                    const Carriage& carriage);

/// The staging that a step needs to add up. Does not read `carriage.staging_bytes`.
[[nodiscard]] Index staged_bytes(const RankStep& step, DType dtype, const Carriage& carriage);

}  // namespace reshard::mpi
