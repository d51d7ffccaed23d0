// The typing rules. Each is a predicate over axis lists; nothing here enumerates devices unless sizes do not divide.
#include "reshard/planner/step.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "reshard/planner/view.hpp"
#include "src/base/try.hpp"
#include "src/plan/axis_delta.hpp"
#include "src/tables/dtypes.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

std::string_view name(StepKind kind) { return traits_of(kind).name; }

Result<StepKind> parse_step_kind(std::string_view text) {
    for (const StepKind kind : all_step_kinds)
        if (text == name(kind)) return kind;
    return fail(Code::syntax, fmt::format("'{}' is not a kind of step", text.substr(0, 40)));
}

namespace {

tl::unexpected<Error> not_typed(StepKind kind, std::string_view why) {
    return fail(Code::step, fmt::format("not a {}: {}", name(kind), why));
}

// Devices that hold the same tile of the same summand.
Index replica_count(const Layout& layout) {
    Index kinds = summand_count(layout);
    for (const Dim& dim : layout.dims) kinds *= shard_count(dim);
    return device_count(layout) / kinds;
}

// The most source tiles that one target tile of this dimension touches.
Index touched(const Dim& before, const Dim& after) {
    if (!before.pieces.empty() || !after.pieces.empty()) return shard_count(before);
    const Index b = before.balanced ? tile_extent_min(before) : block_extent(before);
    const Index a = block_extent(after);
    if (before.balanced || after.balanced) return std::min(shard_count(before), ceil_divide(a, b) + 1);
    if (b % a == 0) return 1;
    if (a % b == 0) return a / b;
    return std::min(shard_count(before), ceil_divide(a, b) + 1);
}

bool has_elements(const Layout& layout) {
    return std::ranges::all_of(layout.dims, [](const Dim& dim) { return dim.extent > 0; });
}

// A move over a group: every member receives from every other.
Move group_move(const AtomList& group, Index received, Index sent, bool uniform) {
    const Index size = combinations(group);
    return {group, size, received, sent, size - 1, uniform};
}

Result<Move> type_local(StepKind kind, const Layout& before, const Layout& after, const AxisDelta& change) {
    const bool slice = kind == StepKind::slice;
    if (slice && !same_summands(before, after)) return not_typed(kind, "the unreduced axes change");
    if (slice && !change.left.empty()) return not_typed(kind, "axes leave a dimension");
    if (slice) return Move{};
    // zero_fill: what becomes unreduced left a dimension or was replicated.
    if (!change.entered.empty()) return not_typed(kind, "axes enter a dimension");
    const Index devices = device_count(before);
    const auto fresh = without(after.unreduced, before.unreduced, devices);
    const auto replicated = fresh ? without(*fresh, change.left, devices) : std::nullopt;
    if (!replicated) return not_typed(kind, "axes leave the dimensions or the unreduced axes for good");
    AtomList used = used_atoms(before);
    used.insert(used.end(), replicated->begin(), replicated->end());
    if (!disjoint(used)) return not_typed(kind, "an axis that becomes unreduced is neither replicated nor a suffix");
    return Move{*fresh, combinations(*fresh), 0, 0, 0, true};
}

Result<Move> type_reduction(StepKind kind, const Layout& before, const Layout& after, const AxisDelta& change) {
    const auto reduced = without(before.unreduced, after.unreduced, device_count(before));
    if (!reduced || reduced->empty()) return not_typed(kind, "no unreduced axis is reduced");
    if (!change.left.empty()) return not_typed(kind, "axes leave a dimension");
    const Index size = combinations(*reduced);
    const Index tile = tile_elements(before);
    if (kind == StepKind::all_reduce) {
        if (!change.entered.empty()) return not_typed(kind, "axes enter a dimension");
        const Index moved = scale_up(saturating_multiply(2, tile), size - 1, size);
        Move move = group_move(*reduced, moved, moved, divides(before));
        move.messages = 2 * (size - 1);
        return move;
    }
    if (change.entered != *reduced) return not_typed(kind, "the reduced axes are not the axes that enter dimensions");
    const bool even = divides(before) && divides(after);
    const Index received = saturating_multiply(tile_elements(after), size - 1);
    return group_move(*reduced, received, even ? received : tile, even);
}

// The parties of an exchange: the atoms that it touches, or, between two device orders, all devices of both.
AtomList parties_of(const Layout& before, const Layout& after) {
    if (same_order(before.mesh, after.mesh)) return touched_atoms(before, after);
    return canonical({{std::max(world_size(before.mesh), world_size(after.mesh)), 1}});
}

// Groups of an exchange that need nothing of each other.
Index idle_groups(const Layout& before, const Layout& after) {
    return same_order(before.mesh, after.mesh) ? combinations(idle_atoms(before, after)) : 1;
}

Result<Move> type_permute(const Layout& before, const Layout& after) {
    if (!same_devices(before.mesh, after.mesh)) return not_typed(StepKind::permute, "the devices change");
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        if (!same_cut(before.dims[i], after.dims[i])) return not_typed(StepKind::permute, "the tiles change shape");
    Move move;
    move.group = parties_of(before, after);
    move.group_size = combinations(move.group);
    move.uniform = false;
    // Between two orders of the devices all tiles may stay where they are.
    if (!same_order(before.mesh, after.mesh) && missing_elements(before, after) == 0) return move;
    move.received = move.sent = tile_elements(before);
    move.messages = 1;
    return move;
}

Result<Move> type_exchange(const Layout& before, const Layout& after) {
    const bool even = divides(before) && divides(after);
    Move move;
    move.group = parties_of(before, after);
    move.group_size = combinations(move.group);
    if (!has_elements(before)) return move;
    move.received = missing_elements(before, after);
    move.uniform = even && same_order(before.mesh, after.mesh) && same_summands(before, after) &&
                   change_of(before, after).prefixes;
    // Each element of a source tile is wanted by `wanting` devices and served by `serving` of them in equal parts.
    const Index groups = idle_groups(before, after);
    const Index wanting = replica_count(after) / groups;
    const Index serving = replica_count(before) / groups;
    move.sent = move.uniform ? move.received : scale_up(tile_elements(before), wanting, serving);
    // A piece reaches over as many parts of its tile's demand (the stripe rule) as are served by different holders.
    Index piece = 1;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        piece *= std::min(block_extent(before.dims[i]), block_extent(after.dims[i]));
    const Index wanted = saturating_multiply(tile_elements(before), wanting);
    const Index kept = saturating_multiply(piece, serving);  // at most, by the holders themselves
    Index peers = serving;
    if (even && wanted > kept) peers = std::min(serving, ceil_divide(piece, ceil_divide(wanted - kept, serving)) + 1);
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        peers = saturating_multiply(peers, touched(before.dims[i], after.dims[i]));
    move.messages = move.received == 0 ? 0 : std::min(peers, move.group_size - 1);
    return move;
}

// Reducing may divide, and what makes summands may multiply: nothing else changes what a sum is divided by.
Result<void> keeps_reduction(StepKind kind, const Layout& before, const Layout& after) {
    const bool both = !before.unreduced.empty() && !after.unreduced.empty();
    if (both && combine_of(before.reduction) != combine_of(after.reduction))
        return not_typed(kind, fmt::format("summands of a {} do not become summands of a {}", name(before.reduction),
                                           name(after.reduction)));
    const Index from = divisor(before);
    const Index to = divisor(after);
    const bool right = reduces(kind) ? from % to == 0 : fills(kind) ? to % from == 0 : !both || from == to;
    if (right) return {};
    return not_typed(kind, fmt::format("summands of a sum over {} do not become summands of a sum over {}", from, to));
}

// Summands that were rounded would add up to another sum.
Result<Move> type_cast(const Layout& before, const Layout& after) {
    if (equivalent(before, after)) return not_typed(StepKind::cast, "nothing changes");
    RESHARD_CHECK(keeps_reduction(StepKind::cast, before, after));
    Layout same = after;
    same.dtype = before.dtype;
    if (!equivalent(before, same)) return not_typed(StepKind::cast, "more than the element type changes");
    if (!tables::can_cast(before.dtype, after.dtype))
        return not_typed(StepKind::cast, fmt::format("{} does not become {}", name(before.dtype), name(after.dtype)));
    if (!before.unreduced.empty() && !tables::holds_all(after.dtype, before.dtype))
        return not_typed(StepKind::cast, fmt::format("summands of {} are reduced before they become {}",
                                                     name(before.dtype), name(after.dtype)));
    return Move{};
}

// Both layouts in one shape must be the same layout.
Result<Move> type_view(const Layout& before, const Layout& after) {
    RESHARD_TRY(const auto& seen, in_common_view(before, after));
    if (equivalent(before, after)) return not_typed(StepKind::view, "nothing changes");
    RESHARD_CHECK(keeps_reduction(StepKind::view, before, after));
    if (shape(before) == shape(after)) return not_typed(StepKind::view, "the shape of the array does not change");
    if (!equivalent(seen.first, seen.second)) return not_typed(StepKind::view, "devices would hold other elements");
    return Move{};
}

}  // namespace

