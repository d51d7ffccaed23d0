// Random plans in random pieces, and one of them on one rank: the piece of each byte, and its expected value over time.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "conformance/workbench.hpp"

namespace reshard::conformance {

/// A plan and its pieces.
struct InPieces {
    Item item;
    Split split;
};

/// A line with the execution, and the plan below it. Equal seeds give equal text.
[[nodiscard]] std::string drawn_in_pieces(std::uint64_t seed, Index ranks);
/// The same for plans and pieces that the synthesizer chooses so that their steps overlap, on a machine of two levels.
/// pre: 4 ranks or more.
[[nodiscard]] std::string chosen_in_pieces(std::uint64_t seed, Index ranks);
/// Parses such text and draws styles from the seed. Fails the test and returns nullopt if the text does not parse.
[[nodiscard]] std::optional<InPieces> in_pieces_of(const std::string& text, std::uint64_t seed);

/// Buffers of one rank. Its source is made, and its target completed, piece by piece.
class PieceBench {
public:
    PieceBench(const InPieces& drawn, Index rank, std::uint64_t salt, Index workspace_bytes);

    [[nodiscard]] Workbench& bench() { return bench_; }
    /// Fills the source of the piece with its values. Before, it holds noise.
    void make(std::size_t piece);
    /// Empty if the first `arrived` pieces in travelling order are right, and no rank has written the pieces from
    /// number `set_out` on.
    [[nodiscard]] std::string wrong(std::size_t arrived, std::size_t set_out) const;

private:
    Workbench bench_;
    std::vector<std::size_t> place_of_;       // each piece's place in travelling order
    std::vector<std::size_t> source_pieces_;  // the piece of each byte; past the last piece for bytes outside
    std::vector<std::size_t> target_places_;  // the same for the target, by place in travelling order
    Image made_;
    Image untouched_;
};

}  // namespace reshard::conformance
