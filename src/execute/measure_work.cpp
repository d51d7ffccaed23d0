#include "reshard/overlap/measure_work.hpp"

#include <algorithm>
#include <chrono>

namespace reshard {
namespace {

constexpr double turn_seconds = 0.002;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of one piece of that length, when pieces follow one another.
double turn(Index block, Index length, const std::function<void(Index, Index)>& work) {
    const double begin = seconds_now();
    Index pieces = 0;
    double taken = 0;
    while (taken < turn_seconds && (pieces + 1) * length <= block) {
        work(pieces * length, (pieces + 1) * length);
        ++pieces;
        taken = seconds_now() - begin;
    }
    return taken / static_cast<double>(pieces);
}

}  // namespace

double WorkTimes::operator()(Index begin, Index end) const {
    const Index length = end - begin;
    const auto above = std::ranges::lower_bound(lengths, length);
    const auto at = static_cast<std::size_t>(above - lengths.begin());
    if (above != lengths.end() && (*above == length || at == 0)) return seconds[at];
    if (above == lengths.end())
        return seconds.back() * static_cast<double>(length) / static_cast<double>(lengths.back());
    const double part =
        static_cast<double>(length - lengths[at - 1]) / static_cast<double>(lengths[at] - lengths[at - 1]);
    return seconds[at - 1] + part * (seconds[at] - seconds[at - 1]);
}

WorkTimes measure_work(Index block, const std::function<void(Index begin, Index end)>& work, Index places, int rounds) {
    WorkTimes times;
    for (Index length = std::max<Index>(block / places, 1); length < block; length *= 2)
        times.lengths.push_back(length);
    times.lengths.push_back(block);
    for (const Index length : times.lengths) {
        turn(block, length, work);  // warms up
        std::vector<double> turns;
        for (int round = 0; round < rounds; ++round) turns.push_back(turn(block, length, work));
        std::ranges::sort(turns);
        times.seconds.push_back(turns[turns.size() / 2]);
    }
    return times;
}

}  // namespace reshard
