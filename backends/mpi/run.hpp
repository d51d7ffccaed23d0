// One run of prepared steps: a state machine over the steps that test() and wait() both drive.
#pragma once

#include <chrono>
#include <memory>

#include "backends/mpi/wire.hpp"

namespace reshard::mpi {

/// All steps of one array, and its buffers.
struct BoundArray {
    const std::vector<WireStep>* steps = nullptr;
    Buffers buffers;
};

/// What a run needs; all of it outlives the run.
struct RunPlan {
    MPI_Comm communicator = MPI_COMM_NULL;
    std::vector<BoundArray> arrays;
    std::byte* staging = nullptr;
    std::chrono::milliseconds patience = std::chrono::minutes(5);  ///< of a wait for messages, a step
    std::vector<double>* step_seconds = nullptr;                   ///< one per step, array by array
};

/// After the first failure a run goes on to its end with empty messages in place of its own: no peer waits for what
/// never comes, and each of them sees a short message and fails too.
class Run final : public Ticket {
public:
    explicit Run(RunPlan plan);
    ~Run() override;
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    Result<bool> test() override { return advance(false); }
    Result<void> wait() override;

private:
    struct Pending {
        std::string_view doing;  // sending to, receiving from, ...
        int peer;                // -1: a collective
        Index bytes;             // expected; -1: not counted
    };

    Result<bool> advance(bool block);
    void give_up();
    [[nodiscard]] const WireStep& step() const;
    void begin_step();
    bool finish_step(bool block);
    void next_step();

    void post_messages();
    void post_landings();
    void post_gather();
    void post_reduction();
    bool land(bool block);
    bool complete(bool block);
    bool arrived(const Message& message, MPI_Request& request, bool block);
    void sort_out(int code, const std::vector<MPI_Status>& statuses);
    void forget_requests();
    void add_request(MPI_Request request, Pending pending);
    void copy(const std::vector<LocalCopy>& copies) const;
    void check_count(const Pending& pending, const MPI_Status& status);
    void note(const Pending& pending, std::string_view what);
    void note_code(const Pending& pending, int code);
    [[nodiscard]] const std::byte* read(Where where) const;
    [[nodiscard]] std::byte* write(Where where) const;

    RunPlan plan_;
    std::size_t array_ = 0;
    std::size_t step_ = 0;
    int ordinal_ = 0;  // of the step over all arrays; the tag of its messages
    bool begun_ = false;
    std::chrono::steady_clock::time_point begun_at_;
    std::vector<MPI_Request> requests_;
    std::vector<Pending> pending_;
    std::vector<MPI_Request> landing_requests_;
    std::size_t posted_ = 0;  // landings whose receive is posted, or that need none
    std::size_t landed_ = 0;
    Index slots_taken_ = 0;
    std::optional<Error> error_;
};

}  // namespace reshard::mpi
