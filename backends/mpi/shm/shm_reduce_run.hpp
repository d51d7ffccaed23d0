// One run of a ShmReducePlan: a state machine, like a run of ShmCopyPlan.
#pragma once

#include "backends/mpi/shm/shm_reduce_plan.hpp"
#include "backends/mpi/shm/shm_run.hpp"

namespace reshard::mpi {

class ShmReduceRun final : public MailedRun {
public:
    ShmReduceRun(ShmReducePlan& plan, const ShmAddresses& buffers);

private:
    enum class Phase { entering, filling, adding, landing, leaving };

    Result<bool> next(Slice most) override;
    Result<bool> enter(Slice most);
    void read() override;
    void fill();
    void add();
    void land();
    void leave();
    [[nodiscard]] bool reached_by_all(const ShmReducePlan::Array& array) const;
    Result<void> add_directly(ShmReducePlan::Array& array);
    [[nodiscard]] std::uint64_t turn_of(bool added) const;
    [[nodiscard]] ShmReducePlan::Round& round() const { return plan_.rounds_[round_]; }
    [[nodiscard]] std::byte* bounce_buffer(std::size_t rank) const;  // the half of this round

    ShmReducePlan& plan_;
    Phase phase_ = Phase::entering;
    std::size_t round_ = 0;
    std::vector<std::pair<std::size_t, std::size_t>> written_;  // arrays, and the peers that write their targets
    bool direct_ = false;                                       // peers read or write this rank's buffers
    Views views_;                                               // of the peers' buffers
};

}  // namespace reshard::mpi
