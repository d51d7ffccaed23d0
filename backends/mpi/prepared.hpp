// A prepared list of arrays. It decides which arrays move through shared memory and which by messages, and runs both.
#pragma once

#include "backends/mpi/base/standing.hpp"
#include "backends/mpi/messages/messages.hpp"
#include "backends/mpi/messages/parcels.hpp"
#include "backends/mpi/shm/shm_copy.hpp"
#include "src/execute/rebindable.hpp"

namespace reshard::mpi {

class MpiPrepared final : public Prepared, public AtOnce {
public:
    /// `communicator` belongs to this list alone: executors side by side cannot take each other's messages. No run that
    /// agrees starts after the end of the roll.
    MpiPrepared(Roll& roll, Communicator communicator, std::shared_ptr<RepeatedMemory> repeated)
        : communicator_(std::move(communicator)), roll_(roll), standing_(roll), repeated_(std::move(repeated)) {}
    ~MpiPrepared() override;

    /// Collective. The nodes outlive it.
    Result<void> make(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena, const NodeMap& nodes,
                      const Options& options, Index staging_bytes_max);

    [[nodiscard]] Index staging_bytes() const override {
        return messages_.staging_bytes() + (node_ ? node_->held_bytes() : 0);
    }
    [[nodiscard]] std::string describe() const override;
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override;
    void abandon(const Error& why) override;
    void report_failure(const Error& why) override;
    /// One array in a node, in any number of steps, if no memory is or will be registered: a run keeps such memory
    /// registered. Or a small array between nodes, if the ranks agree.
    [[nodiscard]] bool moves_at_once(bool agrees) const override;
    Result<void> move_at_once(const Buffers& buffers, const Agreed* agreed) override;

private:
    friend class BothRuns;
    friend class MpiBound;

    void begin_run();
    /// A move whose data travel with the agreement. After it nothing can fail.
    Result<void> move_by_letters(const Buffers& buffers, const Agreed& agreed);
    /// Lets the ranks agree, unless `agreed` is null. If `carrier` is not null, its messages are sent at once, and say
    /// that this rank has come to agree. `alone` as in Roll::send_with.
    Result<void> agree_with(Carrier* carrier, bool alone, const Agreed* agreed);
    void finish_run();
    Result<void> make_ways(std::vector<RankPlan> plans, const std::shared_ptr<Arena>& arena, const NodeMap& nodes,
                           const Options& options, Index staging_bytes_max);
    Result<void> vote(bool node);
    Result<void> make_parcels();

    Communicator communicator_;
    Roll& roll_;
    Standing standing_;
    std::vector<RankPlan> plans_;
    std::vector<Index> source_bytes_;  // per array
    std::vector<Index> target_bytes_;
    std::vector<char> moves_;                   // per array: through shared memory
    std::unique_ptr<ShmCopyPlan> node_;         // null if none does
    std::shared_ptr<RepeatedMemory> repeated_;  // null if nothing is registered by itself
    Messages messages_;
    std::optional<Parcels> parcels_;  // of runs that agree, if the ranks vote
    std::vector<Signals*> signals_;
    std::optional<ShmAddresses> at_once_;  // of a move within one call; of one array in a node
    bool excused_ = false;
};

}  // namespace reshard::mpi
