#include "src/model/rules/rule_ends.hpp"

#include <algorithm>

namespace reshard {

bool says_end(std::string_view rules, std::string_view word) {
    for (std::size_t at = 0; at < rules.size(); at = std::min(rules.find('\n', at), rules.size()) + 1) {
        const std::size_t begin = std::min(rules.find_first_not_of(" \t", at), rules.size());
        const std::string_view line = rules.substr(begin);
        if (line.starts_with(word) && line.size() > word.size() &&
            (line[word.size()] == ' ' || line[word.size()] == '\t'))
            return true;
    }
    return false;
}

}  // namespace reshard
