// A rebuild on a backend: prepare, bind and run.
#include "reshard/boxes/rebuild.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/boxes/rebuild_traffic.hpp"
#include "src/execute/boxes/rounds.hpp"
#include "src/execute/caller_array.hpp"
#include "src/schedule/exchange.hpp"

namespace reshard {

/// The prepared round.
struct Rebuild::State {
    Rounds rounds;
    Index rank = 0;
};

namespace {

// The rank of each device.
using Ranks = std::map<Index, Index>;

Result<Ranks> ranks_of(std::span<const Index> devices, Index count) {
    std::vector<Index> own(static_cast<std::size_t>(count));
    std::iota(own.begin(), own.end(), 0);
    if (!devices.empty() && std::ssize(devices) != count)
        return fail(Code::mismatch, fmt::format("{} ranks were given {} devices", count, devices.size()));
    if (!devices.empty()) own.assign(devices.begin(), devices.end());
    Ranks ranks;
    for (Index rank = 0; rank < count; ++rank) {
        const auto [known, fresh] = ranks.try_emplace(own[static_cast<std::size_t>(rank)], rank);
        if (!fresh)
            return fail(Code::mismatch,
                        fmt::format("ranks {} and {} are both device {}", known->second, rank, known->first));
    }
    return ranks;
}

// Fails if a device that takes part is no rank.
Result<void> check_present(const RebuildMove& move, const std::vector<Index>& lost, const Ranks& ranks) {
    for (const auto& [mesh, wants] : {std::pair(&move.source.mesh, false), std::pair(&move.target.mesh, true)}) {
        for (Index position = 0; position < device_count(*mesh); ++position) {
            const Index device = device_at(*mesh, position);
            if (ranks.contains(device) || (!wants && std::ranges::binary_search(lost, device))) continue;
            return fail(Code::mismatch, fmt::format("device {} {} a tile of {}, and no rank is this device", device,
                                                    wants ? "wants" : "holds", format(move.source)));
        }
    }
    return {};
}

std::vector<Transfer> by_rank(std::vector<Transfer> transfers, const Ranks& ranks) {
    for (Transfer& one : transfers) one.peer = ranks.at(one.peer);
    return transfers;
}

Index device_of(const Ranks& ranks, Index rank) {
    return std::ranges::find(ranks, rank, &Ranks::value_type::second)->first;
}

RankPlan lower(const RebuildMove& move, const std::vector<Index>& lost, const Ranks& ranks, Index rank) {
    const Index device = device_of(ranks, rank);
    const bool gone = std::ranges::binary_search(lost, device);
    const Tile held = gone ? nothing(move.source.dims.size()) : tile(move.source, device);
    const Tile wanted = tile(move.target, device);
    Schedule schedule{StepKind::exchange, rank, held, wanted, Combine::copy, {}, {}, {}, {}};
    schedule.receives = by_rank(exchange_receives(move.source, move.target, device, {}, lost), ranks);
    schedule.sends = by_rank(exchange_sends(move.source, move.target, device, {}, lost), ranks);
    RankPlan plan = one_step(move.source.dtype, std::move(schedule), {BufferId::source, 0, held, row_major(held)},
                             {BufferId::target, 0, wanted, row_major(wanted)});
    plan.source_bytes = count(held) * size_of(move.source.dtype);
    plan.target_bytes = count(wanted) * size_of(move.source.dtype);
    return plan;
}

Result<std::vector<RankPlan>> lower(std::span<const RebuildMove> moves, const std::vector<Index>& lost,
                                    std::span<const Index> devices, const Backend& backend) {
    RESHARD_TRY(const auto& ranks, ranks_of(devices, backend.size()));
    std::vector<RankPlan> plans;
    for (const RebuildMove& move : moves) {
        RESHARD_CHECK(check_rebuild(move, lost));
        RESHARD_CHECK(check_present(move, lost, ranks));
        plans.push_back(lower(move, lost, ranks, backend.rank()));
    }
    return plans;
}

std::uint64_t fingerprint(std::span<const RebuildMove> moves, const std::vector<Index>& lost,
                          std::span<const Index> devices) {
    Hash hash;
    for (const RebuildMove& move : moves)
        for (const Layout* layout : {&move.source, &move.target})
            hash.add(format(layout->mesh) + " " + format(*layout) + ";");
    for (const Index device : lost) hash.add(device);
    hash.add("devices");
    for (const Index device : devices) hash.add(device);
    return hash.value();
}

BoxTraffic traffic_of(const std::vector<RankPlan>& plans) {
    BoxTraffic traffic;
    std::set<Index> senders;
    std::set<Index> receivers;
    for (const RankPlan& plan : plans) {
        const Schedule& schedule = plan.steps.front().schedule;
        for (const Transfer& one : schedule.receives) {
            const Index bytes = count(one.box) * size_of(plan.dtype);
            (one.peer == schedule.rank ? traffic.copied_bytes : traffic.received_bytes) += bytes;
            if (one.peer != schedule.rank) senders.insert(one.peer);
        }
        for (const Transfer& one : schedule.sends) {
            traffic.sent_bytes += count(one.box) * size_of(plan.dtype);
            receivers.insert(one.peer);
        }
    }
    traffic.senders = std::ssize(senders);
    traffic.receivers = std::ssize(receivers);
    return traffic;
}

}  // namespace

Result<Rebuild> Rebuild::prepare(std::span<const RebuildMove> moves, std::span<const Index> lost, Backend& backend,
                                 std::span<const Index> devices) {
    const std::vector<Index> gone = ascending(lost);
    auto plans = lower(moves, gone, devices, backend);
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(backend.agree(plans.map([&](const auto&) { return fingerprint(moves, gone, devices); })));
    Rebuild made;
    made.traffic_ = traffic_of(*plans);
    RESHARD_TRY(auto& rounds, Rounds::prepare({std::move(*plans)}, backend));
    made.state_ = std::make_shared<State>(State{std::move(rounds), backend.rank()});
    return made;
}

Index Rebuild::staging_bytes() const { return state_->rounds.staging_bytes(); }

std::string Rebuild::describe() const { return state_->rounds.describe(state_->rank, traffic_); }

void Rebuild::report_failure(const Error& why) { state_->rounds.report_failure(why); }

Result<std::unique_ptr<Bound>> Rebuild::bind(std::span<const Buffers> buffers) {
    return state_->rounds.bind(buffers, "the source tile", "the target tile");
}

Result<void> Rebuild::run(std::span<const Buffers> buffers) {
    RESHARD_TRY(auto& bound, bind(buffers));
    RESHARD_TRY(auto& ticket, bound->start());
    return ticket->wait();
}

}  // namespace reshard
