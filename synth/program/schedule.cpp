#include "reshard/program/schedule.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "synth/program/in_pieces.hpp"
#include "synth/program/search.hpp"

namespace reshard {
namespace {

using program::Activities;
using program::Expanded;
using Offered = std::vector<std::optional<program::InPieces>>;

// The program with a limit for every device.
Program limited(Program program, const std::optional<Index>& bytes) {
    if (!bytes) return program;
    std::set<std::string> seen;
    const auto add = [&](const Mesh& mesh) {
        if (seen.insert(format(mesh)).second) program.limits.push_back({mesh, *bytes});
    };
    for (const ProgramArray& array : program.arrays) add(array.layout.mesh);
    for (const Task& task : program.tasks) add(task.mesh);
    return program;
}

Index default_rounds(int activities) {
    constexpr Index most = 200'000;
    constexpr Index placed = 4'000'000;  // activities, over all rounds
    return std::min(most, placed / std::max(1, activities));
}

tl::unexpected<Error> no_order(const Expanded& expanded, const std::vector<Index>& needed) {
    std::string devices;
    for (std::size_t p = 0; p < needed.size(); ++p)
        if (needed[p] > expanded.activities.limits[p])
            devices += fmt::format("{}device {} needs {} ({} bytes), its limit is {}", devices.empty() ? "" : "; ",
                                   expanded.devices[p], format_bytes(needed[p]), needed[p],
                                   format_bytes(expanded.activities.limits[p]));
    if (devices.empty()) devices = "each device has an order that fits, but no order fits all";
    return fail(Code::infeasible, "no order that was tried keeps the limits: " + devices);
}

std::string words(const program::LowerBound& bound, const Expanded& expanded) {
    switch (bound.binding) {
        case program::Binding::path:
            return "the longest path";
        case program::Binding::resource:
            return expanded.resources[bound.number];
        case program::Binding::memory:
            return fmt::format("memory of device {}", expanded.devices[bound.number]);
    }
    return "";
}

ScheduleStop stop_of(program::Ended ended) {
    switch (ended) {
        case program::Ended::bound:
            return ScheduleStop::bound;
        case program::Ended::exhausted:
            return ScheduleStop::exhausted;
        case program::Ended::budget:
            break;
    }
    return ScheduleStop::budget;
}

ProgramSchedule scheduled(Expanded& expanded, const program::Order& order) {
    program::Times times(expanded.activities);
    (void)times.of(order);
    const std::size_t tasks = expanded.activities.all.size() - expanded.moves.size();
    ProgramSchedule schedule{std::move(expanded.moves), {}};
    for (const int j : order) {
        const auto number = static_cast<std::size_t>(j);
        const bool is_move = number >= tasks;
        schedule.order.push_back({is_move, is_move ? number - tasks : number, times.start()[number]});
    }
    return schedule;
}

// While the schedule ends sooner, the moves that their users wait for in a chain that ends last come in pieces, and the
// search begins anew. Returns the program of the best answer.
Expanded cut_while_sooner(const Expanded& whole, const Offered& offered, const program::Budget& budget,
                          program::Answer& answer) {
    constexpr int searches_max = 8;
    Expanded best = whole;
    std::vector<std::size_t> chosen;
    for (int k = 0; k < searches_max && answer.found.value.end > answer.bound.end; ++k) {
        const auto more = program::waited_for(best, answer.found.order, offered);
        if (more.empty()) break;
        chosen.insert(chosen.end(), more.begin(), more.end());
        Expanded cut = program::with_pieces(whole, offered, chosen);
        auto next = program::best_order(cut.activities, budget, nullptr, &answer.bound);
        answer.rounds += next ? next->rounds : 0;
        answer.states += next ? next->states : 0;
        if (!next || next->found.value.end >= answer.found.value.end) break;
        next->rounds = answer.rounds;
        next->states = answer.states;
        answer = std::move(*next);
        best = std::move(cut);
    }
    // All orders were visited for one choice of pieces only.
    if (answer.ended == program::Ended::exhausted &&
        std::ranges::any_of(offered, [](const auto& one) { return one.has_value(); }))
        answer.ended = program::Ended::budget;
    return best;
}

}  // namespace

std::string_view name(ScheduleStop stop) {
    switch (stop) {
        case ScheduleStop::bound:
            return "bound";
        case ScheduleStop::exhausted:
            return "exhausted";
        case ScheduleStop::budget:
            return "budget";
    }
    return "";
}

Result<ScheduleSynthesis> schedule(const Program& asked, const ScheduleOptions& options) {
    if (options.footprint_bytes_max && *options.footprint_bytes_max < 0)
        return fail(Code::usage, fmt::format("a limit of {} bytes is negative", *options.footprint_bytes_max));
    const Program whole = limited(asked, options.footprint_bytes_max);
    RESHARD_CHECK(validate(whole));
    RESHARD_TRY(Expanded & expanded, program::expand(whole, options.moves));
    const program::Budget budget{options.rounds_max.value_or(default_rounds(expanded.activities.count())),
                                 options.states_max};
    RESHARD_TRY(const Offered& offered, program::offered_pieces(whole, expanded, options.moves.machine));
    const Activities easy = program::relaxed(expanded, offered);
    const program::LowerBound bound = program::lower_bound(easy, program::paths_of(easy));
    std::vector<Index> needed;
    auto answer = program::best_order(expanded.activities, budget, &needed, &bound);
    if (!answer) return no_order(expanded, needed);
    const auto written = program::Times(expanded.activities).of(expanded.activities.written);
    const std::string binding = words(bound, expanded);
    Expanded best = cut_while_sooner(expanded, offered, budget, *answer);
    RESHARD_TRY(const auto& judged, judge(whole, scheduled(best, answer->found.order), options.moves.machine));
    ScheduleSynthesis made{judged};
    made.lower_bound = bound.end;
    made.binding = binding;
    made.stop = stop_of(answer->ended);
    made.rounds = answer->rounds;
    made.states = answer->states;
    made.written_picoseconds = written ? written->end : 0;
    return made;
}

}  // namespace reshard
