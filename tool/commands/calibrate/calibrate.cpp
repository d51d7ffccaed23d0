// `reshard calibrate`: what this machine's messages, links and copies cost, measured through the backend that will
// move the arrays, as a machine that --machine reads.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "report/numbers.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "tool/commands/calibrate/disk.hpp"
#include "tool/commands/calibrate/pieces.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/output/tile_files.hpp"
#include "tool/ranks/session.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr Index small_tile_elements = 16;
constexpr Index small_moves = 32;                      // in a row, since a barrier takes longer than one of them
constexpr Index large_tile_elements = Index{1} << 20;  // 4 MiB of f32
constexpr Index run_elements = 4;                      // of 4 bytes: what a cut of an innermost dimension may leave
constexpr Index copied_bytes = Index{1} << 25;

/// Three digits are more than these measurements have.
Index rounded(double value) {
    Index scale = 1;
    while (value / static_cast<double>(scale) >= 1000) scale *= 10;
    return std::max<Index>(static_cast<Index>(value / static_cast<double>(scale) + 0.5), 1) * scale;
}

/// Collective: the slowest rank's median rate of plain copies while all ranks copy.
Index copy_rate(Rank& rank, Index rounds) {
    std::vector<std::byte> from(copied_bytes, std::byte{1});
    std::vector<std::byte> to(copied_bytes);
    std::vector<double> times;
    for (Index round = 0; round < rounds; ++round) {
        rank.barrier();
        const auto begin = std::chrono::steady_clock::now();
        std::memcpy(to.data(), from.data(), to.size());
        from[static_cast<std::size_t>(round)] = to.back();  // so that no copy is left out
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        times.push_back(taken.count());
    }
    const double slowest = largest(rank, std::vector<double>{median(std::move(times))}).front();
    return rounded(static_cast<double>(copied_bytes) / std::max(slowest, 1e-9));
}

/// An all_to_all with tiles of so many elements, and a few more, among the members of one axis. It copies runs of `run`
/// elements, or the whole part for a peer if `run` is 0.
Result<Judged<Plan>> exchange(const Mesh& mesh, const char* axis, Index tile, Index run) {
    const Index members = std::ranges::find(mesh.axes, axis, &Axis::name)->size;
    if (run == 0) run = ceil_divide(tile, members);
    const std::vector<Index> shape = {members * ceil_divide(tile, members * run), members * run};
    RESHARD_TRY(const auto& source, make_layout(mesh, DType::f32, shape, P{axis, {}}));
    RESHARD_TRY(const auto& target, make_layout(mesh, DType::f32, shape, P{{}, axis}));
    return judge({source, target, {{StepKind::all_to_all, target}}}, AsSteps{});
}

using Mover = std::unique_ptr<Session>;

/// Collective: a session that runs such an exchange.
Result<Mover> mover_of(Rank& rank, const Mesh& mesh, const char* axis, Index tile, Index run) {
    RESHARD_TRY(const auto& plan, exchange(mesh, axis, tile, run));
    RESHARD_TRY(auto& mover, Session::make(rank, rank.backend(), plan));
    std::ranges::fill(mover->source(), std::byte{1});
    return std::move(mover);
}

/// Collective: seconds of each round of each mover. Movers take turns, so other load slows all of them equally.
Result<std::vector<std::vector<double>>> rounds_of(Rank& rank, const std::vector<Mover>& movers, Index rounds) {
    std::vector<std::vector<double>> times(movers.size());
    for (Index round = 0; round <= rounds; ++round)
        for (std::size_t i = 0; i < movers.size(); ++i) {
            RESHARD_TRY(const auto& taken, movers[i]->move(rank));
            if (round > 0) times[i].push_back(taken);  // the first one warms up
        }
    return times;
}

/// Collective: median seconds of one in runs as long as can be.
Result<double> exchange_seconds(Rank& rank, const Mesh& mesh, const char* axis, Index tile, Index rounds) {
    std::vector<Mover> movers(1);
    RESHARD_ASSIGN(movers[0], mover_of(rank, mesh, axis, tile, 0));
    RESHARD_TRY(auto times, rounds_of(rank, movers, rounds));
    return largest(rank, std::vector<double>{median(std::move(times[0]))}).front();
}

