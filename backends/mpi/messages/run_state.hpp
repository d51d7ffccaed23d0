// State that the parts of one run share: the stage that is running, the places of its tiles, and the first failure.
#pragma once

#include <chrono>

#include "backends/mpi/base/roll.hpp"
#include "backends/mpi/messages/stage.hpp"

namespace reshard::mpi {

/// The inputs of a run. All of them outlive it.
struct RunPlan {
    MPI_Comm communicator = MPI_COMM_NULL;
    const Standing* standing = nullptr;
    const NodeMap* nodes = nullptr;
    std::vector<Stage>* stages = nullptr;
    std::vector<Buffers> buffers;                              ///< of all arrays of the list
    const std::vector<StageBuffers>* stage_buffers = nullptr;  ///< per stage
    std::shared_ptr<Memory> staging;
    std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< of a wait without any event
    std::vector<double>* step_seconds = nullptr;                  ///< one per step, array by array
};

/// The purpose of a message or a collective, as errors name it.
struct Pending {
    static constexpr int collective = -1;  // in place of a peer
    static constexpr std::string_view receiving = "receiving from";
    static constexpr std::string_view sending = "sending to";

    std::string_view doing;
    int peer = collective;
    Index bytes = -1;       ///< expected; -1: not counted
    std::size_t step = 0;   ///< of the stage
    bool in_place = false;  ///< in a tile or workspace of the caller's, not in the staging
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

    /// Messages that came or went, and stages that ended: whether anything happens.
    [[nodiscard]] Index events() const { return events_; }
    void happened(Index events = 1) { events_ += events; }

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// The first failure is kept, and told to the ranks of the node, which may wait in this stage or in a later one.
    void fail(std::string message);
    void note(const Pending& pending, std::string_view what);
    /// The ranks that what is pending waits for.
    void add_peers(const Pending& pending, std::set<int>& peers) const;
    /// True on success.
    bool note_code(const Pending& pending, int code);
    /// A message that is too long is MPI's error; one that is too short is not, and means that the peer has failed.
    bool counted(const Pending& pending, const MPI_Status& status);

private:
    RunPlan plan_;
    std::size_t stage_ = 0;
    Index events_ = 0;
    std::optional<Error> error_;
};

}  // namespace reshard::mpi
