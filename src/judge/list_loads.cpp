#include "src/judge/list_loads.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/plan/axis_delta.hpp"
#include "src/plan/buffer_assignment.hpp"
#include "src/price/carried.hpp"
#include "src/price/copy_runs.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

/// Transfers that are looked at for one list, some 50 ns each.
constexpr Index transfers_max = Index{1} << 24;
/// The cost of looking at one device, in transfers.
constexpr Index transfers_of_device = 8;

Machine without_levels() {
    Machine machine;
    machine.levels = {Level{}};
    return machine;
}

void add(Index& sum, Index value) { sum = saturating_add(sum, value); }

void add_all(std::vector<Index>& sums, const std::vector<Index>& values) {
    for (std::size_t i = 0; i < sums.size(); ++i) add(sums[i], values[i]);
}

// Each device receives as much as any other, and none chooses whom it serves, so that each sends as much, too.
bool same_on_all(const Layout& before, const Step& step, const Move& move) {
    return move.uniform &&
           (step.kind != StepKind::exchange || complement(used_atoms(before), device_count(before)).empty());
}

Index most(const std::vector<Index>& values) { return values.empty() ? 0 : *std::ranges::max_element(values); }

}  // namespace

ListLoads::ListLoads(const ListPlan& list, std::span<const Verdict> verdicts)
    : ListLoads(list, verdicts, without_levels()) {}

ListLoads::ListLoads(const ListPlan& list, std::span<const Verdict> verdicts, const Machine& machine)
    : list_(list), verdicts_(verdicts), machine_(machine), budget_(transfers_max) {
    one_link_ = machine_.levels.size() == 1 && machine_.levels[0].pair_bytes_per_second == 0;
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> firsts;  // by fingerprint
    for (std::size_t i = 0; i < list.plans.size(); ++i) {
        const Execution execution = execution_of(list, i);
        if (std::holds_alternative<AsOneExchange>(execution)) exchanges_.emplace(i, *as_one_exchange(list.plans[i]));
        std::vector<std::size_t>& alike = firsts[fingerprint(list.plans[i], execution)];
        const auto same = std::ranges::find_if(alike, [&](std::size_t first) {
            return list.plans[first] == list.plans[i] && execution_of(list, first) == execution;
        });
        kind_of_.push_back(same != alike.end() ? *same : i);
        if (same == alike.end()) alike.push_back(i);
    }
    find_seats();
    all_ = none();
}

const Plan& ListLoads::running(std::size_t array) const {
    const auto exchange = exchanges_.find(array);
    return exchange == exchanges_.end() ? list_.plans[array] : exchange->second;
}

void ListLoads::find_seats() {
    for (std::size_t i = 0; i < list_.plans.size(); ++i) {
        if (kind_of_[i] != i) continue;
        const Plan& plan = running(i);
        sets_.number_of(plan.source.mesh);
        sets_.number_of(plan.target.mesh);
        for (const Step& step : plan.steps) sets_.number_of(step.layout.mesh);
    }
    each_device_ = sets_.world_size() <= told_apart_max;
    seats_ = static_cast<std::size_t>(sets_.world_size());
    if (!each_device_) {
        const std::vector<DeviceClass> classes = sets_.classes();
        seats_ = classes.size();
        seats_of_.resize(sets_.size());
        for (std::size_t seat = 0; seat < seats_; ++seat)
            for (const std::size_t set : classes[seat].sets) seats_of_[set].push_back(seat);
    }
}

// Classes of devices are not told apart by blocks: they share one link.
std::size_t ListLoads::link(std::size_t level, std::size_t seat) const {
    const bool shared = level > 0 && machine_.levels[level].shared;
    if (!each_device_) return shared ? 0 : seat;
    return seat / static_cast<std::size_t>(sharing_block(machine_, level));
}

