// A run of a program on one rank, as a machine that is advanced: it starts the next step of its script when it may.
#pragma once

#include <chrono>
#include <list>
#include <set>

#include "reshard/program/run.hpp"
#include "src/execute/program/moves.hpp"
#include "src/execute/program/tiles.hpp"

namespace reshard::program {

/// A move or a signal that is on its way.
struct MoveInFlight {
    std::size_t activity = 0;  // that has ended when it is done; of a signal the later task
    std::unique_ptr<Bound> bound = {};
    std::unique_ptr<Ticket> ticket = {};
    std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

class RankRun {
public:
    RankRun(Judged<ProgramSchedule> made, Machine machine, const DeviceScript& script, Backend& backend,
            ProgramMoves moves, ProgramTiles tiles);

    [[nodiscard]] Result<void> start(Compute compute);
    /// Looks at the moves in flight, then starts at most one step: the next one, or a move behind it that takes no
    /// memory on this rank. True when the run is over on all ranks.
    [[nodiscard]] Result<bool> advance();
    /// Waits until something changes, for about so long.
    void rest(Index microseconds);
    /// Ends the run on all ranks.
    tl::unexpected<Error> fail_all(const Error& why);

    [[nodiscard]] bool in_flight() const { return in_flight_; }
    [[nodiscard]] Result<Elements> tile(std::string_view array);
    void free_kept() {
        if (!in_flight_) tiles_.reset();
    }
    [[nodiscard]] Result<Program> measured() const;
    [[nodiscard]] Index most_bytes() const { return tiles_.most_bytes(); }

private:
    struct Step {
        std::size_t activity = 0;
        std::vector<std::size_t> after = {};     // activities of this rank
        std::vector<std::size_t> signals = {};   // that the task waits for
        std::optional<std::size_t> beside = {};  // the move in pieces whose pieces the task uses
    };
    // A task that is called for each piece of a move.
    struct OpenTask {
        std::size_t activity = 0;
        std::size_t move = 0;   // the activity
        std::size_t place = 0;  // of the next piece, in the order of travel
        Index picoseconds = 0;  // of the calls so far
    };

    [[nodiscard]] const ScheduledActivity& activity(std::size_t k) const { return made_.schedule().order[k]; }
    [[nodiscard]] Elements elements(std::optional<std::size_t> maker, const std::string& array, const Layout& layout);
    [[nodiscard]] std::optional<std::size_t> maker_of(std::size_t task, std::size_t use) const;
    [[nodiscard]] bool begins(const std::string& array) const;

    Result<bool> look(bool in_task);
    Result<void> look_at(std::list<MoveInFlight>& flights);
    Result<void> listen_for(const Step& step);
    [[nodiscard]] std::optional<std::size_t> startable(bool engine_is_busy);
    [[nodiscard]] bool may_start(const Step& step);
    Result<void> start_step(const Step& step);
    Result<void> start_move(std::size_t k);
    Result<void> run_task(const Step& step);
    Result<bool> run_piece();
    [[nodiscard]] TaskPiece piece_at_place(const OpenTask& task) const;
    Result<Index> call(std::size_t k, std::optional<TaskPiece> piece);
    [[nodiscard]] std::list<MoveInFlight>::iterator flight_of(std::size_t move);
    Result<void> send_signals(std::size_t task);
    Result<void> start_signal(std::size_t signal);
    Result<bool> end_together();
    void has_ended(std::size_t k, Index picoseconds);

    Judged<ProgramSchedule> made_;
    Machine machine_;
    Backend* backend_;
    std::vector<Step> steps_;
    std::map<std::string, std::size_t> maker_;   // the activity that makes an array
    std::map<UseNumber, std::size_t> move_of_;   // the activity that moves it there
    std::vector<std::size_t> position_of_task_;  // in the order
    ProgramMoves moves_;                         // outlives the runs
    ProgramTiles tiles_;
    std::vector<std::vector<std::byte>> signal_bytes_;  // one to send and all to receive, each signal

    Compute compute_;
    std::list<MoveInFlight> flights_, signals_in_flight_;
    std::set<std::size_t> signals_heard_, signals_done_;  // waited for, arrived
    std::set<Executor*> busy_;
    std::vector<bool> begun_, ended_;
    std::vector<bool> started_;  // of each step
    std::size_t next_ = 0;       // the first step that has not started
    std::optional<OpenTask> open_;
    bool in_task_ = false, in_flight_ = false, changed_ = false, well_ = false;
    std::vector<Index> own_times_, times_;
    std::optional<MoveInFlight> last_;
    std::optional<Error> error_;
};

}  // namespace reshard::program
