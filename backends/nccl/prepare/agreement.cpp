#include "backends/nccl/prepare/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/base/hash.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

constexpr Index ranks_named_max = 256;  // up to so many ranks, the error names the two that differ

std::uint64_t mixed_all(std::uint64_t seed, std::initializer_list<Index> values) {
    for (const Index value : values) seed = mixed(seed, static_cast<std::uint64_t>(value));
    return seed;
}

std::uint64_t shape_of(const Box& box) {
    std::uint64_t shape = 1;
    for (const Interval& side : box) shape = mixed(shape, static_cast<std::uint64_t>(side.size()));
    return shape;
}

// The vote of one rank on one step. Sums over all ranks are 0 if both ends of everything agree.
struct Vote {
    std::uint64_t native = 1;    // least
    std::uint64_t direct = 1;    // least
    std::uint64_t unpacked = 1;  // least
    std::uint64_t cuttable = 1;  // least
    std::uint64_t peers = 0;     // most
    std::uint64_t partition = 0;
    std::uint64_t messages = 0;
    std::uint64_t members = 0;
};

// A number for each message, the same on both ends: a send adds it, and its receive subtracts it.
std::uint64_t messages_of(const Schedule& schedule) {
    std::uint64_t sum = 0;
    std::map<Index, Index> sent;
    for (const Transfer& send : schedule.sends) {
        if (send.peer == schedule.rank || count(send.box) == 0) continue;
        sum += mixed_all(shape_of(send.box), {schedule.rank, send.peer, sent[send.peer]++});
    }
    std::map<Index, Index> received;
    for (const Transfer& receive : schedule.receives) {
        if (receive.peer == schedule.rank || count(receive.box) == 0) continue;
        sum -= mixed_all(shape_of(receive.box), {receive.peer, schedule.rank, received[receive.peer]++});
    }
    return sum;
}

// Each member adds a number for itself and subtracts one for the next member: 0 if all see the same members and shapes.
void say_members(const NcclCollective& regular, Index rank, Vote& vote) {
    std::uint64_t seen = shape_of(regular.gives.front());
    for (const Index member : regular.members) seen = mixed(seen, static_cast<std::uint64_t>(member));
    const auto place = std::ranges::find(regular.members, rank) - regular.members.begin();
    const auto next = (place + 1) % static_cast<Index>(regular.members.size());
    vote.members = mixed_all(seen, {place}) - mixed_all(seen, {next});
    std::uint64_t order = 2;
    for (const Index member : regular.members) order = mixed(order, static_cast<std::uint64_t>(member));
    vote.partition = mixed_all(order, {rank});
}

Vote vote_on(const RankStep& step, const std::optional<NcclCollective>& regular) {
    const Schedule& schedule = step.schedule;
    Vote vote;
    const auto is_empty = [](const Transfer& transfer) { return count(transfer.box) == 0; };
    if (std::ranges::all_of(schedule.sends, is_empty) && std::ranges::all_of(schedule.receives, is_empty)) return vote;
    vote.native = regular ? 1 : 0;
    vote.direct = regular && is_direct(*regular, step) ? 1 : 0;
    vote.unpacked = nothing_packed(step) ? 1 : 0;
    vote.cuttable = order_survives_cutting(schedule) ? 1 : 0;
    std::set<Index> senders;
    std::set<Index> receivers;
    for (const Transfer& receive : schedule.receives) senders.insert(receive.peer);
    for (const Transfer& send : schedule.sends) receivers.insert(send.peer);
    vote.peers = std::max(senders.size(), receivers.size());
    vote.messages = messages_of(schedule);
    if (regular) say_members(*regular, schedule.rank, vote);
    return vote;
}

using Field = std::uint64_t Vote::*;

Result<void> count_votes(Base& base, std::vector<Vote>& votes, std::initializer_list<Field> fields, ncclRedOp_t op) {
    std::vector<std::uint64_t> values;
    for (const Vote& vote : votes) {
        for (const Field field : fields) values.push_back(vote.*field);
    }
    RESHARD_CHECK(base.vote(values, op));
    std::size_t next = 0;
    for (Vote& vote : votes) {
        for (const Field field : fields) vote.*field = values[next++];
    }
    return {};
}

