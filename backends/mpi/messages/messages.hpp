// Arrays that move step by step: what goes through the memory of the node and what in messages between nodes, their
// datatypes, groups and staging, made once.
#pragma once

#include "backends/mpi/messages/reduce_groups.hpp"
#include "backends/mpi/messages/run.hpp"
#include "backends/mpi/shm/arena.hpp"

namespace reshard::mpi {

/// An array of the list, and its number there.
struct MessagePlan {
    std::size_t array = 0;
    const RankPlan* plan = nullptr;
};

/// The ranks of a list, and what they may hold.
struct MessageSetting {
    MPI_Comm communicator = MPI_COMM_NULL;  ///< outlives the messages; so do the nodes and the standing
    const Standing* standing = nullptr;
    const NodeMap* nodes = nullptr;
    std::shared_ptr<Arena> arena;
    Options options;
    Index staging_bytes_max = index_max;
};

/// Buffers bound to arrays that run step by step.
class MessageBound : public Bound {
public:
    virtual Result<void> renew() = 0;  ///< before a start: see ShmAddresses::renew
};

class Messages {
public:
    /// Collective over the communicator. `arrays` is their number in the whole list.
    Result<void> make(const MessageSetting& setting, const std::vector<MessagePlan>& plans, std::size_t arrays);

    [[nodiscard]] bool empty() const { return steps_ == 0; }
    [[nodiscard]] Index staging_bytes() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] Result<std::unique_ptr<MessageBound>> bind(std::span<const Buffers> buffers);

    /// Adds the ranks with which this rank exchanges messages.
    void add_peers(std::set<int>& peers) const;
    void add_signals(std::vector<Signals*>& signals) const;
    /// The groups' communicators, which outlive the messages that may still be under way on them.
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
    std::vector<Stage> stages_;        // in the same order
    std::vector<char> inside_stages_;  // stages in which ranks of the node copy from each other
    Options inside_options_;           // with bounce buffers for which there is room
    std::size_t steps_ = 0;
    Index part_bytes_max_ = 0;  // of MPI's own reductions
    Index sum_bytes_ = 0;       // of the slots of sums
    Index channel_bytes_ = 0;   // of the slots of channels; stages and sums take turns
    Framing framing_;
    std::shared_ptr<Memory> staging_;  // outlives what MPI still does in it
};

}  // namespace reshard::mpi
