#include "backends/mpi/wave.hpp"

#include <algorithm>

namespace reshard::mpi {
namespace {

// The step as the ranks of the node see it: transfers between them, with the numbers that they have there.
RankStep within(const RankStep& step, const Nodes& nodes) {
    RankStep inside = step;
    Schedule& schedule = inside.schedule;
    schedule.rank = nodes.place_of(schedule.rank);
    for (std::vector<Transfer>* transfers : {&schedule.sends, &schedule.receives}) {
        std::erase_if(*transfers, [&](const Transfer& transfer) { return !nodes.has(transfer.peer); });
        for (Transfer& transfer : *transfers) transfer.peer = nodes.place_of(transfer.peer);
    }
    return inside;
}

struct Buffer {
    std::span<const std::byte> read;
    std::span<std::byte> written;
    Index bytes = 0;
};

Buffer buffer_at(Place place, const RankPlan& plan, const Buffers& buffers) {
    switch (place) {
        case Place::source:
            return {buffers.source, buffers.donated, plan.source_bytes};
        case Place::target:
            return {buffers.target, buffers.target, plan.target_bytes};
        case Place::workspace:
            break;
    }
    return {buffers.workspace, buffers.workspace, plan.workspace_bytes};
}

}  // namespace

std::vector<std::vector<WaveStep>> waves_of(const std::vector<std::vector<WaveStep>>& arrays,
                                            const std::vector<char>& alone) {
    std::vector<std::vector<WaveStep>> waves;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (alone[i] != 0) continue;
        waves.resize(std::max(waves.size(), arrays[i].size()));
        for (std::size_t step = 0; step < arrays[i].size(); ++step) waves[step].push_back(arrays[i][step]);
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (alone[i] == 0) continue;
        for (const WaveStep& step : arrays[i]) waves.push_back({step});
    }
    return waves;
}

bool moves_inside(std::span<const WaveStep> wave, const Nodes& nodes) {
    return std::ranges::any_of(wave, [&](const WaveStep& one) {
        const Schedule& schedule = one.rank_step().schedule;
        const auto inside = [&](const Transfer& transfer) {
            return transfer.peer != schedule.rank && nodes.has(transfer.peer);
        };
        return one.copies() &&
               (std::ranges::any_of(schedule.sends, inside) || std::ranges::any_of(schedule.receives, inside));
    });
}

Result<std::unique_ptr<NodePlan>> make_node_plan(std::span<const WaveStep> wave, const Nodes& nodes, std::size_t arrays,
                                                 const std::shared_ptr<Arena>& arena, const BackendOptions& options) {
    std::vector<RankStep> inside;
    inside.reserve(wave.size());
    std::vector<ArrayStep> steps(arrays);
    for (const WaveStep& one : wave) {
        if (!one.copies()) continue;
        inside.push_back(within(one.rank_step(), nodes));
        steps[one.array] = {&inside.back(), one.plan->dtype};
    }
    return NodePlan::make(nodes.own.get(), arena, steps, options, false);
}

NodeBuffers bind_node(NodePlan& node, std::span<const WaveStep> wave, std::span<const Buffers> buffers) {
    std::vector<Buffers> moved(buffers.size());
    std::vector<Index> source_bytes(buffers.size());
    std::vector<Index> target_bytes(buffers.size());
    for (const WaveStep& one : wave) {
        if (!one.copies()) continue;
        const RankStep& step = one.rank_step();
        const Buffer source = buffer_at(step.from.place, *one.plan, buffers[one.array]);
        const Buffer target = buffer_at(step.to.place, *one.plan, buffers[one.array]);
        moved[one.array] = {source.read, target.written, {}};
        source_bytes[one.array] = source.bytes;
        target_bytes[one.array] = target.bytes;
    }
    return NodeBuffers::bind(node.arena(), moved, source_bytes, target_bytes);
}

Result<std::vector<Stream>> make_streams(std::span<const WaveStep> wave, const Nodes& nodes, const Framing& framing,
                                         Index& staged_bytes) {
    std::vector<TravelStep> steps;
    for (const WaveStep& one : wave)
        steps.push_back({one.array, one.copies() ? &one.rank_step() : nullptr, size_of(one.plan->dtype)});
    return make_streams(std::span<const TravelStep>(steps), nodes, framing, staged_bytes);
}

}  // namespace reshard::mpi