/// Collective: median seconds of a small exchange among the members of one axis. Many run in a row.
Result<double> small_seconds(Rank& rank, const Mesh& mesh, const char* axis, Index rounds) {
    Backend& backend = rank.backend();
    RESHARD_TRY(auto& executor, agree(rank, Executor::prepare(exchange(mesh, axis, small_tile_elements, 0), backend)));
    RESHARD_TRY(const auto& source, agree(rank, backend.allocate(executor.plans().front().source_bytes)));
    RESHARD_TRY(const auto& target, agree(rank, backend.allocate(executor.plans().front().target_bytes)));
    const Buffers buffers{source->bytes(), target->bytes(), {}};
    std::vector<double> times;
    for (Index round = 0; round <= rounds; ++round) {
        rank.barrier();
        const auto begin = std::chrono::steady_clock::now();
        for (Index move = 0; move < small_moves; ++move) RESHARD_CHECK(executor.run(buffers));
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        if (round > 0) times.push_back(taken.count() / small_moves);  // the first one warms up
    }
    return largest(rank, std::vector<double>{median(std::move(times))}).front();
}

/// The same mesh with an axis that is cut into groups of so many members.
Mesh in_groups(Mesh mesh, const char* axis, Index members) {
    const auto cut = std::ranges::find(mesh.axes, axis, &Axis::name);
    const Index groups = std::exchange(cut->size, members) / members;
    mesh.axes.insert(cut, {"group", groups});
    return mesh;
}

/// Collective: the time of a small exchange among all members of an axis, as a start and a part for each peer. A second
/// exchange in the smallest groups that divide the members tells the two apart. A prime number of members has no start.
Result<void> measure_meeting(Rank& rank, const Mesh& mesh, const char* axis, Index members, Index rounds,
                             Level& level) {
    Index few = 2;
    while (members % few != 0) ++few;
    RESHARD_TRY(const auto& all, small_seconds(rank, mesh, axis, rounds));
    double each = all / static_cast<double>(members - 1);
    double start = 0;
    if (few < members) {
        RESHARD_TRY(const auto& part, small_seconds(rank, in_groups(mesh, axis, few), axis, rounds));
        each = std::clamp((all - part) / static_cast<double>(members - few), 0.0, each);
        start = all - each * static_cast<double>(members - 1);
    }
    level.latency_ps = rounded(each * second_ps);
    level.start_ps = start * second_ps < 1 ? 0 : rounded(start * second_ps);
    return {};
}

/// Collective: start, latency and bandwidth of the level that an axis of `members` ranks reaches.
Result<void> measure(Rank& rank, const Mesh& mesh, const char* axis, Index members, Index copies, Index rounds,
                     Level& level) {
    RESHARD_CHECK(measure_meeting(rank, mesh, axis, members, rounds, level));
    RESHARD_TRY(const auto& small, exchange_seconds(rank, mesh, axis, small_tile_elements, rounds));
    RESHARD_TRY(const auto& large, exchange_seconds(rank, mesh, axis, large_tile_elements, rounds));
    const double tile = 4.0 * static_cast<double>(members * ceil_divide(large_tile_elements, members));
    const double load = tile * static_cast<double>(members - 1) / static_cast<double>(members);
    // The model pays for messages, for the link, and for one copy of the tile that arrives.
    const double link = large - small - tile / static_cast<double>(copies);
    level.bytes_per_second = rounded(load / std::max(link, large / 20));
    return {};
}

