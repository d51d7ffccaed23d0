#include "synth/program/banker.hpp"

#include <algorithm>

namespace reshard::program {
namespace {

constexpr Index gone = Index{1} << 60;  // taken off a position that has started: more than all bytes together

}  // namespace

Banker::Banker(const Activities& program, const Order& fallback, Margin margin)
    : program_(program),
      position_(program.all.size()),
      started_(program.all.size()),
      users_(program.buffers.size()),
      freed_at_(program.buffers.size(), -1),
      most_(program.limits.size()),
      added_(program.limits.size()),
      allowed_(program.limits.size(), index_max) {
    const int count = program.count();
    while (size_ < count + 1) size_ *= 2;
    for (int place = 0; place < program.places(); ++place) {
        if (program.limits[place] == index_max) continue;
        limited_.push_back(place);
        most_[place].assign(2 * static_cast<std::size_t>(size_), -gone);
        added_[place].assign(2 * static_cast<std::size_t>(size_), 0);
    }
    for (int k = 0; k < count; ++k) position_[fallback[k]] = k;
    for (std::size_t b = 0; b < users_.size(); ++b) {
        for (const int user : program.waits_for[b]) users_[b].push_back(position_[user]);
        std::ranges::sort(users_[b], std::greater<>());
        if (!users_[b].empty()) freed_at_[b] = users_[b].front();
    }
    std::vector<Index> held = program.held_first;
    for (int k = 0; k < count; ++k) {
        for (const auto& [place, bytes] : program.opens[fallback[k]]) held[place] += bytes;
        for (const int place : limited_) most_[place][size_ + k] = held[place];
        for (const int b : program.releases[fallback[k]])
            if (freed_at_[b] == k) held[program.buffers[b].place] -= program.buffers[b].bytes;
    }
    for (const int place : limited_) {
        std::vector<Index>& tree = most_[place];
        for (int node = size_ - 1; node > 0; --node) tree[node] = std::max(tree[2 * node], tree[2 * node + 1]);
        const Index free = program.limits[place] - tree[1];
        allowed_[place] = program.limits[place] - scale_up(free, margin, margin_max);
    }
}

// Adds to the leaves [begin, end), and mends the maxima above them.
void Banker::add(int place, int begin, int end, Index bytes) {
    if (begin >= end) return;
    std::vector<Index>& most = most_[place];
    std::vector<Index>& added = added_[place];
    const auto raise = [&](int node) {
        most[node] += bytes;
        added[node] += bytes;
    };
    for (int low = begin + size_, high = end + size_; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) raise(low++);
        if (high % 2 == 1) raise(--high);
    }
    for (const int leaf : {begin + size_, end - 1 + size_})
        for (int node = leaf / 2; node > 0; node /= 2)
            most[node] = std::max(most[2 * node], most[2 * node + 1]) + added[node];
}

void Banker::find_changes(int activity) {
    const int position = position_[activity];
    changes_.clear();
    for (const auto& [place, bytes] : program_.opens[activity]) changes_.push_back({place, 0, position, bytes});
    for (const int b : program_.releases[activity]) {
        if (freed_at_[b] != position) continue;
        const auto last = std::ranges::find_if(users_[b], [&](int k) { return k != position && started_[k] == 0; });
        const int freed = last == users_[b].end() ? -1 : *last;
        const Buffer& buffer = program_.buffers[b];
        changes_.push_back({buffer.place, freed + 1, position + 1, -buffer.bytes, b, freed});
    }
    for (const int place : limited_) changes_.push_back({place, position, position + 1, -gone});
}

void Banker::add_changes(int sign) {
    for (const Change& change : changes_) add(change.place, change.begin, change.end, sign * change.bytes);
}

bool Banker::start(int activity) {
    find_changes(activity);
    add_changes(1);
    if (std::ranges::any_of(limited_, [&](int place) { return most_[place][1] > allowed_[place]; })) {
        add_changes(-1);
        return false;
    }
    started_[position_[activity]] = 1;
    for (const Change& change : changes_)
        if (change.buffer >= 0) freed_at_[change.buffer] = change.freed_at;
    return true;
}

}  // namespace reshard::program
