#include "src/model/rules/rule_targets.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rules/made_tensor.hpp"
#include "src/model/rules/nearest_name.hpp"
#include "src/model/rules/part_moves.hpp"
#include "src/model/rules/seen_layouts.hpp"

namespace reshard::notation {

namespace {

// A pattern of tensors that a rule takes.
struct Taker {
    const NamePattern* pattern = nullptr;
    std::size_t rule = 0;
    std::size_t part = 0;  // of a rule with parts
};

class Targets {
public:
    Targets(const RuleEnd& end, std::span<const ListedTensor> tensors, CheckpointMapping& model)
        : end_(end), tensors_(tensors), model_(model), layouts_(end), met_(end.rules.size(), false) {
        const auto add = [&](const NamePattern& pattern, std::size_t rule, std::size_t part) {
            patterns_.add(pattern, takers_.size());
            takers_.push_back({&pattern, rule, part});
        };
        for (std::size_t i = 0; i < end.rules.size(); ++i) {
            const Rule& rule = end.rules[i];
            if (!rule.pattern) otherwise_ = i;
            if (rule.pattern && rule.parts.empty()) add(*rule.pattern, i, 0);
            for (std::size_t part = 0; part < rule.parts.size(); ++part) add(rule.parts[part].pattern, i, part);
        }
        for (std::size_t i = 0; i < end.drops.size(); ++i) drops_.add(*end.drops[i].pattern, i);
    }

    Result<void> place() {
        std::vector<bool> dropped(end_.drops.size(), false);
        std::optional<std::size_t> untaken;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            taken_.clear();
            RESHARD_CHECK(take(i));
            const bool drops = drop(tensors_[i], dropped);
            if (drops && !taken_.empty())
                return line_of(taken_.front())
                    .error(Code::mismatch, fmt::format("'{}' is dropped and taken", tensors_[i].name), 0);
            if (taken_.empty() && !drops) {
                if (!otherwise_ && !untaken) untaken = i;
                if (otherwise_) RESHARD_CHECK(add(0, whole_of(i, tensors_[i], *otherwise_), tensors_[i].name, {}));
            }
            RESHARD_CHECK(taken_once(i));
        }
        if (untaken) return no_line_for(*untaken);
        for (std::size_t rule = 0; rule < end_.rules.size(); ++rule)
            if (!met_[rule]) return unmet(end_.rules[rule]);
        for (std::size_t i = 0; i < dropped.size(); ++i)
            if (!dropped[i]) return unmet(end_.drops[i]);
        return finish();
    }

private:
    tl::unexpected<Error> unmet(const Rule& rule) const {
        const bool made = !rule.parts.empty();
        const NamePattern* const pattern = made ? &rule.parts.front().pattern : rule.pattern ? &*rule.pattern : nullptr;
        return rule.line.error(
            Code::mismatch,
            "no tensor of the list is for this line" + (pattern == nullptr ? "" : nearest_name(*pattern, tensors_)),
            made ? rule.parts.front().offset : rule.offset);
    }

    const RuleLine& line_of(const Taken& taken) const { return end_.rules[taken.rule].line; }

    bool also(const Taken& taken) const { return end_.rules[taken.rule].also; }

    bool drop(const ListedTensor& tensor, std::vector<bool>& dropped) {
        bool drops = false;
        for (const std::size_t i : drops_.near(tensor.name))
            if (end_.drops[i].pattern->match(tensor.name, names_)) drops = dropped[i] = true;
        return drops;
    }

    // Applies every line that takes the tensor, or parts of it.
    Result<void> take(std::size_t tensor) {
        const std::string& name = tensors_[tensor].name;
        for (const std::size_t i : patterns_.near(name)) {
            const Taker& taker = takers_[i];
            if (!taker.pattern->match(name, names_)) continue;
            if (end_.rules[taker.rule].parts.empty()) {
                RESHARD_CHECK(add(0, whole_of(tensor, tensors_[tensor], taker.rule), name, names_));
            } else {
                RESHARD_CHECK(take_part(tensor, taker.rule, taker.part));
            }
        }
        return {};
    }

    // A part with a wrong name leaves a tensor over. Then the error is about the part.
    Result<void> no_line_for(std::size_t tensor) {
        for (std::size_t i = 0; i < made_.size(); ++i)
            if (std::ranges::any_of(made_[i].parts, [](const auto& part) { return !part; }))
                RESHARD_CHECK(made_shape(made_[i], end_.rules[made_[i].rule], model_.targets[i].name, tensors_));
        return end_.line->error(Code::mismatch,
                                fmt::format("no line of the target takes '{}' (a line 'drop {}' leaves it out)",
                                            tensors_[tensor].name, tensors_[tensor].name),
                                0);
    }

