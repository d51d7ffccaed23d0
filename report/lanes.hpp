// A schedule as lanes: for every engine of a device and every card, what runs on it.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"
#include "reshard/program/schedule.hpp"

namespace reshard::cli {

/// An activity of a schedule with its times.
struct Run {
    std::size_t number = 0;  ///< in ProgramSchedule::order
    Index start = 0;         ///< picoseconds
    Index end = 0;
    bool is_move = false;
};

/// The activities that one resource serves, by start.
struct Lane {
    std::string name;  ///< compute 0, network out 3; the smallest of all devices that do the same
    std::vector<Run> runs;
    [[nodiscard]] Index busy() const;  ///< picoseconds
};

/// Engines first, then cards.
[[nodiscard]] std::vector<Lane> lanes_of(const Judged<ProgramSchedule>& made, const Machine& machine);

/// The schedule as text: a line for each lane, then the memory of each device, then the end and its bound.
[[nodiscard]] std::string schedule_text(const ScheduleSynthesis& made, const Machine& machine, const Page& page);

/// The chain that ends last, from its end back to the beginning: what each activity waited for.
[[nodiscard]] std::string schedule_chain(const ScheduleSynthesis& made, const Machine& machine, const Page& page);

/// The lanes as SVG.
[[nodiscard]] std::string schedule_svg(const ScheduleSynthesis& made, const Machine& machine);

/// JSON in Chrome's trace format, which Perfetto reads: a thread for each lane, a counter for the memory of each
/// device.
[[nodiscard]] std::string schedule_trace(const ScheduleSynthesis& made, const Machine& machine);

}  // namespace reshard::cli
