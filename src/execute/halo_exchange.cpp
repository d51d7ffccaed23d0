// Halos on a backend: prepare, bind and run.
#include "reshard/halo/exchange.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/execute/bucket_run.hpp"
#include "src/execute/lower_halo.hpp"
#include "src/execute/memory_ranges.hpp"
#include "src/halo/rounds.hpp"

namespace reshard {

/// An exchange shares this state with its bound buffers and runs.
struct HaloExchange::State {
    std::vector<std::shared_ptr<Prepared>> rounds;
    std::shared_ptr<Executor::RunState> runs = std::make_shared<Executor::RunState>();
};

namespace {

std::uint64_t fingerprint(std::span<const HaloMove> moves, std::span<const LoweredHalo> lowered) {
    Hash hash;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const HaloMove& move = moves[i];
        hash.add(lowered[i].way == HaloWay::at_once ? "" : "by dimension ");
        hash.add(format(move.target.owned.mesh) + " " + format(move.target) + " from ");
        hash.add(move.source ? format(move.source->mesh) + " " + format(source_arrays(move)) + ";" : "itself;");
    }
    return hash.value();
}

Result<HaloWay> way_of(const HaloMove& move, const Backend& backend, const HaloOptions& options) {
    if (move.source) return HaloWay::at_once;
    if (options.way) return *options.way;
    return plan_halo(move, options.machine, backend.capabilities()).map([](const HaloPlan& plan) { return plan.way; });
}

Result<std::vector<LoweredHalo>> lower(std::span<const HaloMove> moves, const Backend& backend,
                                       std::span<const HaloStorages> storages, const HaloOptions& options) {
    if (!storages.empty() && storages.size() != moves.size())
        return fail(Code::mismatch, fmt::format("{} arrays were given {} storages", moves.size(), storages.size()));
    std::vector<LoweredHalo> lowered;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        RESHARD_TRY(const auto& way, way_of(moves[i], backend, options));
        RESHARD_TRY(auto& one,
                    lower_halo(moves[i], way, backend.rank(), storages.empty() ? HaloStorages{} : storages[i]));
        const Index ranks = std::max(world_size(moves[i].target.owned.mesh), world_size(owners_of(moves[i]).mesh));
        if (ranks > backend.size())
            return fail(Code::mismatch, fmt::format("the layouts of array {} have devices up to {}, the backend has {} "
                                                    "ranks",
                                                    i, ranks - 1, backend.size()));
        lowered.push_back(std::move(one));
    }
    return lowered;
}

}  // namespace

Result<HaloExchange> HaloExchange::prepare(std::span<const HaloMove> moves, Backend& backend,
                                           std::span<const HaloStorages> storages, const HaloOptions& options) {
    auto lowered = lower(moves, backend, storages, options);
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(backend.agree(lowered.map([&](const auto& all) { return fingerprint(moves, all); })));
    HaloExchange made;
    std::vector<std::vector<RankPlan>> rounds;  // of all arrays
    for (std::size_t i = 0; i < moves.size(); ++i) {
        LoweredHalo& one = (*lowered)[i];
        Array& array = made.arrays_.emplace_back();
        array = {one.rounds.size(), one.way,          moves[i].target.owned.dtype,
                 !moves[i].source,  one.source_bytes, one.target_bytes};
        made.received_bytes_ += one.received_bytes;
        rounds.resize(std::max(rounds.size(), one.rounds.size()));
        for (std::size_t round = 0; round < one.rounds.size(); ++round)
            rounds[round].push_back(std::move(one.rounds[round]));
    }
    made.state_ = std::make_shared<State>();
    for (std::vector<RankPlan>& round : rounds) {
        RESHARD_TRY(auto& prepared, backend.prepare(std::move(round)));
        made.state_->rounds.push_back(std::move(prepared));
        made.state_->runs->prepared.push_back(made.state_->rounds.back());
        if (moves.size() == 1 && !moves.front().source)
            made.state_->runs->at_once.push_back(dynamic_cast<AtOnce*>(made.state_->rounds.back().get()));
    }
    return made;
}

Result<HaloExchange> HaloExchange::prepare(const HaloLayout& layout, Backend& backend,
                                           const std::optional<Storage>& array) {
    const HaloMove move{layout};
    const HaloStorages storages{array, std::nullopt};
    return prepare(std::span(&move, 1), backend, std::span(&storages, 1));
}

Index HaloExchange::staging_bytes() const {
    Index bytes = 0;
    for (const auto& round : state_->rounds) bytes += round->staging_bytes();
    return bytes;
}

std::string HaloExchange::describe() const {
    return state_->rounds.empty() ? std::string() : state_->rounds.front()->describe();
}

void HaloExchange::report_failure(const Error& why) {
    if (state_->runs->in_flight || state_->runs->failed) return;
    for (const auto& round : state_->rounds) round->report_failure(why);
}

Result<std::unique_ptr<Bound>> HaloExchange::bind(std::span<const Buffers> buffers) {
    auto bound = try_bind(buffers);
    for (std::size_t i = 0; !bound && i < state_->rounds.size(); ++i)
        state_->rounds[i]->report_failure(named("bind failed", bound.error()));
    return bound;
}

Result<std::unique_ptr<Bound>> HaloExchange::try_bind(std::span<const Buffers> buffers) const {
    if (buffers.size() != arrays_.size())
        return fail(Code::mismatch,
                    fmt::format("{} arrays were given {} sets of buffers", arrays_.size(), buffers.size()));
    std::vector<MemoryRange> ranges;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const Array& array = arrays_[i];
        RESHARD_CHECK(add_range(ranges, buffers[i].source, array.source_bytes,
                                {{}, fmt::format("the source of array {}", i), false}));
        RESHARD_CHECK(add_range(ranges, buffers[i].target, array.target_bytes, {{}, fmt::format("array {}", i), true}));
    }
    RESHARD_CHECK(check_apart(ranges));
    BoundBuckets all;
    std::size_t first_step = 0;
    for (std::size_t round = 0; round < state_->rounds.size(); ++round) {
        std::vector<Buffers> of_plans;
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            if (round >= arrays_[i].rounds) continue;
            Buffers own{buffers[i].source, buffers[i].target, {}};
            if (arrays_[i].in_place || round > 0) own.source = own.target;
            of_plans.push_back(own);
        }
        std::vector<std::size_t>& steps = all.steps.emplace_back(of_plans.size());
        std::iota(steps.begin(), steps.end(), first_step);
        first_step += steps.size();
        RESHARD_TRY(auto& bound, state_->rounds[round]->bind(of_plans));
        all.prepared.push_back(state_->rounds[round]);
        all.bounds.push_back(std::move(bound));
    }
    return guarded(std::move(all), state_->runs);
}

Result<void> HaloExchange::run(Elements array) {
    if (array.dtype && !arrays_.empty() && *array.dtype != arrays_.front().dtype)
        return fail(Code::mismatch, fmt::format("elements of {} were given for an array of {}", name(*array.dtype),
                                                name(arrays_.front().dtype)));
    if (state_->runs->moves_at_once(false) && fits(array.bytes, arrays_.front().target_bytes))
        return state_->runs->move_at_once({array.bytes, array.bytes, {}}, nullptr);
    const Buffers buffers{{}, array.bytes, {}};
    RESHARD_TRY(auto& bound, bind(std::span(&buffers, 1)));
    RESHARD_TRY(auto& ticket, bound->start());
    return ticket->wait();
}

}  // namespace reshard
