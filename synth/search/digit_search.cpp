#include "synth/search/digit_search.hpp"

#include <algorithm>

#include "synth/search/digit_prices.hpp"
#include "synth/search/places.hpp"

namespace reshard {

namespace {

struct DigitNode {
    Slots state;  // sorted
    Slots raw;    // as the step from the parent made it
    EdgeCost paid;
    std::uint32_t parent = 0;
    StepKind kind = StepKind::slice;
    bool closed = false;
};

struct DigitEntry {
    EdgeCost total;
    std::uint32_t node;
    EdgeCost paid;
    friend bool operator<(const DigitEntry& a, const DigitEntry& b) {
        if (a.total != b.total) return a.total > b.total;
        return a.node > b.node;
    }
};

class DigitSearch {
public:
    DigitSearch(const DigitFacts& facts, const SearchOptions& options, const DigitPrices& prices)
        : facts_(facts), options_(options), prices_(prices) {}

    DigitsFound run() {
        DigitsFound found;
        // Most questions end after a few states.
        nodes_.reserve(16);
        open_.reserve(16);
        insert(facts_.space.source(), {}, {}, 0, StepKind::slice);
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end());
            const DigitEntry entry = open_.back();
            open_.pop_back();
            if (entry.total >= below()) {
                found.complete = true;
                break;
            }
            DigitNode& node = nodes_[entry.node];
            if (node.closed || entry.paid != node.paid) continue;
            node.closed = true;
            ++found.states;
            expand(entry.node);
            if (spent()) break;
        }
        found.complete = found.complete || open_.empty();
        found.arrived = arrived_ != 0;
        if (found.arrived) {
            found.price = nodes_[arrived_ - 1].paid;
            found.path = path_to(arrived_ - 1);
        }
        return found;
    }

private:
    // The states that a move may reach, so that its cost can still pay. `done`: slices lead from the state to the
    // target. `beside`: no digit sits in a slot that the target cuts by another digit.
    enum class Reach { none, done, beside, any };

    // The budget also ends a state with too many moves.
    [[nodiscard]] bool spent() const { return looked_at_ > options_.hops_max; }

    [[nodiscard]] EdgeCost below() const { return arrived_ == 0 ? options_.below : nodes_[arrived_ - 1].paid; }

    [[nodiscard]] Reach reach_of(EdgeCost cost, Index tile) const {
        const EdgeCost paid = paid_ + cost;
        // A fill may take a digit out of the slot of another one.
        if (facts_.space.sums) return paid < below() ? Reach::any : Reach::none;
        if (paid + whole_tile_ < below()) return Reach::any;
        const EdgeCost missing = tile >= facts_.there ? one_element_ : prices_.least({1, facts_.there - tile});
        if (paid + missing < below()) return Reach::beside;
        // Slices may follow, so the move need not have copied the last tile.
        return paid + EdgeCost{0, 0} < below() ? Reach::done : Reach::none;
    }

    [[nodiscard]] Bits reached(Reach reach, std::size_t digit) const {
        const Bits goal = Bits{1} << facts_.goal[digit] & ~Bits{1};
        if (reach == Reach::done) return goal;
        return reach == Reach::beside ? goal | ~facts_.wanted : ~Bits{0};
    }

    void expand(std::uint32_t index) {
        index_ = index;
        paid_ = nodes_[index].paid;
        const PlacedDigits from(facts_, nodes_[index].state);
        held_ = from.held();
        tile_ = facts_.space.elements / from.shards;
        copies_ = prices_.copies(tile_);
        append_slices(from);
        for (Bits leaving = from.digits; leaving != 0 && !spent(); leaving = (leaving - 1) & from.digits) {
            ++looked_at_;
            const Index parts = facts_.product(leaving);
            append_gather(from, leaving, parts);
            append_all_to_alls(from, leaving, parts);
        }
        if (facts_.space.sums) {
            append_fills(from);
            append_reductions(from);
        }
        append_permutes(from);
    }

    // Every set of digits that were idle or cut a slot becomes unreduced.
    void append_fills(const PlacedDigits& from) {
        const Bits others = ~(~Bits{0} << facts_.digits) & ~from.summands;
        for (Bits filled = others; filled != 0 && !spent(); filled = (filled - 1) & others) {
            ++looked_at_;
            const Index tile = saturating_multiply(tile_, facts_.product(filled & from.digits));
            // Fills cost nothing in bytes and steps, and a path has neighbours as one.
            if (tile > options_.tile_max || (!prices_.timed() && !std::has_single_bit(filled))) continue;
            reach(from, with_slots(from.state, filled, sums_slot), prices_.of_fill(tile), StepKind::zero_fill);
        }
    }

