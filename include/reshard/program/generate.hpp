// Programs by name: pipelines, sharded weights, refits, coupled codes.
#pragma once

#include <string_view>

#include "reshard/program/program.hpp"

namespace reshard {

/// A parameter of a program by name.
struct GeneratorParameter {
    std::string_view name;   ///< stages, forward, ...
    std::string_view value;  ///< by default: a count, a time or a size in bytes
    std::string_view about;  ///< in a few words
};

/// A kind of program.
struct Generator {
    std::string_view name;                           ///< gpipe, 1f1b, ...
    std::string_view about;                          ///< in one line
    std::span<const GeneratorParameter> parameters;  ///< that it takes
};
/// gpipe, 1f1b, eager, interleaved, zero_bubble, zero3, tensor_data, refit, coupled.
[[nodiscard]] std::span<const Generator> generators();

/// Parses generator := name {parameter "=" value}; a value is a count, a time (10ms) or a size (16MiB). The tasks come
/// in the published order. Example: 1f1b stages=4 microbatches=16 forward=10ms. Errors: syntax (with the names that
/// exist), usage (a value out of range), overflow.
[[nodiscard]] Result<Program> generate(std::string_view text);

}  // namespace reshard
