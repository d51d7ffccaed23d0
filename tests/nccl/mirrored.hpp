// The conformance suite keeps its tiles in the program's memory. This backend gives each of them a mirror on the device
// of another backend, moves contents there when a run starts and back when it has ended.
#pragma once

#include <memory>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

/// `inner` must outlive it.
[[nodiscard]] std::unique_ptr<Backend> mirrored(Backend& inner);

/// The inner one. pre: `mirrored` made it.
[[nodiscard]] Backend& behind_mirrors(Backend& backend);

}  // namespace reshard::conformance
