// Compares the judge's load of a list's busiest device, and its time, with the schedules of all ranks.
#include <algorithm>
#include <map>
#include <numeric>

#include "reshard/planner/schedule.hpp"
#include "reshard/synthesize.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {

namespace {

constexpr Index ranks = 8;

/// The traffic of one device.
struct Moved {
    Index received = 0;
    Index sent = 0;
    Index peers = 0;
};

Index elements_of(const std::vector<Transfer>& transfers, Index rank) {
    Index elements = 0;
    for (const Transfer& transfer : transfers) elements += transfer.peer == rank ? 0 : count(transfer.box);
    return elements;
}

// The traffic of one step on one rank, in elements.
Moved moved(const Layout& before, const Step& step, const Move& move, Index rank, const Network& network) {
    const Schedule mine = schedule(before, step, rank, network);
    std::vector<Index> peers;
    for (const Transfer& transfer : mine.receives)
        if (transfer.peer != rank && count(transfer.box) > 0) peers.push_back(transfer.peer);
    std::ranges::sort(peers);
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    Moved all{elements_of(mine.receives, rank), elements_of(mine.sends, rank), std::ssize(peers)};
    if (step.kind != StepKind::all_reduce || count(mine.target_tile) == 0) return all;
    // A schedule lists the contributors. An all_reduce moves the bytes of a reduce_scatter and an all_gather.
    const Index group = move.group_size;
    const Index bytes = ceil_divide(2 * count(mine.target_tile) * (group - 1), group);
    return {bytes, bytes, 2 * (group - 1)};
}

// The plan of an array with its execution applied.
Plan running(const ListPlan& list, std::size_t array) {
    const Execution execution = execution_of(list, array);
    return std::holds_alternative<AsOneExchange>(execution) ? *as_one_exchange(list.plans[array]) : list.plans[array];
}

using Sums = std::vector<Moved>;  // by device

void add(Sums& sums, const ListPlan& list, const ListVerdict& verdict, std::size_t array) {
    const Plan plan = running(list, array);
    const Index size = size_of(plan.source.dtype);
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        for (Index device = 0; device < std::ssize(sums); ++device) {
            const Moved one =
                moved(layout_before(plan, i), plan.steps[i], verdict.plans[array].moves[i], device, plan.network);
            Moved& sum = sums[static_cast<std::size_t>(device)];
            sum = {sum.received + size * one.received, sum.sent + size * one.sent, sum.peers + one.peers};
        }
}

Moved busiest(const Sums& sums) {
    Moved most;
    for (const Moved& one : sums)
        most = {std::max(most.received, one.received), std::max(most.sent, one.sent), std::max(most.peers, one.peers)};
    return most;
}

// Bytes of an array without sums that a device must receive: the part of its target tile that it does not hold.
Index foreign_bytes(const Plan& plan, Index device) {
    const Tile wanted = tile(plan.target, device);
    const Index kept = count(intersect(wanted, tile(plan.source, device)));
    return (count(wanted) - kept) * size_of(plan.source.dtype);
}

bool sums_up(const Plan& plan) { return summand_count(plan.source) > 1 || summand_count(plan.target) > 1; }

struct Drawn {
    std::vector<Problem> problems;
    std::string text;
};

Drawn draw_list() {
    Drawn drawn;
    const auto size = *rc::gen::inRange<std::size_t>(1, 6);
    while (drawn.problems.size() < size) {
        const std::string question = *questions(ranks);
        const auto times = *rc::gen::inRange<std::size_t>(1, 3);  // equal arrays are counted once
        drawn.problems.insert(drawn.problems.end(), times, problem_of(question));
        drawn.text += question + "\n\n";
    }
    return drawn;
}

Options draw_options() {
    Options options;
    options.capabilities.one_exchange = *rc::gen::arbitrary<bool>();
    options.vocabulary = *rc::gen::element(Vocabulary::all, Vocabulary::all, Vocabulary::collectives);
    options.machine = make_machine(*rc::gen::element("laptop", "ethernet:nodes=2,per_node=4")).value();
    return options;
}

TEST(ListLoadProperty, TheBusiestDeviceIsThatOfTheSchedules) {
    int busier = 0;  // lists where the maxima of the arrays add up to more than any device moves
    check_property(cases(300), [&] {
        const Drawn drawn = draw_list();
        RC_LOG(drawn.text);
        const auto made = synthesize(std::span<const Problem>(drawn.problems), draw_options());
        RC_PRE(made.has_value());  // not every problem has collectives
        ListPlan list = made->list();
        list.together.clear();
        list.buckets.assign(1, {});
        for (std::size_t i = 0; i < list.plans.size(); ++i) {
            if (!list.buckets.back().empty() && *rc::gen::inRange(0, 3) == 0) list.buckets.emplace_back();
            list.buckets.back().push_back(i);
        }
        const ListVerdict verdict = check(list).value();
        Sums all(ranks);
        Index maxima = 0;
        for (std::size_t b = 0; b < list.buckets.size(); ++b) {
            Sums own(ranks);
            for (const std::size_t array : list.buckets[b]) {
                Sums alone(ranks);
                add(alone, list, verdict, array);
                RC_ASSERT(verdict.plans[array].received_bytes_max_device >= busiest(alone).received);
                RC_ASSERT(verdict.plans[array].sent_bytes_max_device >= busiest(alone).sent);
                add(own, list, verdict, array);
                add(all, list, verdict, array);
                maxima += verdict.plans[array].received_bytes_max_device;
            }
            const ListLoad& load = verdict.bucket_loads[b];
            RC_ASSERT(load.received_exact && load.sent_exact);
            RC_ASSERT(load.received_bytes == busiest(own).received);
            RC_ASSERT(load.sent_bytes == busiest(own).sent);
            RC_ASSERT(load.messages >= busiest(own).peers);
        }
        RC_ASSERT(verdict.load.received_bytes == busiest(all).received);
        RC_ASSERT(verdict.load.sent_bytes == busiest(all).sent);
        RC_ASSERT(verdict.load.messages >= busiest(all).peers);
        busier += maxima > verdict.load.received_bytes;
    });
    EXPECT_GT(busier, 0);
}

TEST(ListLoadProperty, NoDeviceCanDoWithLess) {
    check_property(cases(300), [&] {
        const Drawn drawn = draw_list();
        RC_LOG(drawn.text);
        const auto made = synthesize(std::span<const Problem>(drawn.problems));
        RC_PRE(made.has_value());
        const ListPlan& list = made->list();
        const ListVerdict& verdict = made->verdict();
        RC_ASSERT(verdict.lower_bound_bytes <= verdict.load.received_bytes);
        Index largest = 0;
        for (const Verdict& one : verdict.plans) largest = std::max(largest, one.lower_bound_bytes);
        RC_ASSERT(verdict.lower_bound_bytes >= largest);
        if (std::ranges::any_of(list.plans, sums_up)) return;
        Index most = 0;
        for (Index device = 0; device < ranks; ++device) {
            Index bytes = 0;
            for (const Plan& plan : list.plans) bytes += foreign_bytes(plan, device);
            most = std::max(most, bytes);
        }
        RC_ASSERT(verdict.lower_bound_bytes == most);
    });
}

// The time of a device on one level, without pieces: start and latency of each step that it takes part in, its bytes in
// the busier direction at the rate of the level, and its copies after each step.
Index device_picoseconds(const ListPlan& list, const ListVerdict& verdict, Index device, const Machine& machine) {
    const Level& level = machine.levels[0];
    Index in = 0, out = 0, time = 0;
    for (std::size_t array = 0; array < list.plans.size(); ++array) {
        const Plan plan = running(list, array);
        const Index size = size_of(plan.source.dtype);
        for (std::size_t i = 0; i < plan.steps.size(); ++i) {
            const Layout& before = layout_before(plan, i);
            const Step& step = plan.steps[i];
            const Moved one = moved(before, step, verdict.plans[array].moves[i], device, plan.network);
            in += size * one.received;
            out += size * one.sent;
            if (one.received + one.sent > 0) time += level.start_ps + level.latency_ps * std::max<Index>(one.peers, 1);
            const bool copies = step.kind != StepKind::slice && step.kind != StepKind::view;
            if (position_of(step.layout.mesh, device) && copies)
                time += transfer_picoseconds(tile_bytes(step.layout), machine.copy_bytes_per_second);
        }
    }
    return time + transfer_picoseconds(std::max(in, out), level.bytes_per_second);
}

TEST(ListLoadProperty, AListTakesAsLongAsItsBusiestDevice) {
    check_property(cases(300), [&] {
        const Drawn drawn = draw_list();
        RC_LOG(drawn.text);
        Options options = draw_options();
        const auto made = synthesize(std::span<const Problem>(drawn.problems), options);
        RC_PRE(made.has_value());
        RC_ASSERT(made->picoseconds == list_picoseconds(*made, options.machine));
        Index longest = 0, sum = 0;
        for (const Synthesis& one : made->arrays) {
            longest = std::max(longest, one.picoseconds);
            sum += one.picoseconds;
        }
        RC_ASSERT(made->picoseconds >= longest);
        RC_ASSERT(made->picoseconds <= sum);
        if (options.machine.levels.size() > 1) return;
        for (Index device = 0; device < ranks; ++device)
            RC_ASSERT(made->picoseconds >= device_picoseconds(made->list(), made->verdict(), device, options.machine));
    });
}

}  // namespace

}  // namespace reshard::test
