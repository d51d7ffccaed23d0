#include "backends/baseline/unit_tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include "backends/baseline/done.hpp"
#include "backends/mpi/base.hpp"
#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/messages/datatype.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr auto waits_to_begin = std::chrono::minutes(5);

// The ranks that hold a tile, or want one.
using Tiles = std::map<std::vector<Index>, std::vector<Index>>;

struct UnitTask {
    Box box;
    Index sender = 0;
    std::vector<Index> holders;
    std::vector<Index> receivers;
};

// This rank's end of a task, or a copy within the rank.
struct End {
    UnitTask task;
    Region source;
    Region target;
    Index bytes = 0;
    Index staged_at = 0;  // where the bytes lie dense in the staging, unless they do so in the tile
    std::optional<Communicator> group;
};

bool is_in(const std::vector<Index>& ranks, Index rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

std::vector<Index> numbers_of(const Tile& tile) {
    std::vector<Index> numbers;
    if (count(tile) == 0) return numbers;
    for (const Interval& interval : as_box(tile)) numbers.insert(numbers.end(), {interval.begin, interval.end});
    return numbers;
}

Box box_of(const std::vector<Index>& numbers) {
    Box box;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) box.push_back({numbers[i], numbers[i + 1]});
    return box;
}

// Collective: equal tiles of all ranks are one.
Result<Tiles> tiles_of_all(MPI_Comm communicator, const Tile& mine) {
    constexpr std::size_t dims_max = 32;
    constexpr std::size_t width = 1 + 2 * dims_max;
    const std::vector<Index> numbers = numbers_of(mine);
    std::vector<Index> row(width, 0);
    row[0] = count(mine) == 0 ? -1 : static_cast<Index>(numbers.size());
    std::ranges::copy(numbers, row.begin() + 1);
    const auto ranks = static_cast<std::size_t>(size_of_communicator(communicator));
    std::vector<Index> all(ranks * width);
    RESHARD_CHECK(checked(MPI_Allgather(row.data(), static_cast<int>(width), MPI_INT64_T, all.data(),
                                        static_cast<int>(width), MPI_INT64_T, communicator),
                          "MPI_Allgather"));
    Tiles tiles;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * width);
        if (*begin < 0) continue;
        tiles[{begin + 1, begin + 1 + static_cast<std::ptrdiff_t>(*begin)}].push_back(static_cast<Index>(rank));
    }
    return tiles;
}

// Collective: of each rank, the first rank on its node.
Result<std::vector<Index>> nodes_of_all(MPI_Comm communicator) {
    MPI_Comm made = MPI_COMM_NULL;
    const Index rank = rank_of(communicator);
    RESHARD_CHECK(
        checked(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, static_cast<int>(rank), MPI_INFO_NULL, &made),
                "MPI_Comm_split_type"));
    RESHARD_TRY(const auto& node, returning_errors(made));
    Index first = rank;
    RESHARD_CHECK(checked(MPI_Bcast(&first, 1, MPI_INT64_T, 0, node.get()), "MPI_Bcast"));
    std::vector<Index> nodes(static_cast<std::size_t>(size_of_communicator(communicator)));
    RESHARD_CHECK(
        checked(MPI_Allgather(&first, 1, MPI_INT64_T, nodes.data(), 1, MPI_INT64_T, communicator), "MPI_Allgather"));
    return nodes;
}

// The same on all ranks.
std::vector<UnitTask> unit_tasks(const Tiles& sources, const Tiles& targets, const std::vector<Index>& nodes) {
    std::vector<UnitTask> tasks;
    for (const auto& [held, holders] : sources) {
        for (const auto& [wanted, wanting] : targets) {
            UnitTask task{intersect(box_of(held), box_of(wanted)), 0, holders, {}};
            if (count(task.box) == 0) continue;
            for (const Index rank : wanting)
                if (!is_in(holders, rank)) task.receivers.push_back(rank);
            if (!task.receivers.empty()) tasks.push_back(std::move(task));
        }
    }
    std::ranges::stable_sort(tasks, std::ranges::greater{}, [](const UnitTask& task) { return count(task.box); });
    std::map<Index, Index> of_node;
    std::map<Index, Index> of_rank;
    const auto node_of = [&](Index rank) { return nodes[static_cast<std::size_t>(rank)]; };
    for (UnitTask& task : tasks) {
        task.sender = std::ranges::min(task.holders, {},
                                       [&](Index rank) { return std::pair(of_node[node_of(rank)], of_rank[rank]); });
        of_node[node_of(task.sender)] += count(task.box);
        of_rank[task.sender] += count(task.box);
    }
    return tasks;
}

