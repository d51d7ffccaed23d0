#include "backends/mpi/messages/inside_run.hpp"

#include <algorithm>

#include "backends/common/buffer_memory.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

bool InsideRun::fits(std::span<const Stage> stages) {
    const auto stays = [](const MessageStep& step) {
        return step.sends.empty() && step.landings.empty() && !step.reduction;
    };
    return std::ranges::all_of(
        stages, [&](const Stage& stage) { return stage.channels.empty() && std::ranges::all_of(stage.steps, stays); });
}

Result<void> InsideRun::bind(std::span<const Stage> stages, std::span<const std::vector<StageStep>> orders,
                             Arena& arena, const Buffers& buffers) {
    const bool same = buffers.source.data() == buffers_.source.data() &&
                      buffers.target.data() == buffers_.target.data() &&
                      buffers.workspace.data() == buffers_.workspace.data();
    const std::uint64_t changes = arena.changes();
    if (same && kept_at_ == changes) return {};
    kept_at_.reset();
    addresses_.clear();
    buffers_ = buffers;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        RESHARD_TRY(auto& bound, bind_stage(stages[i], orders[i], arena, std::span(&buffers, 1)));
        addresses_.push_back(std::move(bound));
    }
    kept_at_ = changes;
    return {};
}

void InsideRun::fill_and_copy(const Stage& stage) const {
    for (const MessageStep& step : stage.steps) {
        for (const auto& [where, fill] : step.fills) fill.run(writable_memory(buffers_, where));
        for (const LocalCopy& local : step.copies)
            local.copy.run(readable_memory(buffers_, local.from), writable_memory(buffers_, local.to), Store::cached);
    }
}

// A small first stage of all ranks sends its messages before they agree, and writes to its target after it.
Result<void> InsideRun::run(std::span<const Stage> stages, std::size_t ranks, const Agree& agree) {
    const auto carries = [&](const auto& plan) { return plan->is_small() && plan->signals().size() == ranks; };
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const Stage& stage = stages[i];
        bool waits = i == 0 && (stage.node           ? carries(stage.node)
                                : stage.sums.empty() ? false
                                                     : carries(stage.sums.front()));
        if (i == 0 && !waits) RESHARD_CHECK(agree(nullptr));
        if (!waits) fill_and_copy(stage);
        const auto finish = [&](MailedRun&& run) -> Result<void> {
            if (std::exchange(waits, false)) {
                RESHARD_CHECK(agree(&run));
                fill_and_copy(stage);
            }
            return run.finish();
        };
        if (stage.node) RESHARD_CHECK(finish(ShmCopy(*stage.node, *addresses_[i].node)));
        for (std::size_t k = 0; k < stage.sums.size(); ++k)
            RESHARD_CHECK(finish(ShmReduceRun(*stage.sums[k], addresses_[i].sums[k])));
        for (const MessageStep& step : stage.steps) {
            for (const auto& [where, scale] : step.scales) scale.run(writable_memory(buffers_, where));
        }
    }
    return {};
}

}  // namespace reshard::mpi
