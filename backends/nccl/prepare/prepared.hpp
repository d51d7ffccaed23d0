// A prepared list of arrays: the agreement between ranks, communicators, staging, steps.
#pragma once

#include "backends/nccl/prepare/step_program.hpp"

namespace reshard::nccl {

/// Staging in two slots. If wanted, it is registered as a window of the communicators that use it.
class Staging : NonCopyable {
public:
    Staging() = default;
    [[nodiscard]] static Result<std::unique_ptr<Staging>> make(Index bytes);
    ~Staging();

    /// Collective over the communicator, with the same size on all its ranks.
    [[nodiscard]] Result<void> add_window(const std::shared_ptr<Communicator>& communicator,
                                          std::chrono::milliseconds timeout);
    [[nodiscard]] std::byte* start() const { return static_cast<std::byte*>(start_); }

private:
    void* start_ = nullptr;
    Index bytes_ = 0;
    std::vector<std::pair<std::shared_ptr<Communicator>, ncclWindow_t>> windows_;
};

/// The state that runs share. One run is in flight at a time.
struct Ready {
    Base* base = nullptr;
    std::vector<std::vector<StepProgram>> arrays;
    std::vector<std::shared_ptr<Group>> groups;  ///< held on all ranks, so that all drop the same ones
    std::unique_ptr<Staging> staging;
    Index slot_bytes = 0;
    Index staging_bytes = 0;
    std::optional<Stream> transfers;  ///< pieces travel on it while others are packed
    std::vector<Event> packed;        ///< one per slot
    std::vector<Event> moved;         ///< one per slot
};

/// Collective.
[[nodiscard]] Result<std::unique_ptr<Ready>> make_ready(Base& base, const std::vector<RankPlan>& plans);

}  // namespace reshard::nccl
