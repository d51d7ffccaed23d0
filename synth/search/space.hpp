// A problem in digits: what the search sees. Names, meshes and devices are gone; what is left is a handful of numbers.
#pragma once

#include <optional>

#include "reshard/problem.hpp"
#include "synth/search/inline_vector.hpp"
#include "synth/search/state.hpp"

namespace reshard {

/// A digit that lists may use. An axis of mixed primes can be cut in several ways (6 is 2 x 3 or 3 x 2), so the pieces
/// of a frame may exclude each other.
struct Piece {
    Index size = 1;
    Index stride = 1;
    std::uint32_t cover = 0;    ///< the intervals between borders, from the minor end, that it takes up
    std::uint32_t clashes = 0;  ///< the pieces that no layout has beside it, itself among them
};

/// The borders that tell pieces of one region of the devices apart, ascending.
using Borders = InlineVector<Index, 32>;

/// A problem whose common prefixes are cancelled: axes that lead a dimension in both layouts never move.
struct SearchSpace {
    const Layout* like = nullptr;            ///< dtype, mesh and shape of the layouts that states stand for
    Reduction reduction = Reduction::sum;    ///< of the unreduced axes on the way
    std::vector<AtomList> prefixes;          ///< what was cancelled, by dimension
    InlineVector<Index, lists_max> extents;  ///< what is left of each dimension behind its common prefix
    InlineVector<Piece, pieces_max> pieces;
    InlineVector<Index, 32> lows;   ///< for each bit of a cover, the border below it
    InlineVector<Index, 32> highs;  ///< and above it
    State source;
    State target;
    std::size_t lists = 0;    ///< dimensions + 1
    Index devices = 1;        ///< combinations of the digits that are left
    std::uint32_t cover = 0;  ///< all bits
    bool mixed = false;       ///< some axis is there in more cuts than one
    bool even = false;        ///< every state divides every dimension
    bool limited = false;     ///< choices of digits that do not divide are no states
    bool exact = false;       ///< not even, but few devices and no prefix cancelled: all devices can be looked at
    bool whole = false;       ///< every digit of the devices is in it, cut to primes: what it has not, nothing has
    bool by_turns = false;    ///< a list cuts digit by digit, as chunked_per_axis; else once, into all its shards

    [[nodiscard]] Layout layout(const State& state) const;

    /// Every shard lies in one of the `fewer` shards that the first digits make: their boundaries nest.
    [[nodiscard]] bool nests(std::size_t dim, Index fewer, Index more) const;
    /// The indices of the dimension in a shard.
    [[nodiscard]] Interval share(std::size_t dim, List list, Index shard) const;
    /// The dimension is cut where ceil-div does not cut it.
    [[nodiscard]] bool in_pieces(std::size_t dim, List list) const;
    /// Both cut the dimension at the same places. pre: into as many shards.
    [[nodiscard]] bool same_cut(std::size_t dim, List a, List b) const;

    [[nodiscard]] std::size_t dims() const { return lists - 1; }
    /// Some end has summands.
    [[nodiscard]] bool sums() const { return !source.lists[dims()].empty() || !target.lists[dims()].empty(); }
    [[nodiscard]] Index size(std::uint8_t piece) const { return pieces[piece].size; }
    [[nodiscard]] Index shards(List list) const;
    /// The union of the pieces' members.
    [[nodiscard]] std::uint32_t cover_of(List list) const;
    [[nodiscard]] std::uint32_t clashes_of(List list) const;
    /// The digits of a cover as numbers: how many values they take together; 0 when they are no digits.
    [[nodiscard]] Index combinations_of(std::uint32_t cover) const;

    /// Appends a piece at the minor end. Neighbours that continue each other keep one of their cuts, with ascending
    /// sizes, so that equal lists are equal words.
    void append(List& list, std::uint8_t piece) const;
    /// Every list that leads this one and is shorter.
    using Shorter = InlineVector<List, 32>;
    void append_shorter(List list, Shorter& shorter) const;
    /// One list leads the other, whatever their cuts.
    [[nodiscard]] bool comparable(List a, List b) const;
    /// The cover of the longest list that leads both.
    [[nodiscard]] std::uint32_t common_cover(List a, List b) const;
    /// The borders of both states' lists form one chain of divisors.
    [[nodiscard]] bool commensurable(const State& a, const State& b) const;

    /// The digits of a list with neighbours that continue each other as one.
    [[nodiscard]] InlineVector<Atom, digits_max> merged(List list) const;

private:
    [[nodiscard]] int find(Index size, Index stride) const;
};

/// Both hold the same states. pre: of one problem.
[[nodiscard]] bool same_digits(const SearchSpace& a, const SearchSpace& b);

/// Looking at more devices than that for each move takes longer than a plan may.
inline constexpr Index exact_devices_max = 1024;

/// Beyond so many prime digits an exact search takes milliseconds.
inline constexpr std::size_t searched_max = 5;

/// The problem in digits. Tries primes with idle ones, then primes without idle ones, then atoms that travel together,
/// and takes the first with at most `searched_max` digits. nullopt if all have more, if the problem has too many
/// dimensions, or if an atom has no place in the axes of the mesh.
/// If not every choice of digits divides, the problem in primes with nothing cancelled comes first (`exact`), since
/// ragged tiles may change the leading digits of a dimension.
/// With `levels` of a network common prefixes stay, since moving through them can pay, if one digit fewer fits.
[[nodiscard]] std::optional<SearchSpace> make_search_space(const Problem& problem, bool levels = false);

/// The problem in digits, with the states alone that divide every dimension. nullopt as above, and if an end does not
/// divide. `cancels`: common prefixes stay where they are.
[[nodiscard]] std::optional<SearchSpace> make_limited_space(const Problem& problem, bool cancels = true);

/// The problem in the coarsest digits that keep idle digits: the parts of each axis between borders of both ends. If
/// these are too many, neighbouring axes are merged. The best plan may need finer digits. If primes are too many to
/// search, these digits often give a better plan than digits without idle ones.
[[nodiscard]] std::optional<SearchSpace> make_coarse_space(const Problem& problem);

/// The problem in the same digits, which cut a dimension one after another, as torch.chunk on each axis: tiles that
/// differ in size nest there whatever the extents. Nullopt where sizes divide, so that nothing is gained, where devices
/// are too many to look at, and where an end is cut in another way.
[[nodiscard]] std::optional<SearchSpace> make_space_by_turns(const Problem& problem);

}  // namespace reshard
