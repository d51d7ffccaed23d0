// What a plan costs on a machine, in integer picoseconds, so that every rank and every compiler agrees.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One level of the network: `devices` consecutive devices (with all inner levels) reach each other through it.
struct Level {
    std::string name;
    Index devices = index_max;  ///< devices under one switch of this level
    Index latency_ps = 0;       ///< per message
    Index bytes_per_second =
        1;               ///< per device, one way; when `shared`, of all devices of the next inner level together
    Index start_ps = 0;  ///< once per step that uses this level
    bool shared = false;
    friend bool operator==(const Level&, const Level&) = default;
};

/// Levels from the inside out, and the rate of local copies.
struct Machine {
    std::string name;
    std::vector<Level> levels;
    Index copy_bytes_per_second = 1;
    friend bool operator==(const Machine&, const Machine&) = default;
};

/// One node of a laptop or workstation: one level, ranks that share memory. Figures: this project's bench/README.md.
[[nodiscard]] Machine laptop();

/// A machine of some size, with the source of each figure beside it: laptop, dgx-h100:nodes=N, tpu-v5p:AxBxC,
/// ethernet:nodes=N,per_node=P. Errors: syntax, overflow.
[[nodiscard]] Result<Machine> make_machine(std::string_view specification);

/// machine := "machine" name NL {level NL} "copy" rate NL
/// level := "level" name "devices" (count | "all") "message" time "bandwidth" rate ["start" time] ["shared"]
/// Times take ps, ns, us, ms, s; rates B/s to EB/s. Levels grow: each is a multiple of the one inside it.
/// Errors: syntax, overflow, mesh (levels that do not nest, a rate of 0).
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);
[[nodiscard]] std::string format(const Machine& machine);

/// Time to move so many bytes at so many a second, rounded up; saturating. A rate below 1 counts as 1.
[[nodiscard]] Index transfer_picoseconds(Index bytes, Index bytes_per_second);

/// Elements that a device exchanges with devices that only this level reaches, one entry per level: what a step's
/// busiest device receives or sends, whichever is more, dealt over the members of its group; a permute may send it all
/// to the outermost.
[[nodiscard]] std::vector<Index> level_loads(const Step& step, const Move& move, const Machine& machine);

/// Time of one step: per level that it uses start + latency x messages + load / bandwidth, then local copies;
/// saturating. Devices beyond the machine's outermost level are reached through it all the same.
[[nodiscard]] Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine);

/// Sum over the steps of a judged plan. pre: verdict = check(plan).
[[nodiscard]] Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine);

}  // namespace reshard
