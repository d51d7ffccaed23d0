// Applies rules to a list of tensors. They say the place of each and its target. Reports missing and repeated tensors.
#include "reshard/model/rules.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rules/nearest_name.hpp"
#include "src/model/rules/rule_layout.hpp"
#include "src/model/rules/rule_targets.hpp"
#include "src/model/rules/tensor_blocks.hpp"

namespace reshard {

using namespace notation;

namespace {

// A list with {name:count} in names.
Result<std::vector<ListedTensor>> expand_tensors(std::string_view text) {
    RESHARD_TRY(const auto& blocks, read_blocks(text));
    std::vector<ListedTensor> tensors = all_tensors(blocks);
    std::unordered_set<std::string_view> names;
    for (const ListedTensor& tensor : tensors)
        if (!names.insert(tensor.name).second)
            return fail(Code::mismatch, fmt::format("'{}' is listed twice", tensor.name));
    return tensors;
}

}  // namespace

Result<std::vector<ListedTensor>> parse_tensors(std::string_view text) {
    if (text.find('{') != std::string_view::npos) return expand_tensors(text);
    std::vector<ListedTensor> tensors;
    std::unordered_map<std::string_view, std::size_t> lines;  // by name
    for (RuleLine line{{}, 0, "the list"}; next_line(text, line);) {
        Scanner scanner(line.text);
        const std::size_t begin = scanner.place();
        const std::size_t end = std::min(line.text.find_first_of(" \t", begin), line.text.size());
        const std::string_view name = line.text.substr(begin, end - begin);
        scanner.move_to(end);
        const std::size_t place = scanner.place();
        auto array = parse_array(line.text.substr(place));
        if (!array) return line.error(array.error().code, array.error().message, array.error().offset + place);
        if (const auto [other, fresh] = lines.emplace(name, line.number); !fresh)
            return line.error(Code::mismatch, fmt::format("'{}' is on line {}, too", name, other->second), begin);
        tensors.push_back({std::string(name), array->dtype, std::move(array->shape)});
    }
    return tensors;
}

namespace {

// Finds the rule and the layout of each source tensor.
class Sources {
public:
    Sources(const RuleEnd& end, std::span<const ListedTensor> tensors) : end_(end), tensors_(tensors), layouts_(end) {
        for (std::size_t i = 0; i < end.rules.size(); ++i) {
            if (end.rules[i].pattern)
                patterns_.add(*end.rules[i].pattern, i);
            else
                otherwise_ = i;
        }
    }

    Result<std::vector<ShardedTensor>> place() {
        std::vector<ShardedTensor> placed;
        std::vector<std::size_t> rules;
        std::vector<bool> met(end_.rules.size(), false);
        for (const ListedTensor& tensor : tensors_) {
            RESHARD_TRY(const auto& rule, rule_of(tensor));
            rules.push_back(rule);
            met[rule] = true;
            EndLayouts::Placed said;
            if (!end_.rules[rule].blocks) {
                RESHARD_ASSIGN(said, named(tensor, layouts_.said(rule, {tensor.dtype, tensor.shape, 0, {}, &names_})));
            }
            placed.push_back({tensor.name, std::move(said.layout), tensor.shape});
            dim_parts_.push_back(std::move(said.dim_parts));
        }
        for (std::size_t rule = 0; rule < end_.rules.size(); ++rule)
            if (!met[rule]) return unmet(end_.rules[rule]);
        RESHARD_CHECK(place_blocks(placed, rules));
        return placed;
    }

private:
    tl::unexpected<Error> unmet(const Rule& rule) const {
        return rule.line.error(
            Code::mismatch,
            "no tensor of the list is for this line" + (rule.pattern ? nearest_name(*rule.pattern, tensors_) : ""),
            rule.offset);
    }

    // Leaves the values of the pattern's names in names_.
    Result<std::size_t> rule_of(const ListedTensor& tensor) {
        std::optional<std::size_t> found;
        Bindings names;
        for (const std::size_t i : patterns_.near(tensor.name)) {
            const Rule& rule = end_.rules[i];
            if (!rule.pattern->match(tensor.name, names)) continue;
            if (found)
                return rule.line.error(
                    Code::mismatch,
                    fmt::format("'{}' is matched on line {}, too", tensor.name, end_.rules[*found].line.number),
                    rule.offset);
            found = i;
            names_.swap(names);
        }
        if (found) return *found;
        names_.clear();
        if (otherwise_) return *otherwise_;
        return end_.line->error(Code::mismatch, fmt::format("no line of the source matches '{}'", tensor.name), 0);
    }

    Result<void> place_blocks(std::vector<ShardedTensor>& placed, const std::vector<std::size_t>& rules) {
        const auto in_blocks = [](const Rule& rule) { return rule.blocks.has_value(); };
        if (std::ranges::none_of(end_.rules, in_blocks)) return {};
        std::unordered_map<std::string_view, std::size_t> by_name;
        for (std::size_t i = 0; i < placed.size(); ++i) by_name.emplace(placed[i].name, i);
        for (std::size_t i = 0; i < placed.size(); ++i) {
            const Rule& rule = end_.rules[rules[i]];
            if (!rule.blocks) continue;
            names_.clear();
            if (rule.pattern) (void)rule.pattern->match(placed[i].name, names_);
            const std::string of = rule.blocks->pattern.written(names_);
            const auto found = by_name.find(of);
            if (found == by_name.end() || end_.rules[rules[found->second]].blocks)
                return rule.line.error(
                    Code::mismatch,
                    fmt::format("'{}', of which '{}' has the blocks, {}", of, placed[i].name,
                                found == by_name.end() ? "is not in the list" : "is in blocks itself"),
                    rule.blocks->offset);
            const ListedTensor& tensor = tensors_[i];
            const ShardedTensor& whole = placed[found->second];
            const EndLayouts::BlocksTensor blocks_of{whole.layout, whole.shape, dim_parts_[found->second]};
            RESHARD_TRY(auto& made,
                        named(tensor, layouts_.in_blocks(rules[i], {tensor.dtype, tensor.shape}, blocks_of)));
            placed[i].layout = std::move(made.layout);
            placed[i].held = std::move(made.held);
        }
        return {};
    }

    // Adds the name of the tensor to an error of its layout.
    template <class T>
    Result<T> named(const ListedTensor& tensor, Result<T> result) const {
        if (!result) result.error().message += fmt::format(" ('{}')", tensor.name);
        return result;
    }

    const RuleEnd& end_;
    std::span<const ListedTensor> tensors_;
    EndLayouts layouts_;
    std::vector<PartsOfDims> dim_parts_;  // of each tensor
    PatternIndex patterns_;
    std::optional<std::size_t> otherwise_;
    Bindings names_;
};

}  // namespace

Result<CheckpointMapping> apply_rules(std::string_view text, std::span<const ListedTensor> tensors) {
    RESHARD_TRY(const auto& rules, read_rules(text));
    CheckpointMapping model;
    RESHARD_ASSIGN(model.sources, Sources(rules.source, tensors).place());
    RESHARD_CHECK(place_targets(rules.target, tensors, model));
    return model;
}

Result<std::vector<ShardedTensor>> place_sources(std::string_view text, std::span<const ListedTensor> tensors) {
    RESHARD_TRY(const auto& rules, read_rules(text));
    return Sources(rules.source, tensors).place();
}

}  // namespace reshard
