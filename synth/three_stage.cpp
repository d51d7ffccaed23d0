#include "synth/three_stage.hpp"

#include <algorithm>

#include "synth/digits.hpp"

namespace reshard {

namespace {

using Lists = std::vector<AtomList>;  // prime atoms per dimension, major to minor

Index count_of(const AtomList& atoms, Index prime) {
    return std::ranges::count_if(atoms, [&](Atom atom) { return atom.size == prime; });
}

Index count_of(const Lists& lists, Index prime) {
    Index total = 0;
    for (const AtomList& atoms : lists) total += count_of(atoms, prime);
    return total;
}

bool is_prefix(const AtomList& prefix, const AtomList& list) {
    return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

class ThreeStage {
public:
    ThreeStage(const Problem& problem, Vocabulary vocabulary, Index inside)
        : problem_(problem),
          vocabulary_(vocabulary),
          inside_(inside),
          shared_(common_refinement(problem.source, problem.target)),
          now_(prime_lists(problem.source)),
          unreduced_(problem.source.unreduced) {}

    Plan make() {
        const bool reduces = !same_summands(problem_.source, problem_.target);
        if (reduces) reduce();
        // What lies between the reductions and a zero_fill at the end.
        Layout last = problem_.target;
        last.unreduced = unreduced_;
        Lists goal = prime_lists(last);
        const Lists start = now_;
        AtomList unused = unused_of(layout(now_));
        append_missing(now_, goal, unused);
        AtomList spare = unused_of(last);
        append_missing(goal, start, spare);
        const auto slow = [&](Atom atom) { return atom.stride >= inside_; };
        std::erase_if(unused, slow);
        std::erase_if(spare, slow);
        append_in_pairs(goal, unused, spare);
        step_to(StepKind::slice);
        connect(goal);
        now_ = prime_lists(last);
        step_to(StepKind::all_gather);
        unreduced_ = problem_.target.unreduced;
        step_to(StepKind::zero_fill);
        return {problem_.source, problem_.target, std::move(steps_)};
    }

private:
    Layout layout(const Lists& lists) const {
        Layout made{problem_.source.dtype, problem_.source.mesh, {}, unreduced_, reduction_of(problem_)};
        for (std::size_t i = 0; i < lists.size(); ++i)
            made.dims.push_back({problem_.source.dims[i].extent, canonical(lists[i])});
        return made;
    }

    // Both ends are cut into the same primes where they have a common refinement, else each into its own.
    AtomList primes_of(const AtomList& atoms) const {
        AtomList pieces;
        for (const Atom& atom : atoms) {
            // What neither end uses is in no digit of the refinement.
            const AtomList parts = shared_ ? cut({atom}, *shared_) : AtomList{};
            if (combinations(parts) == atom.size)
                pieces.insert(pieces.end(), parts.begin(), parts.end());
            else
                pieces.push_back(atom);
        }
        return split_into_primes(problem_.source.mesh, pieces);
    }

    Lists prime_lists(const Layout& layout) const {
        Lists lists;
        for (const Dim& dim : layout.dims) lists.push_back(primes_of(dim.atoms));
        return lists;
    }

    AtomList unused_of(const Layout& layout) const {
        AtomList used = used_atoms(layout);
        AtomList unused = shared_ ? *shared_ : AtomList{};
        std::erase_if(unused, [&](Atom digit) {
            used.push_back(digit);
            const bool taken = !disjoint(used);
            used.pop_back();
            return taken;
        });
        used.insert(used.end(), unused.begin(), unused.end());
        const AtomList spare = complement(used, device_count(layout));
        unused.insert(unused.end(), spare.begin(), spare.end());
        return primes_of(unused);
    }

    const Layout& here() const { return steps_.empty() ? problem_.source : steps_.back().layout; }

    void step_to(StepKind kind) {
        Layout next = layout(now_);
        if (!same_tiles(here(), next)) steps_.push_back({kind, std::move(next)});
    }

    bool splits(const AtomList& atoms, std::size_t dim, Index prime) const {
        const Index extent = problem_.source.dims[dim].extent;
        const Index tile = ceil_divide(extent, combinations(atoms));
        return tile % prime == 0 || tile == extent;
    }

    // Appends atoms to `lists` that continue it towards `goal`; as many as `wanted(prime)` allows.
    template <class Wanted>
    void continue_prefixes(Lists& lists, const Lists& goal, AtomList& unused, const Wanted& wanted) const {
        for (std::size_t i = 0; i < lists.size(); ++i)
            while (is_prefix(lists[i], goal[i]) && lists[i].size() < goal[i].size()) {
                const Atom next = goal[i][lists[i].size()];
                const auto free = std::ranges::find(unused, next);
                if (free == unused.end() || !wanted(next.size) || !splits(lists[i], i, next.size)) break;
                lists[i].push_back(next);
                unused.erase(free);
            }
    }

    // Slices `lists` until it uses each prime at least as often as `goal`, in dimensions where `goal` uses it more:
    // there it divides the tile.
    void append_missing(Lists& lists, const Lists& goal, AtomList& unused) const {
        const auto missing = [&](Index prime) { return count_of(goal, prime) > count_of(lists, prime); };
        continue_prefixes(lists, goal, unused, missing);
        for (std::size_t i = 0; i < lists.size(); ++i)
            for (const Atom& wanted : goal[i]) {
                const Index prime = wanted.size;
                if (!missing(prime) || count_of(lists[i], prime) >= count_of(goal[i], prime) ||
                    !splits(lists[i], i, prime))
                    continue;
                auto free = std::ranges::find(unused, wanted);
                if (free == unused.end())
                    free = std::ranges::find_if(unused, [&](Atom atom) { return atom.size == prime; });
                if (free == unused.end()) continue;
                lists[i].push_back(*free);
                unused.erase(free);
            }
    }

    // Slices both ends by one more prime at a time: where that evens out their shapes, else in one dimension of both.
    void append_in_pairs(Lists& goal, AtomList& unused, AtomList& spare) {
        const auto take = [](AtomList& from, Index prime) {
            const auto atom = std::ranges::find_if(from, [&](Atom one) { return one.size == prime; });
            const Atom taken = *atom;
            from.erase(atom);
            return taken;
        };
        for (std::size_t k = 0; k < unused.size();) {
            const Index prime = unused[k].size;
            const bool paired = std::ranges::any_of(spare, [&](Atom atom) { return atom.size == prime; });
            const auto here = place_where(now_, goal, prime);
            const auto there = place_where(goal, now_, prime);
            std::optional<std::pair<std::size_t, std::size_t>> places;
            if (here && there) places.emplace(*here, *there);
            for (std::size_t i = 0; i < goal.size() && !places; ++i)
                if (splits(now_[i], i, prime) && splits(goal[i], i, prime)) places.emplace(i, i);
            if (!paired || !places) {
                ++k;
                continue;
            }
            now_[places->first].push_back(take(unused, prime));
            goal[places->second].push_back(take(spare, prime));
            k = 0;
        }
    }

    // A dimension in which `lists` uses the prime less often than `other` and can be split by it.
    std::optional<std::size_t> place_where(const Lists& lists, const Lists& other, Index prime) const {
        for (std::size_t i = 0; i < lists.size(); ++i)
            if (count_of(lists[i], prime) < count_of(other[i], prime) && splits(lists[i], i, prime)) return i;
        return std::nullopt;
    }

    // Slices first (free, and they commute with sums), then each unreduced prime becomes a suffix where it fits.
    void reduce() {
        const Index devices = device_count(problem_.source);
        const auto kept = without(unreduced_, problem_.target.unreduced, devices);
        const AtomList reduced = primes_of(kept ? *kept : unreduced_);
        const Lists goal = prime_lists(problem_.target);
        AtomList unused = unused_of(problem_.source);
        continue_prefixes(now_, goal, unused, [](Index) { return true; });
        step_to(StepKind::slice);
        for (const Atom& atom : reduced) {
            unreduced_ = *without(unreduced_, {atom}, devices);
            const auto place = place_for(atom, goal);
            if (place) now_[*place].push_back(atom);
            step_to(place ? StepKind::reduce_scatter : StepKind::all_reduce);
            // What the target wants next may be free now.
            continue_prefixes(now_, goal, unused, [](Index) { return true; });
            step_to(StepKind::slice);
        }
    }

    std::optional<std::size_t> place_for(const Atom& atom, const Lists& goal) const {
        std::optional<std::size_t> place;
        for (std::size_t i = now_.size(); i-- > 0;) {
            if (!splits(now_[i], i, atom.size)) continue;
            const bool next =
                is_prefix(now_[i], goal[i]) && now_[i].size() < goal[i].size() && goal[i][now_[i].size()] == atom;
            if (next) return i;
            if (!place || count_of(goal[i], atom.size) > count_of(now_[i], atom.size)) place = i;
        }
        return place;
    }

    bool same_shape(const Lists& goal) const {
        for (std::size_t i = 0; i < goal.size(); ++i)
            if (combinations(now_[i]) != combinations(goal[i])) return false;
        return true;
    }

    // Equal tiles to equal tiles.
    void connect(const Lists& goal) {
        const Layout after = layout(goal);
        const bool direct = type_step(here(), {StepKind::all_to_all, after}).has_value();
        if (!direct && vocabulary_ == Vocabulary::collectives) repair(goal);
        now_ = goal;
        step_to(direct                                                ? StepKind::all_to_all
                : vocabulary_ == Vocabulary::all && !same_shape(goal) ? StepKind::exchange
                                                                      : StepKind::permute);
    }

    struct Transfer {
        Index prime;
        std::size_t from;
        std::size_t to;
    };

    // Moves primes from dimensions with too many to dimensions with too few, until the shapes agree: in each round all
    // that one permute and one all-to-all can move, so a dimension either gives or takes.
    void repair(const Lists& goal) {
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

    std::vector<Transfer> next_round(const Lists& goal) const {
        std::vector<Transfer> round;
        Lists after = now_;                     // counts only
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
    const std::optional<AtomList> shared_;
    Lists now_;
    AtomList unreduced_;
    std::vector<Step> steps_;
};

}  // namespace

Plan three_stage(const Problem& problem, Vocabulary vocabulary, Index inside) {
    return ThreeStage(problem, vocabulary, inside).make();
}

}  // namespace reshard
