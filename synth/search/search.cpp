#include "synth/search/search.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "src/tables/step_kinds.hpp"
#include "synth/search/places.hpp"

namespace reshard {

namespace {

constexpr std::size_t behind_max = 64;     // states that an exchange may reach
constexpr std::size_t anywhere_max = 400;  // the same on several network levels
constexpr std::size_t bounded_max = 2000;  // the same if bounds by levels discard most of them
constexpr std::size_t summed_max = 2500;   // the same for bytes or steps with sums, if received bytes discard most

constexpr Index devices_of_a_hop = 64;  // looking at so many takes as long as another hop
constexpr Index quarters = 4;           // efforts are counted in quarters of a hop

// On a mesh of more devices whose tiles are counted, a bound counts as so many hops, and a price as so many more.
constexpr Index few_devices_max = 32;
constexpr Index hops_of_a_bound = 2;
constexpr Index hops_of_a_price = 12;

// On several levels hops wait for their prices. Most are never priced, so a search looks at 1.6 times as many.
constexpr Index with_waiting(Index hops) { return saturating_multiply(8, hops) / 5; }

struct Node {
    State state;
    EdgeCost paid;
    std::uint32_t parent = 0;
    StepKind kind = StepKind::slice;
    bool closed = false;
};

// A state that an exchange may reach.
struct Exchanged {
    State state;
    std::uint64_t code = 0;  // of the state, if its bound is remembered
    Sides sides;
    EdgeCost copies;  // of an exchange to it, at least
    EdgeCost least;   // lower bound from there
};

// A hop that has a lower bound and no price yet.
struct Waiting {
    Edge hop;
    std::uint64_t code = 0;  // of its state
    EdgeCost floor;
    std::uint32_t parent = 0;
    bool by_levels = false;  // the bound includes the levels
};

struct Entry {
    EdgeCost total;  // paid and at least still to pay
    std::uint32_t node;
    std::uint32_t order = 0;  // on ties the first; of a hop that waits its number
    bool waits = false;
    friend bool operator<(const Entry& a, const Entry& b) {
        if (a.total != b.total) return a.total > b.total;
        return a.order > b.order;
    }
};

// How much a hop, an exchange, a bound and a price count towards the limit of moves.
struct Effort {
    Index hop = quarters;  // as the search lists it
    Index exchange = quarters;
    Index bound = 0;
    Index price = 0;
};

// An exchange that waits takes a quarter of the time of another hop, but it often needs a bound and a price. In views
// bounds rule most of them out.
Effort effort_of(const SearchSpace& frame, bool exchanges_wait, bool counts_devices) {
    const Index hop = quarters * (frame.exact ? 1 + frame.devices / devices_of_a_hop : 1);
    if (counts_devices && device_count(frame.like->mesh) <= few_devices_max) return {0, 0, hop, 0};
    if (counts_devices) return {0, 0, hops_of_a_bound * hop, quarters * hops_of_a_price};
    if (!exchanges_wait) return {hop, hop, 0, 0};
    return frame.limited ? Effort{hop, 1, 0, 0} : Effort{hop, 1, 3, 3 * quarters};
}

class Search {
public:
    Search(const SearchSpace& frame, const SearchOptions& options, const Machine& machine)
        : frame_(frame),
          options_(options),
          levels_(options.objective == Objective::time && machine.levels.size() > 1),
          remembers_(levels_ || frame.sums()),
          moves_(frame, levels_, options.objective != Objective::bytes,
                 options.objective == Objective::time && machine.copy_run_ps > 0),
          prices_(frame, options.objective, machine),
          bounds_wait_(prices_.counts_devices() && options.vocabulary == Vocabulary::all),
          bounds_first_(bounds_wait_ || !prices_.counts_devices()),
          effort_(effort_of(frame, prices_.by_levels() && options.vocabulary == Vocabulary::all, bounds_wait_)),
          effort_max_(saturating_multiply(
              quarters, levels_ && !bounds_wait_ ? with_waiting(options.hops_max) : options.hops_max)) {
        nodes_.reserve(64);
        open_.reserve(128);
        hops_.reserve(256);
    }