// Collective. Every rank tells how much it sends to each rank and expects from it. All find the first difference.
Result<void> name_mismatch(Base& base, const RankStep& step, std::size_t array) {
    const std::string name = name_of(step, array);
    const auto ranks = static_cast<std::size_t>(base.size());
    if (base.size() > ranks_named_max) {
        return fail(Code::mismatch, fmt::format("{}: what a rank sends is not what its peer expects", name));
    }
    std::vector<std::uint64_t> sent(ranks * ranks, 0);
    std::vector<std::uint64_t> expected(ranks * ranks, 0);
    const Schedule& schedule = step.schedule;
    const auto me = static_cast<std::size_t>(schedule.rank);
    const Index element_bytes = size_of(sent_dtype(step));
    const auto bytes = [&](const Transfer& one) { return static_cast<std::uint64_t>(count(one.box) * element_bytes); };
    for (const Transfer& send : schedule.sends) {
        if (send.peer != schedule.rank) sent[me * ranks + static_cast<std::size_t>(send.peer)] += bytes(send);
    }
    for (const Transfer& receive : schedule.receives) {
        if (receive.peer != schedule.rank) {
            expected[static_cast<std::size_t>(receive.peer) * ranks + me] += bytes(receive);
        }
    }
    RESHARD_CHECK(base.vote(sent, ncclSum));
    RESHARD_CHECK(base.vote(expected, ncclSum));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        if (sent[i] == expected[i]) continue;
        return fail(Code::mismatch, fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {}", name,
                                                i / ranks, sent[i], i % ranks, expected[i]));
    }
    return fail(Code::mismatch, fmt::format("{}: the boxes that a rank sends are not those its peer expects", name));
}

Result<void> same_number_of_steps(Base& base, std::size_t steps) {
    std::uint64_t least[] = {steps, ~std::uint64_t{steps}};
    RESHARD_CHECK(base.vote(least, ncclMin));
    if (least[0] == ~least[1]) return {};
    return fail(Code::mismatch, "ranks bring different numbers of steps");
}

Index elements_max(const Options& options, const Vote& vote, bool native, Index element_bytes) {
    constexpr Index sides = 2;
    const Index elements = options.staging_bytes_max / (sides * slots_max) / element_bytes;
    const bool whole = !native && (vote.unpacked != 0 || vote.cuttable == 0);
    if (whole) return index_max;
    if (native) return std::max<Index>(1, elements);  // for all members together
    return std::max<Index>(1, elements / std::max<Index>(1, static_cast<Index>(vote.peers)));
}

}  // namespace

Result<std::vector<StepAgreed>> agree_on_steps(Base& base, const std::vector<RankPlan>& plans) {
    std::vector<Vote> votes;
    std::vector<StepAgreed> agreed;
    for (const RankPlan& plan : plans) {
        for (const RankStep& step : plan.steps) {
            agreed.push_back({{regular(step, base.options().ordered_sums)}});
            votes.push_back(vote_on(step, agreed.back().agreed.regular));
        }
    }
    RESHARD_CHECK(same_number_of_steps(base, votes.size()));
    using V = Vote;
    const auto least = {&V::native, &V::direct, &V::unpacked, &V::cuttable};
    RESHARD_CHECK(count_votes(base, votes, least, ncclMin));
    RESHARD_CHECK(count_votes(base, votes, {&V::peers}, ncclMax));
    const auto sums = {&V::partition, &V::messages, &V::members};
    RESHARD_CHECK(count_votes(base, votes, sums, ncclSum));

    std::size_t ordinal = 0;
    for (std::size_t array = 0; array < plans.size(); ++array) {
        for (const RankStep& step : plans[array].steps) {
            const Vote& vote = votes[ordinal];
            StepAgreed& one = agreed[ordinal++];
            one.native = vote.native != 0 && vote.members == 0 && vote.partition != 0;
            one.partition = vote.partition;
            if (!one.native && vote.messages != 0) {
                auto named = name_mismatch(base, step, array);
                return tl::unexpected(named.error());
            }
            if (!one.native) one.agreed.regular.reset();
            one.agreed.direct = one.native && vote.direct != 0;
            const Index element_bytes = size_of(sent_dtype(step));
            one.message_elements_max = elements_max(base.options(), vote, false, element_bytes);
            one.agreed.elements_max = elements_max(base.options(), vote, one.native, element_bytes);
        }
    }
    return agreed;
}

}  // namespace reshard::nccl
