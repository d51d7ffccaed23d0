#include "synth/search.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "synth/moves.hpp"

namespace reshard {

namespace {

// Two costs, compared in order: elements and moves, or moves and elements.
struct Price {
    Index first = 0;
    Index second = 0;
    friend auto operator<=>(const Price&, const Price&) = default;
    friend Price operator+(Price a, Price b) {
        return {saturating_add(a.first, b.first), saturating_add(a.second, b.second)};
    }
};

struct Node {
    State state;
    Price paid;
    std::size_t parent = 0;
    StepKind kind = StepKind::slice;
    bool closed = false;
};

struct Entry {
    Price total;  // paid and at least still to pay
    std::size_t node;
    Price paid;  // to recognize entries that a cheaper way has outdated
    friend bool operator>(const Entry& a, const Entry& b) {
        if (a.total != b.total) return a.total > b.total;
        return a.node > b.node;
    }
};

class Search {
public:
    Search(const Frame& frame, const SearchOptions& options)
        : frame_(frame), options_(options), moves_(frame), goal_(frame.target.code(frame.lists)) {}

    Found run() {
        reach(frame_.source, {}, 0, StepKind::slice);
        Found found;
        while (!open_.empty()) {
            const Entry entry = open_.top();
            open_.pop();
            Node& node = nodes_[entry.node];
            if (node.closed || entry.paid != node.paid) continue;
            node.closed = true;
            if (node.state.code(frame_.lists) == goal_) {
                found.arrived = found.complete = true;
                found.steps = path_to(entry.node);
                return found;
            }
            ++found.states;
            expand(entry.node);
            looked_at_ += static_cast<Index>(hops_.size());
            if (looked_at_ > options_.hops_max) return found;
        }
        found.complete = true;  // there is no way
        return found;
    }

private:
    Price price(Index received, bool moves) const {
        const Index moved = moves ? 1 : 0;
        return options_.objective == Objective::steps ? Price{moved, received} : Price{received, moved};
    }

    void reach(const State& state, Price paid, std::size_t parent, StepKind kind) {
        const auto [known, fresh] = index_.emplace(state.code(frame_.lists), nodes_.size());
        if (fresh)
            nodes_.push_back({state, paid, parent, kind, false});
        else if (Node& node = nodes_[known->second]; paid < node.paid)
            node = {state, paid, parent, kind, false};
        else
            return;
        const Index least = moves_.least_to_target(state);
        open_.push({paid + price(least, least > 0), known->second, paid});
    }

    void expand(std::size_t index) {
        const State state = nodes_[index].state;
        const Price paid = nodes_[index].paid;
        hops_.clear();
        moves_.append_moves(state, options_.tile_max, hops_);
        const bool same_summands = state.lists[frame_.lists - 1] == frame_.target.lists[frame_.lists - 1];
        if (same_summands && shapes_.insert(moves_.shape_code(state)).second) moves_.append_permutes(state, hops_);
        if (same_summands && options_.vocabulary == Vocabulary::all)
            hops_.push_back({StepKind::exchange, frame_.target, moves_.least_to_target(state)});
        for (const Hop& hop : hops_) reach(hop.state, paid + price(hop.received, !is_local(hop.kind)), index, hop.kind);
    }

    std::vector<Step> path_to(std::size_t index) const {
        std::vector<Step> steps;
        for (; index != 0; index = nodes_[index].parent)
            steps.push_back({nodes_[index].kind, frame_.layout(nodes_[index].state)});
        std::ranges::reverse(steps);
        return steps;
    }

    const Frame& frame_;
    const SearchOptions& options_;
    const Moves moves_;
    const std::uint64_t goal_;
    std::vector<Node> nodes_;
    std::unordered_map<std::uint64_t, std::size_t> index_;
    std::unordered_set<std::uint64_t> shapes_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
    std::vector<Hop> hops_;
    Index looked_at_ = 0;
};

}  // namespace

Found search(const Frame& frame, const SearchOptions& options) { return Search(frame, options).run(); }

}  // namespace reshard
