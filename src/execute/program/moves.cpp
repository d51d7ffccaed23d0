#include "src/execute/program/moves.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"

namespace reshard::program {
namespace {

using Ranks = std::vector<Index>;

Ranks ranks_of(const Mesh& mesh) {
    Ranks ranks;
    for (Index position = 0; position < device_count(mesh); ++position) ranks.push_back(device_at(mesh, position));
    std::ranges::sort(ranks);
    return ranks;
}

Ranks ranks_of(const Plan& plan) {
    const Ranks source = ranks_of(plan.source.mesh);
    const Ranks target = ranks_of(plan.target.mesh);
    Ranks both;
    std::ranges::set_union(source, target, std::back_inserter(both));
    return both;
}

bool has(const Ranks& ranks, Index rank) { return std::ranges::binary_search(ranks, rank); }

// The same layout if rank i of a group is ranks[i].
Layout in_group(Layout layout, const Ranks& ranks) {
    std::vector<Index> devices;
    for (Index position = 0; position < device_count(layout.mesh); ++position)
        devices.push_back(std::ranges::lower_bound(ranks, device_at(layout.mesh, position)) - ranks.begin());
    layout.mesh.devices = DeviceList(std::move(devices));
    return layout;
}

Result<Judged<Plan>> in_group(const Judged<Plan>& made, const Ranks& ranks) {
    if (made.limits().memory.donate) return fail(Code::unsupported, "a move of a program cannot donate its source");
    Plan plan = made.plan();
    plan.source = in_group(plan.source, ranks);
    plan.target = in_group(plan.target, ranks);
    for (Step& step : plan.steps) step.layout = in_group(step.layout, ranks);
    if (!(plan == made.plan())) plan.network.clear();  // blocks of other devices
    return judge(std::move(plan), made.execution(), made.limits());
}

Result<Judged<Plan>> signal_plan(const Mesh& earlier, const Mesh& later) {
    const Index senders = device_count(earlier);
    const Mesh from({{"d", senders}}, earlier.devices);
    const Mesh to({{"d", device_count(later)}}, later.devices);
    RESHARD_TRY(const auto& source, make_layout(from, DType::u8, {senders}, {"d"}));
    RESHARD_TRY(const auto& target, make_layout(to, DType::u8, {senders}, {}));
    return judge(Plan{source, target, {{StepKind::exchange, target}}}, AsSteps{});
}

Result<Judged<Plan>> last_plan(Index ranks, std::size_t activities) {
    const Mesh all({{"d", ranks}});
    const auto count = std::max<Index>(static_cast<Index>(activities), 1);
    RESHARD_TRY(const auto& target, make_layout(all, DType::i64, {count}, {}));
    if (ranks == 1) return judge(Plan{target, target, {}}, AsSteps{});
    RESHARD_TRY(auto& source, make_layout(all, DType::i64, {count}, {}, {"d"}));
    source.reduction = Reduction::max;
    return judge(Plan{source, target, {{StepKind::all_reduce, target}}}, AsSteps{});
}

// A hash of everything that decides what the ranks do.
std::uint64_t fingerprint(const Judged<ProgramSchedule>& made) {
    Hash hash;
    const auto add_layout = [&](const Layout& layout) {
        hash.add(format(layout.mesh));
        hash.add(format(layout));
    };
    const auto add_array = [&](const ProgramArray& array) {
        hash.add(array.name);
        hash.add(array.kept ? 1 : 0);
        add_layout(array.layout);
    };
    for (const ProgramArray& array : made.program().arrays) add_array(array);
    for (const Task& task : made.program().tasks) {
        for (const std::string& text : {task.name, format(task.mesh), task.engine}) hash.add(text);
        hash.add(task.scratch_bytes);
        for (const ProgramUse& use : task.uses) {
            hash.add(use.array);
            hash.add(use.pieces_along ? static_cast<Index>(*use.pieces_along) : -1);
            add_layout(use.layout);
        }
        for (const ProgramArray& array : task.makes) add_array(array);
        for (const auto& names : {task.donates, task.after})
            for (const std::string& name : names) hash.add("/" + name);
    }
    for (const ProgramLimit& limit : made.program().limits) {
        hash.add(format(limit.mesh));
        hash.add(limit.bytes);
    }
    for (const ProgramMove& move : made.schedule().moves) {
        hash.add(move.array);
        hash.add(move.in_pieces ? 1 : 0);
        hash.add(static_cast<Index>(reshard::fingerprint(move.plan.plan(), move.plan.execution())));
        for (const UseNumber& user : move.users) {
            hash.add(static_cast<Index>(user.task));
            hash.add(static_cast<Index>(user.use));
        }
    }
    for (const ScheduledActivity& one : made.schedule().order)
        hash.add(2 * static_cast<Index>(one.number) + (one.is_move ? 1 : 0));
    return hash.value();
}

Result<void> fits(const Judged<ProgramSchedule>& made, Index ranks) {
    Index needed = 0;
    for (const ProgramArray& array : made.program().arrays) needed = std::max(needed, world_size(array.layout.mesh));
    for (const Task& task : made.program().tasks) {
        needed = std::max(needed, world_size(task.mesh));
        for (const ProgramArray& array : task.makes) needed = std::max(needed, world_size(array.layout.mesh));
    }
    for (const ProgramMove& move : made.schedule().moves) needed = std::max(needed, world_size(move.plan.plan()));
    if (needed <= ranks) return {};
    return fail(Code::mismatch, fmt::format("the program has device {}, the backend has {} ranks", needed - 1, ranks));
}

// Prepares plans one after another, in one order on all ranks. After the first failure this rank passes the error on to
// the ranks of all that follow, so nobody waits for it.
class Preparation {
public:
    explicit Preparation(Backend& backend) : backend_(backend) {}