    Found run() {
        reach(frame_.source, {}, 0, StepKind::slice);
        Found found;
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end());
            const Entry entry = open_.back();
            open_.pop_back();
            if (entry.total >= below()) {
                found.complete = true;
                break;
            }
            if (entry.waits) {
                price(entry.order);
                if (looked_at_ > effort_max_) break;
                continue;
            }
            Node& node = nodes_[entry.node];
            if (node.closed) continue;  // a cheaper way had a lower total
            node.closed = true;
            ++found.states;
            expand(entry.node);
            if (looked_at_ > effort_max_) break;
        }
        found.complete = found.complete || open_.empty();  // an empty queue: no other way exists
        found.all_exchanges = all_exchanges_;
        found.exact_prices = prices_.exact();
        found.arrived = arrived_ != 0;
        if (found.arrived) {
            found.steps = path_to(arrived_ - 1);
            found.price = nodes_[arrived_ - 1].paid;
        }
        return found;
    }

private:
    [[nodiscard]] EdgeCost below() const { return arrived_ == 0 ? options_.below : nodes_[arrived_ - 1].paid; }

    [[nodiscard]] bool late(EdgeCost total) const { return total >= below(); }
    [[nodiscard]] bool known(const Places::Slot& slot, EdgeCost paid) const {
        return slot.node != 0 && paid >= nodes_[slot.node - 1].paid;
    }

    void push(const Entry& entry) {
        open_.push_back(entry);
        std::push_heap(open_.begin(), open_.end());
    }

    // On several levels bounds and prices take long, so a hop waits for them until none has a lower total.
    void wait(const Edge& hop, EdgeCost paid_before, std::uint32_t parent) {
        const bool goal = hop.state == frame_.target;
        const EdgeCost floor = paid_before + prices_.floor_of(hop, goal);
        const std::uint64_t code = hop.state.code(frame_.lists);
        Places::Slot& slot = places_.at(code);
        if (known(slot, floor)) return;
        const EdgeCost total = floor + remembered(slot, hop.state);
        if (late(total)) return;
        const auto number = static_cast<std::uint32_t>(waiting_.size());
        waiting_.push_back({hop, code, floor, parent, !bounds_first_});
        if (goal)
            price(number);
        else
            push({total, 0, number, true});
    }

    // Computes the better bound of a hop that waits, and its price once no other has a lower total.
    void price(std::uint32_t number) {
        auto& [hop, code, floor, parent, by_levels] = waiting_[number];
        const Node& before = nodes_[parent];
        const bool goal = hop.state == frame_.target;
        Places::Slot& slot = places_.at(code);
        if (known(slot, floor)) return;
        const EdgeCost least = remembered(slot, hop.state);
        if (!by_levels) {
            looked_at_ = saturating_add(looked_at_, effort_.bound);
            const EdgeCost lower = std::exchange(floor, before.paid + prices_.floor_by_levels(before.state, hop, goal));
            by_levels = true;
            if (late(floor + least) || known(slot, floor)) return;
            if (floor > lower && !goal) return push({floor + least, 0, number, true});
        }
        looked_at_ = saturating_add(looked_at_, effort_.price);
        if (hop.kind == StepKind::exchange)
            hop = moves_.exchange(before.state, moves_.sides_of(before.state), hop.state, moves_.sides_of(hop.state),
                                  true);
        const EdgeCost paid = before.paid + prices_.of(before.state, hop, goal);
        if (!late(paid + least) && !known(slot, paid)) arrive(slot, {hop.state, paid, parent, hop.kind}, least, number);
    }

    void arrive(Places::Slot& slot, const Node& node, EdgeCost least, std::optional<std::uint32_t> order = {}) {
        if (slot.node == 0) {
            nodes_.push_back(node);
            slot.node = static_cast<std::uint32_t>(nodes_.size());
        } else {
            nodes_[slot.node - 1] = node;
        }
        if (node.state == frame_.target) arrived_ = slot.node;
        push({node.paid + least, slot.node - 1, order.value_or(slot.node - 1)});
    }

