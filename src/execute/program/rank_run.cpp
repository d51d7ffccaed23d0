#include "src/execute/program/rank_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::program {
namespace {

using Clock = std::chrono::steady_clock;

// Takes part in no activity.
constexpr Index no_time = -index_max;

Index picoseconds_since(Clock::time_point begun) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count() * 1000;
}

}  // namespace

RankRun::RankRun(Judged<ProgramSchedule> made, Machine machine, const DeviceScript& script, Backend& backend,
                 ProgramMoves moves, ProgramTiles tiles)
    : made_(std::move(made)),
      machine_(std::move(machine)),
      backend_(&backend),
      moves_(std::move(moves)),
      tiles_(std::move(tiles)) {
    const Program& program = made_.program();
    const ProgramSchedule& schedule = made_.schedule();
    position_of_task_.resize(program.tasks.size());
    for (std::size_t k = 0; k < schedule.order.size(); ++k) {
        const ScheduledActivity& one = schedule.order[k];
        if (one.is_move) {
            for (const UseNumber& user : schedule.moves[one.number].users) move_of_[user] = k;
        } else {
            position_of_task_[one.number] = k;
            for (const ProgramArray& array : program.tasks[one.number].makes) maker_[array.name] = k;
        }
    }
    std::set<std::size_t> own;
    for (const ScriptStep& step : script.steps) own.insert(step.activity);
    for (const ScriptStep& step : script.steps) {
        Step mine{step.activity, {}, {}, step.beside};
        std::ranges::copy_if(step.after, std::back_inserter(mine.after), [&](auto k) { return own.contains(k); });
        for (std::size_t s = 0; s < moves_.signals().size(); ++s)
            if (!activity(step.activity).is_move && moves_.signals()[s].later == activity(step.activity).number)
                mine.signals.push_back(s);
        steps_.push_back(std::move(mine));
    }
    for (const TaskSignal& signal : moves_.signals())
        signal_bytes_.emplace_back(static_cast<std::size_t>(1 + device_count(program.tasks[signal.earlier].mesh)),
                                   std::byte{1});
}

bool RankRun::begins(const std::string& array) const {
    return std::ranges::count(made_.program().arrays, array, &ProgramArray::name) > 0;
}

Elements RankRun::elements(std::optional<std::size_t> maker, const std::string& array, const Layout& layout) {
    Elements elements;
    elements.dtype = layout.dtype;
    const auto number = tiles_.find(maker, array);
    if (!number || tiles_.bytes(*number).empty()) return elements;
    const auto bytes = tile_count(layout, backend_->rank()) * static_cast<std::size_t>(size_of(layout.dtype));
    elements.bytes = tiles_.bytes(*number).first(bytes);
    return elements;
}

std::optional<std::size_t> RankRun::maker_of(std::size_t task, std::size_t use) const {
    if (const auto moved = move_of_.find({task, use}); moved != move_of_.end()) return moved->second;
    const auto made = maker_.find(made_.program().tasks[task].uses[use].array);
    return made == maker_.end() ? std::nullopt : std::optional(made->second);
}

Result<Elements> RankRun::tile(std::string_view array) {
    const std::string name(array);
    if (begins(name)) {
        const ProgramArray& found = *std::ranges::find(made_.program().arrays, name, &ProgramArray::name);
        if (const auto number = tiles_.find({}, name); number && !in_flight_) RESHARD_CHECK(tiles_.hold(*number));
        return elements({}, name, found.layout);
    }
    for (const Task& task : made_.program().tasks)
        for (const ProgramArray& one : task.makes)
            if (one.name == name && one.kept) return elements(maker_.at(name), name, one.layout);
    return fail(
        Code::usage,
        fmt::format("array {} is not held between runs: it is neither there from the beginning nor kept", name));
}

Result<void> RankRun::start(Compute compute) {
    if (in_flight_) return fail(Code::usage, "a run of this program is in flight");
    if (error_)
        return fail(Code::backend, fmt::format("an earlier run failed, prepare the program anew: {}", error_->message));
    for (const ProgramArray& array : made_.program().arrays) {
        const auto number = tiles_.find({}, array.name);
        if (number && !tiles_.is_held(*number))
            return fail(Code::usage,
                        fmt::format("array {} is there from the beginning: write its tile before the run", array.name));
    }
    tiles_.reset();
    compute_ = std::move(compute);
    ended_.assign(made_.schedule().order.size(), false);
    begun_ = ended_;
    open_.reset();
    own_times_.assign(std::max<std::size_t>(ended_.size(), 1), no_time);
    signals_heard_.clear();
    signals_done_.clear();
    started_.assign(steps_.size(), false);
    next_ = 0;
    in_flight_ = true;
    well_ = false;
    return {};
}

