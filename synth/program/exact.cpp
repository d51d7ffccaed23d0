#include "synth/program/exact.hpp"

#include <algorithm>
#include <unordered_map>

namespace reshard::program {
namespace {

using Set = std::uint64_t;  // of activities

Set bit(int j) { return Set{1} << static_cast<unsigned>(j); }

bool as_early(const std::vector<Index>& a, const std::vector<Index>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] > b[i]) return false;
    return true;
}

// The state after the first activities of an order.
struct State {
    Set done = 0;
    std::vector<Index> end;      // of each activity in done
    std::vector<Index> busy;     // of each resource, until when
    std::vector<Index> load;     // of each resource, the time of activities that are not done
    std::vector<Index> last;     // of each place, the last start that took memory
    std::vector<Index> taken;    // of each place, bytes that were ever taken
    std::vector<int> left;       // of each buffer, the ends that it waits for
    std::vector<Index> free_at;  // of each buffer, the last of those ends so far
};

class Search {
public:
    Search(const Activities& program, const Paths& paths, Found best, Index bound, Index states_max)
        : program_(program), paths_(paths), result_{std::move(best)}, bound_(bound), states_max_(states_max) {
        for (int j = 0; j < program.count(); ++j) {
            Set needs = 0;
            for (const int earlier : program.all[j].before) needs |= bit(earlier);
            needs_.push_back(needs);
            Set later = 0;
            for (const int i : program.after[j]) later |= bit(i);
            later_.push_back(later);
        }
    }

    Exact run() {
        const std::size_t count = program_.all.size();
        State state{0,
                    std::vector<Index>(count),
                    std::vector<Index>(program_.resources),
                    std::vector<Index>(program_.resources),
                    std::vector<Index>(program_.limits.size()),
                    program_.held_first,
                    {},
                    std::vector<Index>(program_.buffers.size())};
        for (const auto& users : program_.waits_for) state.left.push_back(static_cast<int>(users.size()));
        for (const Activity& one : program_.all)
            for (const int r : one.resources) state.load[r] += one.picoseconds;
        go(state);
        result_.exhausted = !over_;
        return std::move(result_);
    }

private:
    struct Option {
        Index start = 0;
        Index tail = 0;
        int activity = 0;
        friend bool operator<(const Option& a, const Option& b) {
            return std::tuple(a.start, -a.tail, a.activity) < std::tuple(b.start, -b.tail, b.activity);
        }
    };

    void go(const State& state) {
        if (over_ || at_bound()) return;
        if (++result_.states > states_max_) {
            over_ = true;
            return;
        }
        if (order_.size() == program_.all.size()) return keep(state);
        if (dominated(state)) return;
        std::vector<Option> options;
        for (int j = 0; j < program_.count(); ++j) {
            if ((state.done & bit(j)) != 0 || (needs_[j] & ~state.done) != 0) continue;
            if (const auto start = start_of(state, j)) options.push_back({*start, paths_.tail[j], j});
        }
        std::ranges::sort(options, std::less<>());
        for (const Option& option : options) {
            State next = state;
            if (!begin(next, option.activity, option.start)) continue;
            order_.push_back(option.activity);
            go(next);
            order_.pop_back();
        }
    }

    [[nodiscard]] bool at_bound() const { return result_.found.value.end <= bound_; }

    void keep(const State& state) {
        const Index end = *std::ranges::max_element(state.end);
        if (end < result_.found.value.end) result_.found = {order_, {end, 0}};
    }

    // When it starts as the next one; nullopt if its memory never suffices.
    [[nodiscard]] std::optional<Index> start_of(const State& state, int j) const {
        Index time = 0;
        for (const int earlier : program_.all[j].before)
            time = std::max(time, state.end[earlier] - program_.all[earlier].early);
        for (const int r : program_.all[j].resources) time = std::max(time, state.busy[r]);
        for (const Opening& opening : program_.opens[j]) time = std::max(time, state.last[opening.place]);
        for (const auto& [place, bytes] : program_.opens[j]) {
            Index held = state.taken[place] + bytes;
            std::vector<std::pair<Index, Index>> frees;
            for (std::size_t b = 0; b < program_.buffers.size(); ++b)
                if (program_.buffers[b].place == place && state.left[b] == 0 && !program_.waits_for[b].empty())
                    frees.emplace_back(state.free_at[b], program_.buffers[b].bytes);
            std::ranges::sort(frees);
            for (const auto& [when, freed] : frees) {
                if (when > time && held <= program_.limits[place]) break;
                time = std::max(time, when);
                held -= freed;
            }
            if (held > program_.limits[place]) return std::nullopt;
        }
        return time;
    }

    // False if nothing good comes after it.
    [[nodiscard]] bool begin(State& state, int j, Index start) const {
        const Activity& one = program_.all[j];
        const Index end = start + one.picoseconds;
        if (end + paths_.tail[j] >= result_.found.value.end) return false;
        state.done |= bit(j);
        state.end[j] = end;
        for (const int r : one.resources) {
            state.busy[r] = end;
            state.load[r] -= one.picoseconds;
        }
        for (std::size_t r = 0; r < state.busy.size(); ++r)
            if (state.load[r] > 0 && state.busy[r] + state.load[r] >= result_.found.value.end) return false;
        for (const auto& [place, bytes] : program_.opens[j]) {
            state.last[place] = start;
            state.taken[place] += bytes;
        }
        for (const int b : program_.releases[j]) {
            --state.left[b];
            state.free_at[b] = std::max(state.free_at[b], end);
        }
        return true;
    }

    // True if an order of the same activities was as early in everything. Keeps the state otherwise.
    bool dominated(const State& state) {
        std::vector<Index> felt = state.busy;
        felt.insert(felt.end(), state.last.begin(), state.last.end());
        for (int j = 0; j < program_.count(); ++j)
            if ((state.done & bit(j)) != 0 && (later_[j] & ~state.done) != 0) felt.push_back(state.end[j]);
        for (std::size_t b = 0; b < program_.buffers.size(); ++b)
            if (state.left[b] < static_cast<int>(program_.waits_for[b].size()))
                felt.push_back(std::max(state.free_at[b], state.last[program_.buffers[b].place]));
        auto& others = seen_[state.done];
        for (const auto& other : others)
            if (as_early(other, felt)) return true;
        std::erase_if(others, [&](const auto& other) { return as_early(felt, other); });
        others.push_back(std::move(felt));
        return false;
    }

    const Activities& program_;
    const Paths& paths_;
    Exact result_;
    Index bound_;
    Index states_max_;
    bool over_ = false;
    std::vector<Set> needs_, later_;
    Order order_;
    std::unordered_map<Set, std::vector<std::vector<Index>>> seen_;
};

}  // namespace

Exact exact(const Activities& program, const Paths& paths, Found best, Index bound, Index states_max) {
    return Search(program, paths, std::move(best), bound, states_max).run();
}

}  // namespace reshard::program
