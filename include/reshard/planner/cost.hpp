// What a plan costs on a machine, in integer picoseconds, so that every rank and every compiler agrees.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One level of the network: `devices` consecutive devices (with all inner levels) reach each other through it.
struct Level {
    std::string name;                 ///< nvlink, infiniband, ...
    Index devices = index_max;        ///< devices under one switch of this level
    Index latency_ps = 0;             ///< per message
    Index bytes_per_second = 1;       ///< one way: of a device, or of all devices of the next inner level when shared
    Index start_ps = 0;               ///< once per step that uses this level
    bool shared = false;              ///< whether the devices of the next inner level share one connection
    Index pair_bytes_per_second = 0;  ///< one way between two devices, at most; 0 where they may use all of the above
    friend bool operator==(const Level&, const Level&) = default;
};

/// Levels from the inside out, and what local copies cost: by their bytes, and by the runs that these fall into.
struct Machine {
    std::string name;                 ///< as it was specified
    std::vector<Level> levels;        ///< from the inside out
    Index copy_bytes_per_second = 1;  ///< of one device, read and written once
    Index copy_run_ps = 0;       ///< per run of bytes that follow each other at both ends of a copy, beside its bytes
    Index piece_ps = 0;          ///< that each piece of a run takes besides its messages (overlap/choose_pieces)
    Index slowed_percent = 100;  ///< of its time that work takes on a core beside a transfer
    friend bool operator==(const Machine&, const Machine&) = default;
};

/// One node of a laptop or workstation: one level, ranks that share memory. Figures: this project's bench/README.md.
[[nodiscard]] Machine laptop();

/// A machine of some size, with the source of each figure beside it: laptop, dgx-h100:nodes=N, tpu-v5p:AxBxC,
/// ethernet:nodes=N,per_node=P, mi300x, p3.8xlarge:hosts=N. Errors: syntax, overflow.
[[nodiscard]] Result<Machine> make_machine(std::string_view specification);

/// machine := "machine" name NL {level NL} "copy" rate ["run" time] NL ["piece" time "slowed" count "%" NL]
/// level := "level" name "devices" (count | "all") "message" time "bandwidth" rate ["start" time] ["shared"] ["pair"
/// rate] Times in ps to s, rates in B/s to EB/s. Errors: syntax, overflow, mesh (levels that do not nest, a rate of 0).
[[nodiscard]] Result<Machine> parse_machine(std::string_view text);
/// The text that parse_machine reads.
[[nodiscard]] std::string format(const Machine& machine);

/// Time to move `bytes` at `bytes_per_second`, rounded up; saturating. A rate below 1 counts as 1.
[[nodiscard]] Index transfer_picoseconds(Index bytes, Index bytes_per_second);

/// The blocks of devices within the levels of a machine, but for those that hold all of `devices` devices: what a plan
/// that is made for the machine chooses among replicas by.
[[nodiscard]] Network network_of(const Machine& machine, Index devices);

/// True when several devices hold what a schedule of the step sends, among which it chooses by the network.
[[nodiscard]] bool chooses(const Layout& before, const Step& step, const Network& network);

/// By which blocks the schedules of a plan that is made for the machine choose: network_of, or none where no step
/// chooses, and where a step is not typed.
[[nodiscard]] Network network_for(const Plan& plan, const Machine& machine);

/// What one step carries over each level of a machine, one entry per level. A transfer goes over the innermost level
/// that has both its devices, or over the outermost one.
struct Traffic {
    /// Elements that the busiest device sends or receives; of a shared level those of the busiest block inside it.
    std::vector<Index> elements;
    std::vector<Index> pair;      ///< elements that go one way between two devices, at most
    std::vector<Index> messages;  ///< peers that a device receives from, at most
};

/// The traffic of a step whose schedules choose among replicas by `network`. Of several levels it is that of all ranks'
/// schedules, whatever devices the meshes list: in closed form where sizes divide and digits tell blocks apart, else
/// counted block by block, linear in the devices; then `pair`, and beyond 4096 with replicas `messages`, are estimates.
/// Beyond 2^22 devices, or 4096 that choose by another network, it is no less. On one level it is what the typing rule
/// says. An all_reduce carries 2 T (g - 1) / g a device, to each other as much.
[[nodiscard]] Traffic traffic_of(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                                 const Network& network);
/// Its elements, for a plan made for this machine.
[[nodiscard]] std::vector<Index> level_loads(const Layout& before, const Step& step, const Move& move,
                                             const Machine& machine);

/// Time by where it is spent: one entry per level of the machine, and local copies.
struct Times {
    std::vector<Index> levels;  ///< picoseconds, from the inside out
    Index copies = 0;           ///< picoseconds
    friend bool operator==(const Times&, const Times&) = default;
};
[[nodiscard]] Index total(const Times& times);  ///< saturating

/// The elements of one run of a step's copies: those that follow each other in the tile before it and in that after it,
/// on average where a dimension is cut unevenly.
[[nodiscard]] Index copied_run(const Layout& before, const Layout& after);

/// Time of one step of a plan made for the machine: for each level that it uses start + latency x messages + load /
/// bandwidth, by device or by pair, whichever takes longer; then local copies: the tile after it, and its runs beyond
/// the first. A slice is a view: it costs the runs into which it parts a tile, for whoever reads them. Saturating.
/// Devices beyond the outermost level's count are reached through it all the same.
[[nodiscard]] Times step_times(const Layout& before, const Step& step, const Move& move, const Machine& machine);
/// total(step_times(...)).
[[nodiscard]] Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine);

/// The sum over the steps of a judged plan; a tile that no step writes is copied once. pre: verdict = check(plan).
[[nodiscard]] Times plan_times(const Plan& plan, const Verdict& verdict, const Machine& machine);
/// total(plan_times(...)). pre: verdict = check(plan).
[[nodiscard]] Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine);

/// Of a judged plan as it runs: plan_picoseconds, the latencies of each further piece, and Machine::piece_ps of each.
/// Where steps overlap, the first takes them one by one, a further one the longest of: a level over all steps, the
/// inmost level and the copies, half of the piece (two are on their way). pre: verdict = check(plan, execution).
[[nodiscard]] Index run_picoseconds(const Plan& plan, const Execution& execution, const Verdict& verdict,
                                    const Machine& machine);

}  // namespace reshard
