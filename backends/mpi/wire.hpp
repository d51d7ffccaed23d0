// Steps as MPI will run them: messages with their datatypes, copies and collectives, made once and relative to buffers
// that are bound later.
#pragma once

#include "backends/mpi/stream.hpp"
#include "src/arrivals.hpp"

namespace reshard::mpi {

/// A message between this rank and a peer, from or to where it lies.
struct Message {
    int peer = 0;
    Where where = Where::source;
    Index offset_bytes = 0;
    Index bytes = 0;
    Datatype type;
};

struct LocalCombine {
    Where from = Where::source;
    Where to = Where::target;
    BoxCombine combine;
};

/// One receive of a sum, in the order of the schedule. `message` is empty for the rank's own share. A message that only
/// stores is received in place; one that adds is received into one of the two staging slots, and then added.
struct Landing {
    std::optional<Message> message;
    std::vector<LocalCopy> stores;
    std::vector<LocalCombine> adds;
};

/// A gather whose blocks are equal and lie one after another in the target: MPI's own.
struct Gather {
    std::vector<Index> members;  ///< in the order of their blocks
    MPI_Comm communicator = MPI_COMM_NULL;
    Message send;
    Message receive;  ///< its type is one block
};

/// MPI's own reduction over a group, between dense tiles: the caller's where they are dense, else staging.
struct Reduction {
    std::vector<Index> members;
    MPI_Comm communicator = MPI_COMM_NULL;
    DType dtype = DType::f32;
    Index elements = 0;
    Where from = Where::source;
    Where to = Where::target;
    Index from_offset = 0;
    Index to_offset = 0;
    Datatype type;
    Operation sum;
};

/// What one step of one array does by itself: all but the copies between ranks, which go in streams or through the
/// node. In order: fills and packing; messages and collective; landings; unpacking; scaling.
struct WireStep {
    std::string name;  ///< for errors: "array 0, step 2 (all_gather)"
    std::size_t array = 0;
    std::vector<std::pair<Where, BoxFill>> fills;
    std::vector<LocalCopy> packs;
    std::vector<Message> sends;     ///< of a sum
    std::vector<LocalCopy> copies;  ///< what the rank keeps
    std::vector<Landing> landings;
    std::optional<Gather> gather;
    std::optional<Reduction> reduction;
    std::vector<LocalCopy> unpacks;
    std::vector<std::pair<Where, BoxScale>> scales;
};

/// A sum's staged boxes alternate between two slots of `slot_bytes`, so that one arrives while the other is added.
inline constexpr Index staging_slots = 2;

/// Can this step be MPI's own gather here? All members must say so before any of them builds it that way.
[[nodiscard]] bool gathers_in_place(const RankStep& step, DType dtype);

/// Who moves what a step copies.
struct Carriage {
    bool gather = false;    ///< MPI's own gather; else streams, and
    bool own_share = true;  ///< the step itself for what the rank keeps
    bool sums = true;       ///< the step itself, by messages; else the node
    Index slot_bytes = 0;   ///< the size of a staging slot for all sums: see staged_bytes
};

[[nodiscard]] Result<WireStep> make_wire_step(const RankStep& step, DType dtype, std::size_t array,
                                              const Carriage& carriage);

/// What a step needs of one staging slot.
[[nodiscard]] Index staged_bytes(const RankStep& step, DType dtype);

}  // namespace reshard::mpi
