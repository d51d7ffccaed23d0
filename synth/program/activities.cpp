#include "synth/program/activities.hpp"

#include <algorithm>

namespace reshard::program {
namespace {

void open(std::vector<Opening>& opens, int place, Index bytes) {
    const auto same = std::ranges::find(opens, place, &Opening::place);
    if (same == opens.end()) {
        opens.push_back({place, bytes});
    } else {
        same->bytes += bytes;
    }
}

}  // namespace

void complete(Activities& program) {
    program.after.assign(program.all.size(), {});
    program.opens.assign(program.all.size(), {});
    program.releases.assign(program.all.size(), {});
    program.waits_for.assign(program.buffers.size(), {});
    program.held_first.assign(program.limits.size(), 0);
    program.limited = std::ranges::any_of(program.limits, [](Index limit) { return limit != index_max; });
    for (int j = 0; j < program.count(); ++j)
        for (const int earlier : program.all[j].before) program.after[earlier].push_back(j);
    for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
        const Buffer& buffer = program.buffers[b];
        if (program.limits[buffer.place] == index_max || buffer.bytes == 0) continue;
        if (buffer.maker < 0) {
            program.held_first[buffer.place] += buffer.bytes;
        } else {
            open(program.opens[buffer.maker], buffer.place, buffer.bytes);
        }
        if (buffer.kept) continue;
        program.waits_for[b] = buffer.users;
        if (buffer.users.empty() && buffer.maker >= 0) program.waits_for[b] = {buffer.maker};
        for (const int user : program.waits_for[b]) program.releases[user].push_back(b);
    }
}

std::vector<Index> one_by_one(const Activities& program, const Order& order) {
    std::vector<Index> held = program.held_first;
    std::vector<Index> most = held;
    std::vector<std::size_t> left(program.buffers.size());
    for (std::size_t b = 0; b < left.size(); ++b) left[b] = program.waits_for[b].size();
    for (const int j : order) {
        for (const auto& [place, bytes] : program.opens[j]) {
            held[place] += bytes;
            most[place] = std::max(most[place], held[place]);
        }
        for (const int b : program.releases[j])
            if (--left[b] == 0) held[program.buffers[b].place] -= program.buffers[b].bytes;
    }
    return most;
}

bool fits(const Activities& program, const Order& order) {
    const std::vector<Index> most = one_by_one(program, order);
    for (int place = 0; place < program.places(); ++place)
        if (most[place] > program.limits[place]) return false;
    return true;
}

}  // namespace reshard::program
