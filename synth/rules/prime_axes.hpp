// Lists of prime atoms, one a dimension, and the slices that bring two layouts' lists closer to each other.
#pragma once

#include <functional>

#include "reshard/problem.hpp"
#include "synth/search/refinement.hpp"

namespace reshard {

using PrimeAxes = std::vector<AtomList>;  ///< prime atoms per dimension, major to minor

[[nodiscard]] Index count_of(const AtomList& atoms, Index prime);
[[nodiscard]] Index count_of(const PrimeAxes& lists, Index prime);
[[nodiscard]] bool is_prefix(const AtomList& prefix, const AtomList& list);

/// The primes into which the layouts on the way of one problem are cut: both ends into the same ones where they have a
/// common refinement, else each into its own.
class Primes {
public:
    explicit Primes(const Problem& problem)
        : problem_(problem), shared_(common_refinement(problem.source, problem.target)) {}

    [[nodiscard]] AtomList of(const AtomList& atoms) const;
    [[nodiscard]] PrimeAxes of(const Layout& layout) const;
    [[nodiscard]] AtomList unused_by(const Layout& layout) const;

    /// True when the atoms of dimension `dim` can be followed by one of size `prime`.
    [[nodiscard]] bool splits(const AtomList& atoms, std::size_t dim, Index prime) const;

    /// Appends atoms to `lists` that continue it towards `goal`; as many as `wanted(prime)` allows.
    void continue_prefixes(PrimeAxes& lists, const PrimeAxes& goal, AtomList& unused,
                           const std::function<bool(Index)>& wanted) const;

    /// Slices `lists` until it uses each prime at least as often as `goal`, in dimensions where `goal` uses it more:
    /// there it divides the tile.
    void append_missing(PrimeAxes& lists, const PrimeAxes& goal, AtomList& unused) const;

    /// Slices both by one more prime at a time: where that evens out their shapes, else in one dimension of both.
    void append_in_pairs(PrimeAxes& lists, PrimeAxes& goal, AtomList& unused, AtomList& spare) const;

private:
    [[nodiscard]] std::optional<std::size_t> place_where(const PrimeAxes& lists, const PrimeAxes& other,
                                                         Index prime) const;

    const Problem& problem_;
    const std::optional<AtomList> shared_;
};

}  // namespace reshard
