// Carries out the plan: by simulation, by counting what its schedules send, and on the local backend with real bytes.
#include <algorithm>

#include <fmt/format.h>

#include "meaning/asked.hpp"
#include "meaning/contents.hpp"
#include "reshard/backends/local.hpp"
#include "reshard/execute.hpp"
#include "reshard/planner/simulate.hpp"

namespace reshard::test {

namespace {

std::string simulated(const Plan& plan, const Contents& contents, const std::vector<Holder>& before,
                      const std::vector<Holder>& after) {
    Tiles tiles;
    for (const Holder& holder : before) tiles.push_back(contents.numbers_of(holder));
    auto end = simulate(plan, std::move(tiles));
    if (!end) return "it is not simulated: " + end.error().message;
    if (end->size() < after.size()) return "the simulation ends on fewer devices";
    for (std::size_t device = 0; device < after.size(); ++device)
        if ((*end)[device].size() != after[device].elements.size())
            return fmt::format("simulated, device {} holds {} elements", device, (*end)[device].size());
    const std::string wrong = contents.fault(after, *end);
    return wrong.empty() ? "" : "simulated: " + wrong;
}

/// Checks that no device receives or sends more than promised. It skips plans with an all-reduce, because a native one
/// moves less than the plain one in the schedule.
std::string counted(const Answer& answer, Index world) {
    const Plan& plan = answer.made.plan();
    const auto reduces = [](const Step& step) { return step.kind == StepKind::all_reduce; };
    const bool countable = std::ranges::none_of(plan.steps, reduces);
    std::vector<Index> received(static_cast<std::size_t>(world), 0);
    std::vector<Index> sent = received;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        std::vector<Schedule> schedules;
        for (Index rank = 0; rank < world; ++rank)
            schedules.push_back(schedule(layout_before(plan, i), plan.steps[i], rank));
        if (auto judged = check_schedules(layout_before(plan, i), plan.steps[i], schedules); !judged)
            return fmt::format("step {}: {}", i + 1, judged.error().message);
        for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
            for (const Transfer& transfer : schedules[rank].receives)
                received[rank] += transfer.peer == static_cast<Index>(rank) ? 0 : count(transfer.box);
            for (const Transfer& transfer : schedules[rank].sends) sent[rank] += count(transfer.box);
        }
    }
    const Index size = size_of(plan.source.dtype);
    if (countable && std::ranges::max(received) * size > answer.made.verdict().received_bytes_max_device)
        return "a device receives more than promised";
    if (countable && std::ranges::max(sent) * size > answer.made.verdict().sent_bytes_max_device)
        return "a device sends more than promised";
    return "";
}

constexpr std::byte pattern{0xa5};

/// One rank of a run; a single thread drives all ranks.
struct Party {
    Executor executor;
    std::vector<std::byte> source;
    std::vector<std::byte> target;
    std::vector<std::byte> workspace;
    std::unique_ptr<Bound> bound = {};
    std::unique_ptr<Ticket> ticket = {};
};

std::string run(const Answer& answer, const Contents& contents, const std::vector<Holder>& before,
                const std::vector<Holder>& after, Index world) {
    const Limits& limits = answer.asked.options.limits;
    local::World ranks(world, {.timeout = std::chrono::seconds(10)});
    const auto width = static_cast<std::size_t>(size_of(answer.draft.dtype));
    const Holder nobody;
    const auto holder = [&](const std::vector<Holder>& held, Index rank) -> const Holder& {
        const auto place = static_cast<std::size_t>(rank);
        return place < held.size() ? held[place] : nobody;
    };
    std::vector<Party> parties;
    for (Index rank = 0; rank < world; ++rank) {
        auto executor = Executor::prepare(answer.made, ranks.rank(rank));
        if (!executor) return "it is not prepared: " + executor.error().message;
        if (limits.memory.footprint_bytes_max && executor->footprint_bytes() > *limits.memory.footprint_bytes_max)
            return "a rank holds more than the limit";
        const auto workspace = static_cast<std::size_t>(executor->workspace_bytes());
        parties.push_back({std::move(*executor), contents.bytes_of(holder(before, rank)),
                           std::vector<std::byte>(holder(after, rank).elements.size() * width, pattern),
                           std::vector<std::byte>(workspace, pattern)});
    }
    for (Party& party : parties) {
        Buffers buffers{party.source, party.target, party.workspace};
        if (limits.memory.donate) buffers = {{}, party.target, party.workspace, party.source};
        auto bound = party.executor.bind(std::span(&buffers, 1));
        if (!bound) return "it is not bound: " + bound.error().message;
        party.bound = std::move(*bound);
        auto ticket = party.bound->start();
        if (!ticket) return "it does not start: " + ticket.error().message;
        party.ticket = std::move(*ticket);
    }
    for (Party& party : parties)
        if (auto done = party.ticket->wait(); !done) return "it does not end: " + done.error().message;
    std::vector<std::vector<std::byte>> tiles;
    for (std::size_t rank = 0; rank < parties.size(); ++rank) {
        const bool kept =
            limits.memory.donate || parties[rank].source == contents.bytes_of(holder(before, static_cast<Index>(rank)));
        if (!kept) return fmt::format("the source of device {} is written", rank);
        if (rank < after.size()) tiles.push_back(std::move(parties[rank].target));
    }
    const std::string wrong = contents.fault(after, tiles);
    return wrong.empty() ? "" : "run: " + wrong;
}

}  // namespace

std::string objection_to_move(const Answer& answer) {
    const Index world = world_of(answer.draft);
    const auto before = holders(answer.draft.source, world);
    const auto after = holders(answer.draft.target, world);
    const Contents contents(answer.draft);
    const Plan& plan = answer.made.plan();
    const Index ranks = std::max(world, world_size(plan));
    if (auto wrong = counted(answer, ranks); !wrong.empty()) return wrong;
    if (auto wrong = simulated(plan, contents, before, after); !wrong.empty()) return wrong;
    return run(answer, contents, before, after, ranks);
}

}  // namespace reshard::test
