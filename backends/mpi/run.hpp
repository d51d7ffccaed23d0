// One run of prepared waves: a state machine that test() and wait() both drive.
#pragma once

#include "backends/mpi/stream_run.hpp"
#include "backends/mpi/sum_messages.hpp"

namespace reshard::mpi {

/// After the first failure a run goes on to its end with empty messages in place of its own: no peer waits for what
/// never comes, and each of them sees a short message and fails too. The ranks of the node are told on their board.
class Run final : public Ticket {
public:
    explicit Run(RunPlan plan);
    ~Run() override;
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Result<bool> test() override { return advance(false); }
    Result<void> wait() override;

private:
    Result<bool> advance(bool block);
    void give_up();
    void begin_wave();
    bool finish_wave(bool block);
    void end_wave();
    void begin_gather(std::size_t step);
    void begin_sum();
    bool advance_node(bool block);
    bool advance_sums(bool block);
    template <class Inside>
    bool over_inside(std::optional<Inside>& run, bool block);

    RunState state_;
    StreamRun streams_{state_};
    SumMessages sum_messages_{state_};
    Requests gathers_{state_};
    std::optional<NodeRun> node_;
    std::optional<SumRun> sum_;  // of the wave's sums inside the node the one that runs
    std::size_t next_sum_ = 0;
    bool begun_ = false;
    std::chrono::steady_clock::time_point begun_at_;
};

}  // namespace reshard::mpi
