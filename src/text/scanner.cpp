#include "src/text/scanner.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::notation {

void Scanner::skip_space() {
    const auto skip = [&](std::string_view bytes) {
        offset_ = std::min(text_.find_first_not_of(bytes, offset_), text_.size());
    };
    if (spaces_ == Spaces::blanks) return skip(" \t");
    for (;;) {
        skip(" \t\r\n");
        if (spaces_ == Spaces::lines || !text_.substr(offset_).starts_with("/*")) return;
        const std::size_t end = text_.find("*/", offset_ + 2);
        if (end == std::string_view::npos) return;  // no comment, and an error wherever it stands
        offset_ = end + 2;
    }
}

bool Scanner::take(char byte) {
    if (!sees(byte)) return false;
    ++offset_;
    return true;
}

Result<void> Scanner::expect(char byte) {
    if (take(byte)) return {};
    return error(Code::syntax, fmt::format("expected '{}'", byte));
}

std::string_view Scanner::word() {
    skip_space();
    const std::size_t begin = offset_;
    const auto inner = [&](unsigned char c) {
        return std::isalpha(c) != 0 || c == '_' || (offset_ > begin && std::isdigit(c) != 0);
    };
    while (offset_ < text_.size() && inner(static_cast<unsigned char>(text_[offset_]))) ++offset_;
    return text_.substr(begin, offset_ - begin);
}

bool Scanner::take_word(std::string_view word) {
    const std::size_t before = offset_;
    if (this->word() == word) return true;
    offset_ = before;
    return false;
}

bool Scanner::skip_balanced(char open, char close) {
    if (!take(open)) return false;
    for (std::size_t depth = 1; offset_ < text_.size();) {
        const char byte = text_[offset_++];
        if (byte == open) ++depth;
        if (byte == close && --depth == 0) return true;
    }
    return false;
}

std::optional<std::string_view> Scanner::quoted() {
    const std::size_t begin = place();
    const char quote = at_end() ? '\0' : text_[begin];
    const std::size_t end = text_.find(quote, begin + 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) return std::nullopt;
    offset_ = end + 1;
    return text_.substr(begin + 1, end - begin - 1);
}

Result<Index> Scanner::integer(std::string_view what) {
    skip_space();
    const std::size_t begin = offset_;
    Index value = 0;
    while (offset_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[offset_])) != 0) {
        const auto shifted = checked_multiply(value, 10);
        const auto next = shifted ? checked_add(*shifted, text_[offset_] - '0') : std::nullopt;
        if (!next) return error(Code::overflow, fmt::format("{} does not fit 64 bits", what), begin);
        value = *next;
        ++offset_;
    }
    if (offset_ == begin) return error(Code::syntax, fmt::format("expected {}, a number", what), begin);
    return value;
}

Result<void> Scanner::expect_end() {
    if (at_end()) return {};
    return error(Code::syntax, "expected the end");
}

tl::unexpected<Error> Scanner::error(Code code, std::string message, std::size_t offset) const {
    return tl::unexpected<Error>(Error{code, std::move(message), std::string(text_), offset});
}

Result<std::vector<Index>> scan_numbers(Scanner& scanner, std::string_view what, Index least) {
    std::vector<Index> numbers;
    do {
        const std::size_t begin = scanner.place();
        RESHARD_TRY(const auto& number, scanner.integer(what));
        if (number < least) return scanner.error(Code::layout, fmt::format("{} of {}", what, number), begin);
        numbers.push_back(number);
    } while (scanner.take(','));
    return numbers;
}

Result<Index> scan_quantity(Scanner& scanner, std::string_view what, std::span<const Unit> units) {
    const std::size_t begin = scanner.place();
    RESHARD_TRY(const auto& whole, scanner.integer(what));
    // The fraction as an exact decimal: digits / scale.
    Index digits = 0;
    Index scale = 1;
    if (scanner.take('.')) {
        const std::size_t first = scanner.offset();
        RESHARD_ASSIGN(digits, scanner.integer("the digits after the point"));
        if (scanner.offset() - first > 9) return scanner.error(Code::syntax, "too many digits after the point", first);
        for (std::size_t i = first; i < scanner.offset(); ++i) scale *= 10;
    }
    const std::size_t place = scanner.place();
    const auto unit = std::ranges::find(units, scanner.word(), &Unit::name);
    if (unit == units.end()) {
        std::string names;
        for (const Unit& known : units)
            if (!known.name.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
        return scanner.error(Code::syntax, fmt::format("expected a unit: {}", names), place);
    }
    const auto product = checked_multiply(whole, unit->factor);
    const auto sum = product ? checked_add(*product, scale_up(digits, unit->factor, scale)) : std::nullopt;
    if (!sum) return scanner.error(Code::overflow, fmt::format("{} does not fit 64 bits", what), begin);
    return *sum;
}

namespace {

// Behind its question mark.
Result<Atom> scan_digit(Scanner& scanner, const Mesh& mesh, std::size_t begin) {
    RESHARD_TRY(const auto& size, scanner.integer("the size of a digit"));
    RESHARD_CHECK(scanner.expect(':'));
    RESHARD_TRY(const auto& stride, scanner.integer("the stride of a digit"));
    const auto above = checked_multiply(size, stride);
    if (!above || *above == 0 || device_count(mesh) % *above != 0)
        return scanner.error(Code::layout, fmt::format("no digit of {} devices", device_count(mesh)), begin);
    return Atom{size, stride};
}

}  // namespace

Result<Atom> scan_axis(Scanner& scanner, const Mesh& mesh) {
    const std::size_t begin = scanner.place();
    if (scanner.take('?')) return scan_digit(scanner, mesh, begin);
    SubAxis part{std::string(scanner.word())};
    if (part.axis.empty()) return scanner.error(Code::syntax, "expected an axis name", begin);
    if (scanner.take(':')) {
        RESHARD_CHECK(scanner.expect('('));
        RESHARD_TRY(const auto& before, scanner.integer("the factor before"));
        RESHARD_CHECK(scanner.expect(')'));
        RESHARD_TRY(const auto& size, scanner.integer("the factor's size"));
        if (size == 0) return scanner.error(Code::layout, "a factor has size 0", begin);
        part.before = before;
        part.size = size;
    }
    return scanner.at(atom_of(mesh, part), begin);
}

Result<void> scan_axes(Scanner& scanner, const Mesh& mesh, AtomList& atoms) {
    const auto one = [&]() -> Result<void> {
        RESHARD_TRY(auto& atom, scan_axis(scanner, mesh));
        atoms.push_back(atom);
        return {};
    };
    if (!scanner.take('(')) return one();
    if (scanner.take(')')) return {};
    do {
        RESHARD_CHECK(one());
    } while (scanner.take(','));
    return scanner.expect(')');
}

Result<AtomList> scan_dim_axes(Scanner& scanner, const Mesh& mesh, AtomList& used) {
    const std::size_t begin = scanner.place();
    AtomList atoms;
    RESHARD_CHECK(scan_axes(scanner, mesh, atoms));
    used.insert(used.end(), atoms.begin(), atoms.end());
    if (!disjoint(used))
        return scanner.error(Code::layout, "an axis, or parts of it that overlap, is used twice", begin);
    return atoms;
}

}  // namespace reshard::notation
