#include "reshard/program/run.hpp"

#include <chrono>

#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"
#include "src/execute/program/rank_run.hpp"

namespace reshard {

struct ProgramRunner::State {
    program::RankRun run;
};

namespace {

class ProgramTicket final : public Ticket {
public:
    explicit ProgramTicket(program::RankRun& run) : run_(run) {}
    ~ProgramTicket() override { static_cast<void>(wait()); }

    Result<bool> test() override { return over_ ? Result<bool>(true) : noted(run_.advance()); }
    Result<bool> wait_for(Index microseconds) override {
        using Clock = std::chrono::steady_clock;
        constexpr Index between_looks = 200;  // microseconds
        const auto until = Clock::now() + std::chrono::microseconds(microseconds);
        for (;;) {
            RESHARD_TRY(const bool done, test());
            const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()).count();
            if (done || left <= 0) return done;
            if (Interrupt::raised()) return run_.fail_all({Code::backend, Interrupt::words});
            run_.rest(std::min<Index>(left, between_looks));
        }
    }

private:
    // The next run is none of this ticket's.
    Result<bool> noted(Result<bool> done) {
        over_ = done && *done;
        return done;
    }

    program::RankRun& run_;
    bool over_ = false;
};

// A rank whose device is in no mesh of the program comes to the end only.
DeviceScript script_for(const Judged<ProgramSchedule>& made, const Machine& machine, Index rank) {
    auto script = script_of(made, machine, rank);
    if (script) return std::move(*script);
    DeviceScript none;
    none.device = rank;
    return none;
}

}  // namespace

ProgramRunner::ProgramRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProgramRunner::ProgramRunner(ProgramRunner&&) noexcept = default;
ProgramRunner& ProgramRunner::operator=(ProgramRunner&&) noexcept = default;
ProgramRunner::~ProgramRunner() = default;

Result<ProgramRunner> ProgramRunner::prepare(const Result<Judged<ProgramSchedule>>& made, const Machine& machine,
                                             Backend& backend) {
    using Own = std::pair<DeviceScript, program::ProgramTiles>;
    const auto own = made.and_then([&](const Judged<ProgramSchedule>& one) -> Result<Own> {
        DeviceScript script = script_for(one, machine, backend.rank());
        RESHARD_TRY(auto& tiles, program::ProgramTiles::make(one, script, backend));
        return Own(std::move(script), std::move(tiles));
    });
    // A rank that failed comes too, so that the others learn of it.
    RESHARD_TRY(auto& moves, program::ProgramMoves::prepare(
                                 own ? made : Result<Judged<ProgramSchedule>>(tl::unexpected(own.error())), backend));
    program::RankRun run(*made, machine, own->first, backend, std::move(moves), own->second);
    return ProgramRunner(std::make_unique<State>(State{std::move(run)}));
}

Result<Elements> ProgramRunner::tile(std::string_view array) { return state_->run.tile(array); }

void ProgramRunner::free_kept() { state_->run.free_kept(); }

Result<std::unique_ptr<Ticket>> ProgramRunner::start(Compute compute) {
    RESHARD_CHECK(state_->run.start(std::move(compute)));
    return std::make_unique<ProgramTicket>(state_->run);
}

Result<void> ProgramRunner::run(const Compute& compute) {
    RESHARD_TRY(auto& ticket, start(compute));
    return ticket->wait();
}

Result<Program> ProgramRunner::measured() const { return state_->run.measured(); }
Index ProgramRunner::most_bytes() const { return state_->run.most_bytes(); }

}  // namespace reshard
