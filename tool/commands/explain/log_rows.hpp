// XLA's complaints in a log, each beside the plan for the same move.
#pragma once

#include <optional>

#include "tool/commands/explain/xla_log.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

/// A complaint beside the plan. XLA gathers the whole array, so a device receives all but its own tile.
struct LogRow {
    Rematerialization found;
    Layout source;
    Layout target;
    Index xla_bytes = 0;
    Index xla_peak = 0;
    Index bytes = 0;
    Index peak = 0;
    std::string steps;
    std::optional<Error> error;  ///< if no plan was found

    /// The bytes a device that XLA receives and the plan does not.
    [[nodiscard]] Index saved() const { return error ? 0 : xla_bytes - bytes; }
    /// XLA's bytes divided by the plan's bytes; infinite if the plan receives nothing.
    [[nodiscard]] double waste() const;
};

/// A row for each reshard in the log, the one that saves the most bytes first.
[[nodiscard]] std::vector<LogRow> log_rows(std::string_view log);

/// The rows as `explain --log` prints them.
[[nodiscard]] std::string text_of(const std::vector<LogRow>& rows);

/// The rows as `explain --log --json` prints them: {"schema": 1, "rows": [...]}
[[nodiscard]] Json json_of(const std::vector<LogRow>& rows);

/// The place in the user's program, or a sentence if the log does not say it.
[[nodiscard]] std::string where(const LogRow& row);

/// A waste in words: 8x.
[[nodiscard]] std::string ratio(double waste);

}  // namespace reshard::cli