    void reach(const State& state, EdgeCost paid, std::uint32_t parent, StepKind kind) {
        const bool goal = state == frame_.target;
        EdgeCost least;
        if (!remembers_ && !goal) least = least_from(state, false);
        if (late(paid + least)) return;
        Places::Slot& slot = places_.at(state.code(frame_.lists));
        if (known(slot, paid)) return;
        if (remembers_ || frame_.exact) {
            least = remembered(slot, state);
            if (late(paid + least)) return;
        }
        arrive(slot, {state, paid, parent, kind}, least);
    }

    EdgeCost remembered(Places::Slot& slot, const State& state) const {
        if (!slot.asked) slot.least = state == frame_.target ? EdgeCost{} : least_from(state, true);
        slot.asked = true;
        return slot.least;
    }

    /// Still to pay; `by_device`: no less, by looking at devices.
    [[nodiscard]] EdgeCost least_from(const State& state, bool by_device) const {
        const Index least = moves_.least_to_target(state);
        return by_device ? prices_.at_least(state, moves_.foreign_to_target(state, least)) : prices_.at_least(least);
    }

    // If exchanges reach every state, one exchange is as good as any moves among as many summands. Only a change of
    // summands may follow it, and no slice may precede it.
    Moves::Wanted wanted_from(std::uint32_t index) {
        const StepKind kind = nodes_[index].kind;
        const bool changed = changes_summands(kind) || index == 0;
        if (changed || !exchanges_suffice()) return Moves::Wanted::all;
        return kind == StepKind::slice ? Moves::Wanted::slices : Moves::Wanted::sums;
    }

    bool exchanges_suffice() const {
        return options_.vocabulary == Vocabulary::all && options_.objective != Objective::time && frame_.sums() &&
               !frame_.mixed && !exchanged_to_.empty() && all_exchanges_;
    }

    void expand(std::uint32_t index) {
        const State state = nodes_[index].state;
        const EdgeCost paid = nodes_[index].paid;
        const Moves::Wanted wanted = wanted_from(index);
        hops_.clear();
        const Index received_max = frame_.limited ? prices_.elements_within(paid, below()) : index_max;
        moves_.append_moves(state, options_.tile_max, hops_, wanted, received_max);
        if (wanted == Moves::Wanted::all) {
            const bool permutes = !frame_.limited || moves_.sides_of(state).tile <= received_max;
            if (permutes && (levels_ || cheapest_of_shape(state, paid))) moves_.append_permutes(state, hops_);
        }
        looked_at_ = saturating_add(looked_at_, saturating_multiply(std::ssize(hops_), effort_.hop));
        if (wanted == Moves::Wanted::all && options_.vocabulary == Vocabulary::all) append_exchanges(state, paid);
        // Hops to the target come first, since they bound the others.
        for (const bool arrives : {true, false})
            for (const Edge& hop : hops_)
                if ((hop.state == frame_.target) == arrives) {
                    if (levels_)
                        wait(hop, paid, index);
                    else
                        reach(hop.state, paid + prices_.of(state, hop, arrives), index, hop.kind);
                }
    }

    bool cheapest_of_shape(const State& state, EdgeCost paid) {
        const std::uint64_t shape = moves_.shape_code(state);
        const auto known = std::ranges::find(shapes_, shape, &std::pair<std::uint64_t, EdgeCost>::first);
        if (known == shapes_.end()) {
            shapes_.emplace_back(shape, paid);
            return true;
        }
        if (known->second <= paid) return false;
        known->second = paid;
        return true;
    }

    void append_exchanges(const State& state, EdgeCost paid) {
        const bool timed = options_.objective == Objective::time;
        const Sides here = moves_.sides_of(state);
        if (!timed && !frame_.sums()) {
            const Sides there = moves_.sides_of(frame_.target);
            hops_.push_back(moves_.exchange(state, here, frame_.target, there, timed));
            looked_at_ += effort_.exchange;
            return;
        }
        for (const Exchanged& one : exchanged_with(here.shards[frame_.dims()], timed)) {
            const bool late = late_by_exchange(here, paid, one);
            if (one.state == state || (late && one.state != frame_.target)) continue;
            hops_.push_back(moves_.exchange(state, here, one.state, one.sides, timed && !levels_));
            looked_at_ += effort_.exchange;
        }
    }

