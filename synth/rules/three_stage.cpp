#include "synth/rules/three_stage.hpp"

#include <algorithm>
#include <utility>

#include "synth/rules/one_permute.hpp"

namespace reshard {

namespace {

class ThreeStage {
public:
    ThreeStage(const Problem& problem, Vocabulary vocabulary, Index inside)
        : problem_(problem),
          vocabulary_(vocabulary),
          inside_(inside),
          primes_(problem),
          now_(primes_.of(problem.source)),
          unreduced_(problem.source.unreduced) {}

    Plan make() {
        const bool reduces = !same_summands(problem_.source, problem_.target);
        if (reduces) reduce();
        // The target between the reductions and a zero_fill at the end.
        Layout last = problem_.target;
        last.unreduced = unreduced_;
        PrimeAxes goal = primes_.of(last);
        const PrimeAxes start = now_;
        AtomList unused = primes_.unused_by(layout(now_));
        primes_.append_missing(now_, goal, unused);
        AtomList spare = primes_.unused_by(last);
        primes_.append_missing(goal, start, spare);
        const auto slow = [&](Atom atom) { return atom.stride >= inside_; };
        std::erase_if(unused, slow);
        std::erase_if(spare, slow);
        primes_.append_in_pairs(now_, goal, unused, spare);
        step_to(StepKind::slice);
        connect(goal);
        now_ = primes_.of(last);
        step_to(StepKind::all_gather);
        unreduced_ = problem_.target.unreduced;
        step_to(StepKind::zero_fill);
        return {problem_.source, problem_.target, std::move(steps_)};
    }

private:
    Layout layout(const PrimeAxes& lists) const {
        Layout made{problem_.source.dtype, problem_.source.mesh, {}, unreduced_, reduction_of(problem_)};
        for (std::size_t i = 0; i < lists.size(); ++i)
            made.dims.push_back({problem_.source.dims[i].extent, canonical(lists[i])});
        return made;
    }

    const Layout& here() const { return steps_.empty() ? problem_.source : steps_.back().layout; }

    void step_to(StepKind kind) {
        Layout next = layout(now_);
        if (!equivalent(here(), next)) steps_.push_back({kind, std::move(next)});
    }

    // Slices first (free, and they commute with sums), then each unreduced prime becomes a suffix where it fits.
    void reduce() {
        const Index devices = device_count(problem_.source);
        const auto kept = without(unreduced_, problem_.target.unreduced, devices);
        const AtomList reduced = primes_.of(kept ? *kept : unreduced_);
        const PrimeAxes goal = primes_.of(problem_.target);
        AtomList unused = primes_.unused_by(problem_.source);
        primes_.continue_prefixes(now_, goal, unused, [](Index) { return true; });
        step_to(StepKind::slice);
        for (const Atom& atom : reduced) {
            unreduced_ = *without(unreduced_, {atom}, devices);
            const auto place = place_for(atom, goal);
            if (place) now_[*place].push_back(atom);
            step_to(place ? StepKind::reduce_scatter : StepKind::all_reduce);
            // The target's next axis may be free now.
            primes_.continue_prefixes(now_, goal, unused, [](Index) { return true; });
            step_to(StepKind::slice);
        }
    }

    std::optional<std::size_t> place_for(const Atom& atom, const PrimeAxes& goal) const {
        std::optional<std::size_t> place;
        for (std::size_t i = now_.size(); i-- > 0;) {
            if (!primes_.splits(now_[i], i, atom.size)) continue;
            const bool next =
                is_prefix(now_[i], goal[i]) && now_[i].size() < goal[i].size() && goal[i][now_[i].size()] == atom;
            if (next) return i;
            if (!place || count_of(goal[i], atom.size) > count_of(now_[i], atom.size)) place = i;
        }
        return place;
    }

    bool same_shape(const PrimeAxes& goal) const {
        for (std::size_t i = 0; i < goal.size(); ++i)
            if (combinations(now_[i]) != combinations(goal[i])) return false;
        return true;
    }

