// Every call that can fail returns a value, or one Error that a person can act on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

/// Moves distributed arrays between shardings: layouts, plans, the judge, the search, and what runs them.
namespace reshard {

/// The kind of an error, coarse enough for a switch. `name(Code)` is its spelling in JSON.
enum class Code {
    syntax,       ///< text that does not parse
    mesh,         ///< an invalid mesh: empty name, size < 1, name used twice
    layout,       ///< a layout that breaks an invariant: axis unknown or used twice
    overflow,     ///< a product or sum that does not fit 64 bits
    mismatch,     ///< two things that must agree but differ: shapes, dtypes, device counts, ranks
    step,         ///< a step whose typing rule fails
    plan,         ///< a plan that does not arrive, or that the judge refuses
    infeasible,   ///< a limit below what any plan needs
    unsupported,  ///< well formed, but this build or dtype cannot do it
    io,           ///< a file that cannot be read or written, or that contradicts itself
    usage,        ///< a command line or call that makes no sense
    backend,      ///< MPI, NCCL or a peer failed
};

[[nodiscard]] std::string_view name(Code code);  ///< syntax, mesh, ...

/// One error: a code and one sentence. An error in text also has the text and the byte offset of the first wrong place.
struct Error {
    Code code = Code::usage;  ///< the kind of error
    std::string message;      ///< one sentence
    std::string text = {};    ///< the offending text; empty if the error is not in text
    std::size_t offset = 0;   ///< byte offset into `text`

    friend bool operator==(const Error&, const Error&) = default;
};

/// The sentence of an error. An error in text has two more lines: the text, and a caret under the wrong place. Control
/// characters are written out.
[[nodiscard]] std::string describe(const Error& error);

/// A T, or the Error that says why the call failed.
template <class T>
using Result = tl::expected<T, Error>;

/// Makes the failed Result that a function returns.
[[nodiscard]] inline tl::unexpected<Error> fail(Code code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace reshard
