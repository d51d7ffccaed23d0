#include "synth/program/hlo/text.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/notations/iota.hpp"

namespace reshard::program {
namespace {

constexpr auto npos = std::string_view::npos;

bool in_a_name(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.' || letter == '-';
}

std::string_view name_at(std::string_view text, std::size_t begin) {
    std::size_t end = begin;
    while (end < text.size() && in_a_name(text[end])) ++end;
    return text.substr(begin, end - begin);
}

std::string_view stripped(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r");
    if (begin == npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

tl::unexpected<Error> wrong(std::string_view line, std::string_view what) {
    constexpr std::size_t shown = 80;
    return fail(Code::syntax, fmt::format("an HLO line {}: {}", what, line.substr(0, shown)));
}

// Behind the bracket that closes the first one; npos if none does.
std::size_t closing(std::string_view text) {
    Index depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '(' || text[at] == '{' || text[at] == '[') ++depth;
        if ((text[at] == ')' || text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
    }
    return npos;
}

// The first number in the name: f32, bf16, f8e4m3fn. Tokens have none.
Index bits_of(std::string_view dtype) {
    if (dtype == "pred") return 8;
    Index bits = 0;
    for (const char letter : dtype) {
        if (std::isdigit(static_cast<unsigned char>(letter)) == 0) {
            if (bits > 0) break;
            continue;
        }
        bits = std::min<Index>(10 * bits + (letter - '0'), 1024);
    }
    return bits;
}

// Bytes of all arrays in the text of a type: f32[4,8]{1,0}, or a tuple of them. Dimensions may be bounds: <=8.
Result<Index> bytes_of(std::string_view type) {
    Index bytes = 0;
    for (std::size_t open = type.find('['); open != npos; open = type.find('[', open + 1)) {
        std::size_t begin = open;
        while (begin > 0 && in_a_name(type[begin - 1])) --begin;
        Index count = bits_of(type.substr(begin, open - begin));
        Index extent = -1;
        for (std::size_t at = open + 1; at < type.size(); ++at) {
            const char letter = type[at];
            if (std::isdigit(static_cast<unsigned char>(letter)) != 0) {
                extent = saturating_add(saturating_multiply(std::max<Index>(extent, 0), 10), letter - '0');
            } else if (letter == ',' || letter == ']') {
                if (extent >= 0) count = saturating_multiply(count, extent);
                extent = -1;
                if (letter == ']') break;
            }
        }
        bytes = saturating_add(bytes, ceil_divide(count, 8));
    }
    if (bytes > index_max / 16) return fail(Code::overflow, fmt::format("an HLO array is too large: {}", type));
    return bytes;
}

std::vector<std::string_view> known_names(std::string_view text, const std::set<std::string_view>& known) {
    std::vector<std::string_view> names;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view name = name_at(text, at);
        if (known.contains(name)) names.push_back(name);
        at += name.empty() ? 1 : name.size();
    }
    return names;
}

// "%main (x: f32[8]) -> f32[8] {", with ENTRY before it or not. The name, or nothing if it is no such line.
std::string_view computation_of(std::string_view line, bool& entry) {
    if (line.starts_with(' ') || !stripped(line).ends_with('{') || line.find("-> ") == npos) return {};
    entry = take(line, "ENTRY ");
    take(line, "%");
    const std::string_view name = name_at(line, 0);
    return line.substr(name.size()).starts_with(" (") ? name : std::string_view();
}

// A count in the first line of a module; 1 if it is missing.
Result<Index> count_of(std::string_view head, std::string_view word) {
    const std::size_t at = head.find(word);
    if (at == npos) return 1;
    return notation::Scanner(head.substr(at + word.size())).integer("a count of devices");
}

}  // namespace

Result<HloModule> read_module(std::string_view text) {
    const std::string_view head = text.substr(0, text.find('\n'));
    if (head.find("is_scheduled=true") == npos)
        return fail(Code::usage, "the HLO module is not scheduled: its first line has no is_scheduled=true");
    HloModule module;
    RESHARD_TRY(const Index partitions, count_of(head, "num_partitions="));
    RESHARD_TRY(const Index replicas, count_of(head, "replica_count="));
    module.devices = saturating_multiply(partitions, replicas);
    std::vector<std::string_view>* lines = nullptr;
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        bool entry = false;
        const std::string_view begun = computation_of(line, entry);
        if (!begun.empty()) {
            lines = &module.computations[begun];
            if (entry) module.entry = begun;
        } else if (lines != nullptr && !stripped(line).empty() && stripped(line) != "}") {
            lines->push_back(stripped(line));
        }
    }
    return module;
}

Result<std::vector<HloLine>> read_lines(const std::vector<std::string_view>& lines) {
    std::vector<HloLine> read;
    std::set<std::string_view> known;
    for (const std::string_view text : lines) {
        HloLine line;
        std::string_view rest = text;
        line.root = take(rest, "ROOT ");
        take(rest, "%");
        line.name = name_at(rest, 0);
        rest.remove_prefix(line.name.size());
        if (line.name.empty() || !take(rest, " = ")) continue;
        const std::size_t type = rest.starts_with('(') ? closing(rest) : rest.find(' ');
        if (type == npos) return wrong(text, "ends within a type");
        RESHARD_ASSIGN(line.bytes, bytes_of(rest.substr(0, type)));
        rest = stripped(rest.substr(type));
        line.opcode = name_at(rest, 0);
        rest.remove_prefix(line.opcode.size());
        const std::size_t operands = rest.starts_with('(') ? closing(rest) : npos;
        if (line.opcode.empty() || operands == npos) return wrong(text, "has no operation with operands");
        line.operands = known_names(rest.substr(0, operands), known);
        line.attributes = rest.substr(operands);
        line.before = known_names(attribute(line, "control-predecessors"), known);
        if (!known.insert(line.name).second) return wrong(text, "has the name of an earlier one");
        read.push_back(std::move(line));
    }
    return read;
}

std::string_view attribute(const HloLine& line, std::string_view name) {
    const std::string word = fmt::format(" {}=", name);
    const std::size_t at = line.attributes.find(word);
    if (at == npos) return {};
    const std::string_view rest = line.attributes.substr(at + word.size());
    std::size_t end = 0;
    for (Index depth = 0; end < rest.size(); ++end) {
        if (rest[end] == '{' || rest[end] == '[' || rest[end] == '(') ++depth;
        if (rest[end] == '}' || rest[end] == ']' || rest[end] == ')') --depth;
        if (depth < 0 || (depth == 0 && rest[end] == ',')) break;
    }
    return rest.substr(0, end);
}

std::string_view quoted_attribute(const HloLine& line, std::string_view name) {
    const std::string word = fmt::format("{}=\"", name);
    const std::size_t at = line.attributes.find(word);
    if (at == npos) return {};
    const std::string_view rest = line.attributes.substr(at + word.size());
    return rest.substr(0, rest.find('"'));
}

Result<std::vector<Index>> first_group(std::string_view groups, Index devices) {
    std::vector<Index> group;
    if (groups.empty() || groups == "{}") {
        if (devices > notation::listed_devices_max)
            return fail(Code::unsupported, fmt::format("a group of {} devices", devices));
        group.resize(static_cast<std::size_t>(devices));
        std::iota(group.begin(), group.end(), Index{0});
        return group;
    }
    notation::Scanner scanner(groups);
    if (scanner.take('{')) return notation::scan_list(scanner, '{', '}', "a device", 0);
    if (!scanner.sees('[')) return group;
    RESHARD_TRY(const auto& counts, notation::scan_list(scanner, '[', ']', "a count", 1));
    RESHARD_CHECK(scanner.expect('<'));
    RESHARD_CHECK(scanner.expect('='));
    std::vector<Index> shape, order;
    RESHARD_CHECK(notation::scan_iota(scanner, shape, order));
    Index all = 1;
    for (const Index count : counts) all = saturating_multiply(all, count);
    if (counts.size() != 2 || all > notation::listed_devices_max)
        return scanner.error(Code::unsupported, "groups are written as [groups,devices]<=[...]");
    const auto listed = notation::iota_devices(shape, order, all);
    if (!listed) return scanner.error(Code::syntax, fmt::format("groups list {} devices, their iota others", all));
    group.assign(listed->begin(), listed->begin() + counts[1]);
    return group;
}

}  // namespace reshard::program