    // Equal tiles to equal tiles.
    void connect(const PrimeAxes& goal) {
        const Layout after = layout(goal);
        const bool direct = type_step(here(), {StepKind::all_to_all, after}).has_value();
        if (!direct && vocabulary_ == Vocabulary::collectives) return connect_in_steps(goal);
        now_ = goal;
        step_to(direct ? StepKind::all_to_all : !same_shape(goal) ? StepKind::exchange : StepKind::permute);
    }

    // Takes the way with fewer permutes, then with fewer steps.
    void connect_in_steps(const PrimeAxes& goal) {
        const auto chain = by_one_permute(problem_.source.mesh, now_, goal);
        std::vector<Step> before = steps_;
        repair(goal);
        now_ = goal;
        step_to(StepKind::permute);
        if (!chain) return;
        std::swap(before, steps_);
        for (const PrimeAxes& lists : *chain) {
            now_ = lists;
            step_to(&lists == &chain->front() ? StepKind::permute : StepKind::all_to_all);
        }
        const auto cost = [](const std::vector<Step>& steps) {
            return std::pair(std::ranges::count(steps, StepKind::permute, &Step::kind), steps.size());
        };
        if (cost(before) <= cost(steps_)) std::swap(before, steps_);
    }

    struct Transfer {
        Index prime;
        std::size_t from;
        std::size_t to;
    };

    // Moves primes from dimensions with too many to dimensions with too few, until the shapes agree: in each round all
    // that one permute and one all-to-all can move, so a dimension either gives or takes.
    void repair(const PrimeAxes& goal) {
        for (std::vector<Transfer> round = next_round(goal); !round.empty(); round = next_round(goal)) {
            arrange_suffixes(round);
            step_to(StepKind::permute);
            // From the minor end up, so that each is last when its turn comes.
            for (auto transfer = round.rbegin(); transfer != round.rend(); ++transfer) {
                now_[transfer->to].push_back(now_[transfer->from].back());
                now_[transfer->from].pop_back();
            }
            step_to(StepKind::all_to_all);
        }
    }

    std::vector<Transfer> next_round(const PrimeAxes& goal) const {
        std::vector<Transfer> round;
        PrimeAxes after = now_;                 // counts only
        std::vector<int> role(goal.size(), 0);  // -1 gives, 1 takes
        for (std::size_t to = 0; to < goal.size(); ++to)
            for (const Atom& atom : goal[to])
                for (std::size_t from = 0; from < goal.size(); ++from) {
                    const Index prime = atom.size;
                    if (count_of(after[to], prime) >= count_of(goal[to], prime)) break;
                    if (count_of(after[from], prime) <= count_of(goal[from], prime) || role[from] > 0 || role[to] < 0)
                        continue;
                    role[from] = -1;
                    role[to] = 1;
                    const auto taken = std::ranges::find(after[from], prime, &Atom::size);
                    after[to].push_back(*taken);
                    after[from].erase(taken);
                    round.push_back({prime, from, to});
                }
        return round;
    }

    // Makes what each dimension gives in this round its suffix, in the order of the round; atoms that are there stay.
    void arrange_suffixes(const std::vector<Transfer>& round) {
        for (std::size_t dim = 0; dim < now_.size(); ++dim) {
            AtomList suffix;
            AtomList rest = now_[dim];
            for (auto transfer = round.rbegin(); transfer != round.rend(); ++transfer) {
                if (transfer->from != dim) continue;
                const auto last = std::ranges::find_if(rest.rbegin(), rest.rend(),
                                                       [&](Atom atom) { return atom.size == transfer->prime; });
                suffix.insert(suffix.begin(), *last);
                rest.erase(last.base() - 1);
            }
            rest.insert(rest.end(), suffix.begin(), suffix.end());
            now_[dim] = std::move(rest);
        }
    }

    const Problem& problem_;
    const Vocabulary vocabulary_;
    const Index inside_;
    const Primes primes_;
    PrimeAxes now_;
    AtomList unreduced_;
    std::vector<Step> steps_;
};

}  // namespace

Plan three_stage(const Problem& problem, Vocabulary vocabulary, Index inside) {
    return ThreeStage(problem, vocabulary, inside).make();
}

}  // namespace reshard
