// A step is one typed move layout -> layout: the pair (kind, layout after). The typing rule derives everything else:
// group, bytes, messages. So no field of a step can contradict its types.
#pragma once

#include "reshard/layout.hpp"

namespace reshard {

/// The kinds of step. Each has its own typing rule (type_step).
enum class StepKind {
    slice,           ///< append unused axes at the minor end of dimensions; local
    all_gather,      ///< drop a suffix of dimensions
    all_to_all,      ///< suffixes leave some dimensions and enter others, in any order
    permute,         ///< whole tiles change devices
    reduce_scatter,  ///< unreduced axes become suffixes of dimensions
    all_reduce,      ///< unreduced axes become replicated
    zero_fill,       ///< replicated axes or suffixes become unreduced; local
    exchange,        ///< any layout to any layout: an all-to-all-v over boxes
    view,            ///< the same tiles in another shape of the array; local
    cast,            ///< the same tiles with elements of another type; local
};

/// Every kind, in order.
inline constexpr std::array<StepKind, 10> all_step_kinds = {
    StepKind::slice,      StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::reduce_scatter,
    StepKind::all_reduce, StepKind::zero_fill,  StepKind::exchange,   StepKind::view,    StepKind::cast};

[[nodiscard]] std::string_view name(StepKind kind);  ///< slice, all_gather, ...
/// The kind of that name. Errors: syntax.
[[nodiscard]] Result<StepKind> parse_step_kind(std::string_view text);
/// True when no device receives anything.
[[nodiscard]] constexpr bool is_local(StepKind kind) {
    return kind == StepKind::slice || kind == StepKind::zero_fill || kind == StepKind::view || kind == StepKind::cast;
}

/// One typed move of an array. The plan has the layout before it.
struct Step {
    StepKind kind = StepKind::exchange;  ///< which typing rule
    Layout layout;                       ///< the layout after the step
    friend bool operator==(const Step&, const Step&) = default;
};

/// The result of the typing rule for a step, in elements of the array. Maxima are over devices.
struct Move {
    AtomList group;        ///< the atoms the step touches (as a set); devices that differ only there form a group
    Index group_size = 1;  ///< devices that take part together
    Index received = 0;    ///< the most elements that a device receives from others
    Index sent = 0;        ///< the most elements that a device sends to others (holders share the work)
    Index messages = 0;    ///< the most peers that a device receives from
    bool uniform = true;   ///< every device receives exactly `received`
    friend bool operator==(const Move&, const Move&) = default;
};

/// The typing rule: returns the Move of `step` on an array in layout `before`, or fails with Code::step and the reason
/// why it is not typed. docs/layouts_and_notations.md has a table of the rules; `type_step` in proofs/Step.v states
/// them formally. If sizes do not divide, a rule that changes a dimension's atoms needs boundaries that nest: the tile
/// extent of the longer list times the added factor is the tile extent of the shorter list, or the shorter list's first
/// tile is the whole dimension. A view is typed if each device holds the same elements before and after, in the same
/// order of a dense row-major tile (in_common_view). Every other step keeps the shape of the array. A cast changes the
/// element type and nothing else: floats become floats, and integers become a type that holds all of their values.
/// Summands become only a type that holds all of their values. Every other step keeps the element type.
/// Cost: independent of the number of devices when sizes divide and digits have a common refinement.
[[nodiscard]] Result<Move> type_step(const Layout& before, const Step& step);

/// The same for layouts that are validated already, as in a search that has validated each once.
/// pre: validate(before), validate(step.layout), and, unless it is a view, same_array(before, step.layout) and
/// check_enumerable(before, step.layout).
[[nodiscard]] Result<Move> type_valid_step(const Layout& before, const Step& step);

/// The replicated atoms that a zero_fill makes unreduced. The replica at coordinate 0 of these atoms keeps its values.
/// pre: the step is typed.
[[nodiscard]] AtomList spread_atoms(const Layout& before, const Layout& after);

/// The atoms that replicate at both ends. Each group of devices that agree on them has all that it needs.
[[nodiscard]] AtomList idle_atoms(const Layout& before, const Layout& after);

/// The atoms that a permute or an exchange touches, as a set: all except idle atoms, axes that lead a dimension at both
/// ends, and equal unreduced axes. Devices that differ only there form a group that needs no other device.
[[nodiscard]] AtomList touched_atoms(const Layout& before, const Layout& after);

/// The most elements of its `after` tile that a device does not hold before. No protocol moves `before` to `after` with
/// less on the busiest receiver (theorem recv_lower_bound), and an exchange needs no more (exchange_optimal).
/// It is in closed form when sizes divide and digits are commensurable (ClosedForm). Otherwise it enumerates devices.
[[nodiscard]] Index missing_elements(const Layout& before, const Layout& after);

/// How the summands of one element change, and how much is in place already.
struct SummandChange {
    Index before = 1;   ///< summands of the element before
    Index after = 1;    ///< summands after: any with the same sum, zeros too
    Index copies = 1;   ///< devices that want each summand after
    Index kept = 0;     ///< at most so many of these devices already hold a given summand
    Index keepers = 0;  ///< at most so many of the summands are already on a device that wants one
    Index one_in = 1;   ///< only one in so many elements has any keepers
};

/// The change between two layouts. pre: the same array.
[[nodiscard]] SummandChange summand_change(const Layout& before, const Layout& after);

/// The least number of times that such an element is received, over all devices, if `keepers` of its summands are in
/// place. With one copy of each summand, devices that talk to each other add up what they hold: each receipt joins two
/// of them. With more copies, a summand that is not one of the summands before needs one more receipt for every copy
/// except the first.
[[nodiscard]] Index min_received(const SummandChange& change, Index keepers);

/// The least that the busiest of `devices` devices receives: its part of all receipts of `elements` elements.
[[nodiscard]] Index least_received(const SummandChange& change, Index elements, Index devices);

/// Fails with Code::unsupported if missing_elements would have to enumerate more than 2^22 devices, which takes too
/// long.
[[nodiscard]] Result<void> check_enumerable(const Layout& before, const Layout& after);

}  // namespace reshard
