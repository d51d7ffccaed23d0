#include "backends/local/deliver.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "backends/common/buffer_memory.hpp"
#include "src/base/try.hpp"
#include "src/copy/copy.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard::local {
namespace {

// One step of one array, on all ranks.
class StepRun {
public:
    StepRun(std::span<const Party> parties, std::size_t array, std::size_t step)
        : parties_(parties), array_(array), step_(step), sent_(parties.size()) {
        for (auto& counts : sent_) counts.resize(parties.size(), 0);
    }

    Result<void> run() {
        for (std::size_t rank = 0; rank < parties_.size(); ++rank) {
            const Slot& to = step(rank).to;
            if (to.buffer == BufferId::source && count(to.tile) > 0 && buffers(rank).donated.empty())
                return failure(rank, "would write into its source, which is not donated");
            RESHARD_CHECK(fill(rank));
            RESHARD_CHECK(receive(rank));
            scale(rank);
        }
        return all_sends_were_met();
    }

private:
    [[nodiscard]] const RankPlan& plan(std::size_t rank) const { return (*parties_[rank].plans)[array_]; }
    [[nodiscard]] const RankStep& step(std::size_t rank) const { return plan(rank).steps[step_]; }
    [[nodiscard]] const Buffers& buffers(std::size_t rank) const { return parties_[rank].buffers[array_]; }
    [[nodiscard]] tl::unexpected<Error> failure(std::size_t rank, std::string_view what) const {
        return fail(Code::backend,
                    fmt::format("array {}, step {}: rank {} {}", array_, step(rank).step + 1, rank, what));
    }

    Result<void> fill(std::size_t rank) const {
        const Slot& to = step(rank).to;
        for (const Box& box : step(rank).schedule.fills) {
            if (!contains(to.tile, box)) return failure(rank, "fills outside of its tile");
            BoxFill(region_of(to, box, size_of(step(rank).to_dtype)),
                    identity_of(step(rank).to_dtype, step(rank).schedule.identity))
                .run(writable_memory(buffers(rank), to.buffer));
        }
        return {};
    }

    void scale(std::size_t rank) const {
        const Schedule& schedule = step(rank).schedule;
        const Slot& to = step(rank).to;
        const DType dtype = step(rank).to_dtype;
        for (const Box& box : schedule.scaled) {
            BoxScale(dtype, schedule.scale, region_of(to, box, size_of(dtype)))
                .run(writable_memory(buffers(rank), to.buffer));
        }
    }

    Result<void> receive(std::size_t rank) {
        const std::vector<std::vector<SplitReceive>> falls = arrivals(step(rank).schedule);
        for (std::size_t i = 0; i < falls.size(); ++i) {
            const Transfer& receive = step(rank).schedule.receives[i];
            RESHARD_CHECK(meet(rank, receive));
            for (const SplitReceive& arrival : falls[i]) move(static_cast<std::size_t>(receive.peer), rank, arrival);
        }
        return {};
    }

    // Finds the send that this receive meets. A rank's own tile needs none.
    Result<void> meet(std::size_t rank, const Transfer& receive) {
        if (receive.peer < 0 || receive.peer >= static_cast<Index>(parties_.size())) {
            return failure(rank, fmt::format("receives from rank {}, which there is not", receive.peer));
        }
        const auto peer = static_cast<std::size_t>(receive.peer);
        if (!contains(step(rank).to.tile, receive.box) || !contains(step(peer).from.tile, receive.box)) {
            return failure(rank, fmt::format("receives from rank {} a box outside of their tiles", peer));
        }
        if (peer == rank) return {};
        std::size_t number = sent_[peer][rank]++;
        for (const Transfer& send : step(peer).schedule.sends) {
            if (send.peer != static_cast<Index>(rank) || number-- > 0) continue;
            if (send.box == receive.box) return {};
            return failure(rank, fmt::format("receives from rank {} another box than is sent", peer));
        }
        return failure(rank, fmt::format("receives from rank {} what is never sent", peer));
    }

    void move(std::size_t peer, std::size_t rank, const SplitReceive& arrival) const {
        const RankStep& source = step(peer);
        const RankStep& target = step(rank);
        const DType dtype = source.from_dtype;
        const Region from = region_of(source.from, arrival.box, size_of(dtype));
        const Region to = region_of(target.to, arrival.box, size_of(target.to_dtype));
        const std::byte* read = readable_memory(buffers(peer), source.from.buffer);
        std::byte* written = writable_memory(buffers(rank), target.to.buffer);
        if (arrival.adds) {
            BoxCombine(dtype, step(rank).schedule.combine, from, to).run(read, written);
        } else {
            BoxCopy(from, to, cast_of(dtype, target.to_dtype)).run(read, written, store_for(bytes_of(from)));
            store_fence();
        }
    }

    [[nodiscard]] Result<void> all_sends_were_met() const {
        for (std::size_t rank = 0; rank < parties_.size(); ++rank) {
            for (std::size_t peer = 0; peer < parties_.size(); ++peer) {
                const auto sends =
                    std::ranges::count(step(rank).schedule.sends, static_cast<Index>(peer), &Transfer::peer);
                if (static_cast<std::size_t>(sends) == sent_[rank][peer]) continue;
                return failure(rank, fmt::format("sends to rank {} what is never received", peer));
            }
        }
        return {};
    }

    std::span<const Party> parties_;
    std::size_t array_;
    std::size_t step_;
    std::vector<std::vector<std::size_t>> sent_;  // [peer][rank]: sends that a receive has met
};

Result<void> same_steps(std::span<const Party> parties) {
    const std::vector<RankPlan>& first = *parties.front().plans;
    for (std::size_t rank = 1; rank < parties.size(); ++rank) {
        const auto same = [](const RankPlan& a, const RankPlan& b) {
            return a.steps.size() == b.steps.size() && a.dtype == b.dtype && a.target_dtype == b.target_dtype;
        };
        if (!std::ranges::equal(first, *parties[rank].plans, same)) {
            return fail(Code::backend, fmt::format("rank {} brings other arrays or steps than rank 0", rank));
        }
    }
    return {};
}

}  // namespace

Result<std::vector<double>> deliver(std::span<const Party> parties) {
    RESHARD_CHECK(same_steps(parties));
    std::vector<double> seconds;
    const std::vector<RankPlan>& plans = *parties.front().plans;
    for (std::size_t array = 0; array < plans.size(); ++array) {
        for (std::size_t step = 0; step < plans[array].steps.size(); ++step) {
            const auto start = std::chrono::steady_clock::now();
            RESHARD_CHECK(StepRun(parties, array, step).run());
            seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
    }
    return seconds;
}

}  // namespace reshard::local
