// Scheduled HLO as a program of tasks: how far XLA's own order is from the bound.
#pragma once

#include <functional>
#include <string_view>

#include "reshard/planner/cost.hpp"
#include "reshard/program/program.hpp"

namespace reshard {

/// An instruction of scheduled HLO that takes time. Bytes are of one device.
struct HloInstruction {
    std::string name = {};        ///< as XLA names it
    std::string opcode = {};      ///< as XLA writes it: fusion, all-gather-start
    std::string collective = {};  ///< all-gather, also if it is started asynchronously; empty: no collective
    Index bytes = 0;              ///< of its result; if it starts a collective, of the result of its done
    Index read_bytes = 0;         ///< of its operands
    std::string op = {};          ///< JAX's name of it; empty if XLA has lost it
    /// The devices of the first group. Empty: no collective, or one whose groups are written as axes of a mesh.
    std::vector<Index> devices = {};
    std::vector<Index> targets = {};  ///< of a collective-permute: the device that each of `devices` sends to
};

/// The picoseconds of an instruction. program_of_hlo passes its errors on.
using HloTimes = std::function<Result<Index>(const HloInstruction&)>;

/// A measured time in picoseconds. Errors: usage (not from 0 to 200,000 seconds).
[[nodiscard]] Result<Index> picoseconds_of(const HloInstruction& instruction, double seconds);

/// A computation of a compiled module. Its tasks are free to run in any order that its data allow.
struct ScheduledHlo {
    /// Collectives are tasks of the engine `network`, all others of `compute`; they run on device 0. Arrays have the
    /// bytes of one device.
    Program program = {};
    /// The end of XLA's order: a collective starts at its start, and its done waits for it. One travels at a time.
    Index xla_picoseconds = 0;
    Index hidden = 0;    ///< collectives that XLA starts before it waits for them: pairs of start and done
    Index blocking = 0;  ///< collectives that XLA waits for at once
};

/// Reads the order that XLA's scheduler gave a computation. text: of a module, as XLA dumps it. computation: its name,
/// such as the body of a loop; empty: the entry. A loop is one task. The done of a pair takes no time; its start has
/// the time of the collective. Errors: usage (the module is not scheduled, no such computation); syntax; overflow; as
/// `times`.
[[nodiscard]] Result<ScheduledHlo> program_of_hlo(std::string_view text, const HloTimes& times,
                                                  std::string_view computation = {});

/// Estimates times on a machine. A collective takes as long as the best plan of collectives between its layouts, with
/// its group on the same devices of the machine. Any other instruction takes as long as a copy of the bytes that it
/// reads and writes: arithmetic is not counted. Errors: unsupported (a loop or a call, whose time is not known; groups
/// that are written as axes of a mesh); as synthesize.
[[nodiscard]] HloTimes hlo_times_on(const Machine& machine);

}  // namespace reshard