// Broadcasts become messages: one for each receiver, the holders in turn.
std::vector<UnitTask> as_messages(const std::vector<UnitTask>& tasks) {
    std::vector<UnitTask> messages;
    for (const UnitTask& task : tasks)
        for (std::size_t i = 0; i < task.receivers.size(); ++i)
            messages.push_back({task.box, task.holders[i % task.holders.size()], task.holders, {task.receivers[i]}});
    return messages;
}

struct Run {
    UnitTasks way = UnitTasks::messages;
    std::vector<End> ends;
    std::optional<BoxCopy> own;  // what the rank holds and wants
    Index staging_bytes = 0;
};

const RankStep* only_step(const RankPlan& plan) {
    if (plan.steps.size() != 1) return nullptr;
    const Schedule& schedule = plan.steps.front().schedule;
    const auto whole = [](const Tile& tile) {
        return std::ranges::all_of(tile, [](const auto& side) { return side.intervals.size() <= 1; });
    };
    const bool copies = schedule.combine == Combine::copy && schedule.fills.empty() && schedule.scaled.empty();
    return copies && whole(plan.steps.front().from.tile) && whole(plan.steps.front().to.tile) ? &plan.steps.front()
                                                                                              : nullptr;
}

Result<void> can(const std::vector<RankPlan>& plans) {
    if (plans.size() == 1 && only_step(plans.front()) != nullptr) return {};
    return fail(Code::unsupported, "the unit tasks baseline runs one array by one exchange of whole tiles only");
}

// Collective.
Result<Run> make_run(MPI_Comm communicator, const RankPlan& plan, UnitTasks way) {
    const RankStep& step = *only_step(plan);
    const Index element_bytes = size_of(plan.dtype);
    const Index rank = rank_of(communicator);
    RESHARD_TRY(const auto& sources, tiles_of_all(communicator, step.from.tile));
    RESHARD_TRY(const auto& targets, tiles_of_all(communicator, step.to.tile));
    RESHARD_TRY(const auto& nodes, nodes_of_all(communicator));
    std::vector<UnitTask> tasks = unit_tasks(sources, targets, nodes);
    if (way == UnitTasks::messages) tasks = as_messages(tasks);
    Run run{way, {}, {}, 0};
    if (const Tile own = intersect(step.from.tile, step.to.tile); count(own) > 0)
        run.own.emplace(region_of(step.from, as_box(own), element_bytes),
                        region_of(step.to, as_box(own), element_bytes));
    for (UnitTask& task : tasks) {
        if (task.sender != rank && !is_in(task.receivers, rank)) continue;
        End end;
        end.bytes = count(task.box) * element_bytes;
        if (task.sender == rank)
            end.source = region_of(step.from, task.box, element_bytes);
        else
            end.target = region_of(step.to, task.box, element_bytes);
        end.staged_at = run.staging_bytes;
        if (!contiguous(task.sender == rank ? end.source : end.target)) run.staging_bytes += end.bytes;
        if (way == UnitTasks::broadcasts) {
            std::vector<Index> members{task.sender};
            members.insert(members.end(), task.receivers.begin(), task.receivers.end());
            RESHARD_ASSIGN(end.group, communicator_of(communicator, members));
        }
        end.task = std::move(task);
        run.ends.push_back(std::move(end));
    }
    return run;
}

// The dense bytes of an end: in place, or in the staging.
std::byte* dense(const End& end, bool sends, const Buffers& buffers, std::vector<std::byte>& staging) {
    const Region& region = sends ? end.source : end.target;
    if (!contiguous(region)) return staging.data() + end.staged_at;
    if (!sends) return buffers.target.data() + region.offset_bytes;
    return const_cast<std::byte*>(buffers.source.data()) + region.offset_bytes;  // MPI_Bcast takes no const
}

