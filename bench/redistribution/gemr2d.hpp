// ScaLAPACK's redistribution as a contestant.
#pragma once

#include "redistribution/contestants.hpp"

namespace reshard::bench {

/// Null where p?gemr2d has no words for it: only matrices of which every rank has one block, in row-major storage, are.
[[nodiscard]] std::unique_ptr<Contestant> gemr2d(const Case& one, Pair& own);

}  // namespace reshard::bench
