// Answers for the page that plans in the browser. They use the code of the tool, so both give the same text.
#pragma once

#include <string>
#include <string_view>

namespace reshard::cli {

/// Answers a question. `question` is a line of `plan --batch`. If it names no notation, the notation is recognized by
/// the beginning of the source. Returns a JSON object:
///   table     what `plan` prints
///   gather    received_bytes, peak_bytes and picoseconds of gathering the array and slicing it, and `text`, which
///             compares it with the plan; absent if it needs more memory than the limit, or cannot make the target
///   picture   what `draw --svg` prints; absent if the devices are too many
///   lines     the line to write, by framework: jax, torch; absent for a framework whose notation cannot say the target
///   plan      what `plan --json` prints, without the time that planning took
/// or {"id", "error": {"code", "message"}}, as `plan --batch` does.
[[nodiscard]] std::string answer_question(std::string_view question);

/// Answers a log of training. Returns {"text": what `explain --log` prints, "rows": what `explain --log --json`
/// prints}.
[[nodiscard]] std::string answer_log(std::string_view log);

}  // namespace reshard::cli
