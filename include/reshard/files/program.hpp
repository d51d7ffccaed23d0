// Programs as JSON lines.
#pragma once

#include <string_view>

#include "reshard/program/script.hpp"

namespace reshard::files {

/// Parses a program from lines of JSON, each one of:
///     {"array": name, "mesh": mesh, "layout": layout, "kept": true}
///     {"task": name, "mesh": mesh, "seconds": number, "uses": {name: use}, "makes": {name: made}, "donates": [name],
///      "after": [name], "scratch": bytes, "engine": name}
///     {"limit": bytes, "mesh": mesh}
/// A use is a layout, or {"layout": layout, "mesh": mesh, "again": true, "seconds": number}, or a list of them. A made
/// array is a layout, or {"layout": layout, "mesh": mesh, "kept": true}. Meshes and layouts are written as parse_mesh
/// and parse_layout read them. A layout without a mesh is on its task's mesh. Times are "seconds" or whole
/// "picoseconds". Sizes are numbers or text such as "16MiB". Empty lines are skipped. Errors, with the number of the
/// line: io (no JSON); syntax (a field that is unknown, missing or of another type); as the parsers. The program is not
/// validated.
[[nodiscard]] Result<Program> parse_program(std::string_view lines);

/// Adds one such line to a program. If it fails, the program is as before. Errors: as parse_program, without a number.
[[nodiscard]] Result<void> add_line(Program& program, std::string_view line);

/// The lines that parse_program reads.
[[nodiscard]] std::string format(const Program& program);

/// The script of a device as one line of JSON, with the fields of `reshard schedule --script` (docs/programs.md).
[[nodiscard]] std::string format(const Judged<ProgramSchedule>& made, const DeviceScript& script);

}  // namespace reshard::files
