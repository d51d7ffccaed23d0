// Steps as MPI will run them: messages with their datatypes, copies and collectives, made once and relative to buffers
// that are bound later.
#pragma once

#include <memory>

#include "backends/mpi/messages/channel.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard::mpi {

/// Staged boxes and parts of a reduction alternate between two slots, so that one arrives while the other is added.
inline constexpr Index staging_slots = 2;
/// If the boxes of a sum are cut into pieces, it may have more slots. Then MPI need not keep the pieces that arrive
/// early.
inline constexpr Index piece_slots = 8;

/// A message between this rank and a peer, from or to where it lies.
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

/// One receive of a sum. `message` is empty for the rank's own share. A message that only stores is received in place;
/// one that adds is received into a staging slot, and then added. Landings are in the order of the schedule, or piece
/// by piece and each piece in that order.
struct Landing {
    std::optional<Message> message;
    std::vector<LocalCopy> stores;
    std::vector<LocalCombine> adds;
};

/// MPI's own reduction over a group, part by part. MPI cannot take back a collective and writes into its buffer when a
/// late rank comes at last, so that each part is reduced in a staging slot and never where the caller's tiles lie.
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
    std::vector<Part> parts;  ///< all members cut them equally; they take the slots in turn
};

/// The work of one step of one array, without the copies between ranks. Channels or the node do those. In order: fills;
/// messages, collective and landings; scaling.
struct MessageStep {
    std::string name;  ///< for errors: "array 0, step 2 (all_gather)"
    std::size_t array = 0;
    std::vector<std::pair<BufferId, BoxFill>> fills;
    std::vector<Sends> sends;       ///< of a sum
    std::vector<LocalCopy> copies;  ///< what the rank keeps
    std::vector<Landing> landings;
    Index slots = staging_slots;  ///< that staged landings take in turn
    std::shared_ptr<Reduction> reduction;
    std::vector<std::pair<BufferId, BoxScale>> scales;
};

/// Which part of a step's copies the step itself does.
struct Carriage {
    bool own_share = true;     ///< the step itself copies what the rank keeps
    bool sums = true;          ///< the step itself adds up, by messages; otherwise the node does
    Index staging_bytes = 0;   ///< for a sum: see staged_bytes
    Index part_bytes_max = 0;  ///< of MPI's own reductions; the same on all ranks
    Index piece_bytes = 0;     ///< of the messages of this step, where it adds up; 0: each box is one message
};

/// True when all boxes that this rank receives in a sum are one and the same, each from another rank. Pieces of them
/// may then come in turn from all peers, and each element is added up in the order of the schedule nevertheless.
[[nodiscard]] bool receives_alike(const Schedule& schedule);

[[nodiscard]] Result<MessageStep> make_message_step(const RankStep& step, DType dtype, std::size_t array,
                                                    const Carriage& carriage);

/// The staging that a step needs to add up. Reads all of `carriage` except `staging_bytes`.
[[nodiscard]] Index staged_bytes(const RankStep& step, DType dtype, const Carriage& carriage);

}  // namespace reshard::mpi
