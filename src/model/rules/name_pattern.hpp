// Patterns of tensor names: model.layers.{n}.*.weight.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reshard/planner/tile.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

/// The value of a * or a {name} of a pattern.
struct Binding {
    std::string_view name;  ///< *0, *1, ... for stars
    std::string_view value;
    friend bool operator==(const Binding&, const Binding&) = default;
};
using Bindings = std::vector<Binding>;

/// Returns the value of a name, empty if it has no value. pre: names differ.
[[nodiscard]] std::string_view value_in(const Bindings& bindings, std::string_view name);

class NamePattern {
public:
    struct Token {
        enum class Kind { text, star, word };
        Kind kind = Kind::text;
        std::string_view text;  ///< the text itself, or the name
        Interval numbers = {};  ///< of {name:end} and {name:begin:end}; empty: any text
        [[nodiscard]] bool counts() const { return numbers.size() > 0; }
        friend bool operator==(const Token&, const Token&) = default;
    };

    /// Reads the longest pattern at the scanner's place. The text must outlive it. Errors: syntax, unsupported (a
    /// number of more than 2^20).
    [[nodiscard]] static Result<NamePattern> scan(Scanner& scanner);

    [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
    [[nodiscard]] const Token* find(std::string_view name) const;  ///< the * or {name} of that name, or null
    void set_numbers(std::string_view name, Interval numbers);     ///< if the pattern has that name

    /// Sets the values of the pattern's names in `name`, in their order. Returns false if the pattern does not fit. If
    /// several ways fit, the first * or {name} is as short as possible, then the second.
    [[nodiscard]] bool match(std::string_view name, Bindings& bindings) const;

    /// Returns the name with every * and {name} replaced. pre: all have values.
    [[nodiscard]] std::string written(const Bindings& bindings) const;

private:
    std::vector<Token> tokens_;
};

/// Finds the patterns that a name may fit, without trying all of them. There may be as many rules as tensors.
class PatternIndex {
public:
    /// pre: the pattern's text outlives the index.
    void add(const NamePattern& pattern, std::size_t number);

    /// Returns the numbers of the patterns that equal `name` or whose fixed beginning `name` has, ascending.
    [[nodiscard]] std::vector<std::size_t> near(std::string_view name) const;

private:
    using Numbers = std::unordered_map<std::string_view, std::vector<std::size_t>>;
    Numbers whole_;                  // of patterns that are one name
    Numbers begun_;                  // of the others, by the text before the first * or {name}
    std::set<std::size_t> lengths_;  // of those texts
};

/// Reads a number without leading zeros. Returns -1 unless the text is one and it is below `count`.
[[nodiscard]] Index number_below(std::string_view text, Index count);

/// The same, for the numbers of an interval.
[[nodiscard]] Index number_in(std::string_view text, Interval numbers);

}  // namespace reshard::notation
