// Questions whose ends differ in element type: where the plan casts.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// Answers a question between two element types. It is planned in one type. Then every place for the cast is judged and
/// priced, and the cheapest plan is returned. The narrower type moves, but sums are reduced in the wider type.
/// Errors: as synthesize; mismatch (Options::cast is off), unsupported (the types are not cast, or sums would be
/// rounded before they are reduced). pre: the ends have one shape.
[[nodiscard]] Result<Synthesis> with_cast(const Problem& problem, const Options& options);

}  // namespace reshard
