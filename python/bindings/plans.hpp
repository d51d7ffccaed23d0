// A plan as Python has it, and the keyword arguments that all who plan take.
#pragma once

#include <nanobind/stl/string.h>

#include <array>

#include "python/bindings/convert.hpp"
#include "reshard/synthesize.hpp"

namespace reshard::python {

/// What was asked, what was made of it, and under which options. A reshape is planned in a view that both ends have, so
/// the plan's own ends may have another shape.
struct Planned {
    Problem asked;
    Synthesis made;
    Options options;
};

/// As the program wrote them. Texts and numbers are read by options_of.
struct Asked {
    std::string objective;
    std::string vocabulary;
    nb::handle peak_bytes_max;
    nb::handle footprint_bytes_max;
    bool donate;
    nb::handle staging_bytes;
    nb::handle machine;
    nb::handle capabilities;
    nb::handle first_steps;
    nb::handle without;
};

/// Errors raised: InputError, TypeError.
[[nodiscard]] Options options_of(const Asked& asked, const Mesh* mesh);

/// What stands behind the arguments of its own in the signature of a function that plans, and in its docstring.
inline constexpr const char* options_signature =
    "*, objective: str = 'time', vocabulary: str = 'all', peak_bytes_max: int | str | None = None, "
    "footprint_bytes_max: int | str | None = None, donate: bool = False, staging_bytes: int | str = 0, "
    "machine: Machine | str | None = None, capabilities: Capabilities | None = None, "
    "first_steps: collections.abc.Sequence[tuple[str, Layout | str]] = (), without: collections.abc.Sequence[str] = ()";
inline constexpr const char* options_words = R"doc(

objective: time, bytes (that the busiest device receives) or steps (that communicate): what is least.
vocabulary: all, or collectives (no exchange; steps run as steps).
peak_bytes_max, footprint_bytes_max: bytes a device, an int or '96MiB'; the largest tile on the way, and all buffers of
    the plan together. donate: the source's memory may be written. staging_bytes: of the footprint, kept for a backend.
machine: a Machine or its text; the laptop when None. capabilities: of the backend that is to run the plan.
first_steps: pairs of a kind and the layout after it, that come first. without: rules that are not asked, by name.)doc";

/// Defines a function `name(arguments..., *, options...)`; `body` takes the arguments and Asked.
template <class... Arguments, class Body, class... Extra>
void def_asking(nb::module_& module, const char* name, Body body, const Extra&... extra) {
    using namespace nb::literals;
    module.def(
        name,
        [body](Arguments... arguments, std::string objective, std::string vocabulary, nb::handle peak_bytes_max,
               nb::handle footprint_bytes_max, bool donate, nb::handle staging_bytes, nb::handle machine,
               nb::handle capabilities, nb::handle first_steps, nb::handle without) {
            return body(arguments...,
                        Asked{std::move(objective), std::move(vocabulary), peak_bytes_max, footprint_bytes_max, donate,
                              staging_bytes, machine, capabilities, first_steps, without});
        },
        extra..., nb::kw_only(), "objective"_a = "time", "vocabulary"_a = "all", "peak_bytes_max"_a.none() = nb::none(),
        "footprint_bytes_max"_a.none() = nb::none(), "donate"_a = false, "staging_bytes"_a = 0,
        "machine"_a.none() = nb::none(), "capabilities"_a.none() = nb::none(), "first_steps"_a = nb::make_tuple(),
        "without"_a = nb::make_tuple());
}

}  // namespace reshard::python
