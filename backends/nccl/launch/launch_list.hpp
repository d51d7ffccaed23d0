// A run as a list of launches, calls and events, in the order of issue, written when buffers are bound. Its start
// allocates nothing and does not wait for the device.
#pragma once

#include <variant>

#include "backends/nccl/prepare/prepared.hpp"

namespace reshard::nccl {

/// The stream of an action: the stream of the run, or the stream of the messages.
enum class On { queue, transfers };

/// Launches [begin, end) of the list.
struct Launches {
    std::size_t begin = 0;
    std::size_t end = 0;
};

struct Call {
    Collective collective;
    std::byte* gives;
    std::byte* takes;
    std::shared_ptr<Communicator> communicator;
};

struct Record {
    cudaEvent_t event;
};
struct Wait {
    cudaEvent_t event;
};
struct StepEnds {};  ///< recorded by an event, unless a graph is being captured

struct Action {
    std::size_t step;  ///< of the list
    On on;
    std::variant<Launches, Exchange, Call, Record, Wait, StepEnds> what;
};

class LaunchList {
public:
    /// Copies all boxes to the device. Errors: mismatch if a buffer is not aligned; backend.
    [[nodiscard]] static Result<LaunchList> write(const Ready& ready, std::span<const Buffers> buffers);

    /// Issues the actions in order. Errors name the step.
    [[nodiscard]] Result<void> issue(const Ready& ready, cudaStream_t queue, std::span<const Event> step_ends) const;

    [[nodiscard]] std::size_t step_count() const { return steps_.size(); }
    /// Describes a step and the ranks that it waits for: "array 0, step 2 (exchange), with ranks 1 and 3".
    [[nodiscard]] std::string describe_step(std::size_t step) const;

private:
    friend class Writer;
    [[nodiscard]] Result<void> issue_one(const Action& action, const Ready& ready, cudaStream_t stream) const;

    std::vector<const StepProgram*> steps_;
    std::vector<Action> actions_;
    std::vector<Launch> launches_;
    StreamMemory boxes_;
};

}  // namespace reshard::nccl
