// What a plan costs on a machine, in integer picoseconds, so that every rank and every compiler agrees.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One level of the network: `devices` consecutive devices (with all inner levels) reach each other through it.
struct Level {
    std::string name;
    Index devices = index_max;   ///< devices under one switch of this level; the last level reaches all
    Index latency_ps = 0;        ///< per message
    Index bytes_per_second = 1;  ///< per device
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

/// Time of one step: latency x messages + load / bandwidth per level + local copies; saturating.
[[nodiscard]] Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine);

/// Sum over the steps of a judged plan. pre: verdict = check(plan).
[[nodiscard]] Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine);

}  // namespace reshard
