#include "reshard/program/judge.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/judge/device_sets.hpp"
#include "src/judge/program_memory.hpp"
#include "src/price/run_times.hpp"

namespace reshard {
namespace {

Index workspace_bytes(const Judged<Plan>& plan) {
    return plan.verdict().footprint_bytes - tile_bytes(plan.plan().source) - tile_bytes(plan.plan().target);
}

// An array in one layout: made by an activity, or there from the beginning (-1).
struct Instance {
    Layout layout;
    int maker = -1;
    bool kept = false;
    std::vector<int> users = {};
    int heir = -1;  // the task that takes over its memory
};

class Check {
public:
    Check(const Program& program, const ProgramSchedule& schedule, const Machine& machine)
        : program_(program), schedule_(schedule), machine_(machine), tasks_(static_cast<int>(program.tasks.size())) {}

    Result<ScheduleVerdict> run() {
        RESHARD_CHECK(validate(program_));
        RESHARD_CHECK(read_order());
        RESHARD_CHECK(find_instances());
        RESHARD_CHECK(inputs_first());
        find_places();
        RESHARD_CHECK(one_at_a_time());
        return memory();
    }

private:
    // Activities are numbered: tasks first, then moves.
    [[nodiscard]] std::string named(int activity) const {
        const bool is_move = activity >= tasks_;
        return name_of(program_, schedule_,
                       {is_move, static_cast<std::size_t>(is_move ? activity - tasks_ : activity), 0});
    }
    [[nodiscard]] tl::unexpected<Error> refuse(const std::string& why) const { return fail(Code::plan, why); }

    Result<void> read_order() {
        const std::size_t count = program_.tasks.size() + schedule_.moves.size();
        if (schedule_.order.size() != count)
            return refuse(fmt::format("the order has {} activities; the program has {} tasks and {} moves",
                                      schedule_.order.size(), program_.tasks.size(), schedule_.moves.size()));
        moments_.assign(count, {0, 0, -1});
        for (std::size_t k = 0; k < count; ++k) {
            const ScheduledActivity& one = schedule_.order[k];
            if (one.number >= (one.is_move ? schedule_.moves.size() : program_.tasks.size()))
                return refuse(fmt::format("the order names {} {}, which does not exist", one.is_move ? "move" : "task",
                                          one.number));
            Moment& moment = moments_[one.number + (one.is_move ? program_.tasks.size() : 0)];
            if (moment.place >= 0)
                return refuse(fmt::format("{} is in the order twice", name_of(program_, schedule_, one)));
            if (one.start < 0)
                return refuse(fmt::format("{} starts at {} ps", name_of(program_, schedule_, one), one.start));
            moment = {one.start, saturating_add(one.start, picoseconds_of(program_, schedule_, one)),
                      static_cast<Index>(k)};
        }
        return {};
    }

    // Which activity makes what, and who uses it.
    Result<void> find_instances() {
        std::map<std::string, std::size_t> made;
        for (const ProgramArray& array : program_.arrays) {
            made[array.name] = instances_.size();
            instances_.push_back({array.layout, -1, array.kept});
        }
        for (int t = 0; t < tasks_; ++t)
            for (const ProgramArray& array : program_.tasks[t].makes) {
                made[array.name] = instances_.size();
                instances_.push_back({array.layout, t, array.kept});
            }
        std::map<UseNumber, std::size_t> moved;
        for (std::size_t m = 0; m < schedule_.moves.size(); ++m) {
            const ProgramMove& move = schedule_.moves[m];
            const int activity = tasks_ + static_cast<int>(m);
            if (made.count(move.array) == 0)
                return refuse(fmt::format("a move moves {}, which does not exist", move.array));
            Instance& source = instances_[made[move.array]];
            source.users.push_back(activity);
            if (move.users.empty()) return refuse(fmt::format("nothing uses {}", named(activity)));
            if (!equivalent(move.plan.plan().source, source.layout))
                return refuse(fmt::format("{} does not start at {}", named(activity), format(source.layout)));
            for (const UseNumber& user : move.users)
                if (!moved.try_emplace(user, instances_.size()).second)
                    return refuse(fmt::format("a use of {} has two moves", move.array));
            instances_.push_back({move.plan.plan().target, activity});
            RESHARD_CHECK(timed(move, activity));
        }
        for (int t = 0; t < tasks_; ++t) RESHARD_CHECK(find_uses(t, made, moved));
        if (!moved.empty()) return refuse("a move is listed for a use that needs none, or that does not exist");
        return {};
    }

