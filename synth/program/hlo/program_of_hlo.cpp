#include "reshard/program/hlo.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/notations/iota.hpp"
#include "synth/program/hlo/text.hpp"

namespace reshard {
namespace {

using program::HloLine;
using program::HloModule;

// Instructions that pass their operands on, and take no time.
constexpr std::array<std::string_view, 6> renaming = {"get-tuple-element", "tuple",       "bitcast",
                                                      "after-all",         "opt-barrier", "async-update"};
constexpr std::array<std::string_view, 7> collectives = {
    "all-gather",         "all-to-all",           "all-reduce",       "reduce-scatter",
    "collective-permute", "collective-broadcast", "ragged-all-to-all"};

bool is_one_of(std::string_view word, const auto& words) { return std::ranges::count(words, word) > 0; }
bool is_done(const HloLine& line) { return line.opcode.ends_with("-done"); }
bool is_start(const HloLine& line) { return line.opcode.ends_with("-start"); }
bool passes_on(const HloLine& line) { return is_one_of(line.opcode, renaming) || is_done(line); }

class Reader {
public:
    Reader(const HloModule& module, const HloTimes& times) : module_(module), times_(times), mesh_({{"d", 1}}) {}

    Result<ScheduledHlo> read(const std::vector<HloLine>& lines) {
        for (const HloLine& line : lines) lines_[line.name] = &line;
        for (const HloLine& line : lines) find_ends(line);
        for (const HloLine& line : lines) {
            if (line.opcode == "parameter") {
                RESHARD_TRY(const auto& layout, bytes(line.bytes));
                out_.program.arrays.push_back({std::string(line.name), layout, kept_.contains(line.name)});
                held_[line.name] = {{std::string(line.name), line.bytes}};
            } else if (passes_on(line)) {
                pass_on(line);
            } else if (line.opcode != "constant") {
                RESHARD_CHECK(add(line));
            }
        }
        out_.xla_picoseconds = std::max(computed_, travelled_);
        return std::move(out_);
    }

private:
    [[nodiscard]] Result<Layout> bytes(Index count) const {
        return make_layout(mesh_, DType::u8, {std::max<Index>(count, 1)}, {});
    }

    // The arrays of the result are kept. A start makes the array of its done.
    void find_ends(const HloLine& line) {
        if (line.root)
            for (const std::string_view made : behind(line)) kept_.insert(made);
        if (!is_done(line)) return;
        for (const std::string_view start : behind(line)) result_bytes_[start] = line.bytes;
    }

    // The instructions that make a result, through tuples and dones.
    [[nodiscard]] std::set<std::string_view> behind(const HloLine& line) const {
        std::set<std::string_view> made, seen;
        std::vector<const HloLine*> open{&line};
        while (!open.empty()) {
            const HloLine& one = *open.back();
            open.pop_back();
            if (!seen.insert(one.name).second) continue;
            if (!passes_on(one)) made.insert(one.name);
            if (passes_on(one))
                for (const std::string_view operand : one.operands) open.push_back(lines_.at(operand));
        }
        return made;
    }

    // A done also waits for its start.
    void pass_on(const HloLine& line) {
        auto& held = held_[line.name];
        for (const std::string_view operand : line.operands) {
            held.insert(held_[operand].begin(), held_[operand].end());
            task_[line.name].insert(task_[operand].begin(), task_[operand].end());
        }
        if (!is_done(line)) return;
        for (const std::string_view start : behind(line)) computed_ = std::max(computed_, ends_[start]);
    }

    Result<void> add(const HloLine& line) {
        std::map<std::string, Index> uses;
        for (const std::string_view operand : line.operands) uses.insert(held_[operand].begin(), held_[operand].end());
        RESHARD_TRY(auto& asked, instruction(line));
        for (const auto& [array, count] : uses) asked.read_bytes = saturating_add(asked.read_bytes, count);
        RESHARD_TRY(const Index taken, times_(asked));
        const bool moves = is_start(line) || !asked.collective.empty();
        place(line, taken, moves);
        Task task{asked.name, mesh_, taken};
        if (moves) task.engine = "network";
        for (const auto& [array, count] : uses) {
            RESHARD_TRY(const auto& layout, bytes(count));
            task.uses.push_back({array, layout});
        }
        RESHARD_TRY(const auto& made, bytes(asked.bytes));
        task.makes.push_back({asked.name, made, kept_.contains(line.name)});
        std::set<std::string> after;
        for (const std::string_view earlier : line.before) after.insert(task_[earlier].begin(), task_[earlier].end());
        task.after.assign(after.begin(), after.end());
        out_.program.tasks.push_back(std::move(task));
        held_[line.name] = {{asked.name, asked.bytes}};
        task_[line.name] = {asked.name};
        return {};
    }

