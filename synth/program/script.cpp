#include "reshard/program/script.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace reshard {
namespace {

// An array in one layout, and the activities that make, use and take it over. Activities are positions in the order.
struct Instance {
    std::string name;
    Layout layout;
    bool kept = false;
    std::optional<std::size_t> maker = {};
    std::vector<std::size_t> users = {};
    std::optional<std::size_t> heir = {};
};

class Writer {
public:
    Writer(const Judged<ProgramSchedule>& made, const Machine& machine, Index device)
        : program_(made.program()), schedule_(made.schedule()), machine_(machine), device_(device) {
        for (const PlaceVerdict& place : made.verdict().places) devices_.push_back(place.device);
        task_at_.resize(program_.tasks.size());
        move_at_.resize(schedule_.moves.size());
        for (std::size_t k = 0; k < schedule_.order.size(); ++k) {
            const ScheduledActivity& one = schedule_.order[k];
            (one.is_move ? move_at_ : task_at_)[one.number] = k;
        }
        inputs_.resize(schedule_.order.size());
        beside_.resize(schedule_.order.size());
        find_instances();
    }

    DeviceScript write() {
        DeviceScript script;
        script.device = device_;
        for (const ProgramLimit& limit : program_.limits)
            if (position_of(limit.mesh, device_)) script.limit = std::min(script.limit, limit.bytes);
        for (std::size_t k = 0; k < schedule_.order.size(); ++k) {
            std::vector<std::size_t> after = last_on_resources(k);
            if (!takes_part(k)) continue;
            after.insert(after.end(), inputs_[k].begin(), inputs_[k].end());
            std::ranges::sort(after);
            const auto repeated = std::ranges::unique(after);
            after.erase(repeated.begin(), repeated.end());
            script.steps.push_back({k, std::move(after), beside_[k]});
        }
        script.memory = memory();
        return script;
    }

private:
    void find_instances() {
        std::map<std::string, std::size_t> made;
        std::map<std::string, std::size_t> tasks;
        for (const ProgramArray& array : program_.arrays) {
            made[array.name] = instances_.size();
            instances_.push_back({array.name, array.layout, array.kept});
        }
        for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
            tasks[program_.tasks[t].name] = t;
            for (const ProgramArray& array : program_.tasks[t].makes) {
                made[array.name] = instances_.size();
                instances_.push_back({array.name, array.layout, array.kept, task_at_[t]});
            }
        }
        std::map<UseNumber, std::size_t> moved;
        for (std::size_t m = 0; m < schedule_.moves.size(); ++m) {
            const ProgramMove& move = schedule_.moves[m];
            use(made[move.array], move_at_[m]);
            for (const UseNumber& user : move.users) moved[user] = instances_.size();
            instances_.push_back({move.array, move.plan.plan().target, false, move_at_[m]});
        }
        for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
            const Task& task = program_.tasks[t];
            for (std::size_t u = 0; u < task.uses.size(); ++u) {
                const auto by_move = moved.find({t, u});
                use(by_move != moved.end() ? by_move->second : made[task.uses[u].array], task_at_[t]);
            }
            for (const std::string& earlier : task.after) inputs_[task_at_[t]].push_back(task_at_[tasks[earlier]]);
            for (const std::string& array : task.donates) instances_[made[array]].heir = task_at_[t];
        }
        for (const Instance& one : instances_)
            if (one.heir)
                for (const std::size_t user : one.users)
                    if (user != *one.heir) inputs_[*one.heir].push_back(user);
    }

    void use(std::size_t instance, std::size_t user) {
        instances_[instance].users.push_back(user);
        const auto& maker = instances_[instance].maker;
        if (!maker) return;
        const ScheduledActivity& one = schedule_.order[*maker];
        if (one.is_move && schedule_.moves[one.number].in_pieces) {
            beside_[user] = maker;
        } else {
            inputs_[user].push_back(*maker);
        }
    }

    [[nodiscard]] const Plan& plan_at(std::size_t k) const {
        return schedule_.moves[schedule_.order[k].number].plan.plan();
    }
    [[nodiscard]] bool takes_part(std::size_t k) const {
        const ScheduledActivity& one = schedule_.order[k];
        if (!one.is_move) return position_of(program_.tasks[one.number].mesh, device_).has_value();
        return position_of(plan_at(k).source.mesh, device_) || position_of(plan_at(k).target.mesh, device_);
    }

    // The activities before it on its engine and on its cards. Devices of a node may share a card, so moves of other
    // devices count.
    std::vector<std::size_t> last_on_resources(std::size_t k) {
        const ScheduledActivity& one = schedule_.order[k];
        std::vector<std::size_t> last;
        const auto serve = [&](auto& served, const auto& resource) {
            const auto [before, is_first] = served.try_emplace(resource, k);
            if (!is_first) last.push_back(std::exchange(before->second, k));
        };
        if (!one.is_move) {
            if (takes_part(k)) serve(engines_, program_.tasks[one.number].engine);
            return last;
        }
        const Judged<Plan>& plan = schedule_.moves[one.number].plan;
        for (const Card& card : cards_of(plan, machine_, std::span(&device_, 1))) serve(cards_, card);
        if (takes_part(k) && cards_of(plan, machine_, devices_).empty()) serve(engines_, std::string("compute"));
        return last;
    }

    [[nodiscard]] std::vector<ScriptMemory> memory() const {
        std::vector<ScriptMemory> all;
        for (const Instance& one : instances_) {
            if (!position_of(one.layout.mesh, device_)) continue;
            ScriptMemory memory{one.name, one.layout, tile_bytes(one.layout), one.maker};
            memory.handed_to = one.heir;
            if (!one.heir && !one.kept) memory.freed_by = one.users;
            if (!one.kept && one.users.empty() && one.maker) memory.freed_by = {*one.maker};
            std::ranges::sort(memory.freed_by);
            const auto repeated = std::ranges::unique(memory.freed_by);
            memory.freed_by.erase(repeated.begin(), repeated.end());
            all.push_back(std::move(memory));
        }
        for (std::size_t k = 0; k < schedule_.order.size(); ++k) {
            const Index bytes = takes_part(k) ? borrowed(schedule_.order[k]) : 0;
            if (bytes > 0) all.push_back({name_of(program_, schedule_, schedule_.order[k]), {}, bytes, k, {k}});
        }
        std::ranges::stable_sort(all, {}, &ScriptMemory::taken_by);
        return all;
    }

    // Scratch of a task, or workspace of a move.
    [[nodiscard]] Index borrowed(const ScheduledActivity& one) const {
        if (!one.is_move) return program_.tasks[one.number].scratch_bytes;
        const Judged<Plan>& plan = schedule_.moves[one.number].plan;
        return plan.verdict().footprint_bytes - tile_bytes(plan.plan().source) - tile_bytes(plan.plan().target);
    }

    const Program& program_;
    const ProgramSchedule& schedule_;
    const Machine& machine_;
    Index device_;
    std::vector<Index> devices_;                      // one of each place
    std::vector<std::size_t> task_at_, move_at_;      // positions
    std::vector<std::vector<std::size_t>> inputs_;    // of each position, what must have ended
    std::vector<std::optional<std::size_t>> beside_;  // of each position, the move whose pieces it uses
    std::vector<Instance> instances_;
    std::map<std::string, std::size_t> engines_;  // of this device: the last position
    std::map<Card, std::size_t> cards_;
};

}  // namespace

Result<DeviceScript> script_of(const Judged<ProgramSchedule>& made, const Machine& machine, Index device) {
    const Program& program = made.program();
    const auto has = [&](const Mesh& mesh) { return position_of(mesh, device).has_value(); };
    const auto task_has = [&](const Task& task) {
        const auto array_has = [&](const auto& array) { return has(array.layout.mesh); };
        return has(task.mesh) || std::ranges::any_of(task.makes, array_has);
    };
    const auto array_has = [&](const ProgramArray& array) { return has(array.layout.mesh); };
    if (device < 0 ||
        (std::ranges::none_of(program.tasks, task_has) && std::ranges::none_of(program.arrays, array_has)))
        return fail(Code::usage, fmt::format("device {} is in no mesh of the program", device));
    return Writer(made, machine, device).write();
}

}  // namespace reshard
