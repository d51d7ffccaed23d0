#include "backends/mpi/wave.hpp"

#include <algorithm>

namespace reshard::mpi {
namespace {

// The step as some ranks see it: transfers between them, with the numbers that they have among themselves.
RankStep among(const RankStep& step, const std::vector<Index>& members) {
    RankStep inside = step;
    Schedule& schedule = inside.schedule;
    schedule.rank = place_in(members, schedule.rank);
    for (std::vector<Transfer>* transfers : {&schedule.sends, &schedule.receives}) {
        std::erase_if(*transfers, [&](const Transfer& transfer) { return !is_in(members, transfer.peer); });
        for (Transfer& transfer : *transfers) transfer.peer = place_in(members, transfer.peer);
    }
    return inside;
}

// The steps that `takes` picks, per array of the list; `inside` keeps them.
template <class Takes>
std::vector<ArrayStep> steps_among(std::span<const WaveStep> wave, const std::vector<Index>& members,
                                   std::size_t arrays, std::vector<RankStep>& inside, const Takes& takes) {
    std::vector<ArrayStep> steps(arrays);
    inside.reserve(wave.size());
    for (const WaveStep& one : wave) {
        if (!takes(one)) continue;
        inside.push_back(among(one.rank_step(), members));
        steps[one.array] = {&inside.back(), one.plan->dtype};
    }
    return steps;
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
    const auto steps =
        steps_among(wave, nodes.members, arrays, inside, [](const WaveStep& one) { return one.copies(); });
    return NodePlan::make(nodes.own.get(), arena, steps, options, false);
}

Result<std::unique_ptr<SumPlan>> make_sum_plan(std::span<const WaveStep> wave, const std::vector<Index>& members,
                                               MPI_Comm communicator, std::size_t arrays,
                                               const std::shared_ptr<Arena>& arena, const BackendOptions& options) {
    std::vector<RankStep> inside;
    const auto steps =
        steps_among(wave, members, arrays, inside, [&](const WaveStep& one) { return one.summing == members; });
    return SumPlan::make(communicator, arena, steps, options.window_bytes, options.timeout);
}

std::vector<std::vector<Index>> summing_ranks(std::span<const WaveStep> wave) {
    std::vector<std::vector<Index>> all;
    for (const WaveStep& one : wave) {
        if (!one.summing.empty() && std::ranges::find(all, one.summing) == all.end()) all.push_back(one.summing);
    }
    return all;
}

WaveBuffers bind_wave(const Wave& wave, std::span<const WaveStep> steps, Arena& arena,
                      std::span<const Buffers> buffers) {
    const auto bind = [&](const auto& takes) {
        std::vector<Buffers> moved(buffers.size());
        std::vector<Index> source_bytes(buffers.size());
        std::vector<Index> target_bytes(buffers.size());
        for (const WaveStep& one : steps) {
            if (!takes(one)) continue;
            const RankStep& step = one.rank_step();
            const Buffer source = buffer_at(step.from.place, *one.plan, buffers[one.array]);
            const Buffer target = buffer_at(step.to.place, *one.plan, buffers[one.array]);
            moved[one.array] = {source.read, target.written, {}};
            source_bytes[one.array] = source.bytes;
            target_bytes[one.array] = target.bytes;
        }
        return NodeBuffers::bind(arena, moved, source_bytes, target_bytes);
    };
    WaveBuffers bound;
    if (wave.node) bound.node = bind([](const WaveStep& one) { return one.copies(); });
    for (const auto& sum : wave.sums) {
        bound.sums.push_back(bind([&](const WaveStep& one) { return sum->takes(one.array); }));
    }
    return bound;
}

Result<std::vector<Stream>> make_streams(std::span<const WaveStep> wave, const Nodes& nodes, const Framing& framing,
                                         Index& staged_bytes) {
    std::vector<TravelStep> steps;
    for (const WaveStep& one : wave)
        steps.push_back({one.array, one.copies() ? &one.rank_step() : nullptr, size_of(one.plan->dtype)});
    return make_streams(std::span<const TravelStep>(steps), nodes, framing, staged_bytes);
}

}  // namespace reshard::mpi
