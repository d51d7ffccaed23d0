// Random questions over everything a layout can say: any devices in any order, two meshes, cuts of every kind, summands
// of every reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reshard/synthesize.hpp"

namespace reshard::test {

/// Four lines: mesh, source, target's mesh, target. Devices are below `ranks`. The same text for the same seed.
[[nodiscard]] std::string random_question(std::uint64_t seed, Index ranks);

/// The question, parsed; throws when it does not parse.
[[nodiscard]] Problem problem_of(const std::string& question);

}  // namespace reshard::test
