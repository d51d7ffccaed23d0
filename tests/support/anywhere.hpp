// Random questions over everything a layout can say: any devices in any order, two meshes, cuts of every kind, summands
// of every reduction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reshard/synthesize.hpp"
#include "support/generators.hpp"

namespace reshard::test {

/// Four lines: mesh, source, target's mesh, target. Devices are below `ranks`. The same text for the same seed.
[[nodiscard]] std::string random_question(std::uint64_t seed, Index ranks);

/// One of them for RapidCheck, which makes it no simpler: what fails is what it prints.
[[nodiscard]] rc::Gen<std::string> questions(Index ranks);

/// The question, parsed; throws when it does not parse.
[[nodiscard]] Problem problem_of(const std::string& question);

}  // namespace reshard::test
