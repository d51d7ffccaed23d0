// What `reshard schedule` is asked: programs, and the options for all of them.
#pragma once

#include "reshard/program/hlo.hpp"
#include "reshard/program/schedule.hpp"
#include "tool/commands/arguments.hpp"

namespace reshard::cli {

/// Reads a program from a file of JSON lines, or from stdin if the name is -. Errors: io; as files::parse_program.
[[nodiscard]] Result<Program> read_program(const std::string& file);

/// Returns the options of the command line. The footprint limit is of the whole program, not of each move. Errors: as
/// read_options.
[[nodiscard]] Result<ScheduleOptions> schedule_options(const Arguments& arguments);

/// Reads --hlo, with the times of --seconds or of the machine. Errors: io; syntax; as program_of_hlo.
[[nodiscard]] Result<ScheduledHlo> read_hlo(const Arguments& arguments, const Machine& machine);

/// The most bytes of any device.
[[nodiscard]] Index peak_bytes(const ScheduleVerdict& verdict);

/// The end under several limits, between the least that is found and the peak of a schedule without one.
[[nodiscard]] Result<std::string> frontier(const Program& program, ScheduleOptions options);

/// `schedule --compare`: schedules each program and prints which one ends first. Returns exit_ok if no other program
/// ends before the first one, else exit_wrong. Errors: infeasible (no program keeps the limits); as schedule.
[[nodiscard]] Result<int> compare_programs(const Arguments& arguments);

}  // namespace reshard::cli
