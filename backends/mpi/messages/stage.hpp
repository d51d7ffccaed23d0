// Steps of different arrays that run at the same time. However many arrays there are, a stage is one pass through the
// memory of the node and one set of channels between nodes.
#pragma once

#include "backends/mpi/messages/message_step.hpp"
#include "backends/mpi/shm/shm_copy.hpp"
#include "backends/mpi/shm/shm_reduce_run.hpp"

namespace reshard::mpi {

/// A step of one array of the list.
struct StageStep {
    std::size_t array = 0;  ///< its number in the list
    const RankPlan* plan = nullptr;
    std::size_t step = 0;     ///< its number in the plan
    std::size_t ordinal = 0;  ///< among the steps of all arrays that go by messages
    /// The ranks of a sum that goes through the memory of the node, ascending. Empty for any other step.
    std::vector<Index> summing = {};

    [[nodiscard]] const RankStep& rank_step() const { return plan->steps[step]; }
    /// True for a copy; false for a sum.
    [[nodiscard]] bool copies() const { return rank_step().schedule.combine == Combine::copy; }
};

/// The plans that the steps of a stage share. See bind_stage for the buffers that they read and write.
struct Stage {
    struct Timed {
        std::size_t ordinal = 0;
        double bytes = 0;  ///< of both tiles: the step's share of the stage's time
    };
    std::vector<MessageStep> steps;
    std::vector<Timed> timed;  ///< per step
    std::vector<Channel> channels;
    Store store = Store::cached;                       ///< for data that arrives by channels
    std::unique_ptr<ShmCopyPlan> node;                 ///< null if no two ranks of the node exchange data
    std::vector<std::unique_ptr<ShmReducePlan>> sums;  ///< inside the node, one after another
};

/// The buffers of a stage's plans.
struct StageBuffers {
    std::optional<ShmAddresses> node;
    std::vector<ShmAddresses> sums;
};

/// The order of all steps. Arrays with a turn go turn by turn, all arrays of a turn together; turns 0 and 1 are one.
/// Then the other arrays go one after another: they take the whole workspace, or add up. See RankPlan::turn.
[[nodiscard]] std::vector<std::vector<StageStep>> stages_of(const std::vector<std::vector<StageStep>>& arrays,
                                                            const std::vector<std::optional<std::size_t>>& turns);

/// True when this rank sends to or receives from another rank of its node.
[[nodiscard]] bool moves_inside(std::span<const StageStep> stage, const NodeMap& nodes);

/// Collective over the node. Plans the copies between its ranks in one stage, for a list of so many arrays.
[[nodiscard]] Result<std::unique_ptr<ShmCopyPlan>> make_node_plan(std::span<const StageStep> stage,
                                                                  const NodeMap& nodes, std::size_t arrays,
                                                                  const std::shared_ptr<Arena>& arena,
                                                                  const Options& options);

/// Collective over `members` (ascending), the ranks of `communicator`. Plans the reductions of a stage among them.
[[nodiscard]] Result<std::unique_ptr<ShmReducePlan>> make_sum_plan(std::span<const StageStep> stage,
                                                                   const std::vector<Index>& members,
                                                                   MPI_Comm communicator, std::size_t arrays,
                                                                   const std::shared_ptr<Arena>& arena,
                                                                   const Options& options);

/// The sets of ranks that reduce inside the node in a stage, each once, in the order of the arrays.
[[nodiscard]] std::vector<std::vector<Index>> summing_ranks(std::span<const StageStep> stage);

/// Binds the buffers that a stage's steps read and write, as source and target.
[[nodiscard]] Result<StageBuffers> bind_stage(const Stage& stage, std::span<const StageStep> steps, Arena& arena,
                                              std::span<const Buffers> buffers);

/// The channels to and from other nodes. Adds the bytes of their slots to `staged_bytes`.
[[nodiscard]] Result<std::vector<Channel>> make_channels(std::span<const StageStep> stage, const NodeMap& nodes,
                                                         const Framing& framing, Index& staged_bytes);

}  // namespace reshard::mpi
