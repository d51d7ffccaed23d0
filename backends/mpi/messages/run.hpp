// One run of prepared stages: a state machine that test() and wait() both drive.
#pragma once

#include "backends/mpi/messages/channel_run.hpp"
#include "backends/mpi/messages/message_reduce.hpp"
#include "backends/mpi/messages/reduction_run.hpp"

namespace reshard::mpi {

/// After the first failure a run goes on to its end, but with empty messages in place of its own. So no peer waits for
/// a message that never comes: each one sees a short message and fails too. Signals tell the ranks of the node.
class Run final : public Ticket {
public:
    explicit Run(RunPlan plan);
    ~Run() override;

    Result<bool> test() override;
    Result<bool> wait_for(Index microseconds) override;
    [[nodiscard]] bool has_sent() const override;
    [[nodiscard]] bool has_arrived() const override;

private:
    using Clock = std::chrono::steady_clock;

    Result<bool> advance(Slice most);
    [[nodiscard]] bool ends_in_time();
    void abandon(std::string_view why);
    [[nodiscard]] std::set<int> awaited() const;
    void begin_stage();
    bool finish_stage(Slice most);
    void end_stage();
    void begin_sum();
    bool advance_node(Slice most);
    bool advance_sums(Slice most);
    template <class Inside>
    bool over_inside(std::optional<Inside>& run, Slice most);

    RunState state_;
    ChannelRun channels_{state_};
    MessageReduce sum_messages_{state_};
    ReductionRun reductions_{state_};
    std::optional<ShmCopy> node_;
    std::optional<ShmReduceRun> sum_;  // the reduction inside the node that runs now
    std::size_t next_sum_ = 0;
    bool first_stage_ = true;
    bool begun_ = false;
    Clock::time_point begun_at_;
    Index events_ = 0;
    Clock::time_point since_ = Clock::now();  // nothing has happened since then
    Clock::time_point polled_ = since_;
    Clock::time_point asked_ = since_;
    bool said_waiting_ = false;
};

}  // namespace reshard::mpi
