#include "synth/program/lower_bound.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace reshard::program {
namespace {

constexpr Index path_steps_max = 20'000'000;  // of all lifetimes together; beyond it, shorter lifetimes are enough

struct Job {
    Index head = 0;
    Index time = 0;
    Index tail = 0;
};

// One machine serves jobs from their heads on, the longest tail first, and may interrupt them.
Index one_machine(std::vector<Job> jobs) {
    std::ranges::sort(jobs, {}, &Job::head);
    std::priority_queue<std::pair<Index, Index>> waiting;  // tail, time left
    Index now = 0;
    Index end = 0;
    std::size_t next = 0;
    while (next < jobs.size() || !waiting.empty()) {
        if (waiting.empty()) now = std::max(now, jobs[next].head);
        for (; next < jobs.size() && jobs[next].head <= now; ++next) waiting.emplace(jobs[next].tail, jobs[next].time);
        const auto [tail, left] = waiting.top();
        waiting.pop();
        const Index run = next < jobs.size() ? std::min(left, jobs[next].head - now) : left;
        now += run;
        if (run < left) {
            waiting.emplace(tail, left - run);
        } else {
            end = std::max(end, now + tail);
        }
    }
    return end;
}

// The least time from a buffer's opening until its last user has ended.
class Lifetimes {
public:
    Lifetimes(const Activities& program, const Paths& paths)
        : program_(program),
          sorted_(paths.sorted),
          rank_(program.all.size()),
          far_(program.all.size(), -1),
          load_(program.resources) {
        for (std::size_t k = 0; k < sorted_.size(); ++k) rank_[sorted_[k]] = static_cast<int>(k);
    }

    [[nodiscard]] Index of(const Buffer& buffer) {
        const Index made = program_.all[buffer.maker].picoseconds;
        if (buffer.users.empty()) return made;
        Index life = made - program_.all[buffer.maker].early + users_in_turn(buffer);
        if (steps_ < path_steps_max) life = std::max(life, longest_path(buffer));
        return life;
    }

private:
    // Users that share a resource run one after another.
    Index users_in_turn(const Buffer& buffer) {
        Index most = 0;
        for (const int user : buffer.users) {
            if (user == buffer.maker) continue;
            most = std::max(most, program_.all[user].picoseconds);
            for (const int r : program_.all[user].resources)
                most = std::max(most, load_[r] += program_.all[user].picoseconds);
        }
        for (const int user : buffer.users)
            for (const int r : program_.all[user].resources) load_[r] = 0;
        return most;
    }

    Index longest_path(const Buffer& buffer) {
        int stop = 0;
        for (const int user : buffer.users) stop = std::max(stop, rank_[user]);
        std::priority_queue<int, std::vector<int>, std::greater<>> ranks;
        std::vector<int> seen;
        const auto reach = [&](int j, Index end) {
            if (rank_[j] > stop) return;
            if (far_[j] < 0) {
                ranks.push(rank_[j]);
                seen.push_back(j);
            }
            far_[j] = std::max(far_[j], end);
        };
        reach(buffer.maker, program_.all[buffer.maker].picoseconds);
        for (; !ranks.empty(); ranks.pop()) {
            const int j = sorted_[ranks.top()];
            for (const int later : program_.after[j])
                reach(later, far_[j] - program_.all[j].early + program_.all[later].picoseconds);
            steps_ += 1 + static_cast<Index>(program_.after[j].size());
        }
        Index longest = 0;
        for (const int user : buffer.users) longest = std::max(longest, far_[user]);
        for (const int j : seen) far_[j] = -1;
        return longest;
    }

    const Activities& program_;
    const std::vector<int>& sorted_;
    std::vector<int> rank_;
    std::vector<Index> far_;
    std::vector<Index> load_;
    Index steps_ = 0;
};

// Buffers that are made at a place live between the first maker's start and the last user's end.
struct Area {
    __extension__ using Wide = unsigned __int128;
    Wide bytes_times = 0;
    Index fixed = 0;
    Index first = index_max;
    Index last = index_max;
};

Index area_end(const Area& area, Index limit) {
    if (area.bytes_times == 0 || limit <= area.fixed) return 0;
    const auto room = static_cast<Area::Wide>(limit - area.fixed);
    return area.first + static_cast<Index>((area.bytes_times + room - 1) / room) + area.last;
}

std::vector<Area> areas_of(const Activities& program, const Paths& paths) {
    std::vector<Area> areas(program.limits.size());
    Lifetimes lifetimes(program, paths);
    for (const Buffer& buffer : program.buffers) {
        Area& area = areas[buffer.place];
        if (buffer.bytes == 0 || program.limits[buffer.place] == index_max) continue;
        if (buffer.maker < 0 && (buffer.kept || buffer.users.empty())) area.fixed += buffer.bytes;
        if (buffer.maker < 0 || buffer.kept) continue;
        area.bytes_times += static_cast<Area::Wide>(buffer.bytes) * static_cast<Area::Wide>(lifetimes.of(buffer));
        area.first = std::min(area.first, paths.head[buffer.maker]);
        for (const int user : buffer.users) area.last = std::min(area.last, paths.tail[user]);
        if (buffer.users.empty()) area.last = std::min(area.last, paths.tail[buffer.maker]);
    }
    return areas;
}

// An activity that takes memory of a place which others on its resource must free.
struct Opener {
    Index bytes = index_max;  // of its smallest buffer, which it holds until all its memory is free
    Index freeing = 0;        // time of the activities on the resource that free its memory alone
};

// The openers of a place on one resource, such as the forward tasks of a stage: they hold activations until the
// backward tasks of the stage have run. Only a few are open at once.
class Window {
public:
    void add(int opener, Index bytes) { openers_[opener].bytes = std::min(openers_[opener].bytes, bytes); }
    // `user` frees memory of an opener. It counts for none if it frees memory of several.
    void add_user(int user, int opener) {
        const auto [at, fresh] = opener_of_.try_emplace(user, opener);
        if (!fresh && at->second != opener) at->second = -1;
    }

