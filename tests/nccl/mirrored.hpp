// The conformance suite keeps its tiles in the program's memory. This backend gives each tile a mirror on the device of
// another backend. It copies contents there when a run starts, and back when the run has ended.
#pragma once

#include <memory>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

/// A mirrored backend over `inner`, which must outlive it.
[[nodiscard]] std::unique_ptr<Backend> mirrored(Backend& inner);

/// The inner backend. pre: `mirrored` made `backend`.
[[nodiscard]] Backend& behind_mirrors(Backend& backend);

}  // namespace reshard::conformance