Result<bool> RankRun::advance() {
    if (error_) return tl::unexpected(*error_);
    if (!in_flight_) return true;
    auto done = look(in_task_);
    if (error_) return tl::unexpected(*error_);  // found while a task ran
    if (!done) return fail_all(done.error());
    return done;
}

tl::unexpected<Error> RankRun::fail_all(const Error& why) {
    if (!error_) {
        error_ = why;
        moves_.abandon(why);
        flights_.clear();
        signals_in_flight_.clear();
        last_.reset();
        in_flight_ = false;
    }
    return tl::unexpected(*error_);
}

Result<bool> RankRun::look(bool in_task) {
    RESHARD_CHECK(look_at(flights_));
    RESHARD_CHECK(look_at(signals_in_flight_));
    if (open_ && !in_task) {
        RESHARD_TRY(const bool ran, run_piece());
        if (ran) return false;
    }
    if (next_ < steps_.size()) {
        RESHARD_CHECK(listen_for(steps_[next_]));
        if (const auto step = startable(in_task || open_)) {
            started_[*step] = true;
            while (next_ < steps_.size() && started_[next_]) ++next_;
            changed_ = true;
            RESHARD_CHECK(start_step(steps_[*step]));
            return false;
        }
        // proofs/Program.v: never_stuck. A run that breaks it ends here instead of waiting for ever.
        if (!in_task && !open_ && flights_.empty() && signals_in_flight_.empty())
            return fail(Code::plan,
                        fmt::format("rank {} has nothing in flight and cannot start {}", backend_->rank(),
                                    name_of(made_.program(), made_.schedule(), activity(steps_[next_].activity))));
        return false;
    }
    if (in_task || open_ || !flights_.empty() || !signals_in_flight_.empty()) return false;
    return end_together();
}

Result<void> RankRun::look_at(std::list<MoveInFlight>& flights) {
    for (auto at = flights.begin(); at != flights.end();) {
        RESHARD_TRY(const bool done, at->ticket->test());
        if (!done) {
            ++at;
            continue;
        }
        changed_ = true;
        if (&flights == &flights_) {
            busy_.erase(&moves_.of(activity(at->activity).number));
            has_ended(at->activity, picoseconds_since(at->begun));
        } else {
            signals_done_.insert(at->activity);
        }
        at = flights.erase(at);
    }
    return {};
}

void RankRun::has_ended(std::size_t k, Index picoseconds) {
    ended_[k] = true;
    own_times_[k] = activity(k).is_move ? -picoseconds : picoseconds;
    tiles_.end(k);
}

// A rank that only hears the signals of its next step waits for them from now on. Waiting for all signals from the
// beginning would poll the peers of each.
Result<void> RankRun::listen_for(const Step& step) {
    for (const std::size_t s : step.signals) {
        const Mesh& earlier = made_.program().tasks[moves_.signals()[s].earlier].mesh;
        if (position_of(earlier, backend_->rank()) || !signals_heard_.insert(s).second) continue;
        RESHARD_CHECK(start_signal(s));
    }
    return {};
}

// The first step that has not started, or a move behind it that takes no memory here: this rank only sends. `after`
// names the step before on each engine and card, so they keep the order, and memory is taken in the order, too.
std::optional<std::size_t> RankRun::startable(bool engine_is_busy) {
    constexpr std::size_t looked_at_max = 32;  // steps
    for (std::size_t k = next_; k < std::min(steps_.size(), next_ + looked_at_max); ++k) {
        const bool is_move = activity(steps_[k].activity).is_move;
        const bool in_turn = k == next_ && (is_move || !engine_is_busy);
        const bool overtakes = k != next_ && is_move && tiles_.takes(steps_[k].activity) == 0;
        if (!started_[k] && (in_turn || overtakes) && may_start(steps_[k])) return k;
    }
    return std::nullopt;
}