Result<Move> type_step(const Layout& before, const Step& step) {
    RESHARD_CHECK(validate(step.layout));
    if (step.kind == StepKind::view) return type_view(before, step.layout);
    if (step.kind == StepKind::cast) return type_cast(before, step.layout);
    RESHARD_CHECK(same_array(before, step.layout));
    RESHARD_CHECK(check_enumerable(before, step.layout));
    return type_valid_step(before, step);
}

Result<Move> type_valid_step(const Layout& before, const Step& step) {
    const Layout& after = step.layout;
    const StepKind kind = step.kind;
    if (kind == StepKind::view) return type_view(before, after);
    if (kind == StepKind::cast) return type_cast(before, after);
    assert(before.dims.size() == after.dims.size());  // the rest would cost more than the rule
    const bool one_order = same_order(before.mesh, after.mesh);
    if (one_order && before.dims == after.dims && same_summands(before, after))
        return not_typed(kind, "nothing changes");
    const bool reorders = crosses_groups(kind);
    if (!one_order && !reorders) return not_typed(kind, "the order of the devices changes");
    RESHARD_CHECK(keeps_reduction(kind, before, after));
    if (reorders) {
        if (summand_count(before) != summand_count(after)) return not_typed(kind, "the number of summands changes");
        return kind == StepKind::permute ? type_permute(before, after) : type_exchange(before, after);
    }
    const AxisDelta change = change_of(before, after);
    if (!change.prefixes) return not_typed(kind, "in some dimension neither axis list is a prefix of the other");
    if (!change.nests) return not_typed(kind, "the boundaries of the tiles do not nest");
    if (is_local(kind)) return type_local(kind, before, after, change);
    if (reduces(kind)) return type_reduction(kind, before, after, change);

    if (before.unreduced != after.unreduced) return not_typed(kind, "the unreduced axes change");
    const bool even = divides(before) && divides(after);
    const Index received = missing_elements(before, after);
    if (kind == StepKind::all_gather) {
        if (!change.entered.empty()) return not_typed(kind, "axes enter a dimension");
        // A member sends its tile, full at most, to every other.
        const Index sent = saturating_multiply(tile_elements(before), combinations(change.left) - 1);
        return group_move(change.left, received, sent, even);
    }
    if (change.left != change.entered) return not_typed(kind, "the axes that leave are not the axes that enter");
    return group_move(change.left, received, even ? received : tile_elements(before), even);
}

}  // namespace reshard
