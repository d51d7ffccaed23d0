// The state that the parts of one run share: the current stage, where its tiles lie, and the first failure.
#pragma once

#include <chrono>

#include "backends/mpi/base/standing.hpp"
#include "backends/mpi/messages/stage.hpp"

namespace reshard::mpi {

/// The inputs of a run; all of them outlive it.
struct RunPlan {
    MPI_Comm communicator = MPI_COMM_NULL;
    const Standing* standing = nullptr;
    const NodeMap* nodes = nullptr;
    std::vector<Stage>* stages = nullptr;
    std::vector<Buffers> buffers;                              ///< of all arrays of the list
    const std::vector<StageBuffers>* stage_buffers = nullptr;  ///< per stage
    std::shared_ptr<Memory> staging;
    std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< of a wait while nothing comes
    std::vector<double>* step_seconds = nullptr;                  ///< one per step, array by array
};

/// The purpose of a message or a collective, as error messages state it.
struct Pending {
    static constexpr int collective = -1;  // in place of a peer
    static constexpr std::string_view receiving = "receiving from";
    static constexpr std::string_view sending = "sending to";

    std::string_view doing;
    int peer = collective;
    Index bytes = -1;       ///< expected; -1: not counted
    std::size_t step = 0;   ///< its number in the stage
    bool in_place = false;  ///< in a tile or workspace of the caller, not in the staging
};

class RunState {
public:
    explicit RunState(RunPlan plan) : plan_(std::move(plan)) {}

    [[nodiscard]] const RunPlan& plan() const { return plan_; }
    [[nodiscard]] bool over() const { return stage_ == plan_.stages->size(); }
    [[nodiscard]] Stage& stage() const { return (*plan_.stages)[stage_]; }
    [[nodiscard]] const StageBuffers& stage_buffers() const { return (*plan_.stage_buffers)[stage_]; }
    [[nodiscard]] int tag() const;
    void next_stage() { ++stage_; }
    void end() { stage_ = plan_.stages->size(); }

    [[nodiscard]] const std::byte* read(std::size_t array, BufferId where) const;
    [[nodiscard]] std::byte* write(std::size_t array, BufferId where) const;
    void copy(const LocalCopy& local, Store store = Store::cached) const;
    void copy(const std::vector<LocalCopy>& copies, Store store = Store::cached) const;

    /// Counts messages that came or went, and stages that ended. If it stands still, nothing happens.
    [[nodiscard]] Index events() const { return events_; }
    void happened(Index events = 1) { events_ += events; }

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// Keeps the first failure, and tells it to the ranks of the node, which may wait in this stage or in a later one.
    void fail(std::string message);
    void note(const Pending& pending, std::string_view what);
    /// Adds the ranks that a pending message or collective waits for.
    void add_peers(const Pending& pending, std::set<int>& peers) const;
    /// Notes a failure. True on success.
    bool note_code(const Pending& pending, int code);
    /// True if a message has the expected length. A longer one is an error of MPI. A shorter one is no error to MPI; it
    /// means that the peer has failed, and this notes it.
    bool counted(const Pending& pending, const MPI_Status& status);

private:
    RunPlan plan_;
    std::size_t stage_ = 0;
    Index events_ = 0;
    std::optional<Error> error_;
};

}  // namespace reshard::mpi
