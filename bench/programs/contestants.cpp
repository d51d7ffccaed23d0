#include "bench/programs/contestants.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "synth/program/dice.hpp"
#include "synth/program/list_order.hpp"

namespace reshard::program {
namespace {

Activities without_limits(Activities program) {
    std::ranges::fill(program.limits, index_max);
    complete(program);
    return program;
}

// The most bytes of any place, from the lifetimes of the buffers.
Index peak_of(const Activities& program, const Times& times) {
    Index most = 0;
    for (int place = 0; place < program.places(); ++place) {
        std::vector<std::pair<Index, Index>> changes;
        for (const Buffer& buffer : program.buffers) {
            if (buffer.place != place) continue;
            changes.emplace_back(buffer.maker < 0 ? 0 : times.start()[buffer.maker], buffer.bytes);
            if (buffer.kept || (buffer.users.empty() && buffer.maker < 0)) continue;
            Index freed = buffer.maker < 0 ? 0 : times.end()[buffer.maker];
            for (const int user : buffer.users) freed = std::max(freed, times.end()[user]);
            changes.emplace_back(freed, -buffer.bytes);
        }
        std::ranges::sort(changes);
        Index held = 0;
        for (const auto& [time, change] : changes) most = std::max(most, held += change);
    }
    return most;
}

Contest contest(const Activities& timed, const Order& order) {
    Times times(timed);
    const auto value = times.of(order);
    return value ? Contest{value->end, peak_of(timed, times)} : Contest{};
}

// Tasks as written, each move in the slot before a task: behind its maker, or `ahead` tasks before its first user.
Order placed(const Activities& program, int ahead) {
    std::vector<int> tasks;
    for (const int j : program.written)
        if (!program.all[j].moves) tasks.push_back(j);
    std::vector<int> rank(program.all.size());
    for (std::size_t k = 0; k < tasks.size(); ++k) rank[tasks[k]] = static_cast<int>(k);
    std::vector<std::vector<int>> slots(tasks.size() + 1);
    for (const int j : program.written) {
        if (!program.all[j].moves) continue;
        int made = 0;
        for (const int earlier : program.all[j].before) made = std::max(made, rank[earlier] + 1);
        int used = static_cast<int>(tasks.size());
        for (const int later : program.after[j]) used = std::min(used, rank[later]);
        slots[static_cast<std::size_t>(program.all[j].before.empty() ? std::max(made, used - ahead) : made)].push_back(
            j);
    }
    Order order;
    for (std::size_t k = 0; k <= tasks.size(); ++k) {
        order.insert(order.end(), slots[k].begin(), slots[k].end());
        if (k < tasks.size()) order.push_back(tasks[k]);
    }
    return order;
}

}  // namespace

Contest blocking(const Activities& limited) {
    Activities program = without_limits(limited);
    // The compute of a place: the resource of the tasks that make or use its buffers.
    std::map<int, int> compute;
    for (const Buffer& buffer : program.buffers)
        if (buffer.maker >= 0 && !program.all[buffer.maker].moves)
            compute.try_emplace(buffer.place, program.all[buffer.maker].resources.front());
    for (const Buffer& buffer : program.buffers)
        for (const int user : buffer.users) {
            Activity& one = program.all[user];
            if (one.moves && compute.count(buffer.place) > 0 &&
                std::ranges::count(one.resources, compute[buffer.place]) == 0)
                one.resources.push_back(compute[buffer.place]);
        }
    return contest(program, placed(program, 0));
}

Contest program_order(const Activities& limited, int ahead) {
    Activities program = without_limits(limited);
    const Order order = placed(program, ahead);
    int task = -1;
    for (const int j : order) {
        if (!program.all[j].moves && program.all[j].picoseconds > 0) task = j;
        if (program.all[j].moves && program.all[j].before.empty() && task >= 0) program.all[j].before.push_back(task);
    }
    complete(program);
    return contest(program, order);
}

Contest random_moves(const Activities& limited) {
    const Activities program = without_limits(limited);
    Activities chained = program;
    std::map<std::vector<int>, int> last;
    std::vector<Index> priority(program.all.size());
    for (std::size_t k = 0; k < program.written.size(); ++k) {
        const int j = program.written[k];
        Activity& one = chained.all[j];
        priority[j] = -static_cast<Index>(k);
        if (one.moves) continue;
        const auto [at, fresh] = last.try_emplace(one.resources, j);
        if (!fresh && std::ranges::count(one.before, at->second) == 0) one.before.push_back(at->second);
        at->second = j;
    }
    complete(chained);
    Dice dice;
    Contest best{index_max, 0};
    for (int round = 0; round < 100; ++round) {
        for (int j = 0; j < program.count(); ++j)
            if (program.all[j].moves) priority[j] = dice.below(1 << 30);
        const Contest one = contest(program, list_order(chained, priority, chained.written));
        if (one.end < best.end) best = one;
    }
    return best;
}

Contest latency_hiding(const Activities& limited) {
    const Activities program = without_limits(limited);
    const int count = program.count();
    const Paths paths = paths_of(program);
    std::vector<Index> depth(count);
    for (const int j : paths.sorted)
        for (const int earlier : program.all[j].before)
            depth[j] = std::max(depth[j],
                                depth[earlier] + (program.all[earlier].moves ? program.all[earlier].picoseconds : 0));
    std::vector<int> rank(count);
    for (int k = 0; k < count; ++k) rank[program.written[k]] = k;
    std::vector<std::vector<int>> uses(count), makes(count);
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        for (const int user : program.buffers[b].users) uses[user].push_back(static_cast<int>(b));
        if (program.buffers[b].maker >= 0) makes[program.buffers[b].maker].push_back(static_cast<int>(b));
    }
    std::vector<char> live(program.buffers.size());
    const auto change = [&](int j) {
        Index bytes = 0;
        for (const int b : uses[j]) bytes += live[b] == 0 ? program.buffers[b].bytes : 0;
        for (const int b : makes[j]) bytes -= live[b] != 0 ? program.buffers[b].bytes : 0;
        return bytes;
    };
    std::vector<std::size_t> needs(count);
    std::map<int, Index> ready;   // activity, when it is ready in reversed time
    std::map<int, Index> flying;  // move, when its start may be taken
    for (int j = 0; j < count; ++j)
        if ((needs[j] = program.after[j].size()) == 0) ready[j] = 0;
    Index now = 0;
    Order order;
    while (static_cast<int>(order.size()) < count) {
        // In reversed time, the move that has been ready longest begins.
        int move = -1;
        for (const auto& [j, at] : ready)
            if (program.all[j].moves && flying.empty() && at <= now &&
                (move < 0 || std::pair(at, -rank[j]) < std::pair(ready[move], -rank[move])))
                move = j;
        if (move >= 0) {
            flying[move] = now + program.all[move].picoseconds;
            ready.erase(move);
        }
        using Key = std::tuple<Index, Index, bool, Index, int, int>;
        std::vector<Key> options;
        const auto consider = [&](int j, Index at) {
            const bool unlocks = std::ranges::any_of(program.all[j].before,
                                                     [&](int b) { return program.all[b].moves && needs[b] == 1; });
            options.emplace_back(std::max(Index{0}, at - now), -depth[j], !unlocks, change(j), -rank[j], j);
        };
        for (const auto& [j, at] : ready)
            if (!program.all[j].moves) consider(j, at);
        for (const auto& [j, at] : flying) consider(j, at);
        if (options.empty()) {
            Index next = index_max;
            for (const auto& [j, at] : ready) next = std::min(next, at);
            now = std::max(now, next);
            continue;
        }
        const int j = std::get<5>(*std::ranges::min_element(options));
        now = std::max(now, flying.count(j) > 0 ? flying[j] : ready[j]);
        flying.erase(j);
        ready.erase(j);
        if (!program.all[j].moves) now += program.all[j].picoseconds;
        for (const int b : uses[j]) live[b] = 1;
        for (const int b : makes[j]) live[b] = 0;
        order.push_back(j);
        for (const int earlier : program.all[j].before)
            if (--needs[earlier] == 0) ready[earlier] = now;
    }
    std::ranges::reverse(order);
    return contest(program, order);
}

}  // namespace reshard::program
