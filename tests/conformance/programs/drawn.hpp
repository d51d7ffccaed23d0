// Schedules of random programs, often under a limit that is nearly the least.
#pragma once

#include "reshard/program/schedule.hpp"
#include "support/property.hpp"
#include "unit/program/random_program.hpp"

namespace reshard::conformance {

inline ScheduleSynthesis drawn_schedule(std::uint64_t seed, int devices, bool in_pieces = false) {
    const Program program = test::RandomProgram(seed, devices, in_pieces).draw();
    ScheduleOptions options;
    options.rounds_max = 50;
    options.states_max = 1000;
    const auto made = schedule(program, options).value();
    Index peak = 0;
    for (const PlaceVerdict& place : made.verdict().places) peak = std::max(peak, place.peak_bytes);
    for (const Index limit : {peak - peak / 8, peak}) {  // often too little
        options.footprint_bytes_max = limit;
        if (auto tight = schedule(program, options)) return *tight;
    }
    return made;
}

/// How many moves come in pieces.
inline Index pieced(const ScheduleSynthesis& made) {
    return std::ranges::count(made.schedule().moves, true, &ProgramMove::in_pieces);
}

}  // namespace reshard::conformance
