#include "reshard/overlap/measure_work.hpp"

#include <algorithm>
#include <chrono>

namespace reshard {
namespace {

constexpr double turn_seconds = 0.002;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Pieces of one length that follow one another over the block, so that caches have them no more than in a run.
class Turns {
public:
    Turns(Index block, Index length, const std::function<void(Index, Index)>& work)
        : block_(block), length_(length), work_(work) {}

    // The time of one piece.
    double seconds() {
        const double begin = seconds_now();
        Index pieces = 0;
        double taken = 0;
        while (taken < turn_seconds && length_ <= block_ - pieces * length_) {
            if (at_ > block_ - length_) at_ = 0;
            work_(at_, at_ + length_);
            at_ += length_;
            ++pieces;
            taken = seconds_now() - begin;
        }
        return taken / static_cast<double>(pieces);
    }

private:
    const Index block_;
    const Index length_;
    const std::function<void(Index, Index)>& work_;
    Index at_ = 0;
};

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
    for (Index length = std::max<Index>(block / places, 1); length < block; length = saturating_multiply(length, 2))
        times.lengths.push_back(length);
    times.lengths.push_back(block);
    for (const Index length : times.lengths) {
        Turns turns(block, length, work);
        turns.seconds();  // warms up
        std::vector<double> taken;
        for (int round = 0; round < rounds; ++round) taken.push_back(turns.seconds());
        std::ranges::sort(taken);
        times.seconds.push_back(taken[taken.size() / 2]);
    }
    return times;
}

}  // namespace reshard
