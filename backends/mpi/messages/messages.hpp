// Arrays that move step by step: through the memory of the node, and in messages between nodes. Datatypes, groups and
// staging are made once.
#pragma once

#include "backends/mpi/messages/inside_run.hpp"
#include "backends/mpi/messages/reduce_groups.hpp"
#include "backends/mpi/messages/run.hpp"
#include "backends/mpi/shm/arena.hpp"

namespace reshard::mpi {

/// The plan of an array, and the number of the array in the list.
struct MessagePlan {
    std::size_t array = 0;
    const RankPlan* plan = nullptr;
};

/// The ranks that run a list, and the memory that they may hold.
struct MessageSetting {
    MPI_Comm communicator = MPI_COMM_NULL;  ///< outlives the messages, as do `nodes` and `standing`
    const Standing* standing = nullptr;
    const NodeMap* nodes = nullptr;
    std::shared_ptr<Arena> arena;
    Options options;
    Index staging_bytes_max = index_max;
};

/// Buffers that are bound to the messages of a list.
class MessageBound : public Bound {
public:
    virtual Result<void> renew() = 0;  ///< before a start: see ShmAddresses::renew
    virtual bool unbind() = 0;         ///< see Rebindable::unbind; if false, it is of no more use
};

class Messages {
public:
    /// Collective over the communicator. The whole list has so many `arrays`.
    Result<void> make(const MessageSetting& setting, const std::vector<MessagePlan>& plans, std::size_t arrays);

    [[nodiscard]] bool empty() const { return steps_ == 0; }
    [[nodiscard]] Index staging_bytes() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] Result<std::unique_ptr<MessageBound>> bind(std::span<const Buffers> buffers);
    /// True if the only array can move within one call, in the node.
    [[nodiscard]] bool runs_inside() const { return inside_.has_value(); }
    /// Binds the buffers of the next run_inside(). pre: runs_inside, and no memory is registered.
    Result<void> bind_inside(const Buffers& buffers) {
        return inside_->bind(stages_, order_, *setting_.arena, buffers);
    }
    Result<void> run_inside(const InsideRun::Agree& agree) {
        return inside_->run(stages_, setting_.nodes->members.size(), agree);
    }

    /// Adds the ranks that this rank exchanges messages with.
    void add_peers(std::set<int>& peers) const;
    void add_signals(std::vector<Signals*>& signals) const;
    /// Hands over the groups' communicators, which must outlive any message that is still in flight on them.
    [[nodiscard]] std::vector<Communicator> take_communicators();

private:
    Result<void> arrange(const std::vector<MessagePlan>& plans, std::size_t arrays);
    Result<void> order(const std::vector<MessagePlan>& plans, const std::vector<ReduceGroups>& sums);
    Result<bool> find_room(std::size_t arrays);
    Result<void> make_node_plans(std::size_t arrays);
    Result<void> make_sum_plans(std::size_t arrays);
    Result<void> find_part_bytes();
    [[nodiscard]] Result<std::vector<char>> in_pieces() const;
    Result<void> make_steps(const std::vector<char>& in_pieces);
    Result<void> make_all_channels();
    Result<bool> channels_within(const Framing& framing, Index room);
    Result<void> take_staging();
    Result<void> make_groups();
    Result<MPI_Comm> join(const std::vector<Index>& members);
    [[nodiscard]] Index held_by_nodes() const;

    MessageSetting setting_;
    std::map<std::vector<Index>, Communicator> groups_;
    std::vector<std::vector<StageStep>> order_;
    std::vector<Stage> stages_;        // one for each entry of order_
    std::vector<char> inside_stages_;  // 1: ranks of the node copy from each other in that stage
    Options inside_options_;           // with bounce buffers that fit the limit
    std::optional<InsideRun> inside_;
    std::size_t steps_ = 0;
    Index part_bytes_max_ = 0;  // of MPI's own reductions
    Index sum_bytes_ = 0;       // of the slots for sums
    Index channel_bytes_ = 0;   // of the slots for channels; stages and sums take turns
    Framing framing_;
    std::shared_ptr<Memory> staging_;  // outlives any request that MPI still has in it
};

}  // namespace reshard::mpi
