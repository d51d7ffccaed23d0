// One run of prepared waves: a state machine that test() and wait() both drive.
#pragma once

#include <array>
#include <chrono>
#include <memory>

#include "backends/mpi/wave.hpp"

namespace reshard::mpi {

/// What a run needs; all of it outlives the run.
struct RunPlan {
    MPI_Comm communicator = MPI_COMM_NULL;
    const Nodes* nodes = nullptr;
    std::vector<Wave>* waves = nullptr;
    std::vector<Buffers> buffers;                            ///< of all arrays of the list
    const std::vector<NodeBuffers>* node_buffers = nullptr;  ///< per wave
    std::byte* staging = nullptr;
    std::chrono::milliseconds patience = std::chrono::minutes(5);  ///< of a wait in which nothing comes
    std::vector<double>* step_seconds = nullptr;                   ///< one per step, array by array
};

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
    static constexpr std::size_t in_flight_max = 8;  // messages of one stream

    struct Pending {
        std::string_view doing;  // sending to, receiving from, ...
        int peer;                // -1: a collective
        Index bytes;             // expected; -1: not counted
        std::size_t step;        // of the wave
    };
    // How far a stream is. The requests of its messages in flight are at its place in `requests_`.
    struct Flow {
        std::size_t next = 0;  // to be posted
        std::array<std::size_t, in_flight_max> pieces{};
        std::array<bool, stream_slots> taken{};
    };

    Result<bool> advance(bool block);
    void give_up();
    [[nodiscard]] Wave& wave() const { return (*plan_.waves)[wave_]; }
    void begin_wave();
    bool finish_wave(bool block);
    void end_wave();

    void begin_node();
    bool advance_node(bool block);
    void post(std::size_t stream);
    void post_piece(std::size_t stream, std::size_t at);
    void arrived(std::size_t stream, std::size_t at, bool well);
    void post_sum(std::size_t step);
    void post_landings();
    void post_gather(std::size_t step);
    void post_reduction(std::size_t step);
    bool land();
    bool landed(const Message& message, MPI_Request& request);
    bool complete();
    bool close(std::size_t request, int error, const MPI_Status& status);
    void add_request(MPI_Request request, Pending pending);
    void forget_requests();
    void copy(const std::vector<LocalCopy>& copies, Store store = Store::cached) const;
    bool counted(const Pending& pending, const MPI_Status& status);
    void note(const Pending& pending, std::string_view what);
    bool note_code(const Pending& pending, int code);
    void fail(std::string message);
    [[nodiscard]] const std::byte* read(std::size_t array, Where where) const;
    [[nodiscard]] std::byte* write(std::size_t array, Where where) const;

    RunPlan plan_;
    std::size_t wave_ = 0;
    bool begun_ = false;
    std::chrono::steady_clock::time_point begun_at_;
    std::optional<NodeRun> node_;
    std::vector<Flow> flows_;            // of the wave's streams
    std::vector<MPI_Request> requests_;  // in_flight_max of each stream, then of the rest
    std::vector<Pending> pending_;
    std::size_t open_ = 0;  // of them
    std::vector<int> completed_;
    std::vector<MPI_Status> statuses_;
    std::vector<MPI_Request> landing_requests_;
    std::size_t posted_ = 0;  // landings whose receive is posted, or that need none
    std::size_t landed_ = 0;
    Index slots_taken_ = 0;
    Index events_ = 0;  // messages that came or went, and waves; to see whether anything happens
    std::optional<Error> error_;
};

}  // namespace reshard::mpi
