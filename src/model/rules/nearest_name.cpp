#include "src/model/rules/nearest_name.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace reshard::notation {

namespace {

constexpr std::size_t bytes_max = 512;                   // of names and patterns that are compared
constexpr std::size_t steps_max = std::size_t{1} << 28;  // of all comparisons
using Kind = NamePattern::Token::Kind;

// A byte of a pattern, or a * or {name}.
struct Symbol {
    Kind kind = Kind::text;
    char byte = 0;
};

std::vector<Symbol> symbols_of(std::string_view text) {
    std::vector<Symbol> symbols;
    for (const char byte : text) symbols.push_back({Kind::text, byte});
    return symbols;
}

std::vector<Symbol> symbols_of(const NamePattern& pattern) {
    std::vector<Symbol> symbols;
    for (const NamePattern::Token& token : pattern.tokens()) {
        if (token.kind != Kind::text) {
            symbols.push_back({token.kind});
            continue;
        }
        const std::vector<Symbol> bytes = symbols_of(token.text);
        symbols.insert(symbols.end(), bytes.begin(), bytes.end());
    }
    return symbols;
}

// The fewest bytes to add, remove or change in `name` until the symbols match (Levenshtein). A * or {name} is free.
std::size_t distance(std::span<const Symbol> symbols, std::string_view name) {
    std::vector<std::size_t> before(name.size() + 1);  // from the symbols so far to each beginning of the name
    std::iota(before.begin(), before.end(), std::size_t{0});
    std::vector<std::size_t> after(before.size());
    for (const Symbol& symbol : symbols) {
        const bool text = symbol.kind == Kind::text;
        after[0] = before[0] + (text ? 1 : 0);
        for (std::size_t i = 0; i < name.size(); ++i) {
            if (text) {
                after[i + 1] =
                    std::min({before[i] + (symbol.byte == name[i] ? 0 : 1), before[i + 1] + 1, after[i] + 1});
            } else {
                const bool free = symbol.kind == Kind::star || name[i] != '.';
                after[i + 1] = std::min(before[i + 1], after[i] + (free ? 0 : 1));
            }
        }
        before.swap(after);
    }
    return before.back();
}

std::string nearest(std::span<const Symbol> symbols, std::span<const ListedTensor> tensors) {
    if (symbols.size() > bytes_max) return "";
    const auto bytes = static_cast<std::size_t>(std::ranges::count(symbols, Kind::text, &Symbol::kind));
    const ListedTensor* found = nullptr;
    std::size_t least = bytes / 3 + 1;
    std::size_t steps = 0;
    for (const ListedTensor& tensor : tensors) {
        if (tensor.name.size() > bytes_max) continue;
        steps += symbols.size() * (tensor.name.size() + 1);
        if (steps > steps_max || least == 0) break;
        const std::size_t far = distance(symbols, tensor.name);
        if (far >= least) continue;
        least = far;
        found = &tensor;
    }
    return found == nullptr ? "" : fmt::format("; the nearest name is '{}'", found->name);
}

}  // namespace

std::string nearest_name(const NamePattern& pattern, std::span<const ListedTensor> tensors) {
    return nearest(symbols_of(pattern), tensors);
}

std::string nearest_name(std::string_view name, std::span<const ListedTensor> tensors) {
    return nearest(symbols_of(name), tensors);
}

}  // namespace reshard::notation
