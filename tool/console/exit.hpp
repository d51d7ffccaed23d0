// How the tool ends: the exit codes of the command line, and errors as a person reads them.
#pragma once

#include "reshard/result.hpp"

namespace reshard::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_wrong = 1;  ///< infeasible, or the answer is wrong
inline constexpr int exit_usage = 2;  ///< bad input: arguments, text, files
inline constexpr int exit_backend = 3;

[[nodiscard]] int exit_code(Code code);

/// The error with every byte printable and every line short enough to read, the caret still under its place.
[[nodiscard]] Error readable(const Error& error);

/// Writes the error to stderr, on the rank that speaks only, and returns its exit code.
int complain(const Error& error);

/// Writes a note to stderr, on the rank that speaks only; nothing where it is empty.
void remark(std::string_view note);

/// The last call of a process. Launchers end a job at the first failure that they see, so a rank that has failed and
/// does not speak waits for the one that does; one that failed alone then says why itself.
[[nodiscard]] int leave(int code);

/// The same result; an error has `where: ` before its sentence, so that the reader knows which of several texts is
/// meant.
template <class T>
[[nodiscard]] Result<T> in(const std::string& where, Result<T> result) {
    if (!result) result.error().message.insert(0, where + ": ");
    return result;
}

}  // namespace reshard::cli
