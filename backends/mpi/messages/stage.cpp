#include "backends/mpi/messages/stage.hpp"

#include <algorithm>
#include <set>

#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// The step as some ranks see it: the transfers between them, with ranks numbered among themselves.
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

// The steps that `takes` accepts, per array of the list. `inside` owns them.
template <class Takes>
std::vector<ArrayStep> steps_among(std::span<const StageStep> stage, const std::vector<Index>& members,
                                   std::size_t arrays, std::vector<RankStep>& inside, const Takes& takes) {
    std::vector<ArrayStep> steps(arrays);
    inside.reserve(stage.size());
    for (const StageStep& one : stage) {
        if (!takes(one)) continue;
        inside.push_back(among(one.rank_step(), members));
        steps[one.array] = {&inside.back()};
    }
    return steps;
}

struct Buffer {
    std::span<const std::byte> read;
    std::span<std::byte> written;
    Index bytes = 0;
};

Buffer buffer_at(BufferId buffer, const RankPlan& plan, const Buffers& buffers) {
    if (buffer == BufferId::source) return {buffers.source, buffers.donated, plan.source_bytes};
    if (buffer == BufferId::target) return {buffers.target, buffers.target, plan.target_bytes};
    return {buffers.workspace, buffers.workspace, plan.workspace_bytes};
}

}  // namespace

std::vector<std::vector<StageStep>> stages_of(const std::vector<std::vector<StageStep>>& arrays,
                                              const std::vector<std::optional<std::size_t>>& turns) {
    std::vector<std::vector<StageStep>> stages;
    // Arrays that need no workspace are in nobody's way, so they join the first turn.
    const auto turn_of = [&](std::size_t i) { return std::max<std::size_t>(*turns[i], 1); };
    std::set<std::size_t> in_order;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (turns[i]) in_order.insert(turn_of(i));
    for (const std::size_t turn : in_order) {
        const std::size_t first = stages.size();
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (!turns[i] || turn_of(i) != turn) continue;
            stages.resize(std::max(stages.size(), first + arrays[i].size()));
            for (std::size_t step = 0; step < arrays[i].size(); ++step) stages[first + step].push_back(arrays[i][step]);
        }
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (turns[i]) continue;
        for (const StageStep& step : arrays[i]) stages.push_back({step});
    }
    return stages;
}

bool moves_inside(std::span<const StageStep> stage, const NodeMap& nodes) {
    return std::ranges::any_of(stage, [&](const StageStep& one) {
        const Schedule& schedule = one.rank_step().schedule;
        const auto inside = [&](const Transfer& transfer) {
            return transfer.peer != schedule.rank && nodes.has(transfer.peer);
        };
        return one.copies() &&
               (std::ranges::any_of(schedule.sends, inside) || std::ranges::any_of(schedule.receives, inside));
    });
}

Result<std::unique_ptr<ShmCopyPlan>> make_node_plan(std::span<const StageStep> stage, const NodeMap& nodes,
                                                    std::size_t arrays, const std::shared_ptr<Arena>& arena,
                                                    const Options& options) {
    std::vector<RankStep> inside;
    const auto steps =
        steps_among(stage, nodes.members, arrays, inside, [](const StageStep& one) { return one.copies(); });
    return ShmCopyPlan::make(nodes.own.get(), arena, steps, options);
}

Result<std::unique_ptr<ShmReducePlan>> make_sum_plan(std::span<const StageStep> stage,
                                                     const std::vector<Index>& members, MPI_Comm communicator,
                                                     std::size_t arrays, const std::shared_ptr<Arena>& arena,
                                                     const Options& options) {
    std::vector<RankStep> inside;
    const auto steps =
        steps_among(stage, members, arrays, inside, [&](const StageStep& one) { return one.summing == members; });
    return ShmReducePlan::make(communicator, arena, steps, options.bounce_bytes, options.timeout);
}

std::vector<std::vector<Index>> summing_ranks(std::span<const StageStep> stage) {
    std::vector<std::vector<Index>> all;
    for (const StageStep& one : stage) {
        if (!one.summing.empty() && std::ranges::find(all, one.summing) == all.end()) all.push_back(one.summing);
    }
    return all;
}

Result<StageBuffers> bind_stage(const Stage& stage, std::span<const StageStep> steps, Arena& arena,
                                std::span<const Buffers> buffers) {
    const auto bind = [&](const PeerRegions* reached, const auto& takes) {
        std::vector<Buffers> moved(buffers.size());
        std::vector<Index> source_bytes(buffers.size());
        std::vector<Index> target_bytes(buffers.size());
        for (const StageStep& one : steps) {
            if (!takes(one)) continue;
            const RankStep& step = one.rank_step();
            const Buffer source = buffer_at(step.from.buffer, *one.plan, buffers[one.array]);
            const Buffer target = buffer_at(step.to.buffer, *one.plan, buffers[one.array]);
            moved[one.array] = {source.read, target.written, {}};
            source_bytes[one.array] = source.bytes;
            target_bytes[one.array] = target.bytes;
        }
        return ShmAddresses::bind(arena, reached, moved, source_bytes, target_bytes);
    };
    StageBuffers bound;
    if (stage.node) {
        RESHARD_ASSIGN(bound.node, bind(stage.node->reached(), [](const StageStep& one) { return one.copies(); }));
    }
    for (const auto& sum : stage.sums) {
        const auto taken = [&](const StageStep& one) { return sum->takes(one.array); };
        RESHARD_TRY(auto& addresses, bind(sum->reached(), taken));
        bound.sums.push_back(std::move(addresses));
    }
    return bound;
}

Result<std::vector<Channel>> make_channels(std::span<const StageStep> stage, const NodeMap& nodes,
                                           const Framing& framing, Index& staged_bytes) {
    std::vector<ChannelStep> steps;
    for (const StageStep& one : stage)
        steps.push_back({one.array, one.copies() ? &one.rank_step() : nullptr, size_of(sent_dtype(one.rank_step()))});
    return make_channels(std::span<const ChannelStep>(steps), nodes, framing, staged_bytes);
}

}  // namespace reshard::mpi
