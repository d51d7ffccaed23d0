#include "synth/program/tabu.hpp"

#include <algorithm>

#include "synth/program/list_order.hpp"
#include "synth/program/sequences.hpp"
#include "synth/program/shift.hpp"

namespace reshard::program {
namespace {

constexpr Index patience = 300;          // rounds without a better order, then the search starts afresh
constexpr int kicks_min = 12;            // random changes of the best order to start afresh from
constexpr std::size_t pairs = 1U << 16;  // pairs that are remembered; two pairs rarely have one place

// An activity of a block goes behind or before others of the block.
struct Change {
    int resource = 0;
    std::span<const int> activities = {};  // the first goes last, or the last goes first
    bool first_goes_last = false;
};

class Tabu {
public:
    Tabu(const Activities& program, const Paths& paths, Found best)
        : program_(program),
          paths_(paths),
          best_(std::move(best)),
          sequences_(program),
          shift_(program),
          until_(pairs) {
        set(best_.order);
        near_ = value_;
    }

    Found run(Index bound, Index& rounds) {
        for (Index still = 0; rounds > 0 && best_.value.end > bound; --rounds, ++now_) {
            const bool changed = step();
            if (value_.end < near_.end) {
                near_ = value_;
                still = 0;
            } else if (!changed || ++still > patience) {
                start_afresh();
                still = 0;
            }
        }
        return std::move(best_);
    }

private:
    void set(const Order& order) {
        current_ = order;
        value_ = sequences_.set(current_).value_or(Value{index_max, index_max});
        if (value_ < best_.value) best_ = {current_, value_};
    }

    // Makes the best change that is not tabu. Returns whether there is one.
    bool step() {
        Index least = index_max;
        int equal = 0;
        Change chosen;
        const auto offer = [&](const Change& change) {
            const auto& [resource, activities, first_goes_last] = change;
            if (!(first_goes_last ? sequences_.may_go_last(activities) : sequences_.may_go_first(activities))) return;
            sequence_.assign(activities.begin(), activities.end());
            std::rotate(sequence_.begin(), first_goes_last ? sequence_.begin() + 1 : sequence_.end() - 1,
                        sequence_.end());
            const Index end = sequences_.estimate(resource, activities, sequence_);
            if (end > least || (end >= best_.value.end && is_tabu(change))) return;
            if (end < least) equal = 0;
            least = end;
            if (dice_.below(++equal) == 0) chosen = change;
        };
        for (const Block& block : sequences_.blocks(dice_)) offer_all(block, offer);
        if (least == index_max) return false;
        make(chosen);
        return true;
    }

    template <class Offer>
    static void offer_all(const Block& block, const Offer& offer) {
        const auto& [resource, all] = block;
        const std::size_t count = all.size();
        offer({resource, all, true});
        if (count > 2) offer({resource, all, false});
        for (std::size_t k = 1; k + 1 < count; ++k) {
            offer({resource, all.subspan(k), true});
            offer({resource, all.first(k + 1), false});
            if (k > 1) offer({resource, all.first(k + 1), true});
            if (k + 2 < count) offer({resource, all.subspan(k), false});
        }
    }

    // Calls `pair` with the activities that change places: the later one, then the earlier one.
    template <class Pair>
    static void for_pairs(const Change& change, const Pair& pair) {
        const auto& [resource, all, first_goes_last] = change;
        if (first_goes_last) {
            for (const int j : all.subspan(1)) pair(j, all.front());
        } else {
            for (const int j : all.first(all.size() - 1)) pair(all.back(), j);
        }
    }

    // Until when `later` may not go before `earlier`.
    [[nodiscard]] Index& until(int later, int earlier) {
        const auto pair = static_cast<std::uint64_t>(later) * program_.all.size() + static_cast<std::uint64_t>(earlier);
        return until_[static_cast<std::size_t>(mixed(pair)) % pairs];
    }

    bool is_tabu(const Change& change) {
        bool tabu = false;
        for_pairs(change, [&](int later, int earlier) { tabu = tabu || until(later, earlier) > now_; });
        return tabu;
    }

    void make(const Change& change) {
        const auto& [resource, all, first_goes_last] = change;
        const Index last = now_ + 2 + dice_.below(4) + program_.count() / std::max(1, program_.resources);
        for_pairs(change, [&](int later, int earlier) { until(earlier, later) = last; });
        next_ = current_;
        const int front = sequences_.position_of(all.front());
        const int back = sequences_.position_of(all.back());
        if (first_goes_last) {
            shift_.push(next_, front, back + 1);
        } else {
            shift_.pull(next_, back, front);
        }
        set(next_);
    }

    // Goes on from a list with noise on its priorities, or from the best order after random changes.
    void start_afresh() {
        if (dice_.below(10) < 3) {
            noisy_.resize(program_.all.size());
            for (int j = 0; j < program_.count(); ++j)
                noisy_[j] = scale_up(paths_.tail[j] + program_.all[j].picoseconds, 500 + dice_.below(1000), 1000);
            set(list_order(program_, noisy_, best_.order));
        } else {
            set(Order(best_.order));
            for (int left = kicks_min + dice_.below(kicks_min); left > 0; --left) kick();
        }
        near_ = value_;
        std::ranges::fill(until_, 0);
    }

    // Two neighbours of a block change places.
    void kick() {
        const std::vector<Block>& blocks = sequences_.blocks(dice_);
        if (blocks.empty()) return;
        const Block& block = blocks[static_cast<std::size_t>(dice_.below(static_cast<int>(blocks.size())))];
        const int at = dice_.below(static_cast<int>(block.activities.size()) - 1);
        make({block.resource, block.activities.subspan(static_cast<std::size_t>(at), 2), true});
    }

    const Activities& program_;
    const Paths& paths_;
    Found best_;
    Value near_;  // the best since the search started afresh
    Sequences sequences_;
    Shift shift_;
    Order current_, next_;
    Value value_;
    Index now_ = 0;  // rounds so far
    std::vector<Index> until_;
    std::vector<Index> noisy_;
    std::vector<int> sequence_;
    Dice dice_;
};

}  // namespace

Found tabu(const Activities& program, const Paths& paths, Found best, Index bound, Index& rounds) {
    if (rounds <= 0 || best.value.end <= bound || program.count() < 2) return best;
    return Tabu(program, paths, std::move(best)).run(bound, rounds);
}

}  // namespace reshard::program
