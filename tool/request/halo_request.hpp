// A question whose ends have halos: the fill that it asks for.
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

/// Parses the question. If the source is the target, with its halos or without any, the fill is in place. Otherwise the
/// run reads no halo of the source.
/// Errors: as the parsers, the message led by the name of the part; usage (an option that halos do not have).
[[nodiscard]] Result<HaloRequest> understand_halos(const Question& question);

/// The source as the question has it; without halos if the fill is in place.
[[nodiscard]] HaloLayout source_of(const HaloMove& move);

/// The ranks that hold an end of the move: one more than the largest device.
[[nodiscard]] Index ranks_of(const HaloMove& move);

}  // namespace reshard::cli