    // Every set of unreduced digits is reduced, and becomes idle or is dealt to new slots.
    void append_reductions(const PlacedDigits& from) {
        for (Bits reduced = from.summands; reduced != 0 && !spent(); reduced = (reduced - 1) & from.summands) {
            ++looked_at_;
            const Index parts = facts_.product(reduced);
            const Index received = scale_up(saturating_multiply(2, tile_), parts - 1, parts);
            const Slots next = with_slots(from.state, reduced, 0);
            reach(from, next, prices_.of_group(reduced, 2 * (parts - 1), copies_, received), StepKind::all_reduce);
            const Index tile = tile_ / parts;
            if (tile == 0) continue;
            const EdgeCost cost = prices_.of_group(reduced, parts - 1, prices_.copies(tile), tile_ - tile);
            if (reach_of(cost, tile) == Reach::none) continue;
            leaving_ = reduced;
            deal(from, reduced, ~from.slots | facts_.rests, next, {StepKind::reduce_scatter, cost, Reach::any});
        }
    }

    void append_slices(const PlacedDigits& from) {
        for (std::size_t slot = 1; slot < facts_.slots; ++slot)
            if (facts_.space.is_rest(slot) || held_[slot] == 0) slice_by_each(from, from.state, slot, 0);
    }

    // Cuts the slot by each idle digit from `first` on. If slices cost runs, one slice cuts neighbours at once, too.
    void slice_by_each(const PlacedDigits& from, Slots state, std::size_t slot, std::size_t first) {
        for (std::size_t k = first; k < facts_.digits && !spent(); ++k) {
            if (slot_of(state, k) != 0 || (facts_.accept[k] >> slot & 1) == 0 || has_idle_before(state, k)) continue;
            if (facts_.space.is_rest(slot) && !facts_.has_place(state, slot, held_[slot], facts_.size[k])) continue;
            const Slots next = with_slot(state, k, slot);
            slice(from, next);
            if (!prices_.counts_runs()) continue;
            if (facts_.space.is_rest(slot)) slice_by_each(from, next, slot, k + 1);
            if ((facts_.followed >> slot & 1) != 0 && (facts_.space.is_rest(slot + 1) || held_[slot + 1] == 0))
                slice_by_each(from, next, slot + 1, 0);
        }
    }

    // A twin is idle, too, and comes first.
    [[nodiscard]] bool has_idle_before(Slots state, std::size_t digit) const {
        bool idle = false;
        each(facts_.twins_before[digit], [&](std::size_t k) { idle = idle || slot_of(state, k) == 0; });
        return idle;
    }

    void slice(const PlacedDigits& from, Slots next) {
        reach(from, next, prices_.of_slice(next == facts_.target), StepKind::slice);
    }

    void append_gather(const PlacedDigits& from, Bits leaving, Index parts) {
        const Index tile = saturating_multiply(tile_, parts);
        if (tile > options_.tile_max) return;
        const EdgeCost cost = prices_.of_group(leaving, parts - 1, prices_.copies(tile), tile - tile_);
        if (reach_of(cost, tile) == Reach::none) return;
        reach(from, with_slots(from.state, leaving, 0), cost, StepKind::all_gather);
    }

    void append_all_to_alls(const PlacedDigits& from, Bits leaving, Index parts) {
        const EdgeCost cost = prices_.of_group(leaving, parts - 1, copies_, tile_ - tile_ / parts);
        const Reach reach = reach_of(cost, tile_);
        if (reach == Reach::none) return;
        const Bits stuck = reach == Reach::done ? from.wrong : reach == Reach::beside ? from.conflicts : 0;
        if ((stuck & ~leaving) != 0) return;
        leaving_ = leaving;
        deal(from, leaving, ~from.slots | facts_.rests, with_slots(from.state, leaving, 0),
             {StepKind::all_to_all, cost, reach});
    }

    // A move that gives digits new slots.
    struct Dealt {
        StepKind kind;
        EdgeCost cost;
        Reach reaches;
    };

    // Every way to give the digits new slots. Twins get theirs in ascending order.
    void deal(const PlacedDigits& from, Bits pool, Bits open, Slots state, const Dealt& move) {
        if (pool == 0) return reach(from, state, move.cost, move.kind);
        ++looked_at_;
        if (spent()) return;
        const auto k = static_cast<std::size_t>(std::countr_zero(pool));
        const Bits before = facts_.twins_before[k] & leaving_;
        const std::size_t first = before == 0 ? 1 : slot_of(state, std::bit_width(before) - 1);
        each(facts_.accept[k] & open & reached(move.reaches, k) & ~Bits{0} << first, [&](std::size_t slot) {
            if (facts_.space.is_rest(slot) &&
                (slot_of(from.state, k) == slot || !facts_.has_place(state, slot, held_[slot], facts_.size[k])))
                return;
            const Bits still = facts_.space.is_rest(slot) ? open : open & ~(Bits{1} << slot);
            deal(from, pool & (pool - 1), still, with_slot(state, k, slot), move);
        });
    }

