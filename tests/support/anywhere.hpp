// Random problems over everything that a layout can express: any devices in any order, two meshes, cuts of every kind,
// summands of every reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reshard/synthesize.hpp"
#include "support/generators.hpp"

namespace reshard::test {

/// A problem as four lines: mesh, source, target's mesh, target. Devices are below `ranks`. Equal seeds give equal
/// text.
[[nodiscard]] std::string random_question(std::uint64_t seed, Index ranks);

/// A random problem for RapidCheck. It does not shrink: a failure prints the problem that failed.
[[nodiscard]] rc::Gen<std::string> questions(Index ranks);

/// The problem, parsed. Throws if it does not parse.
[[nodiscard]] Problem problem_of(const std::string& question);

}  // namespace reshard::test