    // In XLA's order: computations run one after another, and so do collectives. A collective without a done is waited
    // for at once.
    void place(const HloLine& line, Index taken, bool moves) {
        const Index begin = moves ? std::max(computed_, travelled_) : computed_;
        const Index end = saturating_add(begin, taken);
        if (moves) travelled_ = end;
        if (!is_start(line)) computed_ = end;
        ends_[line.name] = end;
        out_.hidden += is_start(line) ? 1 : 0;
        out_.blocking += moves && !is_start(line) ? 1 : 0;
    }

    Result<HloInstruction> instruction(const HloLine& line) const {
        HloInstruction one{std::string(line.name), std::string(line.opcode)};
        const auto made = result_bytes_.find(line.name);
        one.bytes = made == result_bytes_.end() ? line.bytes : made->second;
        one.op = quoted_attribute(line, "op_name");
        if (line.opcode != "async-start") {
            RESHARD_CHECK(set_collective(one, line));
            return one;
        }
        // The collective is the root of the computation that the start calls.
        std::string_view called = attribute(line, "calls");
        if (called.starts_with('%')) called.remove_prefix(1);
        const auto wrapped = module_.computations.find(called);
        if (wrapped == module_.computations.end()) return one;
        RESHARD_TRY(const auto& lines, program::read_lines(wrapped->second));
        const auto root = std::ranges::find(lines, true, &HloLine::root);
        if (root != lines.end()) RESHARD_CHECK(set_collective(one, *root));
        return one;
    }

    Result<void> set_collective(HloInstruction& one, const HloLine& line) const {
        std::string_view kind = line.opcode;
        if (is_start(line)) kind.remove_suffix(std::string_view("-start").size());
        if (!is_one_of(kind, collectives)) return {};
        one.collective = kind;
        if (kind != "collective-permute") {
            RESHARD_ASSIGN(one.devices, program::first_group(attribute(line, "replica_groups"), module_.devices));
            return {};
        }
        return read_pairs(one, attribute(line, "source_target_pairs"));
    }

    // {{0,1},{1,0}}
    static Result<void> read_pairs(HloInstruction& one, std::string_view pairs) {
        if (pairs == "{}") return {};
        notation::Scanner scanner(pairs);
        RESHARD_CHECK(scanner.expect('{'));
        do {
            RESHARD_TRY(const auto& pair, notation::scan_list(scanner, '{', '}', "a device", 0));
            if (pair.size() != 2) return scanner.error(Code::syntax, "a pair has a source and a target");
            one.devices.push_back(pair[0]);
            one.targets.push_back(pair[1]);
        } while (scanner.take(','));
        return scanner.expect('}');
    }

    const HloModule& module_;
    const HloTimes& times_;
    Mesh mesh_;
    ScheduledHlo out_;
    std::map<std::string_view, const HloLine*> lines_;
    std::map<std::string_view, Index> result_bytes_;                 // of each start
    std::map<std::string_view, std::map<std::string, Index>> held_;  // the arrays that a result is made of, in bytes
    std::map<std::string_view, std::set<std::string>> task_;         // the tasks that an instruction stands for
    std::map<std::string_view, Index> ends_;
    std::set<std::string_view> kept_;
    Index computed_ = 0;
    Index travelled_ = 0;
};

}  // namespace

Result<ScheduledHlo> program_of_hlo(std::string_view text, const HloTimes& times, std::string_view computation) {
    RESHARD_TRY(const auto& module, program::read_module(text));
    const std::string_view name = computation.empty() ? module.entry : computation;
    const auto found = module.computations.find(name);
    if (found == module.computations.end()) {
        std::vector<std::string_view> names;
        for (const auto& [other, lines] : module.computations) names.push_back(other);
        return fail(Code::usage,
                    fmt::format("the module has no computation {}; it has {}", name, fmt::join(names, ", ")));
    }
    RESHARD_TRY(const auto& lines, program::read_lines(found->second));
    return Reader(module, times).read(lines);
}

}  // namespace reshard
