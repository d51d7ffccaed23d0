// The closed form of an exchange's traffic over each level.
#pragma once

#include "src/price/network_digits.hpp"

namespace reshard {

/// The traffic of an exchange over each level, in closed form over digits. A digit of an element's index belongs to the
/// device that holds it, to the device that wants it, to both, or to neither. Devices receive an element from the
/// nearest holder, so digits in which only replicas differ add no distance.
class LevelTraffic {
public:
    /// No digits yet: what match and replicate add.
    explicit LevelTraffic(const NetworkDigits& network) : network_(network) {}
    /// No digits again. It keeps its memory: a search asks for the traffic of thousands of exchanges.
    void clear();
    /// Matches one dimension's atoms, major to minor, before and after; or the atoms of the summands.
    void match(std::span<const Atom> before, std::span<const Atom> after);
    /// Adds the digits in which holders of one tile differ, and the digits in which the devices that want one tile
    /// differ.
    void replicate(std::span<const Atom> before, std::span<const Atom> after);
    /// Sets `elements` and `pair` of each level as Traffic has them, from the elements of a tile before and after.
    void raise(Index held, Index wanted, const Machine& machine, std::span<Index> elements, std::span<Index> pair);
    /// The same for a permute: holders and wanters of a tile are paired one to one, the nearest first.
    void raise_permute(Index tile, const Machine& machine, std::span<Index> elements, std::span<Index> pair);
    /// True if the schedules carry exactly what raise computed, provided that sizes divide.
    [[nodiscard]] bool exact() const { return exact_; }

private:
    struct Digit {
        Atom atom;
        std::size_t level = 0;
    };
    // A digit of an element's index: size 1 where it is none of the end's.
    struct Place {
        Digit holder;
        Digit wanter;
        bool aligned = true;
    };
    // Digits that agree, as a graph.
    struct Node {
        Atom atom;
        std::size_t parent;
        bool beyond;
    };
    class Agreement;
    // Devices of a block whose digits agree with a holder or a wanter: within the level, and inside it.
    struct Agreeing {
        Index outer = 1;
        Index inner = 1;
        bool avoidable = false;  // some block has none inside, and as many within the level as any
    };
    using Parts = std::pair<Index, Index>;  // of a tile: within the level, and inside it
    [[nodiscard]] Digit digit(Atom atom);
    void look_for_overlaps();
    void add_replicas(std::span<const Atom> atoms);
    template <class Outer, class Inner>
    [[nodiscard]] Agreeing agreeing(std::size_t level, bool shared, const Outer& outer, const Inner& inner);
    [[nodiscard]] Parts parts(Index tile, Digit Place::*own, Digit Place::*other, const auto& outer,
                              const auto& inner) const;
    [[nodiscard]] Index received(std::size_t level, bool shared, Index wanted);
    [[nodiscard]] Index sent(std::size_t level, bool shared, Index held);
    [[nodiscard]] std::span<const Digit> holders() const { return std::span(replicas_).first(holders_); }
    [[nodiscard]] std::span<const Digit> wanters() const { return std::span(replicas_).subspan(holders_); }

    const NetworkDigits& network_;
    std::vector<Place> places_;
    std::vector<Digit> replicas_;  // holders' replica digits first, then wanters'
    std::vector<Node> nodes_;      // of the agreement at hand
    std::vector<Atom> seen_;       // by the search for overlaps
    std::size_t holders_ = 0;
    bool exact_ = true;
};

}  // namespace reshard