    // When each piece of a move has arrived after its start, in the order of travel. A stated time is the time of the
    // whole move: pieces take as much more than it as they are priced to.
    [[nodiscard]] std::vector<Index> arrivals_of(const ProgramMove& move, const Split& split) const {
        const Plan& plan = move.plan.plan();
        std::vector<Index> times = arrivals(run_times(plan, split, move.plan.verdict(), machine_, true), split);
        const UseNumber& user = move.users.front();
        const auto& stated = program_.tasks[user.task].uses[user.use].move_picoseconds;
        const Index whole = plan_picoseconds(plan, move.plan.verdict(), machine_);
        if (stated)
            for (Index& time : times) time = scale_up(time, *stated, std::max<Index>(whole, 1));
        return times;
    }

    // A move takes the time that its first user states, or the time of its plan.
    Result<void> timed(const ProgramMove& move, int activity) {
        const UseNumber& first = move.users.front();
        if (first.task >= program_.tasks.size() || first.use >= program_.tasks[first.task].uses.size())
            return refuse(fmt::format("{} is for a use that does not exist", named(activity)));
        const auto& stated = program_.tasks[first.task].uses[first.use].move_picoseconds;
        const Split* const split = pieces_of(move);
        if (move.in_pieces && (split == nullptr || !split->overlapped))
            return refuse(fmt::format("{} is said to come in pieces, but its plan does not run so", named(activity)));
        const Index wanted =
            split != nullptr ? arrivals_of(move, *split).back()
            : stated         ? *stated
                             : run_picoseconds(move.plan.plan(), move.plan.execution(), move.plan.verdict(), machine_);
        if (move.picoseconds == wanted) return {};
        return refuse(fmt::format("{} takes {} ps, not {}", named(activity), wanted, move.picoseconds));
    }

    Result<void> find_uses(int t, const std::map<std::string, std::size_t>& made,
                           std::map<UseNumber, std::size_t>& moved) {
        const Task& task = program_.tasks[t];
        for (std::size_t u = 0; u < task.uses.size(); ++u) {
            const ProgramUse& use = task.uses[u];
            std::size_t instance = made.at(use.array);
            if (!equivalent(use.layout, instances_[instance].layout)) {
                const auto move = moved.find({static_cast<std::size_t>(t), u});
                if (move == moved.end())
                    return refuse(
                        fmt::format("task {} uses {} in a layout to which nothing moves it", task.name, use.array));
                instance = move->second;
                moved.erase(move);
                const ProgramMove& by = schedule_.moves[instances_[instance].maker - tasks_];
                if (by.array != use.array || !equivalent(use.layout, instances_[instance].layout))
                    return refuse(fmt::format("task {} uses {} as {}, but {} is for it", task.name, use.array,
                                              format(use.layout), named(instances_[instance].maker)));
                if (use.again && by.users.front() != UseNumber{static_cast<std::size_t>(t), u})
                    return refuse(fmt::format("task {} wants {} moved again", task.name, use.array));
            }
            instances_[instance].users.push_back(t);
        }
        for (const std::string& array : task.donates) instances_[made.at(array)].heir = t;
        return {};
    }

    Result<void> comes_before(int earlier, int later) const {
        if (moments_[earlier].end <= moments_[later].start && moments_[earlier].place < moments_[later].place)
            return {};
        return refuse(fmt::format("{} starts before {} has ended", named(later), named(earlier)));
    }

    Result<void> input_first(int maker, int user) const {
        const Split* const split = maker < tasks_ ? nullptr : pieces_of(schedule_.moves[maker - tasks_]);
        return split == nullptr ? comes_before(maker, user) : in_pieces(maker, user, *split);
    }

    // The task uses each piece for its part of the time, in the order of travel.
    Result<void> in_pieces(int maker, int user, const Split& split) const {
        const ProgramMove& move = schedule_.moves[maker - tasks_];
        const Task& task = program_.tasks[user];
        if (move.users.size() != 1 || task.uses[move.users.front().use].pieces_along != split.dim)
            return refuse(fmt::format("{} comes in pieces along dimension {}, which task {} does not ask for",
                                      named(maker), split.dim, task.name));
        if (std::ranges::count_if(schedule_.moves, [&](const ProgramMove& other) {
                return pieces_of(other) != nullptr && other.users.front().task == static_cast<std::size_t>(user);
            }) > 1)
            return refuse(fmt::format("task {} has two moves in pieces", task.name));
        if (moments_[maker].place > moments_[user].place)
            return refuse(fmt::format("{} is before {} in the order", named(user), named(maker)));
        Index left = split.block;  // indices that the task has not used
        const std::vector<Index> times = arrivals_of(move, split);
        for (std::size_t place = 0; place < times.size(); ++place) {
            const Index used_at = moments_[user].end - scale_up(task.picoseconds, left, split.block);
            if (used_at < saturating_add(moments_[maker].start, times[place]))
                return refuse(
                    fmt::format("{} uses piece {} of {} before it has arrived", named(user), place, named(maker)));
            const std::size_t piece = piece_at(split, place);
            left -= split.ends[piece] - (piece == 0 ? 0 : split.ends[piece - 1]);
        }
        return {};
    }

