#include "src/execute/boxes/rounds.hpp"

#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/execute/memory_ranges.hpp"

namespace reshard {

Result<Rounds> Rounds::prepare(std::vector<std::vector<RankPlan>> rounds, Backend& backend) {
    Rounds made;
    for (const RankPlan& plan : rounds.front()) made.arrays_.push_back({plan.source_bytes, plan.target_bytes});
    for (std::vector<RankPlan>& round : rounds) {
        RESHARD_TRY(auto& prepared, backend.prepare(std::move(round)));
        made.rounds_.push_back(std::move(prepared));
        made.runs_->prepared.push_back(made.rounds_.back());
    }
    return made;
}

Index Rounds::staging_bytes() const {
    Index bytes = 0;
    for (const auto& round : rounds_) bytes += round->staging_bytes();
    return bytes;
}

std::string Rounds::describe(Index rank, const BoxTraffic& traffic) const {
    return fmt::format(
               "rank {} receives {} from {} ranks, the least that any protocol brings it; it sends {} to {} "
               "ranks and copies {}\n",
               rank, format_bytes(traffic.received_bytes), traffic.senders, format_bytes(traffic.sent_bytes),
               traffic.receivers, format_bytes(traffic.copied_bytes)) +
           rounds_.front()->describe();
}

void Rounds::report_failure(const Error& why) {
    if (runs_->in_flight || runs_->failed) return;
    for (const auto& round : rounds_) round->report_failure(why);
}

Result<std::unique_ptr<Bound>> Rounds::bind(std::span<const Buffers> buffers, std::string_view source,
                                            std::string_view target) {
    auto bound = try_bind(buffers, source, target);
    for (std::size_t i = 0; !bound && i < rounds_.size(); ++i)
        rounds_[i]->report_failure(named("bind failed", bound.error()));
    return bound;
}

Result<std::unique_ptr<Bound>> Rounds::try_bind(std::span<const Buffers> buffers, std::string_view source,
                                                std::string_view target) const {
    if (buffers.size() != arrays_.size())
        return fail(Code::mismatch,
                    fmt::format("{} arrays were given {} sets of buffers", arrays_.size(), buffers.size()));
    std::vector<MemoryRange> ranges;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        RESHARD_CHECK(add_range(ranges, buffers[i].source, arrays_[i].source_bytes,
                                {{}, fmt::format("{} of array {}", source, i), false}));
        RESHARD_CHECK(add_range(ranges, buffers[i].target, arrays_[i].target_bytes,
                                {{}, fmt::format("{} of array {}", target, i), true}));
    }
    RESHARD_CHECK(check_apart(ranges));
    BoundBuckets all;
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
        std::vector<Buffers> of_plans;
        for (const Buffers& own : buffers)
            of_plans.push_back({round == 0 ? own.source : std::span<const std::byte>(own.target), own.target, {}});
        std::vector<std::size_t>& steps = all.steps.emplace_back(arrays_.size());
        std::iota(steps.begin(), steps.end(), round * arrays_.size());
        RESHARD_TRY(auto& bound, rounds_[round]->bind(of_plans));
        all.prepared.push_back(rounds_[round]);
        all.bounds.push_back(std::move(bound));
    }
    return guarded(std::move(all), runs_);
}

}  // namespace reshard
