#include "src/model/rules/rule_lines.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::notation {

tl::unexpected<Error> RuleLine::error(Code code, std::string_view message, std::size_t offset) const {
    return tl::unexpected<Error>(
        Error{code, fmt::format("line {} of {}: {}", number, of, message), std::string(text), offset});
}

bool next_line(std::string_view& text, RuleLine& line) {
    while (!text.empty()) {
        const std::size_t size = std::min(text.find('\n'), text.size());
        line.text = text.substr(0, size);
        text.remove_prefix(std::min(size + 1, text.size()));
        line.text = line.text.substr(0, line.text.find('#'));
        while (!line.text.empty() && std::string_view(" \t\r").find(line.text.back()) != std::string_view::npos)
            line.text.remove_suffix(1);
        ++line.number;
        if (!Scanner(line.text).at_end()) return true;
    }
    return false;
}

namespace {

class LineReader {
public:
    LineReader(RuleText& rules, RuleEnd*& end, const RuleLine& line)
        : rules_(rules), end_(end), line_(line), scanner_(line.text) {}

    Result<void> read() {
        for (const auto& [word, end] : {std::pair("source", &rules_.source), std::pair("target", &rules_.target)})
            if (keyword(word)) return begin(*end);
        if (end_ == nullptr)
            return scanner_.error(Code::syntax, "expected 'source' or 'target' and a mesh", scanner_.place());
        if (keyword("drop")) return drop();
        Rule rule;
        rule.line = line_;
        rule.also = keyword("also");
        rule.offset = scanner_.place();
        if (scanner_.take_word("otherwise") && scanner_.sees('=') && !rule.also) {
            const auto other = [](const Rule& one) { return !one.pattern; };
            if (std::ranges::any_of(end_->rules, other))
                return scanner_.error(Code::syntax, "a second 'otherwise'", rule.offset);
        } else {
            scanner_.move_to(rule.offset);
            RESHARD_ASSIGN(rule.pattern, NamePattern::scan(scanner_));
        }
        RESHARD_CHECK(scanner_.expect('='));
        RESHARD_CHECK(layout(rule));
        RESHARD_CHECK(cast(rule));
        RESHARD_CHECK(from(rule));
        RESHARD_CHECK(scanner_.expect_end());
        end_->rules.push_back(std::move(rule));
        return {};
    }

private:
    // Takes a word, unless '=' follows. Then it is the name of a tensor.
    bool keyword(std::string_view word) {
        const std::size_t before = scanner_.place();
        const std::string_view rest = scanner_.text().substr(before);
        const bool whole = rest.size() == word.size() || rest.substr(std::min(rest.size(), word.size()), 1) == " ";
        if (rest.starts_with(word) && whole && scanner_.take_word(word) && !scanner_.sees('=')) return true;
        scanner_.move_to(before);
        return false;
    }

    Result<void> begin(RuleEnd& end) {
        const std::size_t place = scanner_.place();
        if (end.line) return scanner_.error(Code::syntax, "this end has begun before", 0);
        auto mesh = parse_mesh(line_.text.substr(place));
        if (!mesh) return scanner_.error(mesh.error().code, mesh.error().message, place + mesh.error().offset);
        RESHARD_CHECK(scanner_.at(validate(*mesh), place));
        end.mesh = *std::move(mesh);
        end.line = line_;
        end_ = &end;
        return {};
    }

    Result<void> drop() {
        if (end_ != &rules_.target) return scanner_.error(Code::syntax, "only a target can drop tensors", 0);
        Rule rule;
        rule.line = line_;
        rule.offset = scanner_.place();
        RESHARD_ASSIGN(rule.pattern, NamePattern::scan(scanner_));
        RESHARD_CHECK(scanner_.expect_end());
        end_->drops.push_back(std::move(rule));
        return {};
    }

