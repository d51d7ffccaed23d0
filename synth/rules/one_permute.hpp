// Equal tiles to equal tiles by one permute: it numbers them so that all-to-alls alone lead on to the goal.
#pragma once

#include <optional>
#include <vector>

#include "synth/rules/prime_axes.hpp"

namespace reshard {

/// The lists behind the permute, then behind each all-to-all; the last are those of `goal`, whose axes may be cut into
/// their primes in another order. Each dimension begins with what leads it in the goal, as far as its shards go; what it
/// has beyond that lies behind, in the order in which it leaves. Nullopt where some dimensions wait for each other, or
/// the primes differ. Shardy's pass does the same in factors of the mesh (sdy-reshard-to-collectives).
[[nodiscard]] std::optional<std::vector<PrimeAxes>> by_one_permute(const Mesh& mesh, const PrimeAxes& now,
                                                                   const PrimeAxes& goal);

}  // namespace reshard
