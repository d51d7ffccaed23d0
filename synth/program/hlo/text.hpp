// The text of HLO modules, line by line.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::program {

/// An instruction as it is written. Its names have no %.
struct HloLine {
    std::string_view name;
    std::string_view opcode;
    Index bytes = 0;                         ///< of its result
    std::vector<std::string_view> operands;  ///< names of earlier lines
    std::vector<std::string_view> before;    ///< control predecessors, names of earlier lines
    std::string_view attributes;             ///< the rest of the line
    bool root = false;                       ///< its result is the result of the computation
};

/// Computations by name. The views are of the text.
struct HloModule {
    std::map<std::string_view, std::vector<std::string_view>> computations;  ///< the lines of each
    std::string_view entry;
    Index devices = 1;  ///< that run it
};

/// Errors: usage (the module is not scheduled).
[[nodiscard]] Result<HloModule> read_module(std::string_view text);

/// The instructions of a computation. Errors: syntax, overflow.
[[nodiscard]] Result<std::vector<HloLine>> read_lines(const std::vector<std::string_view>& lines);

/// The value of an attribute, up to the comma or the bracket that ends it: {{0,1},{2,3}}. Empty if it is missing.
[[nodiscard]] std::string_view attribute(const HloLine& line, std::string_view name);

/// The text between quotes behind `name=`. Empty if it is missing.
[[nodiscard]] std::string_view quoted_attribute(const HloLine& line, std::string_view name);

/// The devices of the first group of a collective: of {{0,1},{2,3}}, of [2,2]<=[4], or all. Empty if the groups are
/// axes of a mesh. Errors: syntax.
[[nodiscard]] Result<std::vector<Index>> first_group(std::string_view groups, Index devices);

}  // namespace reshard::program
