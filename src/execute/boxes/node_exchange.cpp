// A move through nodes on a backend: prepare, bind and run.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/execute/boxes/lower_boxes.hpp"
#include "src/execute/boxes/rounds.hpp"

namespace reshard {

/// The plan of this rank, ready to run, and the memory between its exchanges.
struct NodeExchange::State {
    Rounds rounds;
    std::unique_ptr<Memory> staging;
    DType dtype;
    Index rank;
    Index node_devices;
};

namespace {

// The places of numbered boxes in a dense tile. The number has no stride.
std::vector<Storage> places_in(const Tile& tile, const std::vector<Box>& boxes) {
    const Storage whole = row_major(tile);
    std::vector<Storage> places;
    for (const Box& box : boxes) {
        Storage& place = places.emplace_back();
        place.offset = offset_of(whole, tile, Box(box.begin() + 1, box.end()));
        place.strides = {0};
        place.strides.insert(place.strides.end(), whole.strides.begin(), whole.strides.end());
    }
    return places;
}

// The places of boxes that lie one after another in the staging, from an element on.
std::vector<Storage> places_from(Index element, const std::vector<Box>& boxes) {
    std::vector<Storage> places;
    for (const Box& box : boxes) {
        places.push_back(row_major(as_tile(box)));
        places.back().offset = element;
        element += count(box);
    }
    return places;
}

Index elements_of(const std::vector<Box>& boxes) {
    Index elements = 0;
    for (const Box& box : boxes) elements += count(box);
    return elements;
}

// The places in the staging of the boxes that this rank has and wants on the way.
struct Staged {
    std::vector<Storage> spread;   // wanted in `spread`
    std::vector<Storage> relayed;  // owned in `fetch`, if there are relays
    std::vector<Storage> fetched;  // wanted in `fetch`
    std::vector<Storage> shared;   // owned in `share`
    Index elements = 0;
};

Staged staged_on(const NodeMove& move, std::size_t rank) {
    const std::vector<Box>& spread = move.spread.ranks[rank].want;
    const std::vector<Box>& fetched = move.fetch.ranks[rank].want;
    Staged staged;
    staged.spread = places_from(0, spread);
    staged.fetched = places_from(elements_of(spread), fetched);
    staged.elements = elements_of(spread) + elements_of(fetched);
    if (move.relays)
        for (const std::size_t box : move.relayed[rank]) staged.relayed.push_back(staged.spread[box]);
    for (std::size_t i = 0; i < spread.size(); ++i)
        if (spread[i].front().begin > 0) staged.shared.push_back(staged.spread[i]);
    staged.shared.insert(staged.shared.end(), staged.fetched.begin(), staged.fetched.end());
    return staged;
}

// One exchange of the move, as step `number` of its plan.
struct Leg {
    RankStep step;
    BoxTraffic traffic;
};

Result<Leg> leg_of(const BoxTable& table, Index rank, const BoxStorages& places, std::size_t number, BufferId from,
                   BufferId to) {
    const BoxRoutes routes(table);
    RESHARD_CHECK(routes.check(rank));
    RESHARD_TRY(auto& lowered, lower_boxes(table, routes, rank, places));
    Leg leg{std::move(lowered.rounds.front().steps.front()), lowered.traffic};
    leg.step.step = number;
    leg.step.from.buffer = from;
    leg.step.to.buffer = to;
    return leg;
}

// The plan of a rank, and its workspace.
struct Lowered {
    RankPlan plan;
    BoxTraffic traffic;
    std::unique_ptr<Memory> staging;
};

void add(BoxTraffic& all, const BoxTraffic& one) {
    all.received_bytes += one.received_bytes;
    all.sent_bytes += one.sent_bytes;
    all.copied_bytes += one.copied_bytes;
    all.senders += one.senders;
    all.receivers += one.receivers;
}

Result<std::vector<Leg>> legs_of(const NodeMove& move, Index rank, const Tile& held, const Tile& wanted,
                                 const Staged& staged) {
    using enum BufferId;
    const auto own = static_cast<std::size_t>(rank);
    const auto in_source = [&](const BoxTable& table) { return places_in(held, table.ranks[own].have); };
    const auto in_target = [&](const BoxTable& table) { return places_in(wanted, table.ranks[own].want); };
    RESHARD_TRY(auto& keep, leg_of(move.keep, rank, {in_source(move.keep), in_target(move.keep)}, 0, source, target));
    RESHARD_TRY(auto& spread, leg_of(move.spread, rank, {in_source(move.spread), staged.spread}, 1, source, workspace));
    const auto sent = move.relays ? staged.relayed : in_source(move.fetch);
    RESHARD_TRY(auto& fetch,
                leg_of(move.fetch, rank, {sent, staged.fetched}, 2, move.relays ? workspace : source, workspace));
    RESHARD_TRY(auto& share, leg_of(move.share, rank, {staged.shared, in_target(move.share)}, 3, workspace, target));
    std::vector<Leg> legs;
    for (Leg* leg : {&keep, &spread, &fetch, &share}) legs.push_back(std::move(*leg));
    return legs;
}

Result<Lowered> lower(const Layout& source, const Layout& target, Index node_devices, bool relays, Backend& backend) {
    RESHARD_TRY(auto& move, through_nodes(source, target, node_devices, relays));
    if (std::ssize(move.keep.ranks) > backend.size())
        return fail(Code::mismatch, fmt::format("the move has {} devices, the backend has {} ranks",
                                                move.keep.ranks.size(), backend.size()));
    const auto ranks = static_cast<std::size_t>(backend.size());
    for (BoxTable* table : {&move.keep, &move.spread, &move.fetch, &move.share}) table->ranks.resize(ranks);
    if (relays) move.relayed.resize(ranks);
    const Index rank = backend.rank();
    const Tile held = tile(source, rank);
    const Tile wanted = tile(target, rank);
    const Staged staged = staged_on(move, static_cast<std::size_t>(rank));
    RESHARD_TRY(auto& legs, legs_of(move, rank, held, wanted, staged));
    Lowered lowered;
    RankPlan& plan = lowered.plan;
    plan.dtype = plan.target_dtype = source.dtype;
    plan.source_bytes = count(held) * size_of(source.dtype);
    plan.target_bytes = count(wanted) * size_of(source.dtype);
    plan.workspace_bytes = staged.elements * size_of(source.dtype);
    for (Leg& leg : legs) {
        add(lowered.traffic, leg.traffic);
        plan.steps.push_back(std::move(leg.step));
    }
    RESHARD_ASSIGN(lowered.staging, backend.allocate(std::max<Index>(plan.workspace_bytes, 1)));
    return lowered;
}

std::uint64_t fingerprint(const Layout& source, const Layout& target, Index node_devices, bool relays) {
    Hash hash;
    for (const Layout* layout : {&source, &target}) hash.add(format(layout->mesh) + " " + format(*layout) + ";");
    hash.add("through nodes");
    hash.add(node_devices);
    hash.add(Index{relays ? 1 : 0});
    return hash.value();
}

}  // namespace

Result<NodeExchange> NodeExchange::prepare(const Layout& source, const Layout& target, Index node_devices, bool relays,
                                           Backend& backend) {
    auto lowered = lower(source, target, node_devices, relays, backend);
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(
        backend.agree(lowered.map([&](const auto&) { return fingerprint(source, target, node_devices, relays); })));
    NodeExchange made;
    made.traffic_ = lowered->traffic;
    RESHARD_TRY(auto& rounds, Rounds::prepare({{std::move(lowered->plan)}}, backend));
    made.state_ = std::make_shared<State>(
        State{std::move(rounds), std::move(lowered->staging), source.dtype, backend.rank(), node_devices});
    return made;
}

Index NodeExchange::staging_bytes() const {
    return state_->rounds.staging_bytes() + std::ssize(state_->staging->bytes());
}

std::string NodeExchange::describe() const {
    return fmt::format("rank {} receives {} through nodes of {}: each node fetches an element once, and shares it\n",
                       state_->rank, format_bytes(traffic_.received_bytes), state_->node_devices) +
           state_->rounds.how();
}

void NodeExchange::report_failure(const Error& why) { state_->rounds.report_failure(why); }

Result<std::unique_ptr<Bound>> NodeExchange::bind(const Buffers& buffers) {
    const Buffers own{buffers.source, buffers.target, state_->staging->bytes()};
    return state_->rounds.bind(std::span(&own, 1), "the source tile", "the target tile");
}

Result<void> NodeExchange::run(ConstElements in, Elements out) {
    for (const auto& given : {in.dtype, out.dtype})
        if (given && *given != state_->dtype)
            return fail(Code::mismatch,
                        fmt::format("elements of {} were given for an array of {}", name(*given), name(state_->dtype)));
    RESHARD_TRY(auto& bound, bind({in.bytes, out.bytes, {}}));
    RESHARD_TRY(auto& ticket, bound->start());
    return ticket->wait();
}

}  // namespace reshard
