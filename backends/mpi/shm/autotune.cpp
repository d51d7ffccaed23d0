#include "backends/mpi/shm/autotune.hpp"

#include <algorithm>

namespace reshard::mpi {
namespace {

constexpr double hopeless = 2;  // times the kept way
constexpr double faster = 0.9;  // than the kept way, to go over to another
constexpr double slower = 1.2;  // than the kept way was, to look at the others
constexpr std::size_t first_pause = 8;
constexpr std::size_t longest_pause = 1024;  // runs

}  // namespace

double Autotune::Way::median() const {
    std::array<double, remembered> sorted = latest;
    const std::size_t known = std::min(runs, remembered);
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return sorted[known / 2];
}

std::vector<double> Autotune::seconds() const {
    std::vector<double> all;
    for (const Way& way : ways_) all.push_back(way.median());
    return all;
}

void Autotune::ran(double seconds) {
    ways_[way_].ran(seconds);
    if (!settled_) {
        way_ = (way_ + 1) % ways_.size();
        if (ways_[way_].runs == remembered) settle();
    } else if (way_ == kept_) {
        ++runs_;
        const bool slow = runs_ >= first_pause && ways_[kept_].median() > slower * expected_;
        if (slow || runs_ >= comparing_) look();
    } else {
        if (seconds < best_seconds_) {
            best_ = way_;
            best_seconds_ = seconds;
        }
        way_ = next_candidate();
        if (way_ == kept_) end_look();
    }
}

void Autotune::settle() {
    const std::vector<double> medians = seconds();
    kept_ = static_cast<std::size_t>(std::ranges::min_element(medians) - medians.begin());
    way_ = kept_;
    expected_ = medians[kept_];
    for (std::size_t i = 0; i < ways_.size(); ++i) ways_[i].hopeless = medians[i] > hopeless * expected_;
    settled_ = true;
    comparing_ = first_pause;
}

void Autotune::look() {
    best_ = kept_;
    best_seconds_ = faster * ways_[kept_].median();
    way_ = next_candidate();
    if (way_ == kept_) end_look();
}

void Autotune::end_look() {
    comparing_ = best_ == kept_ ? std::min(2 * comparing_, longest_pause) : first_pause;
    if (best_ != kept_) {  // what it took long ago says nothing
        ways_[best_].runs = 0;
        ways_[best_].ran(best_seconds_);
    }
    kept_ = best_;
    way_ = kept_;
    expected_ = ways_[kept_].median();
    runs_ = 0;
}

// After way(); the kept one when all others were looked at.
std::size_t Autotune::next_candidate() const {
    std::size_t next = (way_ + 1) % ways_.size();
    while (next != kept_ && ways_[next].hopeless) next = (next + 1) % ways_.size();
    return next;
}

}  // namespace reshard::mpi