template <class Visit>
void ListLoads::each_seat(std::size_t set, const Visit& visit) const {
    if (!each_device_) {
        for (const std::size_t seat : seats_of_[set]) visit(seat);
        return;
    }
    const Mesh& mesh = sets_.mesh(set);
    const Index devices = device_count(mesh);
    for (Index position = 0; position < devices; ++position) visit(static_cast<std::size_t>(device_at(mesh, position)));
}

ListLoads::Sums ListLoads::none() const {
    const std::size_t levels = machine_.levels.size();
    const std::size_t links = levels * seats_;  // no level has more
    return {std::vector<Index>(links),           std::vector<Index>(links),  std::vector<Index>(levels * seats_),
            std::vector<Index>(levels * seats_), std::vector<Index>(seats_), std::vector<Index>(seats_)};
}

ListLoads::Kinds ListLoads::kinds_of(std::span<const std::size_t> arrays) const {
    Kinds kinds;
    std::unordered_map<std::size_t, std::size_t> places;
    for (const std::size_t array : arrays) {
        const auto [place, fresh] = places.emplace(kind_of_[array], kinds.size());
        if (fresh) kinds.push_back({kind_of_[array], 0});
        ++kinds[place->second].times;
    }
    return kinds;
}

bool ListLoads::afford(Index cost) {
    if (!each_device_ || cost > budget_) return false;
    budget_ -= cost;
    return true;
}

Index ListLoads::cost_of(const Layout& before, const Step& step, const Move& move) const {
    const Index wanting = device_count(step.layout.mesh);
    if (!crosses_groups(step.kind)) return saturating_multiply(wanting, move.group_size);
    Index cost = saturating_multiply(wanting, saturating_add(move.messages, 1));
    add(cost, device_count(before.mesh));
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        add(cost, saturating_multiply(shard_count(before.dims[i]), shard_count(step.layout.dims[i])));
    return cost;
}

ListLoads::Same& ListLoads::same_of(const Mesh& mesh) {
    Same& same = same_[set_of(mesh)];
    for (auto* values : {&same.received, &same.sent, &same.pair, &same.waits}) values->resize(machine_.levels.size());
    return same;
}

void ListLoads::spread(Sums& sums) {
    std::vector<std::size_t> last(seats_);  // the set that a link was counted for last, and one more
    for (const auto& one : same_) {
        const Same& same = one.second;
        for (std::size_t level = 0; level < machine_.levels.size(); ++level) {
            const std::size_t begin = level * seats_;
            std::ranges::fill(last, 0);
            each_seat(one.first, [&](std::size_t seat) {
                add(sums.pair[begin + seat], same.pair[level]);
                add(sums.waits[begin + seat], same.waits[level]);
                if (level == 0) {
                    add(sums.messages[seat], same.messages);
                    add(sums.copies[seat], same.copies);
                }
                const std::size_t at = link(level, seat);
                if (std::exchange(last[at], 1) != 0) return;
                add(sums.received[begin + at], same.received[level]);
                add(sums.sent[begin + at], same.sent[level]);
            });
        }
    }
    same_.clear();
}

ListLoads::Sums ListLoads::sums_of(std::span<const std::size_t> arrays) {
    Sums sums = none();
    for (const Kind& kind : kinds_of(arrays)) add_plan(sums, kind);
    spread(sums);
    return sums;
}

void ListLoads::add_plan(Sums& sums, const Kind& kind) {
    const Plan& plan = running(kind.array);
    const std::vector<Move>& moves = verdicts_[kind.array].moves;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Layout& before = layout_before(plan, i);
        add_step(sums, before, plan.steps[i], moves[i], plan.network, kind.times);
        const Index copies = copies_picoseconds(plan, i, machine_);
        add(same_of(plan.steps[i].layout.mesh).copies, saturating_multiply(kind.times, copies));
    }
    // As plan_times: if no step writes, the tile is still copied; and what pieces take beside the whole.
    Index more = 0;
    if (!writes(plan)) more = transfer_picoseconds(tile_bytes(plan.target), machine_.copy_bytes_per_second);
    const Execution execution = execution_of(list_, kind.array);
    if (std::holds_alternative<Split>(execution)) {
        const Index whole = plan_picoseconds(plan, verdicts_[kind.array], machine_);
        add(more, std::max<Index>(run_picoseconds(plan, execution, verdicts_[kind.array], machine_) - whole, 0));
    }
    add(same_of(plan.target.mesh).copies, saturating_multiply(kind.times, more));
}

