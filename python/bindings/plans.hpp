// A plan as Python has it, and the keyword arguments of all functions that plan.
#pragma once

#include <nanobind/stl/string.h>

#include "python/bindings/convert.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::python {

/// A question, its answer and its options. A reshape is planned in a view that both ends have, so the ends of the plan
/// may have another shape.
struct Planned {
    Problem asked;
    Synthesis made;
    Options options;
};

/// The options of a call by their names. `mesh` reads the texts of first steps; nullptr if they have none in common.
/// Errors raised: InputError, TypeError.
[[nodiscard]] Options options_of(const nb::kwargs& given, const Mesh* mesh);

/// The options in the signature of a function that plans, behind its own arguments.
[[nodiscard]] std::string options_signature();
/// The same in its docstring.
[[nodiscard]] std::string options_words();

}  // namespace reshard::python
