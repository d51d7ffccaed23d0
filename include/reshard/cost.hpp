// What a plan costs on a machine, in integer picoseconds, so that every rank and every compiler agrees.
#pragma once

#include "reshard/check.hpp"

namespace reshard {

/// One level of the network: `devices` consecutive devices (with all inner levels) reach each other through it.
struct Level {
    std::string name;            ///< nvlink, infiniband, ...
    Index devices = index_max;   ///< devices under one switch of this level
    Index latency_ps = 0;        ///< per message
    Index bytes_per_second = 1;  ///< one way: of a device, or of all devices of the next inner level when shared
    Index start_ps = 0;          ///< once per step that uses this level
    bool shared = false;         ///< whether the devices of the next inner level share one connection
    friend bool operator==(const Level&, const Level&) = default;
};

/// Levels from the inside out, and the rate of local copies.
struct Machine {
    std::string name;                 ///< as it was specified
    std::vector<Level> levels;        ///< from the inside out
    Index copy_bytes_per_second = 1;  ///< of one device, read and written once
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
/// The text that parse_machine reads.
[[nodiscard]] std::string format(const Machine& machine);

/// Time to move `bytes` at `bytes_per_second`, rounded up; saturating. A rate below 1 counts as 1.
[[nodiscard]] Index transfer_picoseconds(Index bytes, Index bytes_per_second);

/// The elements that the busiest device receives or sends over each level, whichever is more: those of peers that no
/// inner level reaches. One entry per level. Every member of a collective's group counts as much; an exchange is
/// counted digit by digit (LevelTraffic); a permute may send everything over the outermost level.
[[nodiscard]] std::vector<Index> level_loads(const Layout& before, const Step& step, const Move& move,
                                             const Machine& machine);

/// What an exchange carries over each level, in closed form over digits. Digits of an element's index say which device
/// holds it: some are fixed by the receiver's own digits, others run over the receiver's tile; where the source
/// replicates, the stripe rule chooses the holder. With the ends swapped it says which devices want what a sender has.
/// Where digits of the two ends do not align it assumes the outer level.
class LevelTraffic {
public:
    /// The near end: whose loads are asked for.
    enum class End { receiver, sender };
    /// No digits yet: what match, stripe and scatter add.
    explicit LevelTraffic(End near) : near_(near) {}
    /// One dimension's atoms, major to minor, at the far end and at the near one.
    void match(std::span<const Atom> far, std::span<const Atom> near);
    /// Digits that shard something at the near end and nothing at the far one.
    void stripe(std::span<const Atom> atoms);
    /// Digits of the far end whose values nothing at the near end decides.
    void scatter(std::span<const Atom> atoms);
    /// Raises `loads` to the elements that the busiest device exchanges over each level of the machine. `tile` counts
    /// the elements of the largest tile after the exchange: a device receives that many at most and, however the
    /// holders share the work, sends that many at most, those that it keeps included.
    void raise(Index tile, const Machine& machine, std::span<Index> loads) const;

private:
    enum class Kind { fixed, free, striped };
    struct Digit {
        Atom atom;
        Atom other;  ///< of a fixed digit: the near end's digit with the same value
        Kind kind = Kind::free;
    };
    static constexpr std::size_t digits_max = 192;  // three lists of at most 63 digits

    void add(Digit digit) { digits_[count_++] = digit; }
    [[nodiscard]] Index above(Kind kind, Index devices) const;
    [[nodiscard]] bool differs(Index inner, Index outer) const;
    [[nodiscard]] Index units(Index inner, Index outer) const;

    End near_;
    std::array<Digit, digits_max> digits_;
    std::size_t count_ = 0;
};

/// Time by where it is spent: one entry per level of the machine, and local copies.
struct Times {
    std::vector<Index> levels;  ///< picoseconds, from the inside out
    Index copies = 0;           ///< picoseconds
    friend bool operator==(const Times&, const Times&) = default;
};
[[nodiscard]] Index total(const Times& times);  ///< saturating

/// Time of one step: for each level that it uses start + latency x messages + load / bandwidth, then local copies;
/// saturating. Devices beyond the outermost level's count are reached through it all the same.
[[nodiscard]] Times step_times(const Layout& before, const Step& step, const Move& move, const Machine& machine);
/// total(step_times(...)).
[[nodiscard]] Index step_picoseconds(const Layout& before, const Step& step, const Move& move, const Machine& machine);

/// The sum over the steps of a judged plan; a tile that no step writes is copied once. pre: verdict = check(plan).
[[nodiscard]] Times plan_times(const Plan& plan, const Verdict& verdict, const Machine& machine);
/// total(plan_times(...)). pre: verdict = check(plan).
[[nodiscard]] Index plan_picoseconds(const Plan& plan, const Verdict& verdict, const Machine& machine);

}  // namespace reshard
