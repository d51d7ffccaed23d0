// Lists of arrays. Compares the judge's figures for memory with a count device by device, and the order and buckets
// with a trial of all of them.
#include "reshard/planner/list.hpp"

#include <algorithm>
#include <numeric>

#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {

namespace {

constexpr Index ranks = 8;

struct Drawn {
    std::vector<Problem> problems;
    std::string text;
};

// Problems over everything that layouts can express. With `one_mesh`, all ends lie on the same devices.
Drawn draw_list(bool one_mesh) {
    Drawn drawn;
    const auto size = *rc::gen::inRange<std::size_t>(1, 6);
    while (drawn.problems.size() < size) {
        const std::string question = *questions(ranks);
        const Problem problem = problem_of(question);
        const auto everywhere = [](const Layout& layout) { return device_count(layout.mesh) == ranks; };
        if (one_mesh && !(everywhere(problem.source) && everywhere(problem.target))) continue;
        drawn.problems.push_back(problem);
        drawn.text += question + "\n\n";
    }
    return drawn;
}

Index bytes_on(const Layout& layout, Index device) { return position_of(layout.mesh, device) ? tile_bytes(layout) : 0; }

// The bytes that one device holds while bucket number `running` runs, array by array.
Index held_on(Index device, const ListPlan& list, std::size_t running, bool donate) {
    Index held = 0;
    for (std::size_t b = 0; b < list.buckets.size(); ++b)
        for (const std::size_t array : list.buckets[b]) {
            if (!donate || b >= running) held += bytes_on(list.plans[array].source, device);
            if (!donate || b <= running) held += bytes_on(list.plans[array].target, device);
        }
    return held;
}

TEST(ListProperty, TheJudgeHoldsWhatTheDevicesHold) {
    check_property(cases(400), [&] {
        const Drawn drawn = draw_list(false);
        RC_LOG(drawn.text);
        ListPlan list = synthesize(std::span<const Problem>(drawn.problems)).value().list();
        // Any buckets in any order.
        std::vector<std::size_t> order(list.plans.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
        list.buckets.clear();
        for (const std::size_t array : order) {
            if (list.buckets.empty() || *rc::gen::inRange(0, 2) == 0) list.buckets.emplace_back();
            list.buckets.back().push_back(array);
        }
        const bool donate = *rc::gen::arbitrary<bool>();
        const auto verdict = check(list, {.donate = donate});
        RC_ASSERT(verdict.has_value());
        Index most = 0;
        for (std::size_t b = 0; b < list.buckets.size(); ++b) {
            Index ends = 0;
            Index workspace = 0;
            for (Index device = 0; device < ranks; ++device) ends = std::max(ends, held_on(device, list, b, donate));
            for (const std::size_t array : list.buckets[b]) {
                const Plan& plan = list.plans[array];
                const Index alone = check(plan, {.memory = {.donate = donate}})->footprint_bytes;
                workspace = std::max(workspace, alone - tile_bytes(plan.source) - tile_bytes(plan.target));
            }
            RC_ASSERT(verdict->bucket_bytes[b] == ends + workspace);
            most = std::max(most, ends + workspace);
        }
        RC_ASSERT(verdict->footprint_bytes == most);
        // The limit is exact.
        RC_ASSERT(check(list, {.footprint_bytes_max = most, .donate = donate}).has_value());
        const auto below = check(list, {.footprint_bytes_max = most - 1, .donate = donate});
        RC_ASSERT(!below && below.error().code == Code::infeasible);
    });
}

// The least memory of any order if arrays run one by one, and the fewest buckets of any order within a limit.
struct Exhaustive {
    Index least = index_max;
    std::size_t fewest = 0;
};

Exhaustive try_all(const std::vector<Plan>& plans, const std::vector<Index>& workspaces, std::optional<Index> limit) {
    Exhaustive found;
    std::vector<std::size_t> order(plans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
        // Every way to cut the order into buckets: one bit for each place between two arrays.
        for (std::size_t cuts = 0; cuts < std::size_t{1} << (order.size() - 1); ++cuts) {
            ListPlan list{plans, {{}}};
            for (std::size_t i = 0; i < order.size(); ++i) {
                list.buckets.back().push_back(order[i]);
                if (i + 1 < order.size() && (cuts >> i & 1) != 0) list.buckets.emplace_back();
            }
            Index most = 0;
            for (std::size_t b = 0; b < list.buckets.size(); ++b) {
                Index workspace = 0;
                for (const std::size_t array : list.buckets[b]) workspace = std::max(workspace, workspaces[array]);
                for (Index device = 0; device < ranks; ++device)
                    most = std::max(most, held_on(device, list, b, true) + workspace);
            }
            found.least = std::min(found.least, most);
            if (limit && most <= *limit && (found.fewest == 0 || list.buckets.size() < found.fewest))
                found.fewest = list.buckets.size();
        }
    } while (std::ranges::next_permutation(order).found);
    return found;
}

void expect_best(bool one_mesh, int& tried, int& missed, int& more_buckets) {
    check_property(cases(150), [&] {
        const Drawn drawn = draw_list(one_mesh);
        RC_LOG(drawn.text);
        Options options;
        options.objective = Objective::bytes;
        const auto free = synthesize(std::span<const Problem>(drawn.problems), options);
        RC_ASSERT(free.has_value());
        const std::vector<Plan>& plans = free->list().plans;
        std::vector<Index> workspaces;
        for (std::size_t i = 0; i < plans.size(); ++i)
            workspaces.push_back(free->verdict().plans[i].footprint_bytes - tile_bytes(plans[i].source) -
                                 tile_bytes(plans[i].target));
        const Index least = try_all(plans, workspaces, std::nullopt).least;
        const Index most = check(free->list(), {.donate = true})->footprint_bytes;
        const Index limit = least + *rc::gen::inRange<Index>(0, std::max<Index>(1, most - least + 1));
        ++tried;
        const auto made = synthesize(std::span<const Problem>(drawn.problems), options, {limit, true, 0});
        // On a single set of devices no order is better.
        RC_ASSERT(made.has_value() || !one_mesh);
        if (!made) {
            RC_ASSERT(made.error().code == Code::infeasible);
            ++missed;
            return;
        }
        RC_ASSERT(made->verdict().footprint_bytes <= limit);
        RC_ASSERT(made->floor_bytes <= least);
        RC_ASSERT(made->verdict() == check(made->list(), {limit, true, 0}).value());
        more_buckets += made->list().buckets.size() > try_all(plans, workspaces, limit).fewest;
    });
}

TEST(ListProperty, OnOneSetOfDevicesAListFitsWhereverItCan) {
    int tried = 0, missed = 0, more_buckets = 0;
    expect_best(true, tried, missed, more_buckets);
    std::cout << tried << " lists, buckets more than the fewest in " << more_buckets << '\n';
    EXPECT_EQ(missed, 0);
    EXPECT_LE(more_buckets * 10, tried);
}

TEST(ListProperty, OnSeveralSetsOfDevicesFewListsAreMissed) {
    int tried = 0, missed = 0, more_buckets = 0;
    expect_best(false, tried, missed, more_buckets);
    std::cout << tried << " lists, no order found for " << missed << ", buckets more than the fewest in "
              << more_buckets << '\n';
    EXPECT_LE(missed * 20, tried);
    EXPECT_LE(more_buckets * 10, tried);
}

}  // namespace

}  // namespace reshard::test
