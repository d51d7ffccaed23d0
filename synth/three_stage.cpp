#include "synth/three_stage.hpp"

#include <algorithm>

#include "synth/digits.hpp"

namespace reshard {

namespace {

using Lists = std::vector<AtomList>;  // prime atoms per dimension, major to minor

Lists prime_lists(const Layout& layout) {
    Lists lists;
    for (const Dim& dim : layout.dims) lists.push_back(split_into_primes(dim.atoms));
    return lists;
}

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
    ThreeStage(const Problem& problem, Vocabulary vocabulary)
        : problem_(problem),
          vocabulary_(vocabulary),
          now_(prime_lists(problem.source)),
          unreduced_(problem.source.unreduced) {}

    Plan make() {
        const bool reduces = problem_.source.unreduced != problem_.target.unreduced;
        if (reduces) reduce();
        // What lies between the reductions and a zero_fill at the end.
        Layout last = problem_.target;
        last.unreduced = unreduced_;
        Lists goal = prime_lists(last);
        const Lists start = now_;
        AtomList unused = unused_of(layout(now_));
        append_missing(now_, goal, unused);
        step_to(StepKind::slice);
        AtomList spare = unused_of(last);
        append_missing(goal, start, spare);
        connect(goal);
        now_ = prime_lists(last);
        step_to(StepKind::all_gather);
        unreduced_ = problem_.target.unreduced;
        step_to(StepKind::zero_fill);
        return {problem_.source, problem_.target, std::move(steps_)};
    }

private:
    Layout layout(const Lists& lists) const {
        Layout made{problem_.source.dtype, problem_.source.mesh, {}, unreduced_};
        for (std::size_t i = 0; i < lists.size(); ++i)
            made.dims.push_back({problem_.source.dims[i].extent, canonical(lists[i])});
        return made;
    }

    static AtomList unused_of(const Layout& layout) {
        return split_into_primes(complement(used_atoms(layout), device_count(layout)));
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

    // Slices first (free, and they commute with sums), then each unreduced prime becomes a suffix where it fits.
    void reduce() {
        const Index devices = device_count(problem_.source);
        const auto kept = without(unreduced_, problem_.target.unreduced, devices);
        const AtomList reduced = split_into_primes(kept ? *kept : unreduced_);
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

    // Moves one prime at a time from a dimension with too many to one with too few, until the shapes agree.
    void repair(const Lists& goal) {
        for (std::size_t to = 0; to < goal.size(); ++to)
            for (std::size_t k = 0; k < goal[to].size(); ++k) {
                const Index prime = goal[to][k].size;
                if (count_of(now_[to], prime) >= count_of(goal[to], prime)) continue;
                for (std::size_t from = 0; from < goal.size(); ++from) {
                    if (count_of(now_[from], prime) <= count_of(goal[from], prime)) continue;
                    bring_to_end(now_[from], prime);
                    step_to(StepKind::permute);
                    now_[to].push_back(now_[from].back());
                    now_[from].pop_back();
                    step_to(StepKind::all_to_all);
                    break;
                }
            }
    }

    // Rotates the last atom of this size to the minor end.
    static void bring_to_end(AtomList& atoms, Index prime) {
        const auto last =
            std::ranges::find_if(atoms.rbegin(), atoms.rend(), [&](Atom atom) { return atom.size == prime; });
        std::rotate(last.base() - 1, last.base(), atoms.end());
    }

    const Problem& problem_;
    const Vocabulary vocabulary_;
    Lists now_;
    AtomList unreduced_;
    std::vector<Step> steps_;
};

}  // namespace

Plan three_stage(const Problem& problem, Vocabulary vocabulary) { return ThreeStage(problem, vocabulary).make(); }

}  // namespace reshard