    // The states with so many summands that an exchange may reach.
    const std::vector<Exchanged>& exchanged_with(Index summands, bool timed) {
        if (exchanged_to_.empty()) list_exchanged(timed);
        const auto known = std::ranges::find(exchanged_, summands, &std::pair<Index, std::vector<Exchanged>>::first);
        if (known != exchanged_.end()) return known->second;
        std::vector<Exchanged>& states = exchanged_.emplace_back(summands, std::vector<Exchanged>{}).second;
        for (const State& next : exchanged_to_) {
            if (frame_.shards(next.lists[frame_.dims()]) != summands) continue;
            const Sides sides = moves_.sides_of(next);
            if (sides.tile > options_.tile_max) continue;
            const EdgeCost copies{prices_.by_levels() ? prices_.copies(sides.tile) : 0, 0};
            const std::uint64_t code = remembers_ ? next.code(frame_.lists) : 0;
            states.push_back(
                {next, code, sides, copies, remembers_ ? remembered(places_.at(code), next) : least_from(next, false)});
        }
        return states;
    }

    void list_exchanged(bool timed) {
        const bool anywhere = levels_ || frame_.sums();
        const std::size_t timed_max = prices_.by_levels() && frame_.even ? bounded_max : anywhere_max;
        const std::size_t most = timed || frame_.mixed ? timed_max : summed_max;
        all_exchanges_ = anywhere && moves_.append_all_states(most, exchanged_to_);
        if (!all_exchanges_) moves_.append_states_behind(anywhere ? timed_max : behind_max, exchanged_to_);
    }

    // True if another way is as good as the lower bound of the exchange. Most exchanges are late by their copies and
    // what follows, which takes no time to look up.
    bool late_by_exchange(const Sides& here, EdgeCost paid, const Exchanged& one) {
        if (late(paid + one.copies + one.least)) return true;
        if (!remembers_) return false;
        const EdgeCost floor = paid + one.copies + prices_.exchange_floor(moves_.least_in_exchange(here, one.sides));
        return late(floor + one.least) || known(places_.at(one.code), floor);
    }

    // Neighbouring local steps of one kind are one step.
    std::vector<Step> path_to(std::uint32_t index) const {
        std::vector<Step> steps;
        bool fuses = false;
        for (; index != 0; index = nodes_[index].parent) {
            const Node& node = nodes_[index];
            fuses = fuses && steps.back().kind == node.kind;
            if (!fuses) steps.push_back({node.kind, frame_.layout(node.state)});
            fuses = is_local(node.kind);
        }
        std::ranges::reverse(steps);
        return steps;
    }

    const SearchSpace& frame_;
    const SearchOptions& options_;
    const bool levels_;
    const bool remembers_;  // the bound of a state takes longer to compute than a look-up
    const Moves moves_;
    const EdgeCosts prices_;
    const bool bounds_wait_;   // bounds by levels take so long that not even exchanges have them at once
    const bool bounds_first_;  // a hop that waits has a bound by levels before its price
    const Effort effort_;
    const Index effort_max_;  // before it gives up
    std::vector<Node> nodes_;
    Places places_;
    std::vector<std::pair<std::uint64_t, EdgeCost>> shapes_;
    std::vector<State> exchanged_to_;
    std::vector<std::pair<Index, std::vector<Exchanged>>> exchanged_;  // by summands
    std::vector<Entry> open_;
    std::deque<Waiting> waiting_;
    std::vector<Edge> hops_;
    std::uint32_t arrived_ = 0;  // the node of the target, plus one
    Index looked_at_ = 0;
    bool all_exchanges_ = true;
};

}  // namespace

Found search(const SearchSpace& frame, const SearchOptions& options, const Machine& machine) {
    return Search(frame, options, machine).run();
}

}  // namespace reshard
