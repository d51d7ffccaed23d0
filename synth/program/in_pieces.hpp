// Moves in pieces: the user of a move starts before its end, and uses each piece when it has arrived.
#pragma once

#include "synth/program/expand.hpp"

namespace reshard::program {

/// A move as it may come in pieces.
struct InPieces {
    Judged<Plan> plan;      ///< runs in an overlapped Split
    Index picoseconds = 0;  ///< of all pieces
    Index early = 0;        ///< its user may start so long before its end
};

/// For each move the pieces that choose_pieces chooses for the work of its user; nullopt if it comes whole. It may come
/// in pieces if one task uses it, asks for pieces, and could then start sooner after the start of the move. Errors: as
/// judge.
[[nodiscard]] Result<std::vector<std::optional<InPieces>>> offered_pieces(const Program& program, const Expanded& whole,
                                                                          const Machine& machine);

/// The program with the chosen moves in pieces. pre: they are offered, one for a task at most.
[[nodiscard]] Expanded with_pieces(const Expanded& whole, const std::vector<std::optional<InPieces>>& offered,
                                   const std::vector<std::size_t>& chosen);

/// A program that ends no later than any choice of the offered pieces lets the program end: for lower bounds.
[[nodiscard]] Activities relaxed(const Expanded& whole, const std::vector<std::optional<InPieces>>& offered);

/// The offered moves on chains of activities that end last, each of them whole and waited for by its user: the first of
/// each task. pre: `order` is an order of `now`.
[[nodiscard]] std::vector<std::size_t> waited_for(const Expanded& now, const Order& order,
                                                  const std::vector<std::optional<InPieces>>& offered);

}  // namespace reshard::program