    // The least end. Before the last opener starts, all other openers have run. Their users
    // have run, too, except for the openers that fit the memory beside it. And before any user can start, the resource
    // runs only openers, as many as fit.
    [[nodiscard]] Index end(const Activities& program, const Paths& paths, const std::vector<int>& on_resource,
                            Index room) {
        for (const auto& [user, opener] : opener_of_)
            if (opener >= 0) openers_[opener].freeing += program.all[user].picoseconds;
        std::vector<Index> bytes, times, freeing;
        Index after = index_max;
        for (const auto& [j, opener] : openers_) {
            bytes.push_back(opener.bytes);
            times.push_back(program.all[j].picoseconds);
            freeing.push_back(opener.freeing);
            after = std::min(after, program.all[j].picoseconds + paths.tail[j]);
        }
        std::ranges::sort(bytes);
        std::ranges::sort(times);
        std::ranges::sort(freeing);
        std::size_t open = 0;  // at most so many at once
        for (Index left = room; open < bytes.size() && bytes[open] <= left; ++open) left -= bytes[open];
        if (open == 0 || open == bytes.size()) return 0;
        Index busy = std::accumulate(times.begin(), times.end() - 1, Index{0});
        for (std::size_t k = 0; k + open < freeing.size(); ++k) busy += freeing[k];
        Index first_user = index_max;
        for (const int j : on_resource)
            if (openers_.count(j) == 0) first_user = std::min(first_user, paths.head[j]);
        const Index at_first = std::accumulate(times.end() - static_cast<std::ptrdiff_t>(open), times.end(), Index{0});
        return busy + std::max<Index>(first_user - at_first, 0) + after;
    }

private:
    std::map<int, Opener> openers_;
    std::map<int, int> opener_of_;  // of each user; -1: of several
};

bool opens_at(const Activities& program, int j, int place) {
    return std::ranges::count(program.opens[j], place, &Opening::place) > 0;
}

// By place, and by the first resource of the openers.
std::map<std::pair<int, int>, Window> windows_of(const Activities& program) {
    std::map<std::pair<int, int>, Window> windows;
    for (const Buffer& buffer : program.buffers) {
        if (buffer.bytes == 0 || program.limits[buffer.place] == index_max) continue;
        if (buffer.maker < 0 || buffer.kept || program.all[buffer.maker].resources.empty()) continue;
        const int resource = program.all[buffer.maker].resources.front();
        Window* window = nullptr;
        for (const int user : buffer.users) {
            if (std::ranges::count(program.all[user].resources, resource) == 0) continue;
            if (opens_at(program, user, buffer.place)) continue;
            window = &windows[{buffer.place, resource}];
            window->add_user(user, buffer.maker);
        }
        if (window != nullptr) window->add(buffer.maker, buffer.bytes);
    }
    return windows;
}

}  // namespace

Paths paths_of(const Activities& program) {
    const int count = program.count();
    Paths paths{{}, std::vector<Index>(count), std::vector<Index>(count)};
    std::vector<std::size_t> needs(count);
    for (int j = 0; j < count; ++j) {
        needs[j] = program.all[j].before.size();
        if (needs[j] == 0) paths.sorted.push_back(j);
    }
    for (std::size_t k = 0; k < paths.sorted.size(); ++k)
        for (const int later : program.after[paths.sorted[k]])
            if (--needs[later] == 0) paths.sorted.push_back(later);
    for (const int j : paths.sorted)
        for (const int later : program.after[j])
            paths.head[later] =
                std::max(paths.head[later], paths.head[j] + program.all[j].picoseconds - program.all[j].early);
    for (auto j = paths.sorted.rbegin(); j != paths.sorted.rend(); ++j)
        for (const int later : program.after[*j])
            paths.tail[*j] =
                std::max(paths.tail[*j], paths.tail[later] + program.all[later].picoseconds - program.all[*j].early);
    return paths;
}

LowerBound lower_bound(const Activities& program, const Paths& paths) {
    LowerBound bound;
    const auto raise = [&](Index end, Binding binding, int number) {
        if (end > bound.end) bound = {end, binding, number};
    };
    std::vector<std::vector<Job>> jobs(program.resources);
    for (int j = 0; j < program.count(); ++j) {
        const Job job{paths.head[j], program.all[j].picoseconds, paths.tail[j]};
        raise(job.head + job.time + job.tail, Binding::path, -1);
        for (const int resource : program.all[j].resources) jobs[resource].push_back(job);
    }
    for (int r = 0; r < program.resources; ++r) raise(one_machine(std::move(jobs[r])), Binding::resource, r);
    if (!program.limited) return bound;
    const std::vector<Area> areas = areas_of(program, paths);
    for (int p = 0; p < program.places(); ++p) raise(area_end(areas[p], program.limits[p]), Binding::memory, p);
    std::vector<std::vector<int>> on_resource(program.resources);
    for (int j = 0; j < program.count(); ++j)
        for (const int r : program.all[j].resources) on_resource[r].push_back(j);
    for (auto& [key, window] : windows_of(program)) {
        const auto [place, resource] = key;
        const Index room = program.limits[place] - areas[place].fixed;
        raise(window.end(program, paths, on_resource[resource], room), Binding::memory, place);
    }
    return bound;
}

}  // namespace reshard::program
