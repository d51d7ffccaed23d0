// The cost of a plan on a machine. Times are integer picoseconds, so every rank and every compiler agrees on them.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One level of the network: `devices` consecutive devices, inner levels included, reach each other through it.
struct Level {
    std::string name;                 ///< nvlink, infiniband, ...
    Index devices = index_max;        ///< devices under one switch of this level
    Index latency_ps = 0;             ///< per message
    Index bytes_per_second = 1;       ///< one way, per device; if shared, for all devices of the next inner level
    Index start_ps = 0;               ///< once per step that uses this level
    bool shared = false;              ///< true: the devices of the next inner level share one connection
    Index pair_bytes_per_second = 0;  ///< the most one way between two devices; 0: no limit but the rate above
    friend bool operator==(const Level&, const Level&) = default;
};

/// The levels of the network, and what local copies cost: by bytes, and by runs of consecutive bytes.
struct Machine {
    std::string name;                 ///< as it was specified
    std::vector<Level> levels;        ///< from the inside out
    Index copy_bytes_per_second = 1;  ///< per device, read and written once
    Index copy_run_ps = 0;            ///< extra time per run of bytes that are consecutive at both ends of a copy
    Index piece_ps = 0;               ///< extra time per piece of a run, besides its messages (overlap/choose_pieces)
    Index slowed_percent = 100;       ///< time of work on a core beside a transfer, in percent of its time alone
    friend bool operator==(const Machine&, const Machine&) = default;
};

/// A laptop or workstation: one level, ranks that share memory. The figures are from this project's bench/README.md.
[[nodiscard]] Machine laptop();

/// A known machine of a given size: laptop, dgx-h100:nodes=N, tpu-v5p:AxBxC, ethernet:nodes=N,per_node=P, mi300x,
/// p3.8xlarge:hosts=N. The code has the source of each figure beside it. Errors: syntax, overflow.
[[nodiscard]] Result<Machine> make_machine(std::string_view specification);

/// Parses machine := "machine" name NL {level NL} "copy" rate ["run" time] NL ["piece" time "slowed" count "%" NL];
/// level := "level" name "devices" (count | "all") "message" time "bandwidth" rate ["start" time] ["shared"]
/// ["pair" rate]. Times in ps to s, rates in B/s to EB/s.
/// Errors: syntax, overflow, mesh (levels that do not nest, a rate of 0).
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);
/// The text that parse_machine reads.
[[nodiscard]] std::string format(const Machine& machine);

/// Time to move `bytes` at `bytes_per_second`, rounded up; saturating. A rate below 1 counts as 1.
[[nodiscard]] Index transfer_picoseconds(Index bytes, Index bytes_per_second);

/// The blocks of devices in the levels of a machine, except blocks that hold all `devices` devices. A plan made for the
/// machine chooses among replicas by these blocks.
[[nodiscard]] Network network_of(const Machine& machine, Index devices);

/// True when several devices hold what a schedule of the step sends, so that it chooses among them by the network.
[[nodiscard]] bool depends_on_network(const Layout& before, const Step& step, const Network& network);

/// The network of a plan made for the machine: network_of if a step chooses among replicas. Empty if no step chooses,
/// or if a step is not typed.
[[nodiscard]] Network network_for(const Plan& plan, const Machine& machine);

/// The load of one step on each level of a machine, one entry per level. A transfer goes over the innermost level
/// that has both its devices; if no level has both, over the outermost.
struct Traffic {
    /// Elements that the busiest device sends or receives. On a shared level: elements of the busiest block inside it.
    std::vector<Index> elements;
    std::vector<Index> pair;      ///< the most elements that go one way between two devices
    std::vector<Index> messages;  ///< the most peers that a device receives from
};

/// The traffic of a step whose schedules choose among replicas by `network`. On one level it is what the typing rule
/// says. With several levels it counts every rank's schedule, whichever devices the meshes list. The count is in closed
/// form if sizes divide and digits tell blocks apart. Otherwise it goes block by block, linear in the devices; then
/// `pair` is an estimate, and so is `messages` beyond 4096 devices with replicas. Beyond 2^22 devices, or beyond 4096
/// that choose by another network, it is an upper bound. An all_reduce carries 2 T (g - 1) / g per device, and as much
/// between two devices.
[[nodiscard]] Traffic traffic_of(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                                 const Network& network);
/// The elements of traffic_of, for a plan made for this machine.
[[nodiscard]] std::vector<Index> level_loads(const Layout& before, const Step& step, const Move& move,
                                             const Machine& machine);

/// Time on each level of the machine, and on local copies.
struct Times {
    std::vector<Index> levels;  ///< picoseconds, from the inside out
    Index copies = 0;           ///< picoseconds
    friend bool operator==(const Times&, const Times&) = default;
};
[[nodiscard]] Index total(const Times& times);  ///< saturating

/// The elements in one run of a step's copies: they are consecutive in the tile before the step and in the tile after
/// it. An average if a dimension is cut unevenly.
[[nodiscard]] Index copied_run(const Layout& before, const Layout& after);

/// The time of one step of a plan made for the machine, saturating. Each level that it uses takes start + latency x
/// messages + load / bandwidth, by device or by pair, whichever is longer. Local copies take the tile after the step
/// and its runs beyond the first. A slice is a view: it costs the runs into which it cuts a tile, because a later step
/// reads them. Devices beyond the outermost level's count are reached through that level too.
[[nodiscard]] Times step_times(const Layout& before, const Step& step, const Move& move, const Machine& machine);
/// total(step_times(...)).
[[nodiscard]] Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine);

/// The sum over the steps of a judged plan. A tile that no step writes is copied once. pre: verdict = check(plan).
[[nodiscard]] Times plan_times(const Plan& plan, const Verdict& verdict, const Machine& machine);
/// total(plan_times(...)). pre: verdict = check(plan).
[[nodiscard]] Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine);

/// The time of a judged plan with its execution: plan_picoseconds, the latencies of each further piece, and
/// Machine::piece_ps for each piece. If steps overlap, the first piece takes its steps one by one. Each further piece
/// takes the longest of three times: one level over all steps; the innermost level and the copies; half of the whole
/// piece, since two travel at once. pre: verdict = check(plan, execution).
[[nodiscard]] Index run_picoseconds(const Plan& plan, const Execution& execution, const Verdict& verdict,
                                    const Machine& machine);

}  // namespace reshard