    // Names that only the target counts run through all their numbers.
    Result<void> take_part(std::size_t tensor, std::size_t number, std::size_t part) {
        const Rule& rule = end_.rules[number];
        const RulePart& from = rule.parts[part];
        std::vector<const NamePattern::Token*> free;
        Index all = 1;
        for (const NamePattern::Token& token : rule.pattern->tokens())
            if (token.kind == NamePattern::Token::Kind::word && from.pattern.find(token.text) == nullptr) {
                free.push_back(&token);
                all = saturating_multiply(all, token.numbers.size());
            }
        if (all > split_max)
            return rule.line.error(Code::unsupported, fmt::format("more than {} tensors of one", split_max),
                                   rule.offset);
        const Index stacked = number_in(value_in(names_, rule.stack), rule.stack_numbers) - rule.stack_numbers.begin;
        const auto place = static_cast<std::size_t>(std::max<Index>(stacked, 0)) * rule.parts.size() + part;
        Bindings names = names_;
        for (Index i = 0; i < all; ++i) {
            names.resize(names_.size());
            for (Index rest = i; const NamePattern::Token* token : free) {
                names.push_back({token->text, spelled(token->numbers.begin + rest % token->numbers.size())});
                rest /= token->numbers.size();
            }
            auto taken = sliced(tensor, tensors_[tensor], number, from, names);
            if (!taken) return rule.line.error(taken.error().code, taken.error().message, from.offset);
            RESHARD_CHECK(add(place, *std::move(taken), rule.pattern->written(names), names));
        }
        return {};
    }

    // Returns the number as text that stays alive.
    std::string_view spelled(Index number) {
        while (std::ssize(numbers_) <= number) numbers_.push_back(std::to_string(numbers_.size()));
        return numbers_[static_cast<std::size_t>(number)];
    }

    // Returns the values of the names in a rule's pattern, selected from all bound names.
    static Bindings names_of(const Rule& rule, const Bindings& names) {
        Bindings own;
        if (!rule.pattern) return own;
        for (const NamePattern::Token& token : rule.pattern->tokens())
            if (token.kind != NamePattern::Token::Kind::text) own.push_back({token.text, value_in(names, token.text)});
        return own;
    }

    Result<void> add(std::size_t place, Taken taken, const std::string& name, const Bindings& names) {
        const Rule& rule = end_.rules[taken.rule];
        met_[taken.rule] = true;
        Bindings own = names_of(rule, names);
        const auto [found, fresh] = by_name_.emplace(name, made_.size());
        if (fresh) {
            const std::size_t parts = std::max<std::size_t>(rule.parts.size(), 1);
            if (saturating_multiply(rule.stack_numbers.size(), static_cast<Index>(parts)) > made_max)
                return rule.line.error(Code::unsupported, fmt::format("more than {} parts", made_max), rule.offset);
            made_.push_back({taken.rule, own, {}, {}, {}});
            made_.back().parts.resize(parts * static_cast<std::size_t>(rule.stack_numbers.size()));
            model_.targets.push_back({name, nullptr});
        }
        Made& made = made_[found->second];
        if (made.rule != taken.rule)
            return rule.line.error(Code::mismatch,
                                   fmt::format("'{}' is made on line {}, too", name, end_.rules[made.rule].line.number),
                                   rule.offset);
        if (made.names != own)
            return rule.line.error(Code::mismatch, fmt::format("'{}' is a name for two", name), rule.offset);
        if (made.parts[place])
            return rule.line.error(
                Code::mismatch,
                fmt::format("'{}' and '{}' are for one part of '{}'", tensors_[made.parts[place]->tensor].name,
                            tensors_[taken.tensor].name, name),
                rule.offset);
        taken_.push_back(taken);
        made.parts[place] = std::move(taken);
        return {};
    }

