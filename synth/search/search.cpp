#include "synth/search/search.hpp"

#include <algorithm>

namespace reshard {

namespace {

constexpr std::size_t behind_max = 64;     // states that an exchange may lead to
constexpr std::size_t anywhere_max = 400;  // the same on several network levels
constexpr std::size_t bounded_max = 2000;  // the same where what levels carry at least leaves most of them out

constexpr Index devices_of_a_hop = 64;  // looking at so many takes as long as another hop

struct Node {
    State state;
    EdgeCost paid;
    std::uint32_t parent = 0;
    StepKind kind = StepKind::slice;
    bool closed = false;
};

// Where an exchange may lead.
struct Exchanged {
    State state;
    Index tile = 1;  // elements
    Index summands = 1;
    EdgeCost least;  // to pay from there
};

struct Entry {
    EdgeCost total;  // paid and at least still to pay
    std::uint32_t node;
    EdgeCost paid;  // to recognize entries that a cheaper way has outdated
    friend bool operator<(const Entry& a, const Entry& b) {
        if (a.total != b.total) return a.total > b.total;
        return a.node > b.node;
    }
};

// Where the node of each state is: open addressing, since a search asks for each of its hops.
class Places {
public:
    Places() : slots_(256) {}

    struct Slot {
        std::uint64_t code = 0;
        std::uint32_t node = 0;  // plus one; 0 where there is none
        bool asked = false;      // `least` is known
        EdgeCost least;          // still to pay
    };