    // Reads a layout. Entries are skipped until the extents are known.
    Result<void> layout(Rule& rule) {
        rule.layout_offset = scanner_.place();
        if (scanner_.take('-')) return {};
        if (scanner_.skip_balanced('[', ']')) return {};
        if (!scanner_.take_word("blocks"))
            return scanner_.error(Code::syntax, "expected a layout: -, [...] or 'blocks'", rule.layout_offset);
        BlocksOf blocks;
        RESHARD_ASSIGN(blocks.blocks, scan_numbers(scanner_, "the indices of a block", 1));
        if (!scanner_.take_word("of")) return scanner_.error(Code::syntax, "expected 'of'", scanner_.place());
        blocks.offset = scanner_.place();
        RESHARD_ASSIGN(blocks.pattern, NamePattern::scan(scanner_));
        for (const NamePattern::Token& token : blocks.pattern.tokens())
            if (token.kind != NamePattern::Token::Kind::text && (!rule.pattern || !rule.pattern->find(token.text)))
                return scanner_.error(Code::syntax, "the pattern before '=' has not all of these names", blocks.offset);
        rule.blocks = std::move(blocks);
        return {};
    }

    Result<void> cast(Rule& rule) {
        const std::size_t place = scanner_.place();
        if (!scanner_.take_word("as")) return {};
        if (end_ != &rules_.target) return scanner_.error(Code::syntax, "only a target is cast", place);
        rule.cast_offset = scanner_.place();
        RESHARD_ASSIGN(rule.cast, scanner_.at(parse_dtype(scanner_.word()), rule.cast_offset));
        return {};
    }

    Result<void> from(Rule& rule) {
        const std::size_t arrow = scanner_.place();
        if (!scanner_.take('<')) {
            if (rule.also) return scanner_.error(Code::syntax, "expected '<-': 'also' is of what is made", arrow);
            return {};
        }
        RESHARD_CHECK(scanner_.expect('-'));
        if (end_ != &rules_.target) return scanner_.error(Code::syntax, "only a target is made of tensors", arrow);
        if (!rule.pattern) return scanner_.error(Code::syntax, "'otherwise' keeps names", arrow);
        std::optional<bool> whole;
        do {
            RulePart part;
            part.offset = scanner_.place();
            RESHARD_ASSIGN(part.pattern, NamePattern::scan(scanner_));
            RESHARD_CHECK(shape(part));
            RESHARD_CHECK(slices(part));
            RESHARD_CHECK(order(part));
            rule.parts.push_back(std::move(part));
            if (!scanner_.sees('+')) break;
            const std::size_t plus = scanner_.place();
            (void)scanner_.take('+');
            const bool two = scanner_.text().substr(plus).starts_with("++") && scanner_.take('+');
            if (whole.value_or(two) != two) return scanner_.error(Code::syntax, "either + or ++ in one line", plus);
            whole = two;
        } while (true);
        rule.cut_whole = whole.value_or(true);
        if (scanner_.take_word("along")) {
            const std::size_t place = scanner_.place();
            RESHARD_TRY(const auto& along, scanner_.integer("a dimension"));
            if (along > 255) return scanner_.error(Code::layout, "there is no such dimension", place);
            rule.along = static_cast<std::size_t>(along);
        }
        RESHARD_CHECK(groups(rule));
        return agree(rule);
    }

    Result<void> groups(Rule& rule) {
        const std::size_t place = scanner_.place();
        if (!scanner_.take_word("in")) return {};
        RESHARD_ASSIGN(rule.groups, scanner_.integer("a number of groups"));
        if (!scanner_.take_word("groups")) return scanner_.error(Code::syntax, "expected 'groups'", scanner_.place());
        if (rule.groups < 1) return scanner_.error(Code::layout, "at least one group", place);
        if (rule.cut_whole) return {};
        return scanner_.error(Code::syntax, "groups mix the parts, so no part is cut by itself; ++ cuts the whole",
                              place);
    }

