#include "backends/mpi/choice.hpp"

#include <algorithm>

namespace reshard::mpi {
namespace {

constexpr double faster = 0.9;  // than the kept way, when another is looked at
constexpr double slower = 1.2;  // than the kept way was
constexpr std::size_t first_pause = 8;
constexpr std::size_t longest_pause = 1024;  // runs

}  // namespace

double Choice::Way::median() const {
    std::array<double, remembered> sorted = latest;
    const std::size_t known = std::min(runs, remembered);
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return sorted[known / 2];
}

std::vector<double> Choice::seconds() const {
    std::vector<double> all;
    for (const Way& way : ways_) all.push_back(way.median());
    return all;
}

void Choice::ran(double seconds) {
    const bool looks = settled_ && way_ != kept_;
    const bool other_is_faster = looks && seconds < faster * ways_[kept_].median();
    ways_[way_].ran(seconds);
    if (!settled_) {
        way_ = (way_ + 1) % ways_.size();
        if (ways_[way_].runs == remembered) settle();
        return;
    }
    if (!looks) ++runs_;
    if (other_is_faster || (runs_ >= first_pause && ways_[kept_].median() > slower * expected_)) return try_all();
    if (looks) way_ = (way_ + 1) % ways_.size();
    if (!looks && runs_ >= comparing_) way_ = (kept_ + 1) % ways_.size();
    if (looks && way_ == kept_) {  // all were looked at
        comparing_ = std::min(2 * comparing_, longest_pause);
        runs_ = 0;
    }
}

void Choice::settle() {
    const std::vector<double> medians = seconds();
    kept_ = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
    way_ = kept_;
    expected_ = medians[kept_];
    settled_ = true;
    runs_ = 0;
    comparing_ = first_pause;
}

void Choice::try_all() {
    for (Way& way : ways_) way = {};
    way_ = 0;
    settled_ = false;
}

}  // namespace reshard::mpi