class UnitTasksBound final : public Bound {
public:
    UnitTasksBound(MPI_Comm communicator, const Run& run, Buffers buffers)
        : communicator_(communicator),
          run_(run),
          buffers_(buffers),
          staging_(static_cast<std::size_t>(run.staging_bytes)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        const auto begin = std::chrono::steady_clock::now();
        if (run_.own) run_.own->run(buffers_.source.data(), buffers_.target.data());
        RESHARD_CHECK(run_.way == UnitTasks::broadcasts ? broadcasts() : messages());
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return std::make_unique<Done>();
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return {seconds_}; }

private:
    [[nodiscard]] bool sends(const End& end) const { return end.task.sender == rank_of(communicator_); }

    Result<void> broadcasts() {
        for (const End& end : run_.ends) {
            pack(end);
            RESHARD_CHECK(checked(MPI_Bcast(dense(end, sends(end), buffers_, staging_), static_cast<int>(end.bytes),
                                            MPI_BYTE, 0, end.group->get()),
                                  "MPI_Bcast"));
            unpack(end);
        }
        return {};
    }

    Result<void> messages() {
        std::vector<MPI_Request> requests;
        for (const End& end : run_.ends) {
            pack(end);
            std::byte* const at = dense(end, sends(end), buffers_, staging_);
            const int bytes = static_cast<int>(end.bytes);
            MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
            const int peer = static_cast<int>(sends(end) ? end.task.receivers.front() : end.task.sender);
            RESHARD_CHECK(checked(sends(end) ? MPI_Isend(at, bytes, MPI_BYTE, peer, 0, communicator_, &request)
                                             : MPI_Irecv(at, bytes, MPI_BYTE, peer, 0, communicator_, &request),
                                  "MPI_Isend or MPI_Irecv"));
        }
        RESHARD_CHECK(checked(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
                              "MPI_Waitall"));
        for (const End& end : run_.ends) unpack(end);
        return {};
    }

    void pack(const End& end) {
        if (!sends(end) || contiguous(end.source)) return;
        const Region packed = packed_region(end.task.box, end.source.element_bytes, end.staged_at);
        BoxCopy(end.source, packed).run(buffers_.source.data(), staging_.data());
    }
    void unpack(const End& end) {
        if (sends(end) || contiguous(end.target)) return;
        const Region packed = packed_region(end.task.box, end.target.element_bytes, end.staged_at);
        BoxCopy(packed, end.target).run(staging_.data(), buffers_.target.data());
    }

    MPI_Comm communicator_;
    const Run& run_;
    Buffers buffers_;
    std::vector<std::byte> staging_;
    double seconds_ = 0;
};

class UnitTasksPrepared final : public Prepared {
public:
    UnitTasksPrepared(Communicator communicator, Run run)
        : communicator_(std::move(communicator)), run_(std::move(run)) {}
    [[nodiscard]] Index staging_bytes() const override { return run_.staging_bytes; }
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        return std::make_unique<UnitTasksBound>(communicator_.get(), run_, buffers.front());
    }

private:
    Communicator communicator_;
    Run run_;
};

class UnitTasksBackend final : public Base {
public:
    UnitTasksBackend(Communicator communicator, UnitTasks way) : Base(std::move(communicator), false), way_(way) {}
    ~UnitTasksBackend() override { drop_kept(); }
    UnitTasksBackend(const UnitTasksBackend&) = delete;
    UnitTasksBackend& operator=(const UnitTasksBackend&) = delete;
    [[nodiscard]] std::string_view name() const override { return "unit tasks"; }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        RESHARD_CHECK(meet_to_prepare());
        RESHARD_TRY(auto& own, duplicate(communicator()));
        RESHARD_CHECK(all_succeeded(own.get(), can(plans), plans.size()));
        auto run = make_run(own.get(), plans.front(), way_).and_then([](Run made) -> Result<Run> {
            for (const End& end : made.ends)
                if (end.bytes > std::numeric_limits<int>::max())
                    return fail(Code::unsupported, "a unit task has more bytes than an int of MPI counts");
            return made;
        });
        RESHARD_TRY(auto& made, all_succeeded(own.get(), std::move(run), plans.size()));
        return std::make_unique<UnitTasksPrepared>(std::move(own), std::move(made));
    }

private:
    UnitTasks way_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_unit_tasks_backend(MPI_Comm communicator, UnitTasks way) {
    RESHARD_TRY(auto& own, borrow(communicator, {}, "make_unit_tasks_backend", waits_to_begin));
    auto backend = std::make_unique<UnitTasksBackend>(std::move(own), way);
    RESHARD_CHECK(backend->open(waits_to_begin));
    return backend;
}

}  // namespace reshard::mpi
