// Which rules look at the number of a layer.
#pragma once

#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

/// The patterns of rules. pre: the rules outlive it.
class NumberReader {
public:
    explicit NumberReader(const RuleText& rules);

    /// True if some rule may tell apart names that differ only in the number at `place`: a pattern may match the number
    /// by text, by a {name:end} or in several parts, or a layout mentions the {name} that matches it. If false, each
    /// rule matches all these names or none, with the number within one * or {name}. May be true without need.
    [[nodiscard]] bool reads(std::string_view name, std::size_t place) const;

private:
    struct Reading {
        const NamePattern* pattern;
        std::vector<std::string_view> mentioned;  // names of the pattern that the layout mentions
    };
    std::vector<Reading> readings_;
};

}  // namespace reshard::notation
