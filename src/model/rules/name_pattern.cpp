#include "src/model/rules/name_pattern.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

// The largest number of a {name:end}. A larger one was probably meant as something else.
constexpr Index number_max = Index{1} << 20;

constexpr std::array<std::string_view, 10> star_names = {"*0", "*1", "*2", "*3", "*4", "*5", "*6", "*7", "*8", "*9"};

bool in_names(char byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    return letter || std::string_view("._-/:$@").find(byte) != std::string_view::npos;
}

// numbers := [begin ":"] end. Errors without a place.
Result<Interval> scan_numbers_of_name(Scanner& scanner) {
    Interval numbers;
    RESHARD_ASSIGN(numbers.end, scanner.integer("how many there are"));
    if (scanner.take(':')) {
        numbers.begin = numbers.end;
        RESHARD_ASSIGN(numbers.end, scanner.integer("where the numbers end"));
    }
    if (numbers.size() < 1) return fail(Code::syntax, "at least one number");
    if (numbers.end > number_max) return fail(Code::unsupported, fmt::format("a number of more than {}", number_max));
    return numbers;
}

}  // namespace

std::string_view value_in(const Bindings& bindings, std::string_view name) {
    const auto found = std::ranges::find(bindings, name, &Binding::name);
    return found == bindings.end() ? std::string_view() : found->value;
}

Index number_below(std::string_view text, Index count) {
    Index number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool plain = !text.empty() && text.front() != '-' && (text.size() == 1 || text.front() != '0');
    return error == std::errc() && end == text.data() + text.size() && plain && number < count ? number : -1;
}

Index number_in(std::string_view text, Interval numbers) {
    const Index number = number_below(text, numbers.end);
    return number < numbers.begin ? -1 : number;
}

Result<NamePattern> NamePattern::scan(Scanner& scanner) {
    NamePattern pattern;
    std::size_t at = scanner.place();
    const std::size_t begin = at;
    const std::string_view text = scanner.text();
    std::size_t stars = 0;
    while (at < text.size()) {
        if (text[at] == '*') {
            if (stars == star_names.size()) return scanner.error(Code::unsupported, "more than ten *", at);
            pattern.tokens_.push_back({Token::Kind::star, star_names[stars++]});
            ++at;
        } else if (text[at] == '{') {
            Scanner inner(text.substr(0, text.find('}', at) + 1));
            inner.move_to(at + 1);
            const std::size_t name_at = inner.place();
            const std::string_view name = inner.word();
            if (name.empty()) return scanner.error(Code::syntax, "expected a name", name_at);
            if (pattern.find(name) != nullptr) return scanner.error(Code::syntax, "a name stands twice", name_at);
            Interval numbers;
            if (inner.take(':')) {
                const std::size_t numbers_at = inner.place();
                RESHARD_ASSIGN(numbers, scanner.at(scan_numbers_of_name(inner), numbers_at));
            }
            if (!inner.take('}')) return scanner.error(Code::syntax, "expected '}'", inner.offset());
            pattern.tokens_.push_back({Token::Kind::word, name, numbers});
            at = inner.offset();
        } else {
            const std::size_t first = at;
            while (at < text.size() && in_names(text[at])) ++at;
            if (at == first) break;
            pattern.tokens_.push_back({Token::Kind::text, text.substr(first, at - first)});
        }
    }
    if (at == begin) return scanner.error(Code::syntax, "expected a name, or a pattern of names", begin);
    scanner.move_to(at);
    return pattern;
}

const NamePattern::Token* NamePattern::find(std::string_view name) const {
    const auto found = std::ranges::find_if(
        tokens_, [&](const Token& token) { return token.kind != Token::Kind::text && token.text == name; });
    return found == tokens_.end() ? nullptr : &*found;
}

void NamePattern::set_numbers(std::string_view name, Interval numbers) {
    for (Token& token : tokens_)
        if (token.kind == Token::Kind::word && token.text == name) token.numbers = numbers;
}

namespace {

// Tries tokens from left to right. If a token did not fit at a place once, it does not fit there later.
class Match {
public:
    Match(std::span<const NamePattern::Token> tokens, std::string_view name, Bindings& bindings)
        : tokens_(tokens), name_(name), bindings_(bindings), failed_(tokens.size() * (name.size() + 1), false) {}

    bool from(std::size_t token, std::size_t place) {
        if (token == tokens_.size()) return place == name_.size();
        const NamePattern::Token& next = tokens_[token];
        if (next.kind == NamePattern::Token::Kind::text)
            return name_.substr(place).starts_with(next.text) && from(token + 1, place + next.text.size());
        const std::size_t key = token * (name_.size() + 1) + place;
        if (failed_[key]) return false;
        const bool star = next.kind == NamePattern::Token::Kind::star;
        for (std::size_t end = star ? place : place + 1; end <= name_.size(); ++end) {
            if (!star && name_[end - 1] == '.') break;
            const std::string_view value = name_.substr(place, end - place);
            if (next.counts() && number_in(value, next.numbers) < 0) continue;
            bindings_.push_back({next.text, value});
            if (from(token + 1, end)) return true;
            bindings_.pop_back();
        }
        failed_[key] = true;
        return false;
    }

private:
    std::span<const NamePattern::Token> tokens_;
    std::string_view name_;
    Bindings& bindings_;
    std::vector<bool> failed_;
};

}  // namespace

bool NamePattern::match(std::string_view name, Bindings& bindings) const {
    bindings.clear();
    // Most names fail here.
    const Token& first = tokens_.front();
    const Token& last = tokens_.back();
    if (first.kind == Token::Kind::text && !name.starts_with(first.text)) return false;
    if (last.kind == Token::Kind::text && !name.ends_with(last.text)) return false;
    return Match(tokens_, name, bindings).from(0, 0);
}

void PatternIndex::add(const NamePattern& pattern, std::size_t number) {
    const NamePattern::Token& first = pattern.tokens().front();
    const bool text = first.kind == NamePattern::Token::Kind::text;
    if (text && pattern.tokens().size() == 1) {
        whole_[first.text].push_back(number);
        return;
    }
    const std::string_view begin = text ? first.text : std::string_view();
    begun_[begin].push_back(number);
    lengths_.insert(begin.size());
}

std::vector<std::size_t> PatternIndex::near(std::string_view name) const {
    std::vector<std::size_t> numbers;
    const auto take = [&](const Numbers& from, std::string_view text) {
        if (const auto found = from.find(text); found != from.end())
            numbers.insert(numbers.end(), found->second.begin(), found->second.end());
    };
    take(whole_, name);
    for (const std::size_t length : lengths_)
        if (length <= name.size()) take(begun_, name.substr(0, length));
    std::ranges::sort(numbers);
    return numbers;
}

std::string NamePattern::written(const Bindings& bindings) const {
    std::string name;
    for (const Token& token : tokens_)
        name += token.kind == Token::Kind::text ? token.text : value_in(bindings, token.text);
    return name;
}

}  // namespace reshard::notation
