// A schedule as text.
#include <algorithm>

#include <fmt/format.h>

#include "report/lanes.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::cli {
namespace {

constexpr std::size_t lanes_max = 64;
constexpr std::size_t chain_max = 40;

// Column of a time, among `width` columns for the whole.
std::size_t column(Index time, Index whole, std::size_t width) {
    return whole == 0 ? 0
                      : static_cast<std::size_t>(static_cast<double>(time) / static_cast<double>(whole) *
                                                 static_cast<double>(width));
}

std::string bar(const ScheduleSynthesis& made, const Lane& lane, std::size_t width) {
    const Index whole = made.verdict().picoseconds;
    std::string line(width, ' ');
    for (const Run& run : lane.runs) {
        const std::size_t begin = std::min(column(run.start, whole, width), width - 1);
        const std::size_t end = std::min(width, std::max(begin + 1, column(run.end, whole, width)));
        const std::string name = printable(name_of(made.program(), made.schedule(), made.schedule().order[run.number]));
        for (std::size_t x = begin; x < end; ++x) line[x] = run.is_move ? '-' : name.empty() ? '#' : name.front();
        // The part of the name behind its first letter, if there is room for all of it.
        const std::string rest = name.substr(std::min<std::size_t>(1, name.size()));
        if (!run.is_move && rest.size() + 1 < end - begin) line.replace(begin + 1, rest.size(), rest);
    }
    return line;
}

std::string percent(Index part, Index whole) {
    return whole == 0 ? "0%" : fmt::format("{:.0f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string_view words(ScheduleStop stop) {
    switch (stop) {
        case ScheduleStop::bound:
            return "no schedule ends sooner: it ends at the bound";
        case ScheduleStop::exhausted:
            return "no schedule ends sooner: every order was visited";
        case ScheduleStop::budget:
            return "the rounds were used up";
    }
    return "";
}

std::string ratio(Index a, Index b) {
    return b == 0 ? "1.000x" : fmt::format("{:.3f}x", static_cast<double>(a) / static_cast<double>(b));
}

// True if `later` needs an array of `earlier`, or is stated to come after it.
bool is_input(const Program& program, const ProgramSchedule& schedule, const ScheduledActivity& earlier,
              const ScheduledActivity& later) {
    if (later.is_move) {
        return !earlier.is_move && std::ranges::count(program.tasks[earlier.number].makes,
                                                      schedule.moves[later.number].array, &ProgramArray::name) > 0;
    }
    const Task& task = program.tasks[later.number];
    if (earlier.is_move)
        return std::ranges::count(schedule.moves[earlier.number].users, later.number, &UseNumber::task) > 0;
    const Task& before = program.tasks[earlier.number];
    return std::ranges::count(task.after, before.name) > 0 ||
           std::ranges::any_of(task.uses, [&](const ProgramUse& use) {
               return std::ranges::count(before.makes, use.array, &ProgramArray::name) > 0;
           });
}

}  // namespace

std::string schedule_text(const ScheduleSynthesis& made, const Machine& machine, const Page& page) {
    const std::vector<Lane> lanes = lanes_of(made, machine);
    const Index whole = made.verdict().picoseconds;
    std::size_t label = 0;
    for (const Lane& lane : lanes) label = std::max(label, display_width(lane.name));
    const std::size_t width = std::max<std::size_t>(20, page.width - std::min(page.width, label + 10));
    std::string text;
    for (std::size_t k = 0; k < std::min(lanes.size(), lanes_max); ++k)
        text += fmt::format("{} |{}| {:>4}\n", padded(printable(lanes[k].name), label), bar(made, lanes[k], width),
                            percent(lanes[k].busy(), whole));
    if (lanes.size() > lanes_max)
        text += fmt::format("... and {} more lanes (--json has all)\n", lanes.size() - lanes_max);
    Table memory({">device", ">peak", ">limit"});
    for (std::size_t k = 0; k < std::min(made.verdict().places.size(), lanes_max); ++k) {
        const PlaceVerdict& place = made.verdict().places[k];
        memory.row({fmt::format("{}", place.device), format_bytes(place.peak_bytes),
                    place.limit == index_max ? "none" : format_bytes(place.limit)});
    }
    text += memory.text(page);
    const auto in_pieces = std::ranges::count(made.schedule().moves, true, &ProgramMove::in_pieces);
    text += fmt::format("ends at {} (bound {}: {})   tasks {}   moves {}{}\n", format_picoseconds(whole),
                        format_picoseconds(made.lower_bound), printable(made.binding), made.program().tasks.size(),
                        made.schedule().moves.size(), in_pieces > 0 ? fmt::format(", {} in pieces", in_pieces) : "");
    if (made.written_picoseconds > 0)
        text += fmt::format("in the program's own order {} ({})\n", format_picoseconds(made.written_picoseconds),
                            ratio(made.written_picoseconds, whole));
    return text + fmt::format("{}\n", words(made.stop));
}

std::string schedule_chain(const ScheduleSynthesis& made, const Machine& machine, const Page& page) {
    const ProgramSchedule& schedule = made.schedule();
    const std::vector<Lane> lanes = lanes_of(made, machine);
    std::vector<Run> runs;
    for (std::size_t k = 0; k < schedule.order.size(); ++k)
        runs.push_back({k, schedule.order[k].start,
                        schedule.order[k].start + picoseconds_of(made.program(), schedule, schedule.order[k]),
                        schedule.order[k].is_move});
    if (runs.empty()) return "";
    Table table({">start", ">end", "activity", "~starts when"});
    Run now = *std::ranges::max_element(runs, {}, &Run::end);
    const auto named = [&](const Run& run) {
        return printable(name_of(made.program(), schedule, schedule.order[run.number]));
    };
    for (std::size_t k = 0; k < chain_max; ++k) {
        // Looks for an activity that ended at its start, on one of its lanes or elsewhere.
        const Run* before = nullptr;
        const Run* pieces = nullptr;  // its move, if that comes in pieces
        std::string why = "the program starts";
        for (const Lane& lane : lanes) {
            const auto at = std::ranges::find(lane.runs, now.number, &Run::number);
            if (at == lane.runs.end() || at == lane.runs.begin() || std::prev(at)->end != now.start || now.start == 0)
                continue;
            before = &runs[std::prev(at)->number];
            why = fmt::format("{} is free: {} has ended", printable(lane.name), named(*before));
        }
        const ScheduledActivity& waits = schedule.order[now.number];
        for (const Run& run : runs) {
            if (before != nullptr || waits.is_move || !run.is_move || run.start >= now.start) continue;
            const ProgramMove& move = schedule.moves[schedule.order[run.number].number];
            if (!move.in_pieces || move.users.front().task != waits.number) continue;
            pieces = &run;
        }
        for (const Run& run : runs) {
            if (now.start == 0 || run.end != now.start || run.number >= now.number || run.end == run.start) continue;
            const bool input = is_input(made.program(), schedule, schedule.order[run.number], waits);
            if (!input && (before != nullptr || pieces != nullptr)) continue;
            before = &run;
            why = fmt::format("{} has ended{}", named(run), input ? ", its input" : " and frees memory");
            if (input) break;
        }
        if (before == nullptr && pieces != nullptr) {
            before = pieces;
            why = fmt::format("each piece of {} arrives in time", named(*pieces));
        }
        table.row({format_picoseconds(now.start), format_picoseconds(now.end), named(now), why});
        if (before == nullptr) break;
        now = *before;
    }
    return table.text(page);
}

}  // namespace reshard::cli
