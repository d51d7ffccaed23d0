// Errors of the library as exceptions of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "python/bindings/gil.hpp"
#include "reshard/result.hpp"
#include "src/base/home.hpp"

namespace reshard::python {

namespace nb = nanobind;

/// Raises the exception that reshard.errors has for it.
[[noreturn]] void raise(const Error& error);

/// The value, or the error raised.
template <class T>
T unwrap(Result<T> result) {
    if (!result) raise(result.error());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Raises InputError in a process that was forked off the one of `home`. `what` is a plural noun.
void expect_home(const Home& home, const char* what);

[[nodiscard]] inline nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

/// The bytes of a str. Errors raised: UnicodeEncodeError, a ValueError (lone surrogates, which UTF-8 does not have).
[[nodiscard]] std::string string_of(nb::handle text);

}  // namespace reshard::python
