#include <algorithm>

#include <fmt/format.h>

#include "reshard/program/judge.hpp"
#include "reshard/text.hpp"

namespace reshard {

std::string name_of(const Program& program, const ProgramSchedule& schedule, const ScheduledActivity& activity) {
    if (!activity.is_move) return program.tasks[activity.number].name;
    const ProgramMove& move = schedule.moves[activity.number];
    const Layout& target = move.plan.plan().target;
    std::string text = fmt::format("{} to {}", move.array, format(target));
    if (!same_devices(move.plan.plan().source.mesh, target.mesh)) text += " on " + format(target.mesh);
    return text;
}

const Split* pieces_of(const ProgramMove& move) {
    return move.in_pieces ? std::get_if<Split>(&move.plan.execution()) : nullptr;
}

Index picoseconds_of(const Program& program, const ProgramSchedule& schedule, const ScheduledActivity& activity) {
    return activity.is_move ? schedule.moves[activity.number].picoseconds : program.tasks[activity.number].picoseconds;
}

namespace {

// The devices of a mesh that stand for all; on a shared level its blocks.
std::vector<Index> card_numbers(const Mesh& mesh, const Machine& machine, std::size_t level,
                                std::span<const Index> devices) {
    std::vector<Index> numbers;
    if (!machine.levels[level].shared) {
        for (const Index device : devices)
            if (position_of(mesh, device)) numbers.push_back(device);
        return numbers;
    }
    const Index block = level == 0 ? 1 : machine.levels[level - 1].devices;
    for (Index position = 0; position < device_count(mesh); ++position) {
        const Index number = device_at(mesh, position) / block;
        if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    }
    return numbers;
}

}  // namespace

std::vector<Card> cards_of(const Judged<Plan>& plan, const Machine& machine, std::span<const Index> devices) {
    std::vector<Card> cards;
    const Times times = plan_times(plan.plan(), plan.verdict(), machine);
    for (std::size_t level = 0; level < times.levels.size(); ++level) {
        if (times.levels[level] == 0) continue;
        for (const bool out : {false, true}) {
            const Mesh& mesh = out ? plan.plan().source.mesh : plan.plan().target.mesh;
            for (const Index number : card_numbers(mesh, machine, level, devices))
                cards.push_back({level, out, number});
        }
    }
    std::ranges::sort(cards);
    const auto repeated = std::ranges::unique(cards);
    cards.erase(repeated.begin(), repeated.end());
    return cards;
}

}  // namespace reshard
