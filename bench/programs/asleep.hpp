// Tasks that sleep, as where an accelerator computes, and values that moves must bring.
#pragma once

#include <functional>
#include <set>
#include <span>

#include "reshard/program/program.hpp"

namespace reshard::program {

/// Names of the arrays that some task uses in another layout than they were made in.
[[nodiscard]] std::set<std::string> moved_arrays(const Program& program);

/// Writes the tile of a one-dimensional array, byte by byte. Ranks that know the name write the same array.
void write_values(const std::string& array, const Layout& layout, Index rank, std::span<std::byte> bytes);
/// Counts the bytes of a tile that differ from them.
[[nodiscard]] Index count_wrong(const std::string& array, const Layout& layout, Index rank,
                                std::span<const std::byte> bytes);

/// Sleeps until so many picoseconds after `begin` (MPI_Wtime), in slices of half a millisecond with a look after each.
void sleep_until(double begin, Index picoseconds, const std::function<void()>& look);

}  // namespace reshard::program
