#include "tool/commands/explain/xla_log.hpp"

#include <algorithm>
#include <optional>

#include "reshard/notations/notation.hpp"
#include "reshard/planner/integer.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

constexpr std::string_view complaint = "Involuntary full rematerialization";

// The text in braces at the beginning, with inner braces; empty if the text does not begin with one.
std::string_view braced(std::string_view text) {
    Index depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '{') ++depth;
        if (text[i] == '}') --depth;
        if (depth == 0) return text[i] == '}' ? text.substr(0, i + 1) : std::string_view();
    }
    return {};
}

std::string_view after(std::string_view text, std::string_view word) {
    const std::size_t at = text.find(word);
    return at == std::string_view::npos ? std::string_view() : text.substr(at + word.size());
}

std::string_view until(std::string_view text, std::string_view word) { return text.substr(0, text.find(word)); }

std::string place_of(std::string_view operation) {
    const std::string_view file = until(after(operation, "source_file=\""), "\"");
    const std::string_view number = after(operation, "source_line=");
    const std::size_t digits = std::min(number.size(), number.find_first_not_of("0123456789"));
    if (!file.empty() && digits > 0) return std::string(file) + ":" + std::string(number.substr(0, digits));
    const std::string_view name = until(after(operation, "op_name=\""), "\"");
    return std::string(name.empty() ? until(operation, " = ") : name);
}

std::optional<Rematerialization> rematerialization(std::string_view line) {
    if (line.find(complaint) == std::string_view::npos) return {};
    const std::string_view rest = after(line, "from sharding ");
    const std::string_view source = braced(rest);
    if (source.empty() || !rest.substr(source.size()).starts_with(" to ")) return {};
    const std::string_view target = braced(rest.substr(source.size() + 4));
    if (target.empty()) return {};
    std::string_view operation = after(rest, "for HLO operation");
    operation.remove_prefix(std::min(operation.size(), operation.find_first_not_of(": ")));
    for (const std::string_view end : {". As the last resort", ". You probably want"})
        operation = until(operation, end);
    return Rematerialization{.source = std::string(source),
                             .target = std::string(target),
                             .operation = std::string(operation),
                             .place = place_of(operation),
                             .named = source.starts_with("{mesh[") && target.starts_with("{mesh[")};
}

bool alike(const Rematerialization& a, const Rematerialization& b) {
    return a.source == b.source && a.target == b.target && a.operation == b.operation;
}

// dtype[8,4] behind the sign of equality.
Result<NotationContext> tile_of(const Rematerialization& found) {
    const std::string_view made = after(found.operation, " = ");
    const std::size_t end = made.find(']');
    if (made.empty() || made.front() == '(' || end == std::string_view::npos)
        return fail(Code::unsupported, "the line does not say which array it is");
    std::string text(made.substr(0, end + 1));
    if (text.starts_with("pred[")) text.replace(0, 4, "bool");
    if (text.starts_with("s")) text.replace(0, 1, "i");
    if (text.starts_with("f8e")) text.insert(2, "_");
    return parse_array(text);
}

}  // namespace

std::vector<Rematerialization> rematerializations(std::string_view log) {
    std::vector<Rematerialization> all;
    while (!log.empty()) {
        const std::string_view line = until(log, "\n");
        log.remove_prefix(std::min(log.size(), line.size() + 1));
        auto found = rematerialization(line);
        if (!found) continue;
        const auto same = std::ranges::find_if(all, [&](const auto& one) { return alike(one, *found); });
        if (same == all.end())
            all.push_back(std::move(*found));
        else
            ++same->lines;
    }
    return all;
}

Result<Problem> problem_of(const Rematerialization& found) {
    RESHARD_TRY(auto setting, tile_of(found));
    RESHARD_TRY(const auto& hlo, parse_hlo(found.source));
    if (hlo.kind == HloSharding::Kind::replicated || hlo.kind == HloSharding::Kind::maximal) {
        RESHARD_TRY(const auto& target, parse_layout(Notation::hlo, setting, found.target));
        setting.mesh = target.mesh;
    }
    RESHARD_TRY(const auto& cut, parse_layout(Notation::hlo, setting, found.source));
    for (std::size_t d = 0; d < cut.dims.size(); ++d) {
        const auto extent = checked_multiply(setting.shape[d], shard_count(cut.dims[d]));
        if (!extent) return fail(Code::overflow, "the array has more elements than 64 bits count");
        setting.shape[d] = *extent;
    }
    Problem problem;
    RESHARD_ASSIGN(problem.source, parse_layout(Notation::hlo, setting, found.source));
    RESHARD_ASSIGN(problem.target, parse_layout(Notation::hlo, setting, found.target));
    share_mesh(problem.source, problem.target);
    return problem;
}

}  // namespace reshard::cli