    // shape := "shape" "(" extent {"," extent} ")";  extent := n | ":" | "-1"
    Result<void> shape(RulePart& part) {
        const std::size_t place = scanner_.place();
        if (!scanner_.take_word("shape")) return {};
        RESHARD_CHECK(scanner_.expect('('));
        std::vector<Index>& shape = part.shape.emplace();
        do {
            RESHARD_ASSIGN(shape.emplace_back(), extent());
        } while (scanner_.take(','));
        if (std::ranges::count(shape, other_indices) > 1)
            return scanner_.error(Code::syntax, "one extent is -1 at most", place);
        return scanner_.expect(')');
    }

    Result<Index> extent() {
        if (scanner_.take(':')) return same_extent;
        const std::size_t place = scanner_.place();
        const bool other = scanner_.take('-');
        RESHARD_TRY(const auto& extent, scanner_.integer("an extent, : or -1"));
        if (!other) return extent;
        if (extent != 1) return scanner_.error(Code::syntax, "an extent is a number, : or -1", place);
        return other_indices;
    }

    Result<void> slices(RulePart& part) {
        if (!scanner_.take('[')) return {};
        std::vector<Slice>& slices = part.slices.emplace();
        do {
            RESHARD_CHECK(slice(slices.emplace_back()));
        } while (scanner_.take(','));
        return scanner_.expect(']');
    }

    // slice := [from] ":" [to] [":" step] | from ":" to "of" period ["in" [from] ":" [to]] | index | "{" name "}"
    Result<void> slice(Slice& slice) {
        if (scanner_.take('{')) {
            slice.name = scanner_.word();
            slice.drops = true;
            return scanner_.expect('}');
        }
        Interval side{0, index_max};
        const bool from = !scanner_.sees(':');
        if (from) {
            RESHARD_ASSIGN(side.begin, index("an index"));
        }
        slice.drops = from && !scanner_.sees(':');
        if (slice.drops) {
            slice.indices = {side.begin, side.begin == -1 ? index_max : saturating_add(side.begin, 1)};
            return {};
        }
        RESHARD_TRY(const auto& to, slice_end(side));
        if (from || to) slice.indices = side;
        return steps(slice, side);
    }

    // Reads ":" [to], and returns whether the slice has an end.
    Result<bool> slice_end(Interval& side) {
        RESHARD_CHECK(scanner_.expect(':'));
        if (scanner_.sees(':') || scanner_.sees(',') || scanner_.sees(']')) return false;
        RESHARD_ASSIGN(side.end, index("where the slice ends"));
        return true;
    }

    // An index of a slice. A negative one counts from the end.
    Result<Index> index(std::string_view what) {
        const bool negative = scanner_.take('-');
        RESHARD_TRY(const auto& index, scanner_.integer(what));
        return negative ? -index : index;
    }

    Result<void> steps(Slice& slice, const Interval& side) {
        const std::size_t place = scanner_.place();
        if (scanner_.take(':')) {
            RESHARD_ASSIGN(slice.step, scanner_.integer("a step"));
            if (slice.step < 1) return scanner_.error(Code::layout, "a step is at least 1", place);
            slice.indices = side;
        } else if (scanner_.take_word("of")) {
            RESHARD_ASSIGN(slice.period, scanner_.integer("a period"));
            if (slice.period < side.end || side.end <= side.begin || side.begin < 0)
                return scanner_.error(Code::layout, "a period has at least the indices of the slice", place);
            slice.indices = side;
            return range(slice);
        }
        return {};
    }

    Result<void> range(Slice& slice) {
        if (!scanner_.take_word("in")) return {};
        if (!scanner_.sees(':')) {
            RESHARD_ASSIGN(slice.range.begin, scanner_.integer("where the periods begin"));
        }
        RESHARD_CHECK(slice_end(slice.range));
        return {};
    }