bool RankRun::may_start(const Step& step) {
    const ScheduledActivity& one = activity(step.activity);
    return std::ranges::all_of(step.after, [&](std::size_t k) { return bool{ended_[k]}; }) &&
           (!step.beside || begun_[*step.beside]) &&
           std::ranges::all_of(step.signals, [&](std::size_t s) { return signals_done_.contains(s); }) &&
           !(one.is_move && busy_.contains(&moves_.of(one.number))) && tiles_.fits(step.activity);
}

Result<void> RankRun::start_step(const Step& step) {
    RESHARD_CHECK(tiles_.take(step.activity));
    begun_[step.activity] = true;
    return activity(step.activity).is_move ? start_move(step.activity) : run_task(step);
}

Result<void> RankRun::start_move(std::size_t k) {
    const std::size_t number = activity(k).number;
    const ProgramMove& move = made_.schedule().moves[number];
    const auto made = maker_.find(move.array);
    const auto maker = made == maker_.end() ? std::nullopt : std::optional(made->second);
    const Plan& plan = move.plan.plan();
    Executor& executor = moves_.of(number);
    Buffers buffers{elements(maker, move.array, plan.source).bytes, elements(k, move.array, plan.target).bytes, {}};
    if (executor.workspace_bytes() > 0) buffers.workspace = tiles_.workspace(k);
    MoveInFlight flight{k};
    RESHARD_ASSIGN(flight.bound, executor.bind(buffers));
    RESHARD_ASSIGN(flight.ticket, flight.bound->start());
    busy_.insert(&executor);
    flights_.push_back(std::move(flight));
    return {};
}

Result<void> RankRun::run_task(const Step& step) {
    if (step.beside) {
        open_ = OpenTask{step.activity, *step.beside};
        return {};
    }
    RESHARD_TRY(const Index picoseconds, call(step.activity, std::nullopt));
    has_ended(step.activity, picoseconds);
    return send_signals(activity(step.activity).number);
}

// Calls the task for the next piece if it has arrived. The task ends after its move, since both use the tile. Returns
// false if nothing happened.
Result<bool> RankRun::run_piece() {
    const auto flight = flight_of(open_->move);
    const std::size_t count = moves_.of(activity(open_->move).number).arrival_count();
    std::size_t arrived = count;
    if (flight != flights_.end()) {
        RESHARD_ASSIGN(arrived, flight->ticket->arrived());
    }
    if (open_->place < std::min(arrived, count)) {
        RESHARD_TRY(const Index picoseconds, call(open_->activity, piece_at_place(*open_)));
        open_->picoseconds += picoseconds;
        ++open_->place;
    } else if (open_->place == count && flight == flights_.end()) {
        has_ended(open_->activity, open_->picoseconds);
        const std::size_t task = activity(open_->activity).number;
        open_.reset();
        RESHARD_CHECK(send_signals(task));
    } else {
        return false;
    }
    changed_ = true;
    return true;
}

std::list<MoveInFlight>::iterator RankRun::flight_of(std::size_t move) {
    return std::ranges::find(flights_, move, &MoveInFlight::activity);
}

// Pieces are stated in indices of the array. A task counts in its tile, which is dense.
TaskPiece RankRun::piece_at_place(const OpenTask& task) const {
    const ProgramMove& move = made_.schedule().moves[activity(task.move).number];
    const Split& split = *pieces_of(move);
    TaskPiece piece{move.users.front().use, split.dim, {}, task.place, split.ends.size()};
    const Layout& layout = made_.program().tasks[activity(task.activity).number].uses[piece.use].layout;
    if (tile_count(layout, backend_->rank()) == 0) return piece;
    const Tile whole = reshard::tile(layout, backend_->rank());
    const Tile part = piece_of(whole, split, piece_at(split, task.place));
    Index before = 0;  // indices of the tile
    for (const Interval& held : whole[split.dim].intervals) {
        for (const Interval& one : part[split.dim].intervals) {
            const Interval common{std::max(held.begin, one.begin), std::min(held.end, one.end)};
            if (common.begin >= common.end) continue;
            piece.part.push_back({before + common.begin - held.begin, before + common.end - held.begin});
        }
        before += held.size();
    }
    return piece;
}

