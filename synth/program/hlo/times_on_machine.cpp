// How long the instructions of HLO take on a machine.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "reshard/program/hlo.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard {
namespace {

struct Ends {
    Layout source;
    Layout target;
};

Mesh mesh_of(const std::vector<Index>& devices) { return Mesh({{"d", static_cast<Index>(devices.size())}}, devices); }

Result<Ends> ends(const Mesh& mesh, const std::string& source, const Mesh& other, const std::string& target) {
    RESHARD_TRY(auto& from, parse_layout(mesh, source));
    RESHARD_TRY(auto& to, parse_layout(other, target));
    RESHARD_CHECK(validate(from));
    RESHARD_CHECK(validate(to));
    return Ends{std::move(from), std::move(to)};
}

// The bytes of a collective as layouts. Sizes are rounded up so that they divide.
Result<Ends> ends_of(const HloInstruction& one) {
    const Mesh mesh = mesh_of(one.devices);
    const auto count = static_cast<Index>(one.devices.size());
    const std::string& kind = one.collective;
    const Index whole = saturating_multiply(ceil_divide(one.bytes, count), count);
    const Index gathered = saturating_multiply(one.bytes, count);
    if (kind == "all-gather") return ends(mesh, fmt::format("u8[{}@d]", whole), mesh, fmt::format("u8[{}]", whole));
    if (kind == "all-reduce")
        return ends(mesh, fmt::format("u8[{}]{{U:d}}", whole), mesh, fmt::format("u8[{}]", whole));
    if (kind == "reduce-scatter")
        return ends(mesh, fmt::format("u8[{}]{{U:d}}", gathered), mesh, fmt::format("u8[{}@d]", gathered));
    if (kind == "collective-permute")
        return ends(mesh, fmt::format("u8[{}@d]", gathered), mesh_of(one.targets), fmt::format("u8[{}@d]", gathered));
    if (kind == "collective-broadcast")
        return ends(mesh_of({one.devices.front()}), fmt::format("u8[{}]", whole), mesh, fmt::format("u8[{}]", whole));
    return ends(mesh, fmt::format("u8[{}@d,{}]", count, whole), mesh, fmt::format("u8[{},{}@d]", count, whole));
}

Result<Index> plan_time(const HloInstruction& one, const Machine& machine) {
    RESHARD_TRY(const auto& layouts, ends_of(one));
    Options options;
    options.machine = machine;
    options.vocabulary = Vocabulary::collectives;
    RESHARD_TRY(const Synthesis& made, synthesize(layouts.source, layouts.target, options));
    return run_picoseconds(made.plan(), made.execution(), made.verdict(), machine);
}

Result<Index> collective_time(const HloInstruction& one, const Machine& machine) {
    if (one.devices.empty() && one.collective != "collective-permute")
        return fail(Code::unsupported,
                    fmt::format("{} ({}) has groups that are axes of a mesh; state its time", one.name, one.opcode));
    const bool stays = one.devices == one.targets || (one.devices.size() == 1 && one.targets.empty());
    if (one.bytes == 0 || stays) return 0;
    Result<Index> time = plan_time(one, machine);
    if (!time) time.error().message = fmt::format("{} ({}): {}", one.name, one.opcode, time.error().message);
    return time;
}

// These run other computations.
bool calls(const std::string& opcode) {
    constexpr std::array<std::string_view, 3> callers = {"while", "conditional", "call"};
    return std::ranges::count(callers, opcode) > 0;
}

}  // namespace

Result<Index> picoseconds_of(const HloInstruction& instruction, double seconds) {
    constexpr double seconds_max = 200'000;
    constexpr double picoseconds_in_second = 1e12;
    if (seconds >= 0 && seconds <= seconds_max)
        return static_cast<Index>(std::llround(seconds * picoseconds_in_second));
    return fail(Code::usage, fmt::format("{} ({}) takes {} seconds; 0 to 200000 are wanted", instruction.name,
                                         instruction.opcode, seconds));
}

HloTimes hlo_times_on(const Machine& machine) {
    using Key = std::tuple<std::string, Index, std::vector<Index>, std::vector<Index>>;
    auto known = std::make_shared<std::map<Key, Index>>();
    return [machine, known](const HloInstruction& one) -> Result<Index> {
        if (calls(one.opcode))
            return fail(Code::unsupported,
                        fmt::format("{} ({}) runs other computations; state its time, or read one of them", one.name,
                                    one.opcode));
        if (one.collective.empty())
            return transfer_picoseconds(saturating_add(one.bytes, one.read_bytes), machine.copy_bytes_per_second);
        const Key key(one.collective, one.bytes, one.devices, one.targets);
        const auto found = known->find(key);
        if (found != known->end()) return found->second;
        RESHARD_TRY(const Index time, collective_time(one, machine));
        return (*known)[key] = time;
    };
}

}  // namespace reshard
