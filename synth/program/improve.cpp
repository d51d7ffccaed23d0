#include "synth/program/improve.hpp"

#include <algorithm>
#include <array>

#include "synth/program/list_order.hpp"
#include "synth/program/shift.hpp"

namespace reshard::program {
namespace {

constexpr std::size_t history = 60;  // a change may be as bad as the value of so many rounds ago

// Marks of activities in Improve::carry.
constexpr char free_to_move = 1;
constexpr char in_the_group = 2;

// True if some resource serves both.
bool share(const Activity& a, const Activity& b) {
    return std::ranges::any_of(a.resources, [&](int r) { return std::ranges::count(b.resources, r) > 0; });
}

class Improve {
public:
    Improve(const Activities& program, const Paths& paths, Found best)
        : program_(program),
          paths_(paths),
          best_(std::move(best)),
          times_(program),
          other_(program),
          shift_(program),
          marked_(program.all.size()),
          priority_(program.all.size()),
          taken_(program.all.size()) {
        for (std::size_t b = 0; b < program.buffers.size(); ++b)
            if (program.buffers[b].maker >= 0 && !program.waits_for[b].empty())
                taken_[program.buffers[b].maker].push_back(static_cast<int>(b));
        restart(best_.order);
    }

    Found run(Index bound, Index& rounds) {
        const Index patience = 300 + 50 * static_cast<Index>(program_.count());
        for (Index still = 0; rounds > 0 && best_.value.end > bound; --rounds) {
            if (++still > patience) {
                start_afresh();
                still = 0;
            } else if (step(static_cast<std::size_t>(rounds) % history)) {
                still = 0;
            }
        }
        return std::move(best_);
    }

private:
    // True if the end of the best order fell.
    bool step(std::size_t age) {
        change();
        std::optional<Value> value = other_.of(next_);
        if (!value) {
            std::optional<Order> order = squeezed(program_, next_);
            next_ = order ? std::move(*order) : repaired(program_, next_, current_);
            value = other_.of(next_);
            if (!value) return false;
        }
        Value& old = past_[age];
        bool ended_sooner = false;
        if (*value <= value_ || *value <= old) {
            current_.swap(next_);
            times_.swap(other_);
            value_ = *value;
            ended_sooner = value_.end < best_.value.end;
            if (value_ < best_.value) best_ = {current_, value_};
        }
        old = value_;
        return ended_sooner;
    }

    // Goes on from the best order, from a list with noise on its priorities, or from any order that fits.
    void start_afresh() {
        const int kind = dice_.below(10);
        if (kind < 2) return restart(best_.order);
        for (int j = 0; j < program_.count(); ++j)
            priority_[j] = scale_up(paths_.tail[j] + program_.all[j].picoseconds, 500 + dice_.below(1000), 1000);
        if (kind < 6) return restart(list_order(program_, priority_, best_.order, dice_.below(margin_max + 1)));
        next_ = best_.order;
        for (int k = program_.count(); k > 1; --k) std::swap(next_[k - 1], next_[dice_.below(k)]);
        restart(repaired(program_, next_, current_));
    }

    void restart(const Order& order) {
        current_ = order;
        value_ = times_.of(current_).value_or(Value{index_max, index_max});
        past_.fill(value_);
        if (value_ < best_.value) best_ = {current_, value_};
    }

    // The changed order goes to next_.
    void change() {
        next_ = current_;
        const bool chained = dice_.below(10) < 7;
        const int j = chained ? in_a_chain() : dice_.below(program_.count());
        if (chained && dice_.below(2) == 0 && reverse(j)) return;
        const int count = program_.count();
        const int at = static_cast<int>(std::ranges::find(current_, j) - current_.begin());
        const int reach = std::array{3, 8, 64, count}[static_cast<std::size_t>(dice_.below(4))];
        if (dice_.below(4) == 0) {
            carry(at, reach, dice_.below(2) == 0);
        } else if (dice_.below(100) < 65 && at > 0) {
            shift_.pull(
                next_, at,
                dice_.below(2) == 0 ? neighbour(at, -1) : std::max(0, at - 1 - dice_.below(std::min(reach, at))));
        } else {
            shift_.push(next_, at,
                        dice_.below(2) == 0 ? neighbour(at, 1) + 1
                                            : std::min(count, at + 1 + dice_.below(std::min(reach, count - at))));
        }
    }

    // Goes back from an activity by inputs that end when it starts, until one waits for a resource. Then it changes
    // places with the activity that has the resource. Returns false if no input waits for a resource.
    bool reverse(int j) {
        for (Index start = times_.start()[j]; start > 0; start = times_.start()[j]) {
            const int at = static_cast<int>(std::ranges::find(current_, j) - current_.begin());
            if (const auto k = blocker(at)) {
                if (dice_.below(2) == 0) {
                    shift_.pull(next_, at, *k);
                } else {
                    shift_.push(next_, *k, at + 1);
                }
                return true;
            }
            const std::vector<int>& inputs = program_.all[j].before;
            const auto late = std::ranges::find_if(inputs, [&](int i) { return passes_at(i) == start; });
            if (late == inputs.end()) return false;
            j = *late;
        }
        return false;
    }

