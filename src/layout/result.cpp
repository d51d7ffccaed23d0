#include "reshard/result.hpp"

#include <algorithm>

namespace reshard {

std::string_view name(Code code) {
    switch (code) {
        case Code::syntax:
            return "syntax";
        case Code::mesh:
            return "mesh";
        case Code::layout:
            return "layout";
        case Code::overflow:
            return "overflow";
        case Code::mismatch:
            return "mismatch";
        case Code::step:
            return "step";
        case Code::plan:
            return "plan";
        case Code::infeasible:
            return "infeasible";
        case Code::unsupported:
            return "unsupported";
        case Code::io:
            return "io";
        case Code::usage:
            return "usage";
        case Code::backend:
            return "backend";
    }
    return "unknown";
}

namespace {

// A line of text as a terminal shows it: control bytes would move the caret or worse, so each becomes one '?'.
std::string printable(std::string_view text) {
    std::string line(text);
    for (char& byte : line)
        if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = '?';
    return line;
}

}  // namespace

std::string describe(const Error& error) {
    if (error.text.empty()) return error.message;
    // Long texts are shown around the place only.
    constexpr std::size_t context = 60;
    const std::size_t offset = std::min(error.offset, error.text.size());
    const std::size_t begin = offset > context ? offset - context : 0;
    const std::size_t end = std::min(error.text.size(), offset + context);
    std::string lead = begin > 0 ? "..." : "";
    const std::string tail = end < error.text.size() ? "..." : "";
    const std::string shown = printable(std::string_view(error.text).substr(begin, end - begin));
    return error.message + "\n  " + lead + shown + tail + "\n  " + std::string(lead.size() + offset - begin, ' ') + "^";
}

}  // namespace reshard
