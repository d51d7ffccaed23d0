#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "reshard/check.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "schedule.hpp"
#include "support/anywhere.hpp"
#include "support/chains.hpp"

namespace reshard::runs {
namespace {

using Random = std::mt19937_64;
using conformance::all_styles;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

template <class T, std::size_t count>
T one_of(Random& random, const std::array<T, count>& all) {
    return all[random() % count];
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

constexpr std::array quick = {Fault::rejected_plan, Fault::other_plan,        Fault::limit,
                              Fault::small_buffer,  Fault::right_after_small, Fault::started_twice,
                              Fault::never_started, Fault::dropped_in_flight};
constexpr std::array slow = {Fault::kept_after_small, Fault::idle, Fault::late, Fault::leaves};

// Rows of up to a quarter MiB become columns, so the run is in flight for a while.
Plan long_move(Random& random, Index ranks) {
    const Mesh mesh{{"x", ranks}};
    const Index rows = 64 + below(random, 192);
    const auto target = parse_layout(mesh, fmt::format("f32[{},256@x]", rows)).value();
    return {parse_layout(mesh, fmt::format("f32[{}@x,256]", rows)).value(), target, {{StepKind::exchange, target}}};
}

// nullopt if the plan chooses which device keeps a value.
std::optional<Plan> planned(const Problem& problem, Vocabulary vocabulary) {
    const Index summands = summand_count(problem.target);
    if (summands > 1 && summands != summand_count(problem.source)) return std::nullopt;
    Options options;
    options.vocabulary = vocabulary;
    const auto made = synthesize(problem, options);
    return made ? std::optional(made->plan()) : std::nullopt;
}

Plan draw_plan(Random& random, Index ranks) {
    while (true) {
        const std::uint64_t seed = random();
        const Index kind = below(random, 8);
        std::optional<Plan> plan;
        if (kind == 0) plan = long_move(random, ranks);
        if (kind == 1 || kind == 2) plan = test::random_chain(seed, ranks);
        if (kind == 3 || kind == 4)
            plan = planned(test::problem_of(test::random_pair(seed, ranks)), Vocabulary::collectives);
        if (kind > 4) plan = planned(test::problem_of(test::random_question(seed, ranks)), Vocabulary::all);
        const bool moves = plan && !plan->steps.empty();
        if (moves || (plan && below(random, 8) == 0)) return *plan;
    }
}

List draw_list(Random& random, Index ranks) {
    List list;
    const Index arrays = one_of<Index, 5>(random, {1, 1, 1, 2, 3});
    for (Index i = 0; i < arrays; ++i)
        list.items.push_back({draw_plan(random, ranks), one_of(random, all_styles), one_of(random, all_styles)});
    list.buckets = {{}};
    const bool several = below(random, 2) == 0;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        if (several && i > 0) list.buckets.emplace_back();
        list.buckets.back().push_back(i);
    }
    list.donate = below(random, 3) == 0;
    list.runs = static_cast<int>(1 + below(random, 3));
    list.rebinds = below(random, 2) == 0;
    return list;
}

Transport draw_transport(Random& random) {
    Transport transport;
    transport.shared_memory = below(random, 3) != 0;
    transport.ranks_per_node = below(random, 3);
    transport.bounce_bytes = one_of<Index, 3>(random, {1024, 4096, Index{1} << 16});
    transport.piece_bytes = one_of<Index, 3>(random, {0, 256, 4096});
    transport.unregistered_buffers = static_cast<int>(below(random, 3));
    return transport;
}

bool has_target(const List& list, Index rank) {
    return std::ranges::any_of(list.items, [&](const conformance::Item& item) {
        return !blank_of(item.plan.target, rank, item.target).bytes.empty();
    });
}

void draw_fault(Random& random, Schedule& schedule) {
    const bool is_slow = takes_seconds(schedule.seed);
    if (!is_slow && below(random, 20) < 11) return;
    schedule.fault = is_slow ? slow[mix(schedule.seed ^ 0x5eed) / 40 % slow.size()] : one_of(random, quick);
    schedule.faulty_rank = below(random, schedule.ranks);
    schedule.faulty_executor = static_cast<std::size_t>(below(random, static_cast<Index>(schedule.lists.size())));
    const List& list = schedule.lists[schedule.faulty_executor];
    schedule.faulty_run = static_cast<int>(below(random, list.runs));
    const bool binds = binds_too_small(schedule.fault);
    if (binds && !has_target(list, schedule.faulty_rank)) schedule.fault = Fault::never_started;
    if (binds && !list.rebinds) schedule.faulty_run = 0;
    if (needs_timeout(schedule.fault)) schedule.transport.timeout = std::chrono::seconds(2);
    const auto& ops = schedule.ops[static_cast<std::size_t>(schedule.faulty_rank)];
    schedule.faulty_op = static_cast<std::size_t>(below(random, static_cast<Index>(ops.size())));
    schedule.late_by = std::chrono::milliseconds(2200 + below(random, 1500));
}

}  // namespace

std::uint64_t mixed(const Schedule& schedule, std::uint64_t salt) { return mix(mix(schedule.seed) ^ salt); }

Index ranks_of(std::uint64_t seed) { return 2 + static_cast<Index>(mix(seed) % 7); }

bool takes_seconds(std::uint64_t seed) { return mix(seed ^ 0x5eed) % 40 == 0; }

std::vector<List> draw_lists(std::uint64_t seed, Index ranks) {
    Random random(mix(seed));
    std::vector<List> lists;
    for (Index count = 2 + below(random, 3); count > 0; --count) lists.push_back(draw_list(random, ranks));
    return lists;
}

Schedule draw_schedule(std::uint64_t seed) {
    Schedule schedule;
    schedule.seed = seed;
    schedule.ranks = ranks_of(seed);
    schedule.lists = draw_lists(seed, schedule.ranks);
    schedule.ops = draw_ops(mix(seed + 1), schedule.ranks, schedule.lists);
    Random random(mix(seed + 2));
    schedule.transport = draw_transport(random);
    for (Index rank = 0; rank < schedule.ranks; ++rank) schedule.keeps_broken.push_back(below(random, 2) == 0);
    draw_fault(random, schedule);
    return schedule;
}

ListPlan list_plan(const List& list) {
    ListPlan plan;
    for (const conformance::Item& item : list.items) plan.plans.push_back(item.plan);
    plan.buckets = list.buckets;
    return plan;
}

ListPlan rejected(ListPlan list) {
    Plan& plan = list.plans.back();
    plan.steps.push_back(
        {StepKind::all_reduce, plan.source});  // the source has no summands left, or the step ends where it began
    if (check(plan)) plan.steps.push_back({StepKind::all_reduce, plan.source});
    return list;
}

ListPlan another(const ListPlan& list, std::uint64_t seed, Index ranks) {
    Random random(mix(seed));
    ListPlan other = list;
    while (fingerprint(other) == fingerprint(list)) other.plans.front() = draw_plan(random, ranks);
    return other;
}

std::string_view name(Fault fault) {
    constexpr std::array<std::string_view, fault_count> names = {"none",
                                                                 "rejected plan",
                                                                 "other plan",
                                                                 "limit",
                                                                 "small buffer",
                                                                 "kept after small",
                                                                 "right after small",
                                                                 "started twice",
                                                                 "never started",
                                                                 "dropped in flight",
                                                                 "idle",
                                                                 "late",
                                                                 "leaves"};
    return names[static_cast<std::size_t>(fault)];
}

bool needs_timeout(Fault fault) { return fault == Fault::idle || fault == Fault::late || fault == Fault::leaves; }

bool binds_too_small(Fault fault) {
    return fault == Fault::small_buffer || fault == Fault::kept_after_small || fault == Fault::right_after_small;
}

bool breaks_prepare(Fault fault) {
    return fault == Fault::rejected_plan || fault == Fault::other_plan || fault == Fault::limit;
}

std::string describe(const Op& op) {
    constexpr std::array<std::string_view, 5> calls = {"prepare", "bind", "start", "wait", "drop"};
    constexpr std::array<std::string_view, 4> finishes = {"", " by test", " by test of all", " by dropping the ticket"};
    const auto call = calls[static_cast<std::size_t>(op.call)];
    if (op.call == Call::prepare || op.call == Call::drop) return fmt::format("{} executor {}", call, op.executor);
    return fmt::format("{} run {} of executor {}{}", call, op.run, op.executor,
                       op.call == Call::wait ? finishes[static_cast<std::size_t>(op.finish)] : "");
}

std::string describe(const Schedule& schedule) {
    const Transport& with = schedule.transport;
    std::string text = fmt::format(
        "schedule {}: {} ranks, shared memory {}, {} ranks a node, bounce buffers of {}, pieces of {}, unregistered "
        "buffers {}, timeout {} ms\n",
        schedule.seed, schedule.ranks, with.shared_memory, with.ranks_per_node, with.bounce_bytes, with.piece_bytes,
        with.unregistered_buffers, with.timeout.count());
    text += fmt::format("fault: {}", name(schedule.fault));
    if (schedule.fault == Fault::late || schedule.fault == Fault::leaves) {
        text += fmt::format(", rank {} before its call {} by {} ms", schedule.faulty_rank, schedule.faulty_op,
                            schedule.late_by.count());
    } else if (schedule.fault != Fault::none) {
        text += fmt::format(", rank {}, run {} of executor {}", schedule.faulty_rank, schedule.faulty_run,
                            schedule.faulty_executor);
    }
    for (std::size_t i = 0; i < schedule.lists.size(); ++i) {
        const List& list = schedule.lists[i];
        text += fmt::format("\nexecutor {}: {} buckets{}{}, {} runs\n", i, list.buckets.size(),
                            list.donate ? ", donated" : "", list.rebinds ? ", bound for each run" : "", list.runs);
        for (const conformance::Item& item : list.items) text += format(item.plan);
    }
    for (std::size_t rank = 0; rank < schedule.ops.size(); ++rank) {
        text += fmt::format("rank {}{}:", rank, schedule.keeps_broken[rank] ? " (keeps what broke)" : "");
        for (const Op& op : schedule.ops[rank]) text += fmt::format(" {};", describe(op));
        text += '\n';
    }
    return text;
}

}  // namespace reshard::runs
