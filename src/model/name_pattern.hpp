// Patterns of tensor names: model.layers.{n}.*.weight.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/text/scanner.hpp"

namespace reshard::notation {

/// What a * or a {name} of a pattern stands for.
struct Binding {
    std::string_view name;  ///< *0, *1, ... for stars
    std::string_view value;
    friend bool operator==(const Binding&, const Binding&) = default;
};
using Bindings = std::vector<Binding>;

/// The value of a name; empty when it has none. pre: names differ.
[[nodiscard]] std::string_view value_in(const Bindings& bindings, std::string_view name);

class NamePattern {
public:
    struct Token {
        enum class Kind { text, star, word };
        Kind kind = Kind::text;
        std::string_view text;  ///< the text itself, or the name
        Index count = 0;        ///< of {name:count}; 0: no number
        friend bool operator==(const Token&, const Token&) = default;
    };

    /// The longest pattern at the scanner's place. The text must outlive it. Errors: syntax, unsupported (a count of
    /// more than 2^20).
    [[nodiscard]] static Result<NamePattern> scan(Scanner& scanner);

    [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
    [[nodiscard]] const Token* find(std::string_view name) const;  ///< the * or {name} of that name; null: none
    void set_count(std::string_view name, Index count);            ///< where the pattern has that name

    /// What its names stand for in `name`, in their order; false when it does not fit. Of several ways the one in which
    /// the first * or {name} is shortest, then the second.
    [[nodiscard]] bool match(std::string_view name, Bindings& bindings) const;

    /// The name with every * and {name} replaced. pre: all have values.
    [[nodiscard]] std::string written(const Bindings& bindings) const;

private:
    std::vector<Token> tokens_;
};

/// Finds the patterns that a name may fit without trying all of them: rules may be as many as tensors.
class PatternIndex {
public:
    /// pre: the pattern's text outlives the index.
    void add(const NamePattern& pattern, std::size_t number);

    /// The numbers of the patterns that `name` fits or that begin as it does, ascending.
    [[nodiscard]] std::vector<std::size_t> near(std::string_view name) const;

private:
    using Numbers = std::unordered_map<std::string_view, std::vector<std::size_t>>;
    Numbers whole_;                  // of patterns that are one name
    Numbers begun_;                  // of the others, by the text before the first * or {name}
    std::set<std::size_t> lengths_;  // of those texts
};

/// The number that a text is, without leading zeros, when it is below `count`; -1 otherwise.
[[nodiscard]] Index number_below(std::string_view text, Index count);

}  // namespace reshard::notation