    // order := "permute" "(" dimension {"," dimension} ")" | ".T"
    Result<void> order(RulePart& part) {
        const std::size_t place = scanner_.place();
        if ((part.slices || part.shape) && scanner_.take('.')) {
            if (!scanner_.take_word("T")) return scanner_.error(Code::syntax, "expected .T", place);
            part.order = {1, 0};
            return {};
        }
        if (!scanner_.take_word("permute")) return {};
        RESHARD_CHECK(scanner_.expect('('));
        RESHARD_TRY(const auto& order, scan_numbers(scanner_, "a dimension", 0));
        RESHARD_CHECK(scanner_.expect(')'));
        for (std::size_t k = 0; k < order.size(); ++k)
            if (std::ranges::count(order, static_cast<Index>(k)) != 1)
                return scanner_.error(
                    Code::layout, fmt::format("each dimension from 0 to {} is named once", order.size() - 1), place);
        part.order.assign(order.begin(), order.end());
        return {};
    }

    // A name has one meaning in a line. It has one count, and a name that only one side has must have a count.
    Result<void> agree(Rule& rule) {
        for (const RulePart& part : rule.parts) RESHARD_CHECK(agree_on_counts(rule, part));
        for (RulePart& part : rule.parts)
            for (const NamePattern::Token& token : rule.pattern->tokens())
                if (token.counts()) part.pattern.set_numbers(token.text, token.numbers);
        for (const RulePart& part : rule.parts) {
            for (const NamePattern::Token& token : rule.pattern->tokens())
                if (token.kind != NamePattern::Token::Kind::text && !token.counts() && !part.pattern.find(token.text))
                    return scanner_.error(Code::syntax, fmt::format("no {}, which the target has", spelled(token)),
                                          part.offset);
            for (const NamePattern::Token& token : part.pattern.tokens()) {
                if (token.kind == NamePattern::Token::Kind::text || rule.pattern->find(token.text)) continue;
                if (!token.counts())
                    return scanner_.error(Code::syntax,
                                          fmt::format("{} has no count, and the target has none", spelled(token)),
                                          part.offset);
                if (!rule.stack.empty() && rule.stack != token.text)
                    return scanner_.error(Code::unsupported, "a stack over two names", part.offset);
                rule.stack = token.text;
                rule.stack_numbers = token.numbers;
            }
            for (const Slice& slice : part.slices.value_or(std::vector<Slice>{})) {
                const NamePattern::Token* const said = slice.name.empty() ? nullptr : rule.pattern->find(slice.name);
                if (slice.drops && !slice.indices && (said == nullptr || !said->counts()))
                    return scanner_.error(Code::syntax, "the target counts no name of this slice", part.offset);
            }
        }
        for (const RulePart& part : rule.parts)
            if (!rule.stack.empty() && part.pattern.find(rule.stack) == nullptr)
                return scanner_.error(Code::syntax, "the other parts are stacked, and this is not", part.offset);
        return {};
    }

    static std::string spelled(const NamePattern::Token& token) {
        return token.kind == NamePattern::Token::Kind::star ? "*" : fmt::format("{{{}}}", token.text);
    }

    Result<void> agree_on_counts(Rule& rule, const RulePart& part) {
        for (const NamePattern::Token& token : part.pattern.tokens()) {
            const NamePattern::Token* const said = rule.pattern->find(token.text);
            if (token.kind != NamePattern::Token::Kind::word || said == nullptr || !token.counts()) continue;
            if (said->counts() && said->numbers != token.numbers)
                return scanner_.error(Code::syntax, fmt::format("{{{}}} has two ranges of numbers", token.text),
                                      part.offset);
            rule.pattern->set_numbers(token.text, token.numbers);
        }
        return {};
    }

    RuleText& rules_;
    RuleEnd*& end_;
    RuleLine line_;
    Scanner scanner_;
};

}  // namespace

Result<RuleText> read_rules(std::string_view text) {
    RuleText rules;
    RuleEnd* end = nullptr;
    for (RuleLine line; next_line(text, line);) RESHARD_CHECK(line.numbered(LineReader(rules, end, line).read()));
    for (const auto& [word, one] : {std::pair("source", &rules.source), std::pair("target", &rules.target)})
        if (!one->line) return fail(Code::syntax, fmt::format("the rules have no line '{}' and a mesh", word));
    return rules;
}

}  // namespace reshard::notation