    // On one level all states of a shape reach the same states by a permute, and pay as much for it.
    void append_permutes(const PlacedDigits& from) {
        const EdgeCost cost = prices_.of_permute(tile_);
        const Reach reaches = reach_of(cost, tile_);
        if ((from.digits | from.summands) == 0 || reaches == Reach::none) return;
        if (!prices_.by_levels() && !cheapest_of_shape(from)) return;
        seats_.clear();
        Slots state = 0;
        Bits seated = 0;
        for (std::size_t slot = 1; slot < facts_.slots; ++slot) {
            if (reaches != Reach::any && held_[slot] != 0 && (facts_.wanted >> slot & 1) != 0) {
                state = with_slot(state, facts_.goal_of[slot], slot);
                seated |= Bits{1} << facts_.goal_of[slot];
                continue;
            }
            each(held_[slot], [&](std::size_t k) { seats_.push_back({slot, facts_.size[k]}); });
        }
        each(from.summands, [&](std::size_t k) { seats_.push_back({sums_slot, facts_.size[k]}); });
        if (reaches != Reach::done || seats_.empty()) seat(from, 0, seated, 0, state, cost);
    }

    // Every way to fill the seats from `at` on. The digits of a rest ascend, since it is a set, and twins ascend.
    void seat(const PlacedDigits& from, std::size_t at, Bits seated, std::size_t first, Slots state, EdgeCost cost) {
        if (at == seats_.size()) {
            if (state != from.state) reach(from, state, cost, StepKind::permute);
            return;
        }
        ++looked_at_;
        const auto [slot, size] = seats_[at];
        for (std::size_t k = first; k < facts_.digits && !spent(); ++k) {
            if ((seated >> k & 1) != 0 || facts_.size[k] != size || has_twin_before(k, seated)) continue;
            const bool next_is_twin = at + 1 < seats_.size() && seats_[at + 1] == seats_[at];
            seat(from, at + 1, seated | Bits{1} << k, next_is_twin ? k + 1 : 0, with_slot(state, k, slot), cost);
        }
    }

    // On several levels a twin that was idle before is farther away than one that was not.
    [[nodiscard]] bool has_twin_before(std::size_t digit, Bits seated) const {
        return !prices_.by_levels() && (facts_.twins_before[digit] & ~seated) != 0;
    }

    bool cheapest_of_shape(const PlacedDigits& from) {
        const Slots shape = facts_.shape(from.state);
        Places::Slot& known = shapes_.at(~shape);
        if (known.asked && known.least <= paid_) return false;
        known.asked = true;
        known.least = paid_;
        return true;
    }

    void reach(const PlacedDigits& from, Slots next, EdgeCost cost, StepKind kind) {
        ++looked_at_;
        EdgeCost paid = paid_ + cost;
        Places::Slot* const known = prices_.by_levels() ? &places_.at(~facts_.sorted(next)) : nullptr;
        const bool asked = known != nullptr && known->asked;
        if (asked && is_late(*known, paid)) return;
        const PlacedDigits to(facts_, next);
        EdgeCost least = asked ? known->least : EdgeCost{};
        if (!asked && next != facts_.target) {
            const Ahead ahead = ahead_of(facts_, to, options_.tile_max);
            least = prices_.least(ahead);
            if (paid + least >= below()) return;
            if (known != nullptr || ahead.moves == 1)
                least = known != nullptr ? prices_.least(ahead, to, there_) : prices_.least(ahead, to);
        }
        if (known != nullptr) {
            known->least = least;
            known->asked = true;
            if (is_late(*known, paid) || (kind == StepKind::permute && is_late_permute(*known, from, to, paid))) return;
        }
        paid = paid + prices_.runs(kind, from, to);
        if (paid + least >= below()) return;
        insert(next, least, paid, index_, kind);
    }

    [[nodiscard]] bool is_late(const Places::Slot& known, EdgeCost paid) const {
        return paid + known.least >= below() || (known.node != 0 && nodes_[known.node - 1].paid <= paid);
    }

