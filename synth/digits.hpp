// A problem in digits: what the search sees. Names, meshes and devices are gone; what is left is a handful of numbers.
#pragma once

#include <algorithm>

#include "reshard/synthesize.hpp"

namespace reshard {

/// Prime factors, ascending. pre: n >= 1.
[[nodiscard]] std::vector<Index> prime_factors(Index n);

/// Which factor of an axis of mixed primes is the major one: 6 is 2 x 3 or 3 x 2, and a plan may need either cut.
enum class PrimeOrder { ascending, descending };

/// Each atom as a list of atoms of prime size, most major first; cut at the borders of the mesh's axes before anything
/// else, so that every piece has a name.
[[nodiscard]] AtomList split_into_primes(const Mesh& mesh, const AtomList& atoms, PrimeOrder order);

/// The atoms of a list cut into the digits that lie in them. pre: no digit crosses a border of the list.
[[nodiscard]] AtomList cut(const AtomList& atoms, const AtomList& digits);

/// The digits that the atoms of both layouts can be cut into, most major first; nullopt when the cuts do not form a
/// chain of divisors (the layouts are not commensurable). Digits that neither uses are left out: they replicate
/// throughout.
[[nodiscard]] std::optional<AtomList> common_refinement(const Layout& a, const Layout& b);

/// A sharding in digits: for each dimension, and last for the unreduced axes, the numbers of digits, major to minor.
struct State {
    static constexpr std::size_t lists_max = 8;
    static constexpr std::size_t digits_max = 7;    ///< what a state can hold
    static constexpr std::size_t searched_max = 5;  ///< beyond this an exact search takes milliseconds
    struct List {
        std::uint8_t size = 0;
        std::array<std::uint8_t, digits_max> at{};
        void push(std::uint8_t digit) { at[size++] = digit; }
        friend bool operator==(const List& a, const List& b) {
            return std::equal(a.at.begin(), a.at.begin() + a.size, b.at.begin(), b.at.begin() + b.size);
        }
    };
    std::array<List, lists_max> lists{};

    /// All lists in one number: four bits a digit, 15 between lists. Fits because digits + lists <= 15.
    [[nodiscard]] std::uint64_t code(std::size_t count) const;
};

/// A problem whose common prefixes are cancelled: axes that lead a dimension in both layouts never move.
struct Frame {
    std::vector<Index> extents;      ///< what is left of each dimension behind its common prefix
    std::vector<AtomList> prefixes;  ///< what was cancelled
    AtomList digits;                 ///< at most State::digits_max
    State source;
    State target;
    std::size_t lists = 0;         ///< dimensions + 1
    bool whole = false;            ///< every digit of the devices is in it, cut to primes: what it has not, nothing has
    const Layout* like = nullptr;  ///< dtype, mesh and shape of the layouts that states stand for

    [[nodiscard]] Layout layout(const State& state) const;
};

/// The problem in digits, once for each order of primes that makes a difference: in primes with those that neither end
/// uses, else in primes without them, else in atoms that travel together, whichever is the first with at most
/// `searched_max`; none when all have more, when there are too many dimensions, or no common refinement.
[[nodiscard]] std::vector<Frame> frames_of(const Problem& problem);

}  // namespace reshard
