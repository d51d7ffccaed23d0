#include "differential/reference.hpp"

#include <algorithm>
#include <queue>
#include <set>

namespace reshard::test {

namespace {

using Lists = std::vector<AtomList>;

/// Finds every way to deal the digits from `next` on to positions of the dimensions or to the summands, or to leave
/// them unused. The summands come last and are a set.
void deal(const AtomList& digits, std::size_t next, bool sums, Lists& lists, std::set<Lists>& all) {
    if (next == digits.size()) {
        all.insert(lists);
        return;
    }
    deal(digits, next + 1, sums, lists, all);
    for (AtomList& list : lists) {
        const bool summands = &list == &lists.back();
        if (summands && !sums) continue;
        for (std::size_t at = summands ? list.size() : 0; at <= list.size(); ++at) {
            list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), digits[next]);
            deal(digits, next + 1, sums, lists, all);
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
}

Dim cut(Index extent, const AtomList& digits, bool by_turns) {
    if (!by_turns) return {extent, canonical(digits)};
    std::vector<Index> factors;
    for (const Atom& digit : digits) factors.push_back(digit.size);
    return chunked_per_axis(extent, canonical(digits), factors);
}

}  // namespace

Reference::Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts)
    : Reference(mesh, shape, cuts, {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute},
                [](const Layout&, const Step&, const Move& move) { return move.received; }) {}

Reference::Reference(const Mesh& mesh, const std::vector<Index>& shape, const std::vector<AtomList>& cuts,
                     const std::vector<StepKind>& kinds, const Cost& cost, Ragged ragged, Sums sums) {
    std::set<Lists> all;
    for (const AtomList& digits : cuts) {
        Lists lists(shape.size() + 1);
        deal(digits, 0, sums == Sums::yes, lists, all);
    }
    std::set<Lists> seen;  // two cuts of an axis may make the same layout
    for (const Lists& lists : all) {
        Layout layout{DType::f32, mesh, {}, as_set(lists.back())};
        Lists merged;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            layout.dims.push_back(cut(shape[i], lists[i], ragged == Ragged::by_turns));
            merged.push_back(layout.dims.back().atoms);
        }
        merged.push_back(layout.unreduced);
        const bool wanted = validate(layout) && (ragged != Ragged::no || divides(layout));
        if (wanted && seen.insert(std::move(merged)).second) layouts_.push_back(std::move(layout));
    }
    edges_.resize(layouts_.size());
    for (std::size_t from = 0; from < layouts_.size(); ++from)
        for (std::size_t to = 0; to < layouts_.size(); ++to) {
            Index least = index_max;
            for (const StepKind kind : kinds) {
                const Step step{kind, layouts_[to]};
                if (const auto move = type_step(layouts_[from], step))
                    least = std::min(least, cost(layouts_[from], step, *move));
            }
            if (least != index_max) edges_[from].emplace_back(to, least);
        }
}

std::vector<Index> Reference::optima(std::size_t source, Index tile_max) const {
    std::vector<Index> least(layouts_.size(), index_max);
    using Entry = std::pair<Index, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    least[source] = 0;
    queue.emplace(0, source);
    while (!queue.empty()) {
        const auto [cost, at] = queue.top();
        queue.pop();
        if (cost != least[at]) continue;
        for (const auto& [next, received] : edges_[at]) {
            if (tile_elements(layouts_[next]) > tile_max || cost + received >= least[next]) continue;
            least[next] = cost + received;
            queue.emplace(least[next], next);
        }
    }
    return least;
}

}  // namespace reshard::test