/// Collective: what a run costs beside its bytes, through the level that an axis of `members` ranks reaches.
Result<Index> run_picoseconds(Rank& rank, const Mesh& mesh, const char* axis, Index members, Index rounds) {
    std::vector<Mover> movers(2);
    RESHARD_ASSIGN(movers[0], mover_of(rank, mesh, axis, large_tile_elements, 0));
    RESHARD_ASSIGN(movers[1], mover_of(rank, mesh, axis, large_tile_elements, run_elements));
    RESHARD_TRY(const auto& times, rounds_of(rank, movers, rounds));
    std::vector<double> more;
    for (std::size_t round = 0; round < times[0].size(); ++round) more.push_back(times[1][round] - times[0][round]);
    const double slowest = largest(rank, std::vector<double>{median(std::move(more))}).front();
    const auto runs = static_cast<double>(members * ceil_divide(large_tile_elements, members * run_elements));
    return rounded(std::max(slowest, 0.0) / runs * second_ps);
}

/// Collective: ranks of a node, when every node has as many and they follow one another; else 0.
Index ranks_per_node(Rank& rank) {
    const std::vector<std::string> hosts = rank.share(machine_name());
    std::size_t first = 1;
    while (first < hosts.size() && hosts[first] == hosts[0]) ++first;
    for (std::size_t r = 0; r < hosts.size(); ++r)
        if (hosts[r] != hosts[r / first * first]) return 0;
    return hosts.size() % first == 0 ? static_cast<Index>(first) : 0;
}

Result<Machine> calibrated(Rank& rank, Index rounds) {
    const Index ranks = rank.size();
    if (ranks < 2) return fail(Code::mismatch, "there is nothing to measure between fewer than 2 ranks");
    const Index inside = ranks_per_node(rank);
    Machine machine{"calibrated", {}, copy_rate(rank, rounds)};
    if (inside == 0 || inside == ranks) {
        const Mesh mesh{{"rank", ranks}};
        Level level{inside == 0 ? "network" : "node", index_max};
        RESHARD_CHECK(measure(rank, mesh, "rank", ranks, machine.copy_bytes_per_second, rounds, level));
        machine.levels.push_back(level);
        RESHARD_ASSIGN(machine.copy_run_ps, run_picoseconds(rank, mesh, "rank", ranks, rounds));
        return machine;
    }
    const Mesh mesh{{"node", ranks / inside}, {"rank", inside}};
    for (const auto& [name, axis, members, devices] :
         {std::tuple("node", "rank", inside, inside), std::tuple("network", "node", ranks / inside, index_max)}) {
        if (members < 2) continue;
        Level level{name, devices};
        RESHARD_CHECK(measure(rank, mesh, axis, members, machine.copy_bytes_per_second, rounds, level));
        machine.levels.push_back(level);
        // Measured on the innermost level, which adds least to it.
        if (machine.levels.size() == 1) {
            RESHARD_ASSIGN(machine.copy_run_ps, run_picoseconds(rank, mesh, axis, members, rounds));
        }
    }
    return machine;
}

Result<int> calibrate_rank(Rank& rank, const Arguments& arguments) {
    RESHARD_CHECK(may_write(rank, arguments.output, ""));
    RESHARD_TRY(auto machine, calibrated(rank, arguments.rounds));
    RESHARD_CHECK(measure_pieces(rank, arguments.rounds, machine));
    if (machine.piece_ps > 0) machine.piece_ps = rounded(static_cast<double>(machine.piece_ps));
    const std::string text = format(machine);
    // To the file as it is by then.
    const auto write = [&] {
        return destination_of_file(arguments.output).and_then([&](const auto& to) { return write_text(to, text); });
    };
    RESHARD_CHECK(agree(rank, rank.index() == 0 && !arguments.output.empty() ? write() : Result<void>()));
    if (rank.index() == 0) answer(arguments.json ? line(Json{{"machine", text}, {"ranks", rank.size()}}) : text);
    return exit_ok;
}

}  // namespace

Result<int> calibrate(const Arguments& arguments) {
    if (!arguments.disk.empty()) return calibrate_disk(arguments);
    RESHARD_TRY(auto& ranks, make_ranks(arguments.backend, default_rank_count(arguments.backend),
                                        std::chrono::seconds(arguments.timeout)));
    return ranks->each(arguments.json, [&](Rank& rank) { return calibrate_rank(rank, arguments); });
}

}  // namespace reshard::cli
