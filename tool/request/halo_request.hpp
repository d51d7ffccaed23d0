// A question whose target has halos: the fill that it asks for.
#pragma once

#include "reshard/halo/plan.hpp"
#include "tool/request/request.hpp"

namespace reshard::cli {

struct HaloRequest {
    HaloMove move;
    Machine machine = laptop();
};

/// True if an end is written with a halo, as in f64[256@x~1].
[[nodiscard]] bool asks_for_halos(const Question& question);

/// Parses the question. If the source is the target without its halos, the fill is in place.
/// Errors: as the parsers, the message led by the name of the part; usage (an option that halos do not have);
/// unsupported (the source has a halo).
[[nodiscard]] Result<HaloRequest> understand_halos(const Question& question);

/// The source as the question has it.
[[nodiscard]] const Layout& source_of(const HaloRequest& asked);

}  // namespace reshard::cli
