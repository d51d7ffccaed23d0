// local_capabilities, mpi_capabilities, nccl_capabilities: what a backend can do, for itself and for the tool.
#pragma once

#include "reshard/planner/capabilities.hpp"

namespace reshard::tables {

#define RESHARD_BACKEND(name, ...)                                                                             \
    constexpr Capabilities name##_capabilities([[maybe_unused]] bool one_node, [[maybe_unused]] Index ranks) { \
        return {__VA_ARGS__};                                                                                  \
    }
#include "src/tables/capabilities.def"

}  // namespace reshard::tables