// Returns how long the call took.
Result<Index> RankRun::call(std::size_t k, std::optional<TaskPiece> piece) {
    const std::size_t number = activity(k).number;
    const Task& task = made_.program().tasks[number];
    auto kept = std::make_shared<std::vector<std::shared_ptr<Memory>>>();
    const auto keep = [&](std::optional<std::size_t> maker, const std::string& array) {
        if (const auto tile = tiles_.find(maker, array)) kept->push_back(tiles_.memory(*tile));
    };
    TaskRun run{task, {}, {}, [this] { return advance().map([](bool) {}); }, kept, std::move(piece)};
    for (std::size_t u = 0; u < task.uses.size(); ++u) {
        const Elements tile = elements(maker_of(number, u), task.uses[u].array, task.uses[u].layout);
        keep(maker_of(number, u), task.uses[u].array);
        ConstElements read;
        read.bytes = tile.bytes;
        read.dtype = tile.dtype;
        run.uses.push_back(read);
    }
    for (const ProgramArray& array : task.makes) {
        run.makes.push_back(elements(k, array.name, array.layout));
        keep(k, array.name);
    }
    const auto begun = Clock::now();
    in_task_ = true;
    const auto computed = compute_(run);
    in_task_ = false;
    if (error_) return tl::unexpected(*error_);
    if (computed) return picoseconds_since(begun);
    return fail(computed.error().code,
                fmt::format("task {} on rank {}: {}", task.name, backend_->rank(), computed.error().message));
}

Result<void> RankRun::send_signals(std::size_t task) {
    for (std::size_t s = 0; s < moves_.signals().size(); ++s)
        if (moves_.signals()[s].executor && moves_.signals()[s].earlier == task) RESHARD_CHECK(start_signal(s));
    return {};
}

Result<void> RankRun::start_signal(std::size_t signal) {
    MoveInFlight flight{signal};
    const std::span<std::byte> bytes(signal_bytes_[signal]);
    RESHARD_ASSIGN(flight.bound, moves_.signals()[signal].executor->bind({bytes.first(1), bytes.subspan(1), {}}));
    RESHARD_ASSIGN(flight.ticket, flight.bound->start());
    signals_in_flight_.push_back(std::move(flight));
    return {};
}

// All ranks get the largest numbers: the longest time of a task, and the shortest time of a move, which is negative.
Result<bool> RankRun::end_together() {
    if (!last_) {
        times_.assign(own_times_.size(), no_time);
        last_.emplace();
        const Buffers buffers{std::as_bytes(std::span(own_times_)), std::as_writable_bytes(std::span(times_)), {}};
        RESHARD_ASSIGN(last_->bound, moves_.last().bind(buffers));
        RESHARD_ASSIGN(last_->ticket, last_->bound->start());
    }
    RESHARD_TRY(const bool done, last_->ticket->test());
    if (!done) return false;
    last_.reset();
    compute_ = {};
    in_flight_ = false;
    well_ = true;
    return true;
}

void RankRun::rest(Index microseconds) {
    if (std::exchange(changed_, false) || !in_flight_) return;
    Ticket* const first = !flights_.empty()             ? flights_.front().ticket.get()
                          : !signals_in_flight_.empty() ? signals_in_flight_.front().ticket.get()
                          : last_                       ? last_->ticket.get()
                                                        : nullptr;
    if (first != nullptr) static_cast<void>(first->wait_for(microseconds));  // advance() reports its error
}

Result<Program> RankRun::measured() const {
    if (!well_) return fail(Code::usage, "no run of this program has ended well");
    Program program = made_.program();
    for (std::size_t k = 0; k < made_.schedule().order.size(); ++k) {
        const ScheduledActivity& one = activity(k);
        if (!one.is_move) {
            program.tasks[one.number].picoseconds = times_[k];
            continue;
        }
        const ProgramMove& move = made_.schedule().moves[one.number];
        const UseNumber& first = move.users.front();
        Index& picoseconds = program.tasks[first.task].uses[first.use].move_picoseconds.emplace(-times_[k]);
        if (!move.in_pieces) continue;
        // A program states the time of the whole move.
        const Plan& plan = move.plan.plan();
        const Index whole = plan_picoseconds(plan, move.plan.verdict(), machine_);
        const Index pieces = run_picoseconds(plan, move.plan.execution(), move.plan.verdict(), machine_);
        picoseconds = scale_up(picoseconds, whole, std::max<Index>(pieces, 1));
    }
    return program;
}

}  // namespace reshard::program