    // When the activities that wait for it may start.
    [[nodiscard]] Index passes_at(int j) const { return times_.end()[j] - program_.all[j].early; }

    // The position of the activity that the one at `at` waits for only because both need a resource.
    [[nodiscard]] std::optional<int> blocker(int at) const {
        const int j = current_[at];
        const Activity& waits = program_.all[j];
        for (int k = at - 1; k >= 0; --k) {
            const int i = current_[k];
            if (times_.end()[i] == times_.start()[j] && share(program_.all[i], waits) &&
                std::ranges::count(waits.before, i) == 0)
                return k;
        }
        return std::nullopt;
    }

    // The position of an activity before (step -1) or behind (step 1) that shares a resource. Two times in three it is
    // the next one. Returns `at` if no other activity shares one.
    int neighbour(int at, int step) {
        int found = at;
        for (int k = at + step; k >= 0 && k < program_.count(); k += step) {
            if (!share(program_.all[current_[k]], program_.all[current_[at]])) continue;
            found = k;
            if (dice_.below(3) > 0) break;
        }
        return found;
    }

    // An activity of a chain that ends last: each starts when another one ends. Walks back a random way.
    int in_a_chain() {
        const auto pick = [&] {
            return options_[static_cast<std::size_t>(dice_.below(static_cast<int>(options_.size())))];
        };
        options_.clear();
        for (const int i : current_)
            if (times_.end()[i] == value_.end) options_.push_back(i);
        int j = pick();
        for (int steps = dice_.below(1 + program_.count()); steps > 0 && times_.start()[j] > 0; --steps) {
            const Index start = times_.start()[j];
            options_.clear();
            for (const int earlier : program_.all[j].before)
                if (passes_at(earlier) == start) options_.push_back(earlier);
            if (options_.empty() || dice_.below(3) == 0) {
                for (const int i : current_) {
                    if (times_.end()[i] == start && program_.all[i].picoseconds > 0) options_.push_back(i);
                    if (options_.size() > 4) break;
                }
            }
            if (options_.empty()) break;
            j = pick();
            if (dice_.below(12) == 0) break;
        }
        return j;
    }

    // Moves a group of activities forward or back, so that two groups without room for both change places. A group that
    // moves forward contains the inputs of its members, and the activities that free the memory of its members. A group
    // that moves back contains the users of its members, and the activities whose memory its members free.
    void carry(int at, int reach, bool forward) {
        const int count = program_.count();
        const int levels = 1 + dice_.below(3);
        const int from = forward ? std::max(0, at - 1 - dice_.below(std::max(1, std::min(reach, at)))) : at;
        const int to = forward ? count : std::min(count, at + 1 + dice_.below(std::min(reach, count - at)));
        for (int k = from; k < to; ++k) marked_[current_[k]] = free_to_move;
        gather(current_[at], forward, levels);
        int next = from;
        for (const bool first : {forward, !forward})
            for (int k = from; k < to; ++k)
                if ((marked_[current_[k]] == in_the_group) == first) next_[next++] = current_[k];
        for (int k = from; k < to; ++k) marked_[current_[k]] = 0;
    }

    // Marks a group among the activities that are free to move. Each level adds the activities that share memory with
    // the last members, and then all inputs or users.
    void gather(int activity, bool forward, int levels) {
        moved_.clear();
        add(activity);
        std::size_t closed = 0;
        std::size_t asked = 0;
        for (int level = 0;; ++level) {
            for (; closed < moved_.size(); ++closed)
                for (const int i : forward ? program_.all[moved_[closed]].before : program_.after[moved_[closed]])
                    add(i);
            if (level == levels) return;
            for (const std::size_t end = moved_.size(); asked < end; ++asked) {
                if (forward) {
                    for (const int b : taken_[moved_[asked]])
                        for (const int user : program_.waits_for[b]) add(user);
                } else {
                    for (const int b : program_.releases[moved_[asked]])
                        if (program_.buffers[b].maker >= 0) add(program_.buffers[b].maker);
                }
            }
        }
    }

    void add(int activity) {
        if (marked_[activity] != free_to_move) return;
        marked_[activity] = in_the_group;
        moved_.push_back(activity);
    }

    const Activities& program_;
    const Paths& paths_;
    Found best_;
    Times times_;  // of current_
    Times other_;
    Shift shift_;
    Order current_, next_;
    Value value_;
    std::array<Value, history> past_;
    std::vector<char> marked_;
    std::vector<Index> priority_;
    std::vector<int> options_, moved_;
    std::vector<std::vector<int>> taken_;  // of each activity, the buffers that it takes and that are freed
    Dice dice_;
};

}  // namespace

Found improve(const Activities& program, const Paths& paths, Found best, Index bound, Index& rounds) {
    if (rounds <= 0 || best.value.end <= bound || program.count() < 2) return best;
    return Improve(program, paths, std::move(best)).run(bound, rounds);
}

}  // namespace reshard::program