    Result<void> inputs_first() const {
        for (const Instance& instance : instances_)
            for (const int user : instance.users) {
                if (instance.maker >= 0) RESHARD_CHECK(input_first(instance.maker, user));
                if (instance.heir >= 0 && instance.heir != user) RESHARD_CHECK(comes_before(user, instance.heir));
            }
        std::map<std::string, int> numbers;
        for (int t = 0; t < tasks_; ++t) {
            numbers[program_.tasks[t].name] = t;
            for (const std::string& earlier : program_.tasks[t].after)
                RESHARD_CHECK(comes_before(numbers.at(earlier), t));
        }
        return {};
    }

    void find_places() {
        DeviceSets sets;
        const auto number_all = [&] {
            for (const Task& task : program_.tasks) task_sets_.push_back(sets.number_of(task.mesh));
            for (const Instance& instance : instances_) instance_sets_.push_back(sets.number_of(instance.layout.mesh));
            for (const ProgramLimit& limit : program_.limits) limit_sets_.push_back(sets.number_of(limit.mesh));
        };
        number_all();
        classes_ = sets.classes();
    }

    [[nodiscard]] static bool in(const DeviceClass& place, std::size_t set) {
        return std::ranges::binary_search(place.sets, set);
    }

    // An engine of a device runs one task at a time, and a card serves one move at a time, in the order.
    Result<void> one_at_a_time() {
        std::map<std::pair<Index, std::string>, std::vector<int>> engines;
        std::map<Card, std::vector<int>> cards;
        std::vector<Index> devices;
        for (const DeviceClass& place : classes_) devices.push_back(place.device);
        for (const DeviceClass& place : classes_)
            for (int t = 0; t < tasks_; ++t)
                if (in(place, task_sets_[t])) engines[{place.device, program_.tasks[t].engine}].push_back(t);
        for (std::size_t m = 0; m < schedule_.moves.size(); ++m) {
            const auto held = cards_of(schedule_.moves[m].plan, machine_, devices);
            for (const Card& card : held) cards[card].push_back(tasks_ + static_cast<int>(m));
            if (!held.empty()) continue;
            for (const DeviceClass& place : classes_)
                if (takes_part(place, m)) engines[{place.device, "compute"}].push_back(tasks_ + static_cast<int>(m));
        }
        for (auto& [engine, held] : engines)
            RESHARD_CHECK(in_turn(held, fmt::format("engine {} of device {}", engine.second, engine.first)));
        for (auto& [card, held] : cards)
            RESHARD_CHECK(in_turn(held, fmt::format("a card of level {}", machine_.levels[card.level].name)));
        return {};
    }

    Result<void> in_turn(std::vector<int>& held, const std::string& by) const {
        std::ranges::sort(held, {}, [&](int j) { return moments_[j].place; });
        for (std::size_t k = 1; k < held.size(); ++k)
            if (moments_[held[k - 1]].end > moments_[held[k]].start)
                return refuse(fmt::format("{} and {} run at once on {}", named(held[k - 1]), named(held[k]), by));
        return {};
    }

    Result<ScheduleVerdict> memory() const {
        ScheduleVerdict verdict;
        for (const Moment& moment : moments_) verdict.picoseconds = std::max(verdict.picoseconds, moment.end);
        std::vector<Moment> alone = moments_;
        for (Moment& moment : alone) moment = {2 * moment.place, 2 * moment.place + 1, moment.place};
        for (const DeviceClass& place : classes_) {
            PlaceVerdict one;
            one.device = place.device;
            for (std::size_t l = 0; l < program_.limits.size(); ++l)
                if (in(place, limit_sets_[l])) one.limit = std::min(one.limit, program_.limits[l].bytes);
            for (const Ledger::Held& held : ledger(place, moments_).held(one.peak_bytes))
                one.held.push_back({held.time, held.bytes});
            Index needed = 0;
            (void)ledger(place, alone).held(needed);
            if (std::max(one.peak_bytes, needed) > one.limit)
                return fail(Code::infeasible, fmt::format("device {} holds {} bytes, its limit is {}", place.device,
                                                          std::max(one.peak_bytes, needed), one.limit));
            if (one.limit != index_max) RESHARD_CHECK(takes_in_order(place));
            verdict.places.push_back(std::move(one));
        }
        return verdict;
    }

