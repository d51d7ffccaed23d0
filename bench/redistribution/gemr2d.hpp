// ScaLAPACK's redistribution as a contestant.
#pragma once

#include "redistribution/contestants.hpp"

namespace reshard::bench {

/// Null if p?gemr2d cannot express the case: it takes only matrices with one block on every rank, in row-major storage.
[[nodiscard]] std::unique_ptr<Contestant> gemr2d(const Case& one, Pair& own);

}  // namespace reshard::bench
