// Steps as MPI will run them: messages with their datatypes, copies and collectives, made once and relative to buffers
// that are bound later.
#pragma once

#include <memory>

#include "backends/mpi/messages/channel.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard::mpi {

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

/// One receive of a sum, in the order of the schedule. `message` is empty for the rank's own share. A message that only
/// stores is received in place; one that adds is received into one of the two staging slots, and then added.
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
    std::vector<Part> parts;  ///< cut alike on all members; they take the slots in turn
};

/// What one step of one array does by itself: all but the copies between ranks, which go by channels or through the
/// node. In order: fills; messages, collective and landings; scaling.
struct MessageStep {
    std::string name;  ///< for errors: "array 0, step 2 (all_gather)"
    std::size_t array = 0;
    std::vector<std::pair<BufferId, BoxFill>> fills;
    std::vector<Message> sends;     ///< of a sum
    std::vector<LocalCopy> copies;  ///< what the rank keeps
    std::vector<Landing> landings;
    std::shared_ptr<Reduction> reduction;
    std::vector<std::pair<BufferId, BoxScale>> scales;
};

/// A sum's staged boxes alternate between two slots of `slot_bytes`, so that one arrives while the other is added.
inline constexpr Index staging_slots = 2;

/// Which part of a step's copies the step itself does.
struct Carriage {
    bool own_share = true;     ///< the step itself for what the rank keeps
    bool sums = true;          ///< the step itself, by messages; else the node
    Index slot_bytes = 0;      ///< the size of a staging slot for all sums: see staged_bytes
    Index part_bytes_max = 0;  ///< of MPI's own reductions; the same on all ranks
};

[[nodiscard]] Result<MessageStep> make_message_step(const RankStep& step, DType dtype, std::size_t array,
                                                    const Carriage& carriage);

/// What a step needs of one staging slot.
[[nodiscard]] Index staged_bytes(const RankStep& step, DType dtype, Index part_bytes_max);

}  // namespace reshard::mpi
