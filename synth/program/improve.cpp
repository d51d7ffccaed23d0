#include "synth/program/improve.hpp"

#include <algorithm>
#include <array>

#include "synth/program/list_order.hpp"

namespace reshard::program {
namespace {

constexpr std::size_t history = 60;  // a change may be as bad as the value of so many rounds ago

class Improve {
public:
    Improve(const Activities& program, const Paths& paths, Found best)
        : program_(program),
          paths_(paths),
          best_(std::move(best)),
          times_(program),
          other_(program),
          marked_(program.all.size()),
          priority_(program.all.size()) {
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
            if (!program_.limited) return false;
            next_ = repaired(program_, next_, current_);
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
        restart(repaired(program_, next_, best_.order));
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
        const int j = dice_.below(10) < 7 ? in_a_chain() : dice_.below(program_.count());
        const int count = program_.count();
        const int at = static_cast<int>(std::ranges::find(current_, j) - current_.begin());
        const int reach = std::array{3, 8, 64, count}[static_cast<std::size_t>(dice_.below(4))];
        if (dice_.below(100) < 65 && at > 0) {
            pull(at, std::max(0, at - 1 - dice_.below(std::min(reach, at))));
        } else {
            push(at, std::min(count, at + 1 + dice_.below(std::min(reach, count - at))));
        }
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
                if (times_.end()[earlier] == start) options_.push_back(earlier);
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

    // Takes the activity at `at` to the place `to` before it, with those between that it needs.
    void pull(int at, int to) {
        moved_.assign(1, current_[at]);
        mark(program_.all[current_[at]].before, 1);
        int last = at;
        for (int k = at - 1; k >= to; --k) {
            const int i = current_[k];
            if (marked_[i] != 0) {
                moved_.push_back(i);
                mark(program_.all[i].before, 1);
            } else {
                next_[last--] = i;
            }
        }
        for (std::size_t k = 0; k < moved_.size(); ++k) next_[last - static_cast<int>(k)] = moved_[k];
        for (const int i : moved_) mark(program_.all[i].before, 0);
    }

    // Takes the activity at `at` behind the others before `to`, with those between that need it.
    void push(int at, int to) {
        moved_.assign(1, current_[at]);
        mark(program_.after[current_[at]], 1);
        int first = at;
        for (int k = at + 1; k < to; ++k) {
            const int i = current_[k];
            if (marked_[i] != 0) {
                moved_.push_back(i);
                mark(program_.after[i], 1);
            } else {
                next_[first++] = i;
            }
        }
        for (std::size_t k = 0; k < moved_.size(); ++k) next_[first + static_cast<int>(k)] = moved_[k];
        for (const int i : moved_) mark(program_.after[i], 0);
    }

    void mark(const std::vector<int>& activities, char value) {
        for (const int j : activities) marked_[j] = value;
    }

    const Activities& program_;
    const Paths& paths_;
    Found best_;
    Times times_;  // of current_
    Times other_;
    Order current_, next_;
    Value value_;
    std::array<Value, history> past_;
    std::vector<char> marked_;
    std::vector<Index> priority_;
    std::vector<int> options_, moved_;
    Dice dice_;
};

}  // namespace

Found improve(const Activities& program, const Paths& paths, Found best, Index bound, Index& rounds) {
    if (rounds <= 0 || best.value.end <= bound || program.count() < 2) return best;
    return Improve(program, paths, std::move(best)).run(bound, rounds);
}

}  // namespace reshard::program