    // The memory that the devices of a place take and give back if activities run at these moments.
    [[nodiscard]] Ledger ledger(const DeviceClass& place, const std::vector<Moment>& moments) const {
        Ledger ledger;
        for (std::size_t i = 0; i < instances_.size(); ++i) {
            const Instance& one = instances_[i];
            if (!in(place, instance_sets_[i])) continue;
            const Index bytes = tile_bytes(one.layout);
            std::vector<Moment> users;
            for (const int user : one.users) users.push_back(moments[user]);
            if (users.empty() && one.maker >= 0) users.push_back(moments[one.maker]);
            one.maker < 0 ? ledger.hold(bytes) : ledger.take(moments[one.maker], bytes);
            if (one.heir >= 0) {
                ledger.hand_over(moments[one.heir], bytes);
            } else if (!one.kept && !users.empty()) {
                ledger.give_back(users, bytes);
            }
        }
        for (int t = 0; t < tasks_; ++t)
            if (in(place, task_sets_[t])) borrow(ledger, moments[t], program_.tasks[t].scratch_bytes);
        for (std::size_t m = 0; m < schedule_.moves.size(); ++m)
            if (takes_part(place, m)) borrow(ledger, moments[tasks_ + m], workspace_bytes(schedule_.moves[m].plan));
        return ledger;
    }

    static void borrow(Ledger& ledger, const Moment& by, Index bytes) {
        if (bytes == 0) return;
        ledger.take(by, bytes);
        ledger.give_back({by}, bytes);
    }

    [[nodiscard]] bool takes_part(const DeviceClass& place, std::size_t move) const {
        const Plan& plan = schedule_.moves[move].plan.plan();
        return position_of(plan.source.mesh, place.device).has_value() ||
               position_of(plan.target.mesh, place.device).has_value();
    }

    // Activities that take memory of a place start in the order. A task that only takes over memory takes none.
    Result<void> takes_in_order(const DeviceClass& place) const {
        std::map<int, Index> taken;
        for (std::size_t i = 0; i < instances_.size(); ++i) {
            if (!in(place, instance_sets_[i])) continue;
            const Index bytes = tile_bytes(instances_[i].layout);
            if (instances_[i].maker >= 0) taken[instances_[i].maker] += bytes;
            if (instances_[i].heir >= 0) taken[instances_[i].heir] -= bytes;
        }
        for (auto& [activity, bytes] : taken) bytes = std::max(Index{0}, bytes);
        for (int t = 0; t < tasks_; ++t)
            if (in(place, task_sets_[t])) taken[t] += program_.tasks[t].scratch_bytes;
        for (std::size_t m = 0; m < schedule_.moves.size(); ++m)
            if (takes_part(place, m)) taken[tasks_ + static_cast<int>(m)] += workspace_bytes(schedule_.moves[m].plan);
        std::vector<int> takers;
        for (const auto& [activity, bytes] : taken)
            if (bytes > 0) takers.push_back(activity);
        std::ranges::sort(takers, {}, [&](int j) { return moments_[j].place; });
        for (std::size_t k = 1; k < takers.size(); ++k)
            if (moments_[takers[k - 1]].start > moments_[takers[k]].start)
                return refuse(fmt::format("{} takes memory of device {} before {}, which is earlier in the order",
                                          named(takers[k]), place.device, named(takers[k - 1])));
        return {};
    }

    const Program& program_;
    const ProgramSchedule& schedule_;
    const Machine& machine_;
    int tasks_;
    std::vector<Moment> moments_;
    std::vector<Instance> instances_;
    std::vector<std::size_t> task_sets_, instance_sets_, limit_sets_;
    std::vector<DeviceClass> classes_;
};

}  // namespace

Result<ScheduleVerdict> check(const Program& program, const ProgramSchedule& schedule, const Machine& machine) {
    return Check(program, schedule, machine).run();
}

Result<Judged<ProgramSchedule>> judge(Program program, ProgramSchedule schedule, const Machine& machine) {
    RESHARD_TRY(auto& verdict, check(program, schedule, machine));
    return Judged<ProgramSchedule>({std::move(program), std::move(schedule), std::move(verdict)});
}

}  // namespace reshard
