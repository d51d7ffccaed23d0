// Equal tiles to equal tiles by one permute: it numbers them so that all-to-alls alone lead on to the goal.
#pragma once

#include <optional>
#include <vector>

#include "synth/rules/prime_axes.hpp"

namespace reshard {

/// The lists behind the permute, then behind each all-to-all. The last lists equal `goal`, up to the order of primes
/// within an axis. Each dimension begins with the leading axes of the goal, as far as its shards go. Its other axes
/// follow in leaving order. nullopt if some dimensions wait for each other, or if the primes differ. Shardy's pass does
/// the same in factors of the mesh (sdy-reshard-to-collectives).
[[nodiscard]] std::optional<std::vector<PrimeAxes>> by_one_permute(const Mesh& mesh, const PrimeAxes& now,
                                                                   const PrimeAxes& goal);

}  // namespace reshard
