// The notation of halos: a layout whose dimensions may end with ~1, ~(2,0) or ~1%.
#include "reshard/halo/halo.hpp"

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/text/scanner.hpp"

namespace reshard {

namespace {

using notation::Scanner;

// halo := "~" (cells | "(" before "," after ")") ["%"]; the "~" is read.
Result<Halo> scan_halo(Scanner& scanner) {
    Halo halo;
    if (scanner.take('(')) {
        RESHARD_ASSIGN(halo.before, scanner.integer("the cells before a block"));
        RESHARD_CHECK(scanner.expect(','));
        RESHARD_ASSIGN(halo.after, scanner.integer("the cells after a block"));
        RESHARD_CHECK(scanner.expect(')'));
    } else {
        RESHARD_ASSIGN(halo.before, scanner.integer("the cells of a halo"));
        halo.after = halo.before;
    }
    halo.periodic = scanner.take('%');
    if (!scanner.sees(',') && !scanner.sees(']'))
        return scanner.error(Code::syntax, "expected ',' or ']' after a halo", scanner.place());
    return halo;
}

std::string format_halo(const Halo& halo) {
    if (halo == Halo{}) return "";
    const std::string width =
        halo.before == halo.after ? fmt::to_string(halo.before) : fmt::format("({},{})", halo.before, halo.after);
    return fmt::format("~{}{}", width, halo.periodic ? "%" : "");
}

// The ends of the dimensions in the text of a layout: the commas and the last bracket, outside of inner brackets.
std::vector<std::size_t> ends_of_dims(std::string_view text) {
    std::vector<std::size_t> ends;
    int depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char byte = text[at];
        if (byte == '[' || byte == '(') ++depth;
        if (byte == ']' || byte == ')') --depth;
        if ((byte == ',' && depth == 1) || (byte == ']' && depth == 0)) ends.push_back(at);
        if (byte == ']' && depth == 0) break;
    }
    return ends;
}

}  // namespace

Result<HaloLayout> parse_halo_layout(const Mesh& mesh, std::string_view text) {
    // Blanks take the place of the halos, so that an error of the rest names its place in this text.
    std::string rest(text);
    std::vector<Halo> halos;
    std::size_t begin = text.find('[');
    for (const std::size_t end : ends_of_dims(text)) {
        Halo& halo = halos.emplace_back();
        const std::size_t mark = text.find('~', begin);
        begin = end;
        if (mark >= end) continue;
        Scanner scanner(text);
        scanner.move_to(mark + 1);
        RESHARD_ASSIGN(halo, scan_halo(scanner));
        if (scanner.place() != end) return scanner.error(Code::syntax, "expected the end of the dimension", mark);
        std::fill(rest.begin() + static_cast<std::ptrdiff_t>(mark), rest.begin() + static_cast<std::ptrdiff_t>(end),
                  ' ');
    }
    auto owned = parse_layout(mesh, rest);
    if (!owned) {
        Error why = std::move(owned.error());
        if (!why.text.empty()) why.text = text;
        return tl::unexpected(std::move(why));
    }
    HaloLayout layout{std::move(*owned), std::move(halos)};
    layout.halos.resize(layout.owned.dims.size());
    RESHARD_CHECK(validate(layout));
    return layout;
}

std::string format(const HaloLayout& layout) {
    const std::string text = format(layout.owned);
    std::string with_halos;
    std::size_t begin = 0;
    const std::vector<std::size_t> ends = ends_of_dims(text);
    for (std::size_t k = 0; k < ends.size() && k < layout.halos.size(); ++k) {
        with_halos += text.substr(begin, ends[k] - begin) + format_halo(layout.halos[k]);
        begin = ends[k];
    }
    return with_halos + text.substr(begin);
}

}  // namespace reshard
