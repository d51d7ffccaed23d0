#include "reshard/live/rules.hpp"

#include <fmt/format.h>

#include <map>

#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/rule_ends.hpp"

namespace reshard::live {
namespace {

tl::unexpected<Error> unsupported(const std::string& name, const char* why) {
    return fail(Code::unsupported, fmt::format("tensor {} {}", in_quotes(name), why));
}

// Rules speak of one end at least. The other one does not matter here.
std::string with_both_ends(std::string_view rules) {
    std::string text(rules);
    for (const char* const end : {"source", "target"})
        if (!says_end(rules, end)) text += fmt::format("\n{} one=1\notherwise = -\n", end);
    return text;
}

bool is_whole(const TensorPart& part) { return !part.box && part.order.empty(); }

}  // namespace

Result<std::vector<WantedByRule>> wanted_by_rules(std::string_view rules, std::span<const OfferedTensor> offered) {
    if (!says_end(rules, "target")) return fail(Code::usage, "the rules have no line 'target' and a mesh");
    std::vector<ListedTensor> list;
    for (const OfferedTensor& one : offered) list.push_back({one.name, one.layout.dtype, shape(one.layout)});
    RESHARD_TRY(const auto& mapping, apply_rules(with_both_ends(rules), list));
    std::map<std::uint32_t, std::vector<std::size_t>> moves;  // of each target
    for (std::size_t i = 0; i < mapping.ends.size(); ++i) moves[mapping.ends[i].target].push_back(i);
    std::vector<WantedByRule> all;
    for (std::uint32_t i = 0; i < mapping.targets.size(); ++i) {
        const ShardedTensor& target = mapping.targets[i];
        const auto& own = moves[i];
        const PartProblem* move = own.size() == 1 ? &mapping.moves[own.front()] : nullptr;
        if (move == nullptr || target.padded || !is_whole(move->source) || !is_whole(move->target))
            return unsupported(target.name, "is no whole tensor of the publisher; wanted layouts and other names only");
        if (shape(*target.layout) != target.shape) return unsupported(target.name, "has owners; wanted layouts only");
        all.push_back({target.name, {list[mapping.ends[own.front()].source].name, *target.layout}});
    }
    return all;
}

Result<std::vector<OfferedTensor>> published_by_rules(std::string_view rules, std::span<const ListedTensor> tensors) {
    if (!says_end(rules, "source")) return fail(Code::usage, "the rules have no line 'source' and a mesh");
    RESHARD_TRY(const auto& placed, place_sources(with_both_ends(rules), tensors));
    std::vector<OfferedTensor> all;
    for (const ShardedTensor& one : placed) {
        if (shape(*one.layout) != one.shape) return unsupported(one.name, "has owners; wanted layouts only");
        all.push_back({one.name, *one.layout});
    }
    return all;
}

}  // namespace reshard::live