    // Empty if this rank does not take part, or after a failure.
    std::optional<Executor> operator()(const Result<Judged<Plan>>& plan, const Ranks& ranks) {
        if (!has(ranks, backend_.rank())) return std::nullopt;
        const auto group = std::ssize(ranks) == backend_.size() ? &backend_ : backend_.group(ranks);
        if (!group) {
            if (!failed) failed = group.error();
            return std::nullopt;
        }
        const auto in_group_of = [&](const Judged<Plan>& one) { return in_group(one, ranks); };
        auto prepared = Executor::prepare(failed ? tl::unexpected(*failed) : plan.and_then(in_group_of), **group);
        if (prepared) return std::move(*prepared);
        if (!failed) failed = prepared.error();
        return std::nullopt;
    }

    std::optional<Error> failed;

private:
    Backend& backend_;
};

}  // namespace

Result<ProgramMoves> ProgramMoves::prepare(const Result<Judged<ProgramSchedule>>& made, Backend& backend) {
    auto agreed = made.map([](const Judged<ProgramSchedule>& one) { return fingerprint(one); });
    if (made)
        if (auto well = fits(*made, backend.size()); !well) agreed = tl::unexpected(well.error());
    RESHARD_CHECK(backend.agree(agreed));
    ProgramMoves moves;
    Preparation prepare(backend);
    std::map<std::tuple<std::string, std::string, std::string, std::string, std::uint64_t>, std::size_t> known;
    for (const ProgramMove& move : made->schedule().moves) {
        const Plan& plan = move.plan.plan();
        const auto [at, fresh] =
            known.try_emplace({format(plan.source.mesh), format(plan.source), format(plan.target.mesh),
                               format(plan.target), fingerprint(plan, move.plan.execution())},
                              moves.executors_.size());
        if (fresh) moves.executors_.push_back(prepare(move.plan, ranks_of(plan)));
        moves.executor_of_.push_back(at->second);
    }
    const std::vector<Task>& tasks = made->program().tasks;
    std::map<std::string, std::size_t> numbers;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        numbers[tasks[t].name] = t;
        for (const std::string& name : tasks[t].after) {
            const std::size_t earlier = numbers.at(name);
            if (same_devices(tasks[earlier].mesh, tasks[t].mesh)) continue;
            const auto plan = signal_plan(tasks[earlier].mesh, tasks[t].mesh);
            const Ranks ranks = plan ? ranks_of(plan->plan()) : Ranks();
            moves.signals_.push_back({earlier, t, prepare(plan, ranks)});
        }
    }
    Ranks all(static_cast<std::size_t>(backend.size()));
    std::iota(all.begin(), all.end(), Index{0});
    moves.last_ = prepare(last_plan(backend.size(), made->schedule().order.size()), all);
    if (prepare.failed) return tl::unexpected(*prepare.failed);
    return moves;
}

void ProgramMoves::abandon(const Error& why) {
    for (std::optional<Executor>& one : executors_)
        if (one) one->abandon(why);
    for (TaskSignal& signal : signals_)
        if (signal.executor) signal.executor->abandon(why);
    if (last_) last_->abandon(why);
}

}  // namespace reshard::program
