// A step is one typed move layout -> layout. It is the pair (kind, layout after); everything else - group, bytes,
// messages - is derived by the typing rule, so there is nothing in a step that could contradict its types.
#pragma once

#include "reshard/layout.hpp"

namespace reshard {

/// The kinds of step, each with a typing rule of its own (type_step).
enum class StepKind {
    slice,           ///< append unused axes at the minor end of dimensions; local
    all_gather,      ///< drop a suffix of dimensions
    all_to_all,      ///< suffixes leave some dimensions and enter others, in any order
    permute,         ///< whole tiles change devices
    reduce_scatter,  ///< unreduced axes become suffixes of dimensions
    all_reduce,      ///< unreduced axes become replicated
    zero_fill,       ///< replicated axes or suffixes become unreduced; local
    exchange,        ///< any layout to any layout: an all-to-all-v over boxes
};

/// Every kind, in order.
inline constexpr std::array<StepKind, 8> all_step_kinds = {
    StepKind::slice,          StepKind::all_gather, StepKind::all_to_all, StepKind::permute,
    StepKind::reduce_scatter, StepKind::all_reduce, StepKind::zero_fill,  StepKind::exchange};

[[nodiscard]] std::string_view name(StepKind kind);  ///< slice, all_gather, ...
/// The kind of that name. Errors: syntax.
[[nodiscard]] Result<StepKind> parse_step_kind(std::string_view text);
/// True when no device receives anything.
[[nodiscard]] constexpr bool is_local(StepKind kind) { return kind == StepKind::slice || kind == StepKind::zero_fill; }

/// One typed move of an array, from the layout before it.
struct Step {
    StepKind kind = StepKind::exchange;  ///< which rule
    Layout layout;                       ///< after the step
    friend bool operator==(const Step&, const Step&) = default;
};

/// What the typing rule derives from a step, in elements of the array; maxima are over devices.
struct Move {
    AtomList group;        ///< the atoms the step touches (as a set); devices that differ only there form a group
    Index group_size = 1;  ///< devices that take part together
    Index received = 0;    ///< elements a device receives from others, at most
    Index sent = 0;        ///< elements a device sends to others, at most (holders share the work)
    Index messages = 0;    ///< peers a device receives from, at most
    bool uniform = true;   ///< every device receives exactly `received`
    friend bool operator==(const Move&, const Move&) = default;
};

/// The typing rule: the move that `step` makes of an array in layout `before`, or why it is not typed (Code::step).
/// Rules as in the table of README and `type_step` in proofs/Step.v. Where sizes do not divide, a rule that changes a
/// dimension's atoms needs boundaries that nest: the longer list's tile extent times the added factor is the shorter
/// list's, or the shorter list's first tile is the whole dimension. Cost: independent of the number of devices when
/// sizes divide and digits have a common refinement.
[[nodiscard]] Result<Move> type_step(const Layout& before, const Step& step);

/// The same without validating the layouts again, for a search that has validated each once.
/// pre: validate(before), validate(step.layout), same_array(before, step.layout), can_count(before, step.layout).
[[nodiscard]] Result<Move> type_valid_step(const Layout& before, const Step& step);

/// The replicated atoms that a zero_fill turns unreduced. The replica at coordinate 0 of these atoms keeps its values.
/// pre: the step is typed.
[[nodiscard]] AtomList spread_atoms(const Layout& before, const Layout& after);

/// The atoms that replicate at both ends: each group of devices that agree on them has all that it needs.
[[nodiscard]] AtomList idle_atoms(const Layout& before, const Layout& after);

/// The atoms that a permute or an exchange touches, as a set: all but idle atoms, axes that lead a dimension at both
/// ends, and equal unreduced axes. Devices that differ there only form a group that needs no other device.
[[nodiscard]] AtomList touched_atoms(const Layout& before, const Layout& after);

/// The most elements of its `after` tile that a device does not hold before: no protocol moves `before` to `after` with
/// less on the busiest receiver (theorem recv_lower_bound), and an exchange needs no more (exchange_optimal).
/// Closed form when sizes divide and digits are commensurable (ClosedForm), else by enumerating devices.
[[nodiscard]] Index foreign_elements(const Layout& before, const Layout& after);

/// One element on its way from summands to summands, and how much of it is in place already.
struct SummandChange {
    Index before = 1;   ///< summands that the element has
    Index after = 1;    ///< summands that it becomes: any that have the same sum, zeros too
    Index copies = 1;   ///< devices that want each of these
    Index kept = 0;     ///< at most so many of them hold a given one of the summands already
    Index keepers = 0;  ///< at most so many of the summands are held where some device wants one
    Index one_in = 1;   ///< only one of so many elements has such keepers at all
};

/// The change between two layouts. pre: the same array.
[[nodiscard]] SummandChange summand_change(const Layout& before, const Layout& after);

/// How often such an element is received at least, over all devices, where `keepers` of its summands are held in place.
/// With one copy of each the devices that talk to each other add up what they hold: a receipt joins two of them. With
/// more each summand that is not one of before's by itself reaches every copy but the first by one more receipt.
[[nodiscard]] Index least_receipts(const SummandChange& change, Index keepers);

/// What the busiest of `devices` devices receives at least: its part of all receipts of `elements` elements.
[[nodiscard]] Index least_received(const SummandChange& change, Index elements, Index devices);

/// Fails with Code::unsupported when foreign_elements would have to enumerate more than 2^22 devices, which takes too
/// long to be an answer.
[[nodiscard]] Result<void> can_count(const Layout& before, const Layout& after);

}  // namespace reshard
