// A place in our arrays as one in the standard library's.
#pragma once

#include <cstddef>

#include "reshard/planner/integer.hpp"

namespace reshard {

inline std::size_t at(Index index) { return static_cast<std::size_t>(index); }

}  // namespace reshard
