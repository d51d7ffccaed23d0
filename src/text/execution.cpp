// How a plan runs, as text.
#include "reshard/execution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

using notation::Scanner;

namespace {

Result<Index> scan_number_of(Scanner& scanner, std::string_view word) {
    if (!scanner.take_word(word)) return scanner.error(Code::syntax, fmt::format("expected {}", word), scanner.place());
    return scanner.integer("a number of indices");
}

Result<Split> scan_split(Scanner& scanner) {
    Split split;
    RESHARD_TRY(const auto& dim, scan_number_of(scanner, "dim"));
    split.dim = static_cast<std::size_t>(dim);
    RESHARD_ASSIGN(split.block, scan_number_of(scanner, "block"));
    if (!scanner.take_word("ends")) return scanner.error(Code::syntax, "expected ends", scanner.place());
    RESHARD_ASSIGN(split.ends, notation::scan_numbers(scanner, "the end of a piece", 1));
    if (scanner.take_word("order")) {
        RESHARD_TRY(const auto& order, notation::scan_numbers(scanner, "the number of a piece", 0));
        split.order.assign(order.begin(), order.end());
    }
    split.overlapped = scanner.take_word("overlapped");
    return split;
}

}  // namespace

Result<Execution> parse_execution(std::string_view text) {
    Scanner scanner(text);
    Execution execution;
    if (scanner.take_word("one_exchange")) {
        execution = AsOneExchange{};
    } else if (scanner.take_word("split")) {
        RESHARD_ASSIGN(execution, scan_split(scanner));
    } else if (!scanner.take_word("steps")) {
        return scanner.error(Code::syntax, "expected steps, one_exchange or split", scanner.place());
    }
    RESHARD_CHECK(scanner.expect_end());
    return execution;
}

std::string format(const Execution& execution) {
    const Split* split = std::get_if<Split>(&execution);
    if (split == nullptr) return std::string(name(execution));
    std::string text =
        fmt::format("split dim {} block {} ends {}", split->dim, split->block, fmt::join(split->ends, ","));
    if (!split->order.empty()) text += fmt::format(" order {}", fmt::join(split->order, ","));
    return text + (split->overlapped ? " overlapped" : "");
}

}  // namespace reshard
