#include "synth/program/times.hpp"

#include <algorithm>

namespace reshard::program {

Times::Times(const Activities& program)
    : program_(program),
      start_(program.all.size()),
      end_(program.all.size()),
      busy_(program.resources),
      held_(program.limits.size()),
      last_(program.limits.size()),
      free_at_(program.buffers.size()),
      left_(program.buffers.size()),
      pending_(program.limits.size()) {}

std::optional<Value> Times::of(const Order& order) {
    std::ranges::fill(end_, -1);
    std::ranges::fill(busy_, 0);
    std::ranges::fill(last_, 0);
    std::ranges::fill(free_at_, 0);
    held_ = program_.held_first;
    for (std::size_t b = 0; b < left_.size(); ++b) left_[b] = program_.waits_for[b].size();
    for (auto& queue : pending_) queue = {};
    Value value;
    for (const int j : order) {
        const std::optional<Index> inputs = ready(j);
        if (!inputs) return std::nullopt;
        const std::optional<Index> start = take_memory(j, *inputs);
        if (!start) return std::nullopt;
        start_[j] = *start;
        end_[j] = *start + program_.all[j].picoseconds;
        value.end = std::max(value.end, end_[j]);
        value.starts += *start;
        for (const int resource : program_.all[j].resources) busy_[resource] = end_[j];
        release(j);
    }
    return value;
}

// When its inputs and its resources are ready.
std::optional<Index> Times::ready(int activity) const {
    Index time = 0;
    for (const int earlier : program_.all[activity].before) {
        if (end_[earlier] < 0) return std::nullopt;
        time = std::max(time, end_[earlier] - program_.all[earlier].early);
    }
    for (const int resource : program_.all[activity].resources) time = std::max(time, busy_[resource]);
    return time;
}

// When its memory is there, too.
std::optional<Index> Times::take_memory(int activity, Index from) {
    Index time = from;
    const auto& opens = program_.opens[activity];
    for (const Opening& opening : opens) time = std::max(time, last_[opening.place]);
    for (const auto& [place, bytes] : opens) {
        auto& queue = pending_[place];
        const auto give_back = [&, place = place] {
            time = std::max(time, queue.top().first);
            held_[place] -= queue.top().second;
            queue.pop();
        };
        while (!queue.empty() && queue.top().first <= time) give_back();
        while (held_[place] + bytes > program_.limits[place]) {
            if (queue.empty()) return std::nullopt;
            give_back();
        }
    }
    for (const auto& [place, bytes] : opens) {
        held_[place] += bytes;
        last_[place] = time;
    }
    return time;
}

void Times::release(int activity) {
    for (const int b : program_.releases[activity]) {
        free_at_[b] = std::max(free_at_[b], end_[activity]);
        const Buffer& buffer = program_.buffers[b];
        if (--left_[b] == 0) pending_[buffer.place].emplace(free_at_[b], buffer.bytes);
    }
}

}  // namespace reshard::program
