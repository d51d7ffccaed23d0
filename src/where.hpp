// The memory that a run reads and writes: the caller's, and what a backend stages.
#pragma once

#include "reshard/backend.hpp"

namespace reshard {

enum class Where { source, target, workspace, staging };
inline constexpr std::size_t where_count = 4;

[[nodiscard]] constexpr Where where_of(Place place) {
    switch (place) {
        case Place::source:
            return Where::source;
        case Place::target:
            return Where::target;
        case Place::workspace:
            break;
    }
    return Where::workspace;
}

}  // namespace reshard
