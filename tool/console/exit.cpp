#include "tool/console/exit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "src/base/printable.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

constexpr std::size_t message_max = 400;
constexpr std::size_t text_before = 60;  // bytes of the offending text that are shown before its caret
constexpr std::size_t text_after = 40;
constexpr std::chrono::seconds timeout{10};  // of a silent rank, for the one that speaks

std::string untold;  // what a silent rank would have said

// Bytes outside printable ASCII would let an input draw on the terminal, and would push the caret aside.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte > 0x7e ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
    return out;
}

}  // namespace

int exit_code(Code code) {
    switch (code) {
#define RESHARD_CODE(name, fortran, ending, ...) \
    case Code::name:                             \
        return exit_##ending;
#include "src/tables/codes.def"
    }
    return exit_usage;
}

Error readable(const Error& error) {
    Error shown{error.code, shortened(error.message, message_max)};
    if (error.text.empty()) return shown;
    const std::size_t place = std::min(error.offset, error.text.size());
    const std::size_t begin = place > text_before ? place - text_before : 0;
    const std::size_t end = std::min(error.text.size(), place + text_after);
    const std::string lead =
        fmt::format("{}{}", begin > 0 ? "..." : "", escaped(std::string_view(error.text).substr(begin, place - begin)));
    const std::string rest = escaped(std::string_view(error.text).substr(place, end - place));
    shown.text = lead + rest + (end < error.text.size() ? "..." : "");
    shown.offset = lead.size();
    return shown;
}

int complain(const Error& error) {
    const std::string text = fmt::format("reshard: {}\n", describe(readable(error)));
    if (speaks())
        fmt::print(stderr, "{}", text);
    else
        untold = text;
    return exit_code(error.code);
}

void remark(std::string_view note) {
    if (note.empty() || !speaks()) return;
    fmt::print(stderr, "reshard: note: {}\n", readable({Code::usage, std::string(note)}).message);
}

int leave(int code) {
    if (code == exit_ok || speaks()) return code;
    std::this_thread::sleep_for(timeout);
    fmt::print(stderr, "{}", untold);
    return code;
}

}  // namespace reshard::cli
