// A plan as Python has it, and the keyword arguments that all who plan take.
#pragma once

#include <nanobind/stl/string.h>

#include <array>

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

/// How an option of each kind in src/tables/options.def is written in Python: the type of the argument in C++, its
/// annotation with its default, and the default. `usual` is the value in Options{}.
namespace written {
struct Object {
    using Type = nb::handle;
    static auto or_not_given(nb::arg argument, const nb::object& otherwise) { return argument.none() = otherwise; }
};
struct choice {
    using Type = std::string;
    static std::string hint(auto usual) { return "str = '" + std::string(name(usual)) + "'"; }
    static auto argument(nb::arg argument, auto usual) { return argument = std::string(name(usual)); }
};
struct flag {
    using Type = bool;
    static std::string hint(bool) { return "bool = False"; }
    static auto argument(nb::arg argument, bool usual) { return argument = usual; }
};
struct limit : Object {
    static std::string hint(const auto&) { return "int | str | None = None"; }
    static auto argument(nb::arg argument, const auto&) { return or_not_given(argument, nb::none()); }
};
struct list_bytes : Object {
    static std::string hint(const auto&) { return "int | str = 0"; }
    static auto argument(nb::arg argument, Index usual) { return argument = usual; }
};
struct machine : limit {
    static std::string hint(const auto&) { return "Machine | str | None = None"; }
};
struct capabilities : limit {
    static std::string hint(const auto&) { return "Capabilities | None = None"; }
};
struct names : Object {
    static std::string hint(const auto&) { return "collections.abc.Sequence[str] = ()"; }
    static auto argument(nb::arg argument, const auto&) { return argument = nb::make_tuple(); }
};
struct steps : names {
    static std::string hint(const auto&) { return "collections.abc.Sequence[tuple[str, Layout | str]] = ()"; }
};
}  // namespace written

/// The options as the program wrote them. options_of reads texts and numbers.
struct Asked {
#define RESHARD_OPTION(kind, name, ...) written::kind::Type name;
#include "src/tables/options.def"
};

/// Errors raised: InputError, TypeError.
[[nodiscard]] Options options_of(const Asked& asked, const Mesh* mesh);

/// The options in the signature of a function that plans, behind its own arguments.
[[nodiscard]] std::string options_signature();
/// The same in its docstring.
[[nodiscard]] std::string options_words();

/// Defines a function `name(arguments..., *, options...)`; `body` takes the arguments and Asked.
template <class... Arguments, class Body, class... Extra>
void def_asking(nb::module_& module, const char* function, Body body, const Extra&... extra) {
    const Options usual;
    module.def(
        function,
        [body](Arguments... arguments
#define RESHARD_OPTION(kind, name, ...) , written::kind::Type name
#include "src/tables/options.def"
        ) {
            return body(arguments..., Asked{
#define RESHARD_OPTION(kind, name, ...) std::move(name),
#include "src/tables/options.def"
                                      });
        },
        extra..., nb::kw_only()
#define RESHARD_OPTION(kind, name, member, ...) , written::kind::argument(nb::arg(#name), usual.member)
#include "src/tables/options.def"
    );
}

}  // namespace reshard::python
