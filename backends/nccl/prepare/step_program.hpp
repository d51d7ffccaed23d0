// Steps as NCCL will run them: packing, messages or a collective, unpacking, piece by piece; made once and relative to
// buffers that are bound later.
#pragma once

#include "backends/nccl/base/base.hpp"
#include "backends/nccl/kernels/copy_set.hpp"
#include "backends/nccl/prepare/native_collective.hpp"

namespace reshard::nccl {

/// A run of bytes. In staging, offsets of a piece count from the start of the slot that the piece takes.
struct Run {
    BufferId where = BufferId::source;
    Index offset_bytes = 0;
    Index bytes = 0;
};

struct Message {
    int peer = 0;
    Run run;
};

struct Collective {
    StepKind native = StepKind::all_gather;
    ncclDataType_t type = ncclUint8;
    ncclRedOp_t op = ncclSum;
    std::size_t count = 0;  ///< of one block, in elements of `type`
    Run gives;
    Run takes;
};

struct Piece {
    CopySet packs;
    std::vector<Message> sends;
    std::vector<Message> receives;
    std::optional<Collective> collective;
    std::vector<CopySet> unpacks;  ///< one after another: later ones add to what earlier ones stored
};

/// Two slots of staging take turns, so that one piece is packed while the last one travels.
inline constexpr Index slots_max = 2;

struct StepProgram {
    std::string name;              ///< for errors: "array 0, step 2 (all_gather)"
    std::vector<Index> peers;      ///< whom it waits for
    std::vector<CopySet> before;   ///< fills, then the rank's own share
    std::vector<Piece> pieces;     ///< none where nothing travels
    CopySet after;                 ///< scales, once all has arrived
    std::shared_ptr<Group> group;  ///< of the collective; else messages go over the whole communicator
    Index slot_bytes = 0;
    [[nodiscard]] Index staging_bytes() const {
        return slot_bytes * std::min<Index>(slots_max, static_cast<Index>(pieces.size()));
    }
};

/// What all ranks agreed on for one step.
struct Agreed {
    std::optional<NcclCollective> regular;  ///< when it is a collective, and this rank is a member
    bool direct = false;                    ///< nobody stages anything
    Index elements_max = index_max;         ///< of a piece of what one rank sends to another
};

[[nodiscard]] std::string name_of(const RankStep& step, std::size_t array);

/// Both ends agree on what a piece is because it follows from their boxes and from what was agreed.
[[nodiscard]] StepProgram make_step_program(const RankStep& step, DType dtype, std::size_t array, const Agreed& agreed);

/// True when every message of the step goes straight from or to the tile, as a whole.
[[nodiscard]] bool nothing_packed(const RankStep& step, DType dtype);

/// True when cutting a sum into pieces leaves the order in which each element is added.
[[nodiscard]] bool order_survives_cutting(const Schedule& schedule);

}  // namespace reshard::nccl
