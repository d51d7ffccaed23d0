// The typing rules. Each is a predicate over axis lists; nothing here enumerates devices unless sizes do not divide.
#include "reshard/step.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reshard {

namespace {

constexpr std::array<std::string_view, 8> names = {"slice",          "all_gather", "all_to_all", "permute",
                                                   "reduce_scatter", "all_reduce", "zero_fill",  "exchange"};

/// Devices are enumerated where no closed form holds; beyond this many that takes too long to be an answer.
constexpr Index enumerated_devices_max = Index{1} << 26;

}  // namespace

std::string_view name(StepKind kind) { return names[static_cast<std::size_t>(kind)]; }

Result<StepKind> parse_step_kind(std::string_view text) {
    for (const StepKind kind : all_step_kinds)
        if (text == name(kind)) return kind;
    return fail(Code::syntax, fmt::format("'{}' is not a kind of step", text.substr(0, 40)));
}

namespace {

// What a step does to the axis lists: suffixes that left dimensions and suffixes that entered.
struct Change {
    AtomList left;         // as a set
    AtomList entered;      // as a set
    bool prefixes = true;  // in every dimension one list is a prefix of the other
    bool nests = true;     // and where the lists differ, the boundaries of the tiles nest
};

// Every tile of the longer list lies within one tile of the shorter: exactly `factor` of them make one up, or the
// shorter list's first tile is the whole dimension.
bool boundaries_nest(const Dim& shorter, const Dim& longer, const AtomList& suffix) {
    return tile_extent(shorter) == shorter.extent ||
           checked_multiply(tile_extent(longer), combinations(suffix)) == tile_extent(shorter);
}

Change change_of(const Layout& before, const Layout& after) {
    Change change;
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        const Dim& b = before.dims[i];
        const Dim& a = after.dims[i];
        if (const auto entered = after_prefix(a.atoms, b.atoms)) {
            change.entered.insert(change.entered.end(), entered->begin(), entered->end());
            change.nests = change.nests && (entered->empty() || boundaries_nest(b, a, *entered));
        } else if (const auto left = after_prefix(b.atoms, a.atoms)) {
            change.left.insert(change.left.end(), left->begin(), left->end());
            change.nests = change.nests && boundaries_nest(a, b, *left);
        } else {
            change.prefixes = false;
        }
    }
    change.left = as_set(std::move(change.left));
    change.entered = as_set(std::move(change.entered));
    return change;
}

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
    const Index b = tile_extent(before);
    const Index a = tile_extent(after);
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

Result<Move> type_local(StepKind kind, const Layout& before, const Layout& after, const Change& change) {
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

Result<Move> type_reduction(StepKind kind, const Layout& before, const Layout& after, const Change& change) {
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

Result<Move> type_exchange(StepKind kind, const Layout& before, const Layout& after) {
    if (summand_count(before) != summand_count(after)) return not_typed(kind, "the number of summands changes");
    const bool even = divides(before) && divides(after);
    Move move;
    move.group = touched_atoms(before, after);
    move.group_size = combinations(move.group);
    if (kind == StepKind::permute) {
        for (std::size_t i = 0; i < before.dims.size(); ++i)
            if (shard_count(before.dims[i]) != shard_count(after.dims[i]))
                return not_typed(kind, "the tiles change shape");
        move.received = move.sent = tile_elements(before);
        move.messages = 1;
        move.uniform = false;
        return move;
    }
    if (!has_elements(before)) return move;
    move.received = foreign_elements(before, after);
    move.uniform = even && same_summands(before, after) && change_of(before, after).prefixes;
    // Each element of a source tile is wanted by `wanting` devices and served by `serving` of them in equal parts.
    const Index groups = combinations(idle_atoms(before, after));
    const Index wanting = replica_count(after) / groups;
    const Index serving = replica_count(before) / groups;
    move.sent = move.uniform ? move.received : scale_up(tile_elements(before), wanting, serving);
    // A piece reaches over as many parts of its tile's demand (the stripe rule) as are served by different holders.
    Index piece = 1;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        piece *= std::min(tile_extent(before.dims[i]), tile_extent(after.dims[i]));
    const Index wanted = saturating_multiply(tile_elements(before), wanting);
    const Index kept = saturating_multiply(piece, serving);  // at most, by the holders themselves
    Index peers = serving;
    if (even && wanted > kept) peers = std::min(serving, ceil_divide(piece, ceil_divide(wanted - kept, serving)) + 1);
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        peers = saturating_multiply(peers, touched(before.dims[i], after.dims[i]));
    move.messages = move.received == 0 ? 0 : std::min(peers, move.group_size - 1);
    return move;
}

bool commensurable(const Layout& a, const Layout& b) {
    // The borders of all digits must form one chain of divisors. Of each list by itself: neighbours from different
    // lists would merge to one atom, and the border between them would be lost.
    std::vector<Index> borders;
    const auto add = [&](const AtomList& atoms) {
        for (const Atom& atom : atoms) {
            borders.push_back(atom.stride);
            borders.push_back(atom.stride * atom.size);
        }
    };
    for (const Layout* layout : {&a, &b}) {
        for (const Dim& dim : layout->dims) add(dim.atoms);
        add(layout->unreduced);
    }
    std::ranges::sort(borders);
    for (std::size_t i = 1; i < borders.size(); ++i)
        if (borders[i] % borders[i - 1] != 0) return false;
    return true;
}

bool closed_form(const Layout& before, const Layout& after, const Change& change) {
    return divides(before) && divides(after) &&
           ((change.prefixes && before.unreduced == after.unreduced) || commensurable(before, after));
}

Index count_foreign(const Layout& before, const Layout& after) {
    Index most = 0;
    for (Index device = 0; device < device_count(before); ++device) {
        const Box wanted = tile(after, device);
        const bool same = summand(before, device) == summand(after, device);
        most = std::max(most, count(wanted) - (same ? count(intersect(wanted, tile(before, device))) : 0));
    }
    return most;
}

}  // namespace

AtomList spread_atoms(const Layout& before, const Layout& after) {
    return without(used_atoms(after), used_atoms(before), device_count(before)).value_or(AtomList{});
}

AtomList idle_atoms(const Layout& before, const Layout& after) {
    const Index devices = device_count(before);
    return common_digits(complement(used_atoms(before), devices), complement(used_atoms(after), devices));
}

AtomList touched_atoms(const Layout& before, const Layout& after) {
    AtomList untouched = idle_atoms(before, after);
    const auto add = [&](const AtomList& atoms) { untouched.insert(untouched.end(), atoms.begin(), atoms.end()); };
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        const Dim& b = before.dims[i];
        const Dim& a = after.dims[i];
        const AtomList prefix = common_prefix(b.atoms, a.atoms);
        // Where sizes do not divide, the same leading axes may still cut at other places.
        const auto block = [&](const Dim& dim) {
            return std::min(dim.extent, saturating_multiply(tile_extent(dim), shard_count(dim) / combinations(prefix)));
        };
        if (block(b) == block(a)) add(prefix);
    }
    if (same_summands(before, after)) add(before.unreduced);
    return complement(untouched, device_count(before));
}

