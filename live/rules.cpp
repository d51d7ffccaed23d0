#include "reshard/live/rules.hpp"

#include <fmt/format.h>

#include <set>

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

// A whole array, in its own shape and order.
bool is_whole(const PartProblem& move) {
    const auto& [source, target] = move;
    return !source.box && source.order.empty() && !target.box && target.order.empty() &&
           shape(*source.layout) == shape(*target.layout);
}

}  // namespace

Result<std::vector<WantedByRule>> wanted_by_rules(std::string_view rules, std::span<const OfferedTensor> offered) {
    if (!says_end(rules, "target")) return fail(Code::usage, "the rules have no line 'target' and a mesh");
    std::vector<ListedTensor> list;
    for (const OfferedTensor& one : offered) list.push_back({one.name, one.layout.dtype, shape(one.layout)});
    RESHARD_TRY(const auto& mapping, apply_rules(with_both_ends(rules), list));
    std::vector<WantedByRule> all;
    for (const ShardedTensor& target : mapping.targets) {
        if (shape(*target.layout) != target.shape) return unsupported(target.name, "has owners; wanted layouts only");
        all.push_back({target.name, {target.name, *target.layout, {}}});
    }
    for (std::size_t i = 0; i < mapping.ends.size(); ++i)
        all[mapping.ends[i].target].wanted.parts.push_back({list[mapping.ends[i].source].name, mapping.moves[i]});
    std::set<std::string> whole;  // arrays of the publisher; each one is wanted once by its name
    for (std::size_t i = 0; i < all.size(); ++i) {
        WantedTensor& wanted = all[i].wanted;
        if (mapping.targets[i].padded || wanted.parts.size() != 1 || !is_whole(wanted.parts[0].move)) continue;
        if (!whole.insert(wanted.parts[0].name).second) continue;
        wanted.name = wanted.parts[0].name;
        wanted.parts.clear();
    }
    return all;
}

Result<std::vector<OfferedTensor>> published_by_rules(std::string_view rules, std::span<const ListedTensor> tensors) {
    if (!says_end(rules, "source")) return fail(Code::usage, "the rules have no line 'source' and a mesh");
    RESHARD_TRY(const auto& placed, place_sources(with_both_ends(rules), tensors));
    std::vector<OfferedTensor> all;
    for (const ShardedTensor& one : placed) {
        if (!one.held.empty()) return unsupported(one.name, "has blocks that ranks share; wanted layouts only");
        if (shape(*one.layout) != one.shape) return unsupported(one.name, "has owners; wanted layouts only");
        all.push_back({one.name, *one.layout});
    }
    return all;
}

}  // namespace reshard::live
