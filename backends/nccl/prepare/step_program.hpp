// Steps as NCCL will run them, piece by piece: packing, messages or a collective, unpacking. They are made once,
// relative to buffers that are bound later.
#pragma once

#include "backends/nccl/base/base.hpp"
#include "backends/nccl/kernels/copy_set.hpp"
#include "backends/nccl/prepare/native_collective.hpp"

namespace reshard::nccl {

/// A run of bytes. In staging, its offset counts from the start of the slot that the piece takes.
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
    std::vector<CopySet> unpacks;  ///< one after another: later ones add to the results of earlier ones
};

/// Two slots of staging take turns: one piece is packed while the last one travels.
inline constexpr Index slots_max = 2;

struct StepProgram {
    std::string name;              ///< for errors: "array 0, step 2 (all_gather)"
    std::vector<Index> peers;      ///< the ranks that it waits for
    std::vector<CopySet> before;   ///< fills, then the rank's own share
    std::vector<Piece> pieces;     ///< empty if nothing travels
    CopySet after;                 ///< scales, once everything has arrived
    std::shared_ptr<Group> group;  ///< of the collective; null: messages use the whole communicator
    Index slot_bytes = 0;
    [[nodiscard]] Index staging_bytes() const {
        return slot_bytes * std::min<Index>(slots_max, static_cast<Index>(pieces.size()));
    }
};

/// The agreement of all ranks on one step.
struct Agreed {
    std::optional<NcclCollective> regular;  ///< set if it is a collective and this rank is a member
    bool direct = false;                    ///< no rank stages anything
    Index elements_max = index_max;         ///< of a piece from one rank to another
};

[[nodiscard]] std::string name_of(const RankStep& step, std::size_t array);

/// Both ends agree on the pieces, since these follow from their boxes and from the agreement.
[[nodiscard]] StepProgram make_step_program(const RankStep& step, std::size_t array, const Agreed& agreed);

/// True if every message of the step goes straight from or to the tile, as a whole. False if the step casts.
[[nodiscard]] bool nothing_packed(const RankStep& step);

/// True if cutting a sum into pieces keeps the order of the additions for each element.
[[nodiscard]] bool order_survives_cutting(const Schedule& schedule);

}  // namespace reshard::nccl