    // Raises what the permute pays to the loads of the levels. True if the state costs too much then.
    bool is_late_permute(const Places::Slot& known, const PlacedDigits& from, const PlacedDigits& to, EdgeCost& paid) {
        paid = std::max(paid, paid_ + prices_.floor_of_permute(from, to));
        if (is_late(known, paid)) return true;
        paid = std::max(paid, paid_ + prices_.of_permute(from, to));
        return is_late(known, paid);
    }

    void insert(Slots raw, EdgeCost least, EdgeCost paid, std::uint32_t parent, StepKind kind) {
        const Slots state = facts_.sorted(raw);
        Places::Slot& slot = places_.at(~state);
        if (slot.node != 0 && nodes_[slot.node - 1].paid <= paid) return;
        const DigitNode node{state, raw, paid, parent, kind, false};
        if (slot.node == 0) {
            nodes_.push_back(node);
            slot.node = static_cast<std::uint32_t>(nodes_.size());
        } else {
            nodes_[slot.node - 1] = node;
        }
        if (state == facts_.target) arrived_ = slot.node;
        open_.push_back({paid + least, slot.node - 1, paid});
        std::push_heap(open_.begin(), open_.end());
    }

    // The states along the way, with each digit in its own place again. Neighbouring slices are one step.
    [[nodiscard]] DigitPath path_to(std::uint32_t index) const {
        std::vector<std::uint32_t> way;
        for (; index != 0; index = nodes_[index].parent) way.push_back(index);
        std::array<std::size_t, placed_max> real{};  // the digit that has this place in the sorted state
        for (std::size_t k = 0; k < facts_.digits; ++k) real[k] = k;
        facts_.rename(facts_.space.source(), nodes_[0].state, real);
        DigitPath path;
        for (; !way.empty(); way.pop_back()) {
            const DigitNode& node = nodes_[way.back()];
            Slots state = 0;
            for (std::size_t k = 0; k < facts_.digits; ++k) state = with_slot(state, real[k], slot_of(node.raw, k));
            facts_.rename(node.raw, node.state, real);
            if (is_local(node.kind) && !path.kinds.empty() && path.kinds.back() == node.kind) {
                path.states.back() = state;
                continue;
            }
            path.kinds.push_back(node.kind);
            path.states.push_back(state);
        }
        return path;
    }

    struct Seat {
        std::size_t slot;
        Index size;
        friend bool operator==(const Seat&, const Seat&) = default;
    };

    const DigitFacts& facts_;
    const SearchOptions& options_;
    const DigitPrices& prices_;
    const PlacedDigits there_{facts_, facts_.target};
    std::vector<DigitNode> nodes_;
    std::vector<DigitEntry> open_;
    const EdgeCost whole_tile_ = prices_.least({1, facts_.there});  // at least, if one move is left
    const EdgeCost one_element_ = prices_.least({1, 1});
    Places places_{16};
    Places shapes_{16};
    InlineVector<Seat, placed_max> seats_;
    std::uint32_t arrived_ = 0;
    std::uint32_t index_ = 0;  // the state that is expanded
    EdgeCost paid_;
    std::array<Bits, slots_max> held_{};  // its digits by slot
    Index tile_ = 1;
    Index copies_ = 0;  // of a move that leaves a tile of its size
    Bits leaving_ = 0;  // the digits of the all-to-all at hand
    Index looked_at_ = 0;
};

}  // namespace

bool depends_on_levels(Objective objective, const Machine& machine) {
    return objective == Objective::time && (machine.levels.size() > 1 || machine.levels[0].pair_bytes_per_second > 0);
}

bool prices_digits(const DigitSpace& space, Objective objective, const Machine& machine) {
    if (!depends_on_levels(objective, machine)) return true;
    if (space.sums) return false;
    return machine.levels.size() <= levels_max && DigitNetwork(space, machine).exact;
}

DigitsFound search_digits(const DigitSpace& space, const SearchOptions& options, const Machine& machine) {
    std::optional<DigitNetwork> network;
    if (depends_on_levels(options.objective, machine)) network.emplace(space, machine);
    const DigitFacts facts(space,
                           network ? std::span<const std::uint8_t>(network->level) : std::span<const std::uint8_t>());
    std::optional<DigitLevels> levels;
    if (network) levels.emplace(facts, *network, machine);
    const DigitPrices prices(facts, options.objective, machine, levels ? &*levels : nullptr);
    const PlacedDigits source(facts, space.source());
    const Ahead ahead = ahead_of(facts, source, options.tile_max);
    const EdgeCost least =
        levels ? prices.least(ahead, source, PlacedDigits(facts, facts.target)) : prices.least(ahead, source);
    DigitsFound nothing;
    nothing.complete = true;
    if (least >= options.below) return nothing;
    return DigitSearch(facts, options, prices).run();
}

}  // namespace reshard