void ListLoads::add_step(Sums& sums, const Layout& before, const Step& step, const Move& move, const Network& network,
                         Index times) {
    if (is_local(step.kind) || (move.received == 0 && move.sent == 0)) return;
    if (same_on_all(before, step, move) || !afford(cost_of(before, step, move))) {
        add_at_most(sums, before, step, move, network, times);
        return;
    }
    const Index bytes = saturating_multiply(times, size_of(before.dtype));
    each_load(before, step, move, machine_, network, [&](const DeviceLoad& load) {
        const auto seat = static_cast<std::size_t>(load.device);
        const std::size_t begin = load.level * seats_;
        const Level& level = machine_.levels[load.level];
        const Index waits =
            saturating_add(level.start_ps, saturating_multiply(std::max<Index>(load.messages, 1), level.latency_ps));
        add(sums.received[begin + link(load.level, seat)], saturating_multiply(bytes, load.received));
        add(sums.sent[begin + link(load.level, seat)], saturating_multiply(bytes, load.sent));
        add(sums.pair[begin + seat], saturating_multiply(bytes, load.pair));
        add(sums.waits[begin + seat], saturating_multiply(times, waits));
        add(sums.messages[seat], saturating_multiply(times, load.messages));
    });
}

// Each device of a mesh as the busiest.
void ListLoads::add_at_most(Sums& sums, const Layout& before, const Step& step, const Move& move,
                            const Network& network, Index times) {
    const Index bytes = saturating_multiply(times, size_of(before.dtype));
    const Mesh& after = step.layout.mesh;
    const bool one_mesh = same_devices(before.mesh, after);
    Traffic traffic{{0}, {0}, {move.messages}};
    if (!one_link_) traffic = traffic_of(before, step, move, machine_, network);
    for (std::size_t i = 0; i < machine_.levels.size(); ++i) {
        const Level& level = machine_.levels[i];
        const Index received = one_link_ ? move.received : traffic.elements[i];
        const Index sent = one_link_ ? sent_at_most(before, step, move, network) : traffic.elements[i];
        if (received == 0 && sent == 0) continue;
        const Index waits = saturating_add(
            level.start_ps, saturating_multiply(std::max<Index>(traffic.messages[i], 1), level.latency_ps));
        Same& target = same_of(after);
        add(target.waits[i], saturating_multiply(times, waits));
        add(target.pair[i], saturating_multiply(bytes, traffic.pair[i]));
        if (!one_link_ || move.uniform || device_count(after) == 1)
            add(target.received[i], saturating_multiply(bytes, received));
        else
            add_received(sums, before, step, move, bytes);
        Same& source = same_of(before.mesh);
        add(source.sent[i], saturating_multiply(bytes, sent));
        if (one_mesh) continue;
        add(source.waits[i], saturating_multiply(times, saturating_add(level.start_ps, level.latency_ps)));
        add(source.pair[i], saturating_multiply(bytes, traffic.pair[i]));
    }
    add(same_of(after).messages, saturating_multiply(times, move.messages));
    if (!same_on_all(before, step, move)) sums.sent_exact = false;
}

// By looking at the devices, or each as the busiest.
void ListLoads::add_received(Sums& sums, const Layout& before, const Step& step, const Move& move, Index bytes) {
    const Mesh& mesh = step.layout.mesh;
    if (!afford(saturating_multiply(transfers_of_device, device_count(mesh)))) {
        add(same_of(mesh).received[0], saturating_multiply(bytes, move.received));
        sums.received_exact = false;
        return;
    }
    for (Index position = 0; position < device_count(mesh); ++position) {
        const Index device = device_at(mesh, position);
        const Index received = received_by(device, before, step, move);
        add(sums.received[static_cast<std::size_t>(device)], saturating_multiply(bytes, received));
    }
}