    /// The place for this code.
    Slot& at(std::uint64_t code) {
        if (2 * (++used_) > slots_.size()) grow();
        Slot& slot = find(code);
        if (slot.code == code)
            --used_;
        else
            slot = {code, 0, false, {}};
        return slot;
    }

private:
    Slot& find(std::uint64_t code) {
        std::size_t at = (code * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1);
        while (slots_[at].code != 0 && slots_[at].code != code) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    void grow() {
        std::vector<Slot> old(4 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.code != 0) find(slot.code) = slot;
    }

    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

class Search {
public:
    Search(const SearchSpace& frame, const SearchOptions& options, const Machine& machine)
        : frame_(frame),
          options_(options),
          levels_(options.objective == Objective::time && machine.levels.size() > 1),
          moves_(frame, levels_, options.objective != Objective::bytes,
                 options.objective == Objective::time && machine.copy_run_ps > 0),
          prices_(frame, options.objective, machine),
          effort_(frame.exact ? 1 + frame.devices / devices_of_a_hop : 1) {
        nodes_.reserve(64);
        open_.reserve(128);
        hops_.reserve(256);
    }

    Found run() {
        const auto nothing = [](auto...) { return EdgeCost{}; };
        reach(frame_.source, {}, nothing, nothing, 0, StepKind::slice);
        Found found;
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end());
            const Entry entry = open_.back();
            open_.pop_back();
            if (entry.total >= below()) {
                found.complete = true;
                break;
            }
            Node& node = nodes_[entry.node];
            if (node.closed || entry.paid != node.paid) continue;
            node.closed = true;
            ++found.states;
            expand(entry.node);
            looked_at_ += saturating_multiply(static_cast<Index>(hops_.size()), effort_);
            if (looked_at_ > options_.hops_max) break;
        }
        found.complete = found.complete || open_.empty();  // empty: there is no other way, or none at all
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

    // On several levels prices take long: one is asked for only where its floors are not beaten already.
    template <class Floor, class Price>
    void reach(const State& state, EdgeCost paid_before, const Floor& floor, const Price& price, std::uint32_t parent,
               StepKind kind) {
        const bool goal = state == frame_.target;
        const auto late = [&](EdgeCost total) { return total >= below(); };
        const auto known = [&](std::uint32_t node, EdgeCost paid) {
            return node != 0 && paid >= nodes_[node - 1].paid;
        };
        EdgeCost least;
        if (levels_) {
            Places::Slot& slot = places_.at(state.code(frame_.lists));
            if (known(slot.node, paid_before)) return;
            if (!slot.asked) slot.least = goal ? EdgeCost{} : least_from(state, true);
            slot.asked = true;
            least = slot.least;
            for (const bool by_levels : {false, true})
                if (const EdgeCost paid = paid_before + floor(by_levels); late(paid + least) || known(slot.node, paid))
                    return;
        } else if (!goal) {
            least = least_from(state, false);
        }
        const EdgeCost paid = paid_before + price();
        if (late(paid + least)) return;
        Places::Slot& slot = places_.at(state.code(frame_.lists));
        if (known(slot.node, paid)) return;
        if (!levels_ && frame_.exact && !goal) {
            if (!slot.asked) slot.least = least_from(state, true);
            slot.asked = true;
            least = slot.least;
            if (late(paid + least)) return;
        }
        const Node node{state, paid, parent, kind, false};
        if (slot.node == 0) {
            nodes_.push_back(node);
            slot.node = static_cast<std::uint32_t>(nodes_.size());
        } else {
            nodes_[slot.node - 1] = node;
        }
        if (goal) arrived_ = slot.node;
        open_.push_back({paid + least, slot.node - 1, paid});
        std::push_heap(open_.begin(), open_.end());
    }

    /// Still to pay; `by_device`: no less, by looking at devices.
    [[nodiscard]] EdgeCost least_from(const State& state, bool by_device) const {
        const Index least = moves_.least_to_target(state);
        return by_device ? prices_.at_least(state, moves_.foreign_to_target(state, least)) : prices_.at_least(least);
    }

    void expand(std::uint32_t index) {
        const State state = nodes_[index].state;
        const EdgeCost paid = nodes_[index].paid;
        hops_.clear();
        moves_.append_moves(state, options_.tile_max, hops_);
        if (levels_ || cheapest_of_shape(state, paid)) moves_.append_permutes(state, hops_);
        if (options_.vocabulary == Vocabulary::all) append_exchanges(state, paid);
        // What arrives comes first: it bounds the rest.
        for (const bool arrives : {true, false})
            for (const Edge& hop : hops_)
                if ((hop.state == frame_.target) == arrives) {
                    const auto floor = [&](bool by_levels) {
                        return by_levels ? prices_.floor_by_levels(state, hop, arrives)
                                         : prices_.floor_of(hop, arrives);
                    };
                    const auto price = [&] { return prices_.of(state, hop, arrives); };
                    reach(hop.state, paid, floor, price, index, hop.kind);
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
        const auto summands = [&](const State& one) { return frame_.shards(one.lists[frame_.dims()]); };
        const Index here = summands(state);
        if (options_.objective != Objective::time && !frame_.sums()) {
            hops_.push_back(moves_.exchange(state, frame_.target));
            return;
        }
        if (exchanged_.empty()) {
            const bool anywhere = levels_ || frame_.sums();
            const std::size_t among = prices_.by_levels() && frame_.even ? bounded_max : anywhere_max;
            const std::size_t most = anywhere ? among : behind_max;
            const std::vector<State> states = moves_.states_to_exchange_to(anywhere, most, all_exchanges_);
            for (const State& next : states)
                if (const Index tile = moves_.sides_of(next).tile; tile <= options_.tile_max)
                    exchanged_.push_back({next, tile, summands(next), least_from(next, levels_)});
        }
        for (const Exchanged& one : exchanged_) {
            const bool goal = one.state == frame_.target;
            if ((!goal && paid + one.least >= below()) || one.summands != here || one.state == state) continue;
            if (levels_ && !goal) {
                const EdgeCost floor = paid + prices_.exchange_floor(state, one.state, one.tile);
                const Places::Slot& slot = places_.at(one.state.code(frame_.lists));
                if (floor + one.least >= below() || (slot.node != 0 && floor >= nodes_[slot.node - 1].paid)) continue;
            }
            hops_.push_back(moves_.exchange(state, one.state));
        }
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
    const Moves moves_;
    const EdgeCosts prices_;
    const Index effort_;  // of one hop
    std::vector<Node> nodes_;
    Places places_;
    std::vector<std::pair<std::uint64_t, EdgeCost>> shapes_;
    std::vector<Exchanged> exchanged_;
    std::vector<Entry> open_;
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