Index foreign_elements(const Layout& before, const Layout& after) {
    const Change change = change_of(before, after);
    if (!closed_form(before, after, change)) return count_foreign(before, after);
    const bool comparable = change.prefixes && before.unreduced == after.unreduced;
    // Incomparable lists: some device holds nothing that it wants (theorem lower_bound_incomparable).
    if (!comparable) return tile_elements(after);
    Index kept = 1;
    for (std::size_t i = 0; i < before.dims.size(); ++i)
        kept *= std::min(tile_extent(before.dims[i]), tile_extent(after.dims[i]));
    return tile_elements(after) - kept;
}

Result<void> can_count(const Layout& before, const Layout& after) {
    if (device_count(before) <= enumerated_devices_max || closed_form(before, after, change_of(before, after)))
        return {};
    return fail(
        Code::unsupported,
        fmt::format("sizes do not divide, or axes are cut at places without a common refinement, on {} devices: "
                    "more than the {} that can be enumerated",
                    device_count(before), enumerated_devices_max));
}

Result<Move> type_step(const Layout& before, const Step& step) {
    if (auto valid = validate(step.layout); !valid) return tl::unexpected(valid.error());
    if (auto same = same_array(before, step.layout); !same) return tl::unexpected(same.error());
    if (auto countable = can_count(before, step.layout); !countable) return tl::unexpected(countable.error());
    return type_valid_step(before, step);
}

Result<Move> type_valid_step(const Layout& before, const Step& step) {
    const Layout& after = step.layout;
    const StepKind kind = step.kind;
    if (before.dims == after.dims && same_summands(before, after)) return not_typed(kind, "nothing changes");
    if (!before.unreduced.empty() && !after.unreduced.empty() && before.reduction != after.reduction)
        return not_typed(kind, fmt::format("summands of a {} do not become summands of a {}", name(before.reduction),
                                           name(after.reduction)));
    if (kind == StepKind::permute || kind == StepKind::exchange) return type_exchange(kind, before, after);

    const Change change = change_of(before, after);
    if (!change.prefixes) return not_typed(kind, "in some dimension neither axis list is a prefix of the other");
    if (!change.nests) return not_typed(kind, "the boundaries of the tiles do not nest");
    if (is_local(kind)) return type_local(kind, before, after, change);
    if (kind == StepKind::reduce_scatter || kind == StepKind::all_reduce)
        return type_reduction(kind, before, after, change);

    if (before.unreduced != after.unreduced) return not_typed(kind, "the unreduced axes change");
    const bool even = divides(before) && divides(after);
    const Index received = foreign_elements(before, after);
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
