#include "src/model/rules/number_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reshard::notation {

namespace {

using Token = NamePattern::Token;

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Tries every way to match the names with a pattern.
class Ways {
public:
    Ways(std::span<const Token> tokens, std::span<const std::string_view> mentioned, std::string_view name,
         std::size_t place)
        : tokens_(tokens),
          mentioned_(mentioned),
          name_(name),
          place_(place),
          seen_(tokens.size() * (name.size() + 1), false) {}

    // True if in some way the number is not within one * or {name}.
    bool read(std::size_t token, std::size_t at) {
        if (token == tokens_.size()) return false;
        const std::size_t key = token * (name_.size() + 1) + at;
        if (seen_[key]) return false;
        seen_[key] = true;
        const Token& next = tokens_[token];
        if (next.kind == Token::Kind::text) return read_text(token, at);
        return next.counts() ? read_number(token, at) : read_wild(token, at);
    }

private:
    bool read_text(std::size_t token, std::size_t at) {
        const std::string_view text = tokens_[token].text;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (at + i == place_) return is_digit(text[i]);
            if (at + i == name_.size() || name_[at + i] != text[i]) return false;
        }
        return read(token + 1, at + text.size());
    }

    bool read_number(std::size_t token, std::size_t at) {
        for (std::size_t end = at; end < name_.size(); ++end) {
            if (end == place_) return true;
            if (!is_digit(name_[end])) return false;
            if (read(token + 1, end + 1)) return true;
        }
        return false;
    }

    bool read_wild(std::size_t token, std::size_t at) {
        const bool star = tokens_[token].kind == Token::Kind::star;
        const bool mentioned = std::ranges::find(mentioned_, tokens_[token].text) != mentioned_.end();
        for (std::size_t end = star ? at : at + 1; end <= name_.size(); ++end) {
            if (!star && name_[end - 1] == '.') return false;
            if (mentioned && at <= place_ && place_ < end) return true;
            // A token that can begin with a digit may take a part of the number.
            if ((end == place_ || end == place_ + 1) && token + 1 < tokens_.size() && may_begin(tokens_[token + 1]))
                return true;
            if (read(token + 1, end)) return true;
        }
        return false;
    }

    static bool may_begin(const Token& token) {
        return token.kind != Token::Kind::text || is_digit(token.text.front());
    }

    std::span<const Token> tokens_;
    std::span<const std::string_view> mentioned_;
    std::string_view name_;
    std::size_t place_;
    std::vector<bool> seen_;
};

// Most patterns fail at their end.
bool ends_otherwise(const NamePattern& pattern, std::string_view name, std::size_t place) {
    const Token& last = pattern.tokens().back();
    return last.kind == Token::Kind::text && name.size() - place > last.text.size() && !name.ends_with(last.text);
}

// The names of a pattern that the rule's layout depends on, as in {e}@ep.
std::vector<std::string_view> mentioned_names(const Rule& rule) {
    std::vector<std::string_view> names;
    if (!rule.pattern) return names;
    const std::string_view line = rule.line.text.substr(0, rule.line.text.find("<-"));
    const std::string_view layout = line.substr(std::min(rule.layout_offset, line.size()));
    for (const Token& token : rule.pattern->tokens())
        if (token.kind == Token::Kind::word && layout.find(fmt::format("{{{}}}", token.text)) != std::string_view::npos)
            names.push_back(token.text);
    return names;
}

}  // namespace

NumberReader::NumberReader(const RuleText& rules) {
    for (const RuleEnd* end : {&rules.source, &rules.target}) {
        for (const Rule& rule : end->rules) {
            const std::vector<std::string_view> mentioned = mentioned_names(rule);
            if (rule.pattern && rule.parts.empty()) readings_.push_back({&*rule.pattern, mentioned});
            for (const RulePart& part : rule.parts) readings_.push_back({&part.pattern, mentioned});
        }
        for (const Rule& rule : end->drops) readings_.push_back({&*rule.pattern, {}});
    }
}

bool NumberReader::reads(std::string_view name, std::size_t place) const {
    return std::ranges::any_of(readings_, [&](const Reading& one) {
        return !ends_otherwise(*one.pattern, name, place) &&
               Ways(one.pattern->tokens(), one.mentioned, name, place).read(0, 0);
    });
}

}  // namespace reshard::notation
