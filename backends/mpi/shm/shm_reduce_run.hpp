// One run of a SumPlan: a state machine like that of the copies inside a node.
#pragma once

#include "backends/mpi/shm/shm_addresses.hpp"
#include "backends/mpi/shm/shm_reduce_plan.hpp"

namespace reshard::mpi {

/// After the first failure it tells all ranks and does nothing more.
class ShmReduceRun {
public:
    ShmReduceRun(ShmReducePlan& plan, const ShmAddresses& buffers);
    Result<bool> advance(Slice most);

private:
    enum class Phase { entering, filling, adding, landing, leaving, over };

    Result<bool> next(Slice most);
    Result<bool> wait(Counter SignalLine::*counter, std::uint64_t least, Slice most);
    Result<bool> enter(Slice most);
    void fill();
    void add();
    void land();
    void leave();
    void turn(std::uint64_t to);
    [[nodiscard]] Address& published(std::size_t rank, std::size_t index) const;
    [[nodiscard]] bool reached_by_all(const ShmReducePlan::Array& array) const;
    Result<void> add_directly(ShmReducePlan::Array& array);
    [[nodiscard]] std::uint64_t turn_of(bool added) const;
    [[nodiscard]] const ShmReducePlan::Round& round() const { return plan_.rounds_[round_]; }
    [[nodiscard]] std::size_t half() const;
    [[nodiscard]] const std::byte* own_source(const ShmReducePlan::Array& array) const;
    [[nodiscard]] std::byte* own_target(const ShmReducePlan::Array& array) const;

    ShmReducePlan& plan_;
    const ShmAddresses& buffers_;
    std::uint64_t run_;
    Phase phase_ = Phase::entering;
    std::size_t round_ = 0;
    bool direct_ = false;  // peers read or write this rank's buffers
    Views views_;          // of the peers' buffers
    Waiting waiting_;
};

}  // namespace reshard::mpi