    // Fails if an element of a tensor goes to two places, unless a line says 'also'.
    Result<void> taken_once(std::size_t tensor) {
        for (std::size_t i = 0; i < taken_.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (!also(taken_[i]) && !also(taken_[j]) && overlap(taken_[i], taken_[j], tensors_[tensor].shape))
                    return line_of(taken_[i]).error(
                        Code::mismatch,
                        fmt::format("'{}' is taken on line {}{}, too (a line may begin with 'also')",
                                    tensors_[tensor].name, line_of(taken_[j]).number,
                                    taken_[i].view == taken_[j].view ? "" : " in another shape"),
                        end_.rules[taken_[i].rule].offset);
        return {};
    }

    Result<void> finish() {
        std::vector<Asked> asked(made_.size());
        for (std::size_t i = 0; i < made_.size(); ++i) {
            const Rule& rule = end_.rules[made_[i].rule];
            RESHARD_ASSIGN(asked[i], made_shape(made_[i], rule, model_.targets[i].name, tensors_));
            model_.targets[i].shape = asked[i].shape;
            if (rule.blocks) continue;
            asked[i].names = &made_[i].names;
            asked[i].may_pad = true;
            RESHARD_TRY(auto& placed, named(i, layouts_.said(made_[i].rule, asked[i])));
            model_.targets[i].layout = std::move(placed.layout);
            made_[i].copies = std::move(placed.copies);
            made_[i].heads = std::move(placed.heads);
            made_[i].extents = asked[i].parts = std::move(placed.parts);
            made_[i].dim_parts = std::move(placed.dim_parts);
            pad(i, std::move(placed.padded), asked[i]);
            lengthen(i, asked[i]);
        }
        for (std::size_t i = 0; i < made_.size(); ++i) {
            if (end_.rules[made_[i].rule].blocks) RESHARD_CHECK(place_blocks(i, asked[i]));
        }
        for (std::size_t i = 0; i < made_.size(); ++i) RESHARD_CHECK(append_moves(i));
        return {};
    }

    void pad(std::size_t target, std::vector<Index> shape, Asked& asked) {
        if (shape.empty() || shape == asked.shape) return;
        asked.shape = shape;
        model_.targets[target].shape = std::move(shape);
        model_.targets[target].padded = true;
    }

    // Repeated heads make a tensor longer than its parts.
    void lengthen(std::size_t target, Asked& asked) {
        if (made_[target].copies.empty()) return;
        Index& extent = asked.shape[asked.along] = 0;
        for (std::size_t i = 0; i < asked.parts.size(); ++i)
            extent = saturating_add(extent, saturating_multiply(asked.parts[i], made_[target].copies[i]));
        model_.targets[target].shape = asked.shape;
    }

    Result<void> place_blocks(std::size_t target, Asked& asked) {
        const Rule& rule = end_.rules[made_[target].rule];
        const std::string of = rule.blocks->pattern.written(made_[target].names);
        const auto found = by_name_.find(of);
        if (found == by_name_.end() || end_.rules[made_[found->second].rule].blocks)
            return rule.line.error(
                Code::mismatch,
                fmt::format("'{}', of which '{}' has the blocks, {}", of, model_.targets[target].name,
                            found == by_name_.end() ? "is not made" : "is in blocks itself"),
                rule.blocks->offset);
        RESHARD_CHECK(repeat_blocks(target, made_[found->second], asked));
        RESHARD_CHECK(pad_blocks(target, found->second, asked));
        RESHARD_TRY(auto& placed,
                    named(target, layouts_.in_blocks(made_[target].rule, asked, as_blocks(found->second))));
        model_.targets[target].layout = std::move(placed.layout);
        model_.targets[target].shape = std::move(placed.shape);
        made_[target].held = std::move(placed.held);
        return {};
    }

    // A target whose blocks another target has.
    [[nodiscard]] EndLayouts::BlocksTensor as_blocks(std::size_t target) const {
        const Made& made = made_[target];
        const Rule& rule = end_.rules[made.rule];
        const ShardedTensor& whole = model_.targets[target];
        const bool mixed = rule.groups > 1 || (whole.padded && rule.parts.size() > 1 && rule.cut_whole);
        return {whole.layout, whole.shape, parts_with_blocks(made, rule), mixed || !made.copies.empty()};
    }

    // The blocks of repeated heads are repeated, too.
    Result<void> repeat_blocks(std::size_t target, const Made& of, Asked& asked) {
        if (of.copies.empty()) return {};
        const Rule& rule = end_.rules[made_[target].rule];
        const std::vector<Index>& blocks = rule.blocks->blocks;
        if (asked.parts.size() != of.copies.size() || rule.along != end_.rules[of.rule].along)
            return rule.line.error(Code::mismatch,
                                   fmt::format("'{}' repeats heads, so its blocks must be fused of as many parts",
                                               rule.blocks->pattern.written(made_[target].names)),
                                   rule.blocks->offset);
        const Index block = asked.along < blocks.size() ? blocks[asked.along] : blocks.front();
        made_[target].copies = of.copies;
        made_[target].heads = of.heads;
        for (Index& head : made_[target].heads) head /= block;
        lengthen(target, asked);
        return {};
    }

    // A padded tensor has padded blocks.
    Result<void> pad_blocks(std::size_t target, std::size_t of, Asked& asked) {
        const ShardedTensor& whole = model_.targets[of];
        const Rule& rule = end_.rules[made_[target].rule];
        if (!whole.padded || whole.shape.size() != asked.shape.size()) return {};
        const std::vector<Index>& blocks = rule.blocks->blocks;
        std::vector<Index> shape;
        for (std::size_t k = 0; k < asked.shape.size(); ++k) {
            const Index one = rule.stack_dim() == k ? 1 : blocks.front();
            shape.push_back(ceil_divide(whole.shape[k], k < blocks.size() && blocks.size() > 1 ? blocks[k] : one));
            if (shape.back() < asked.shape[k]) return {};  // not as many blocks as the tensor has
        }
        if (shape == asked.shape) return {};
        if (made_[of].extents.size() != asked.parts.size())
            return rule.line.error(Code::mismatch,
                                   fmt::format("'{}' pads its parts, so its blocks must be fused of as many parts",
                                               rule.blocks->pattern.written(made_[target].names)),
                                   rule.blocks->offset);
        const Index block = asked.along < blocks.size() ? blocks[asked.along] : blocks.front();
        for (const Index extent : made_[of].extents) made_[target].extents.push_back(ceil_divide(extent, block));
        pad(target, std::move(shape), asked);
        return {};
    }

    Result<void> append_moves(std::size_t target) {
        const Made& made = made_[target];
        const Rule& rule = end_.rules[made.rule];
        const std::size_t parts = std::max<std::size_t>(rule.parts.size(), 1);
        PartPlace place{{}, rule.stack_dim().value_or(0), rule.along, 0, 1, 0, rule.groups, 0, false};
        place.whole = made.parts.size() == 1 && !model_.targets[target].padded && made.held.empty();
        for (std::size_t i = 0; i < parts && place.groups > 1; ++i)
            place.group += made.parts[i]->shape[rule.along] / place.groups;
        for (std::size_t i = 0; i < made.parts.size(); ++i) {
            const Taken& part = *made.parts[i];
            const auto number = static_cast<Index>(i / parts);
            if (!rule.stack.empty()) place.stack = {number, number + 1};
            if (i % parts == 0) place.begin = 0;
            if (!made.copies.empty()) {
                place.copies = made.copies[i % parts];
                place.head = made.heads[i % parts];
            }
            const ShardedTensor& whole = model_.targets[target];
            auto made_moves = moves_of_part(part, {whole.layout, whole.shape, made.held}, place);
            if (!made_moves)
                made_moves = rule.line.error(made_moves.error().code, made_moves.error().message, rule.offset);
            RESHARD_TRY(auto& moves, named(target, std::move(made_moves)));
            for (PartProblem& move : moves) {
                model_.ends.push_back({static_cast<std::uint32_t>(part.tensor), static_cast<std::uint32_t>(target)});
                model_.moves.push_back(std::move(move));
            }
            if (parts == 1) continue;
            const Index extent = made.extents.empty() ? part.shape[rule.along] : made.extents[i % parts];
            place.begin += extent / place.groups * place.copies;
        }
        return {};
    }

    // Elements move in the narrower type of both ends.
    Result<std::vector<PartProblem>> moves_of_part(const Taken& part, MoveEnd to, const PartPlace& place) {
        const ShardedTensor& source = model_.sources[part.tensor];
        MoveEnd from{source.layout, held_shape(source), {}};
        for (const Stretches& held : source.held) from.held.push_back(once_each(held));
        const DType moves = moving_dtype(from.layout->dtype, to.layout->dtype);
        from.layout = seen_.in_dtype(from.layout, moves);
        to.layout = seen_.in_dtype(to.layout, moves);
        if (!part.view.empty()) {
            if (!from.held.empty())
                return fail(
                    Code::unsupported,
                    fmt::format("'{}' has blocks that ranks share, and is not seen in another shape", source.name));
            RESHARD_ASSIGN(from.layout, seen_.in_shape(source.name, from, part.view));
            from.shape = part.view;
        }
        return moves_of(part, from, to, place);
    }

    template <class T>
    Result<T> named(std::size_t target, Result<T> result) const {
        if (!result) result.error().message += fmt::format(" ('{}')", model_.targets[target].name);
        return result;
    }

    static constexpr Index made_max = Index{1} << 20;   // parts of one
    static constexpr Index split_max = Index{1} << 12;  // their slices are compared with each other

    const RuleEnd& end_;
    std::span<const ListedTensor> tensors_;
    CheckpointMapping& model_;
    EndLayouts layouts_;
    SeenLayouts seen_;
    PatternIndex patterns_;  // of takers_
    std::vector<Taker> takers_;
    PatternIndex drops_;
    std::optional<std::size_t> otherwise_;
    std::vector<Made> made_;  // as model_.targets
    std::unordered_map<std::string, std::size_t> by_name_;
    std::vector<bool> met_;
    std::vector<Taken> taken_;  // of one tensor
    std::deque<std::string> numbers_;
    Bindings names_;
};

}  // namespace

Result<void> place_targets(const RuleEnd& end, std::span<const ListedTensor> tensors, CheckpointMapping& model) {
    return Targets(end, tensors, model).place();
}

}  // namespace reshard::notation
