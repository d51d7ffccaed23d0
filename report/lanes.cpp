#include "report/lanes.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace reshard::cli {

Index Lane::busy() const {
    Index sum = 0;
    for (const Run& run : runs) sum += run.end - run.start;
    return sum;
}

std::vector<Lane> lanes_of(const Judged<ProgramSchedule>& made, const Machine& machine) {
    const Program& program = made.program();
    const ProgramSchedule& schedule = made.schedule();
    std::vector<Index> devices;
    for (const PlaceVerdict& place : made.verdict().places) devices.push_back(place.device);
    std::map<std::pair<std::string, Index>, Lane> engines;
    std::map<Card, Lane> cards;
    const auto on_engine = [&](const std::string& engine, const Mesh& mesh, const Run& run) {
        for (const Index device : devices)
            if (position_of(mesh, device)) engines[{engine, device}].runs.push_back(run);
    };
    for (std::size_t k = 0; k < schedule.order.size(); ++k) {
        const ScheduledActivity& one = schedule.order[k];
        const Run run{k, one.start, one.start + picoseconds_of(program, schedule, one), one.is_move};
        if (!one.is_move) {
            on_engine(program.tasks[one.number].engine, program.tasks[one.number].mesh, run);
            continue;
        }
        const Judged<Plan>& plan = schedule.moves[one.number].plan;
        const std::vector<Card> held = cards_of(plan, machine, devices);
        for (const Card& card : held) cards[card].runs.push_back(run);
        if (held.empty()) on_engine("compute", plan.plan().target.mesh, run);
    }
    std::vector<Lane> lanes;
    for (auto& [key, lane] : engines) {
        lane.name = fmt::format("{} {}", key.first, key.second);
        lanes.push_back(std::move(lane));
    }
    for (auto& [card, lane] : cards) {
        const Level& level = machine.levels[card.level];
        lane.name =
            fmt::format("{} {} {}{}", level.name, card.out ? "out" : "in", level.shared ? "node " : "", card.number);
        lanes.push_back(std::move(lane));
    }
    for (Lane& lane : lanes) std::ranges::stable_sort(lane.runs, {}, &Run::start);
    return lanes;
}

}  // namespace reshard::cli
