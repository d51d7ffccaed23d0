// How every fallible call answers: a value, or one Error that a person can act on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

/// Moves distributed arrays between shardings: layouts, plans, the judge, the search, and what runs them.
namespace reshard {

/// What went wrong, coarse enough to switch on. `name(Code)` is its spelling in JSON.
enum class Code {
    syntax,       ///< text that does not parse
    mesh,         ///< a mesh that is not one: empty name, size < 1, name used twice
    layout,       ///< a layout that breaks an invariant: axis unknown or used twice
    overflow,     ///< a product or sum that leaves 64 bits
    mismatch,     ///< two things that must agree do not: shapes, dtypes, device counts, ranks
    step,         ///< a step whose typing rule fails
    plan,         ///< a plan that does not arrive, or whose judge says no
    infeasible,   ///< a limit below what any plan needs
    unsupported,  ///< well formed, but not something this build or dtype can do
    io,           ///< a file that cannot be read or written, or lies about its contents
    usage,        ///< a command line that makes no sense
    backend,      ///< MPI, NCCL or a peer failed
};

[[nodiscard]] std::string_view name(Code code);  ///< syntax, mesh, ...

/// One error: a code, one sentence and, for text, the text and the byte offset of the first wrong place.
struct Error {
    Code code = Code::usage;  ///< coarse enough to switch on
    std::string message;      ///< one sentence
    std::string text = {};    ///< the offending text, empty when there is none
    std::size_t offset = 0;   ///< byte offset into `text`

    friend bool operator==(const Error&, const Error&) = default;
};

/// The sentence; for text two more lines: the text, and a caret under the place. Control characters are written out.
[[nodiscard]] std::string describe(const Error& error);

/// A T, or the Error that says why there is none.
template <class T>
using Result = tl::expected<T, Error>;

/// What a function that returns a Result returns when it fails.
[[nodiscard]] inline tl::unexpected<Error> fail(Code code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace reshard
