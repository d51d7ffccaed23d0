// Random plans in random pieces, and one of them on one rank: which bytes are whose, and what they must hold when.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "conformance/workbench.hpp"

namespace reshard::conformance {

/// A plan, and how it is cut.
struct InPieces {
    Item item;
    Split split;
};

/// A line of the execution and the plan below it, the same for the same seed.
[[nodiscard]] std::string drawn_in_pieces(std::uint64_t seed, Index ranks);
/// The same of plans and pieces that the synthesizer chooses, so that their steps overlap, on some machine of two
/// levels. pre: 4 ranks or more.
[[nodiscard]] std::string chosen_in_pieces(std::uint64_t seed, Index ranks);
/// Of that text, with styles by the seed; fails the test and returns nothing where it does not parse.
[[nodiscard]] std::optional<InPieces> in_pieces_of(const std::string& text, std::uint64_t seed);

/// Buffers of one rank, whose source is made piece by piece and whose target is whole piece by piece.
class PieceBench {
public:
    PieceBench(const InPieces& drawn, Index rank, std::uint64_t salt, Index workspace_bytes);

    [[nodiscard]] Workbench& bench() { return bench_; }
    /// The source of the piece comes to hold what it should; before, it holds noise.
    void make(std::size_t piece);
    /// Empty when pieces up to the `arrived`-th on their way are right, and from the `set_out`-th on nobody has
    /// written.
    [[nodiscard]] std::string wrong(std::size_t arrived, std::size_t set_out) const;

private:
    Workbench bench_;
    std::vector<std::size_t> place_of_;       // of each piece, on its way
    std::vector<std::size_t> source_pieces_;  // of each byte; none has a number past all
    std::vector<std::size_t> target_places_;  // the same on its way
    Image made_;
    Image untouched_;
};

}  // namespace reshard::conformance