ListLoad ListLoads::load(const Sums& sums) const {
    return {most(sums.received), most(sums.sent), most(sums.messages), sums.received_exact, sums.sent_exact};
}

ListLoad ListLoads::load_of(std::span<const std::size_t> arrays) {
    const Sums sums = sums_of(arrays);
    for (const auto part : {&Sums::received, &Sums::sent, &Sums::messages}) add_all(all_.*part, sums.*part);
    all_.received_exact = all_.received_exact && sums.received_exact;
    all_.sent_exact = all_.sent_exact && sums.sent_exact;
    return load(sums);
}

Index ListLoads::picoseconds_of(std::span<const std::size_t> arrays) {
    const Sums sums = sums_of(arrays);
    Index longest = 0;
    for (std::size_t seat = 0; seat < seats_; ++seat) {
        Index time = sums.copies[seat];
        for (std::size_t i = 0; i < machine_.levels.size(); ++i) {
            const Level& level = machine_.levels[i];
            const std::size_t at = i * seats_ + link(i, seat);
            const std::size_t own = i * seats_ + seat;
            if (sums.waits[own] == 0 && sums.pair[own] == 0 && sums.received[at] == 0 && sums.sent[at] == 0) continue;
            const Index bytes = std::max(sums.received[at], sums.sent[at]);
            Index moving = transfer_picoseconds(bytes, std::max<Index>(level.bytes_per_second, 1));
            if (level.pair_bytes_per_second > 0)
                moving = std::max(moving, transfer_picoseconds(sums.pair[own], level.pair_bytes_per_second));
            add(time, saturating_add(sums.waits[own], moving));
        }
        longest = std::max(longest, time);
    }
    return longest;
}

// Adds the bytes that each device must receive of the arrays of a kind, if they are known.
void ListLoads::add_bound(Sums& sums, const Kind& kind) {
    const Plan& plan = list_.plans[kind.array];
    const Index element = std::min(size_of(plan.source.dtype), size_of(plan.target.dtype));
    const Index bytes = saturating_multiply(kind.times, element);
    const Mesh& mesh = plan.target.mesh;
    const Step whole{StepKind::exchange, plan.target};
    Move move;
    if (summand_count(plan.source) == 1 && summand_count(plan.target) == 1) {
        move.received = verdicts_[kind.array].lower_bound_bytes / element;
        move.uniform = divides(plan.source) && divides(plan.target) && same_order(plan.source.mesh, mesh) &&
                       change_of(plan.source, plan.target).prefixes;
    } else if (summand_count(plan.target) == 1 && (divides(plan.target) || device_count(mesh) == 1)) {
        move.received = tile_elements(plan.target);  // each device receives whole sums
    }
    if (move.received == 0) return;  // or nothing is known of single devices
    if (move.uniform || device_count(mesh) == 1) {
        add(same_of(mesh).received[0], saturating_multiply(bytes, move.received));
        return;
    }
    if (!afford(saturating_multiply(transfers_of_device, device_count(mesh)))) return;
    for (Index position = 0; position < device_count(mesh); ++position) {
        const Index device = device_at(mesh, position);
        const Index received = received_by(device, plan.source, whole, move);
        add(sums.received[static_cast<std::size_t>(device)], saturating_multiply(bytes, received));
    }
}

Index ListLoads::lower_bound_bytes() {
    std::vector<std::size_t> arrays(list_.plans.size());
    std::iota(arrays.begin(), arrays.end(), std::size_t{0});
    Sums sums = none();
    Index largest = 0;
    for (const Kind& kind : kinds_of(arrays)) {
        add_bound(sums, kind);
        // Whoever is busiest with one of equal arrays is so with each.
        largest = std::max(largest, saturating_multiply(kind.times, verdicts_[kind.array].lower_bound_bytes));
    }
    spread(sums);
    return std::max(largest, most(sums.received));
}

}  // namespace reshard
