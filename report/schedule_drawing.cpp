// A schedule as SVG, and as a trace for Perfetto.
#include <fmt/format.h>

#include <algorithm>

#include "report/lanes.hpp"
#include "report/numbers.hpp"
#include "report/svg.hpp"

namespace reshard::cli {
namespace {

constexpr double time_width = 1200;  // of the whole time
constexpr double label = 160;
constexpr double height = 22;  // of a lane
constexpr double picoseconds_in_microsecond = 1e6;

// A JSON text with its quotes.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += c;
    }
    return out + "\"";
}

// The first letter of a name gives its colour; a move is paler than a task.
std::string colour_of(const std::string& name, bool is_move) {
    return svg::colour_of(name.empty() ? 0 : static_cast<unsigned char>(name.front()), is_move ? 0.65 : 0.3);
}

std::string name_of_run(const ScheduleSynthesis& made, const Run& run) {
    return name_of(made.program(), made.schedule(), made.schedule().order[run.number]);
}

double microseconds(Index picoseconds) { return static_cast<double>(picoseconds) / picoseconds_in_microsecond; }

}  // namespace

std::string schedule_svg(const ScheduleSynthesis& made, const Machine& machine) {
    const std::vector<Lane> lanes = lanes_of(made, machine);
    const double scale =
        made.verdict().picoseconds == 0 ? 0 : time_width / static_cast<double>(made.verdict().picoseconds);
    std::string body;
    double y = 0;
    for (const Lane& lane : lanes) {
        body += svg::words(2, y + 15, lane.name);
        for (const Run& run : lane.runs) {
            const std::string name = name_of_run(made, run);
            const double x = label + static_cast<double>(run.start) * scale;
            const double wide = std::max(0.5, static_cast<double>(run.end - run.start) * scale - 0.5);
            body += svg::drawn(
                {x, y + 2, wide, height - 4}, colour_of(name, run.is_move),
                fmt::format("{}, {} to {}", name, format_picoseconds(run.start), format_picoseconds(run.end)));
            if (static_cast<double>(name.size() + 1) * svg::letter < wide) body += svg::words(x + 3, y + 15, name);
        }
        y += height;
    }
    return svg::sheet(label + time_width, y, body);
}

std::string schedule_trace(const ScheduleSynthesis& made, const Machine& machine) {
    const std::vector<Lane> lanes = lanes_of(made, machine);
    std::string events;
    const auto add = [&](const std::string& event) { events += (events.empty() ? "" : ",\n") + event; };
    for (std::size_t k = 0; k < lanes.size(); ++k) {
        add(fmt::format(R"({{"ph":"M","pid":0,"tid":{},"name":"thread_name","args":{{"name":{}}}}})", k,
                        quoted(lanes[k].name)));
        for (const Run& run : lanes[k].runs)
            add(fmt::format(R"({{"ph":"X","pid":0,"tid":{},"name":{},"cat":"{}","ts":{},"dur":{}}})", k,
                            quoted(name_of_run(made, run)), run.is_move ? "move" : "task", microseconds(run.start),
                            microseconds(run.end - run.start)));
    }
    for (const PlaceVerdict& place : made.verdict().places)
        for (const HeldBytes& held : place.held)
            add(fmt::format(R"({{"ph":"C","pid":0,"name":"memory of device {}","ts":{},"args":{{"bytes":{}}}}})",
                            place.device, microseconds(held.picoseconds), held.bytes));
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + events + "\n]}\n";
}

}  // namespace reshard::cli
