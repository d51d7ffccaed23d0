#include "synth/program/sequences.hpp"

#include <algorithm>

namespace reshard::program {

Sequences::Sequences(const Activities& program)
    : program_(program),
      times_(program),
      position_(program.all.size()),
      tail_(program.all.size()),
      last_on_(static_cast<std::size_t>(program.resources)) {
    for (const Activity& one : program.all) {
        first_.push_back(neighbours_.size());
        for (const int resource : one.resources) neighbours_.push_back({resource});
    }
    first_.push_back(neighbours_.size());
}

std::optional<Value> Sequences::set(const Order& order) {
    const std::optional<Value> value = times_.of(order);
    if (!value) return value;
    order_ = order;
    end_ = value->end;
    link(order);
    find_tails(order);
    return value;
}

void Sequences::link(const Order& order) {
    std::ranges::fill(last_on_, -1);
    for (int k = 0; k < program_.count(); ++k) {
        const int j = order[k];
        position_[j] = k;
        for (Neighbours& one : all_of(j)) {
            one.before = last_on_[one.resource];
            one.behind = -1;
            if (one.before >= 0) on(one.resource, one.before).behind = j;
            last_on_[one.resource] = j;
        }
    }
}

void Sequences::find_tails(const Order& order) {
    for (auto j = order.rbegin(); j != order.rend(); ++j) tail_[*j] = tail(*j, -1);
}

std::span<Sequences::Neighbours> Sequences::all_of(int activity) {
    return std::span(neighbours_).subspan(first_[activity], first_[activity + 1] - first_[activity]);
}

Sequences::Neighbours& Sequences::on(int resource, int activity) {
    return *std::ranges::find(all_of(activity), resource, &Neighbours::resource);
}

Index Sequences::ready(int activity, int except) {
    Index time = 0;
    for (const int earlier : program_.all[activity].before) time = std::max(time, passes_at(earlier));
    for (const Neighbours& one : all_of(activity))
        if (one.resource != except && one.before >= 0) time = std::max(time, end(one.before));
    return time;
}

Index Sequences::tail(int activity, int except) {
    Index time = 0;
    for (const int later : program_.after[activity]) time = std::max(time, way(later) - program_.all[activity].early);
    for (const Neighbours& one : all_of(activity))
        if (one.resource != except && one.behind >= 0) time = std::max(time, way(one.behind));
    return time;
}

// Chooses among what the activity waits for, again and again, until one waits for nothing.
void Sequences::walk_back(int last, Dice& dice) {
    chain_.assign(1, last);
    waited_for_.clear();
    while (start(chain_.back()) > 0) {
        const int j = chain_.back();
        int found = 0;
        int from = -1;
        int resource = -1;
        const auto offer = [&](int earlier, int by) {
            if (dice.below(++found) > 0) return;
            from = earlier;
            resource = by;
        };
        for (const Neighbours& one : all_of(j))
            if (one.before >= 0 && end(one.before) == start(j)) offer(one.before, one.resource);
        for (const int earlier : program_.all[j].before)
            if (passes_at(earlier) == start(j)) offer(earlier, -1);
        if (from < 0) return;
        chain_.push_back(from);
        waited_for_.push_back(resource);
    }
}

const std::vector<Block>& Sequences::blocks(Dice& dice) {
    int found = 0;
    int last = -1;
    for (const int j : order_)
        if (end(j) == end_ && dice.below(++found) == 0) last = j;
    walk_back(last, dice);
    std::ranges::reverse(chain_);
    std::ranges::reverse(waited_for_);
    blocks_.clear();
    for (std::size_t begin = 0; begin < waited_for_.size();) {
        std::size_t past = begin + 1;
        while (past < waited_for_.size() && waited_for_[past] == waited_for_[begin]) ++past;
        if (waited_for_[begin] >= 0)
            blocks_.push_back({waited_for_[begin], std::span(chain_).subspan(begin, past + 1 - begin)});
        begin = past;
    }
    return blocks_;
}

Index Sequences::estimate(int resource, std::span<const int> now, std::span<const int> changed) {
    const int before = on(resource, now.front()).before;
    const int behind = on(resource, now.back()).behind;
    Index head = before < 0 ? 0 : end(before);
    heads_.clear();
    for (const int j : changed) {
        head = std::max(head, ready(j, resource));
        heads_.push_back(head);
        head += program_.all[j].picoseconds;
    }
    Index longest = 0;
    Index rest = behind < 0 ? 0 : way(behind);
    for (std::size_t k = changed.size(); k-- > 0;) {
        rest = std::max(rest, tail(changed[k], resource)) + program_.all[changed[k]].picoseconds;
        longest = std::max(longest, heads_[k] + rest);
    }
    return longest;
}

bool Sequences::may_go_last(std::span<const int> activities) const {
    const int moved = activities.front();
    const int last = activities.back();
    return std::ranges::all_of(program_.after[moved], [&](int later) {
        return std::ranges::count(activities, later) == 0 && way(later) <= way(last);
    });
}

bool Sequences::may_go_first(std::span<const int> activities) const {
    const int first = activities.front();
    const int moved = activities.back();
    return std::ranges::all_of(program_.all[moved].before, [&](int earlier) {
        return std::ranges::count(activities, earlier) == 0 && end(earlier) <= end(first);
    });
}

}  // namespace reshard::program
