#include "src/emit/orders.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "src/base/cache_line.hpp"

namespace reshard {

namespace {

constexpr std::size_t tried_members = 3;  // groups of more digits keep one of two orders
constexpr std::size_t kept_states = 64;   // of the search, before each stage
constexpr Index byte_cost = 4;            // of a copy in long runs
constexpr Index collective_cost = byte_cost << 20;

// The weighted bytes of all copies on the way. Runs shorter than a cache line count up to three times.
Index copied(const Order& from, const Order& to, const std::vector<Index>& extents, Index bytes) {
    const std::vector<Order> path = way(from, to, extents);
    Index cost = 0;
    for (std::size_t i = 1; i < path.size(); ++i) {
        const auto turned = transposition(path[i - 1], path[i]);
        if (!turned || !turned->moves()) continue;
        const std::size_t last = turned->sizes.size() - 1;
        const Index run = turned->permutation.back() == last ? turned->sizes.back() * bytes : bytes;
        const Index weight = run >= line_bytes ? byte_cost : run >= line_bytes / 4 ? 6 : 10;
        cost = saturating_add(cost, saturating_multiply(weight, saturating_multiply(elements_of(path[i]), bytes)));
    }
    return cost;
}

Order taken_in(const Stage& stage, const std::vector<std::size_t>& rotation) {
    Order order;
    for (const std::size_t i : rotation)
        if (stage.members[i].taken) order.push_back(*stage.members[i].taken);
    return order;
}

Order made_in(const Stage& stage, const std::vector<std::size_t>& rotation) {
    Order order;
    for (const std::size_t i : rotation)
        if (stage.members[i].made) order.push_back(*stage.members[i].made);
    return order;
}

Order joined(Order front, const Order& rest) {
    front.insert(front.end(), rest.begin(), rest.end());
    return front;
}

bool exchanges_blocks(OperationKind kind) {
    return kind == OperationKind::all_gather || kind == OperationKind::all_to_all ||
           kind == OperationKind::reduce_scatter;
}

// The stage writes its tile or its blocks anew, so a transpose beside it is part of that copy.
bool copies(OperationKind kind) { return exchanges_blocks(kind) || kind == OperationKind::slice; }

// The candidate orders of the digits of a group: as dimensions take them, as dimensions make them, or all.
std::vector<std::vector<std::size_t>> rotations(const Stage& stage) {
    std::vector<std::size_t> own(stage.members.size());
    std::iota(own.begin(), own.end(), 0);
    std::vector<std::vector<std::size_t>> all = {own};
    if (!exchanges_blocks(stage.kind)) return all;
    if (own.size() <= tried_members) {
        while (std::next_permutation(own.begin(), own.end())) all.push_back(own);
        return all;
    }
    const auto place = [&](std::size_t i) {
        const Digit digit = stage.members[i].made.value_or(Digit{});
        return std::pair(digit.dim, -digit.stride);
    };
    std::ranges::stable_sort(own, {}, place);
    all.push_back(own);
    return all;
}

bool in_mesh_order(const Stage& stage, const std::vector<std::size_t>& rotation) {
    return std::ranges::is_sorted(rotation, std::greater(),
                                  [&](std::size_t i) { return stage.members[i].atom.stride; });
}

// The row-major order of the digits that the tile has.
Order sorted(Order order) {
    std::ranges::sort(order, {}, [](const Digit& digit) { return std::pair(digit.dim, -digit.stride); });
    return merged(std::move(order));
}

// The same order with the digits that the next stage takes in front, if the tile has any of them.
std::optional<Order> fronted(const Order& order, const Order& wanted) {
    Order front;
    Order rest = order;
    for (const Digit& digit : wanted)
        if (!cut(rest, digit)) return std::nullopt;
    for (const Digit& digit : wanted)
        for (const Digit& have : rest)
            if (have.dim == digit.dim && digit.stride <= have.stride && have.stride < digit.stride * digit.size)
                front.push_back(have);
    if (front.empty()) return std::nullopt;
    std::erase_if(rest, [&](const Digit& digit) { return std::ranges::find(front, digit) != front.end(); });
    return merged(joined(front, rest));
}

// Splits a gather of several dimensions into one for each, the innermost first. Otherwise returns the stage as it is.
std::vector<Stage> by_dimension(const Stage& stage) {
    if (stage.kind != OperationKind::all_gather) return {stage};
    std::vector<Stage> parts;
    std::vector<Index> extents = stage.before;
    for (std::size_t dim = extents.size(); dim-- > 0;) {
        if (extents[dim] == stage.after[dim]) continue;
        Stage part = stage;
        std::erase_if(part.members, [&](const Member& member) { return member.made->dim != dim; });
        part.before = extents;
        extents[dim] = stage.after[dim];
        part.after = extents;
        parts.push_back(std::move(part));
    }
    return parts;
}

struct State {
    Order order;
    Index cost = 0;
    std::size_t copies = 0;
    std::size_t jumps = 0;  // groups whose members are not in the order of the mesh
    std::size_t alone = 0;  // copies that are part of no stage
    std::vector<Chosen> choices = {};
};

class Chooser {
public:
    explicit Chooser(const std::vector<Stage>& stages) : stages_(stages) {}

    Orders choose(const TileEnds& ends) {
        std::vector<State> states = {{ends.source}};
        for (std::size_t i = 0; i < stages_.size(); ++i) states = past(i, states);
        const Order end = row_major(ends.target);
        for (State& state : states) add(state, stages_.size(), end, ends.target, ends.bytes);
        State& best = *std::ranges::min_element(states, less);
        return {std::move(best.choices), best.cost};
    }

private:
    static bool less(const State& a, const State& b) {
        return std::tuple(a.cost, a.copies, a.jumps, a.alone) < std::tuple(b.cost, b.copies, b.jumps, b.alone);
    }

    // Copies the tile into another order before stage `i`.
    void add(State& state, std::size_t i, const Order& to, const std::vector<Index>& extents, Index bytes) const {
        const Index cost = copied(state.order, to, extents, bytes);
        const bool joins = (i > 0 && copies(stages_[i - 1].kind)) || (i < stages_.size() && copies(stages_[i].kind));
        state.cost = saturating_add(state.cost, cost);
        state.copies += cost > 0 ? 1 : 0;
        state.alone += cost > 0 && !joins ? 1 : 0;
        state.order = to;
    }

    // The digits that the next taking stage takes.
    Order wanted_after(std::size_t i) const {
        for (std::size_t next = i + 1; next < stages_.size(); ++next)
            if (exchanges_blocks(stages_[next].kind) && !taken_by(stages_[next]).empty())
                return taken_by(stages_[next]);
        return {};
    }

    std::vector<Order> bodies(std::size_t i, const State& state) const {
        const Order body = without(state.order, taken_by(stages_[i]));
        std::vector<Order> all = {body, sorted(body)};
        const Order wanted = wanted_after(i);
        for (std::size_t k = 0; k < 2; ++k)
            if (auto first = fronted(all[k], wanted)) all.push_back(std::move(*first));
        return all;
    }

    std::vector<State> past(std::size_t i, const std::vector<State>& states) const {
        const Stage& stage = stages_[i];
        std::map<Order, State> best;
        const auto reach = [&](const State& from, Chosen chosen) {
            State next = from;
            add(next, i, merged(chosen.order), stage.before, size_of(stage.dtype));
            next.order = behind(stage, chosen);
            next.jumps += in_mesh_order(stage, chosen.rotation) ? 0 : 1;
            next.choices.push_back(std::move(chosen));
            const auto [place, fresh] = best.try_emplace(next.order, next);
            if (!fresh && less(next, place->second)) place->second = std::move(next);
        };
        for (const State& state : states) {
            if (!exchanges_blocks(stage.kind)) {
                const bool lies = cut_out(state.order, taken_by(stage)).has_value();
                if (lies) reach(state, {state.order, rotations(stage).front()});
                if (!lies || stage.kind == OperationKind::permute)
                    reach(state, {row_major(stage.before), rotations(stage).front()});
                continue;
            }
            for (const Order& body : bodies(i, state))
                for (auto& rotation : rotations(stage)) {
                    Order order = joined(taken_in(stage, rotation), body);
                    reach(state, {std::move(order), std::move(rotation)});
                }
        }
        std::vector<State> kept;
        for (auto& [order, state] : best) kept.push_back(std::move(state));
        std::ranges::stable_sort(kept, less);
        if (kept.size() > kept_states) kept.resize(kept_states);
        return kept;
    }

    const std::vector<Stage>& stages_;
};

}  // namespace

Orders choose_orders(const std::vector<Stage>& stages, const TileEnds& ends) { return Chooser(stages).choose(ends); }

Orders split_gathers(std::vector<Stage>& stages, const TileEnds& ends) {
    Orders orders = choose_orders(stages, ends);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const std::vector<Stage> parts = by_dimension(stages[i]);
        if (parts.size() < 2) continue;
        std::vector<Stage> other(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(i));
        other.insert(other.end(), parts.begin(), parts.end());
        other.insert(other.end(), stages.begin() + static_cast<std::ptrdiff_t>(i) + 1, stages.end());
        Orders split = choose_orders(other, ends);
        if (saturating_add(split.cost, static_cast<Index>(parts.size() - 1) * collective_cost) >= orders.cost) continue;
        orders = std::move(split);
        stages = std::move(other);
        i += parts.size() - 1;
    }
    return orders;
}

std::vector<Order> way(const Order& from, const Order& to, const std::vector<Index>& extents) {
    if (merged(from) == merged(to)) return {to};
    if (transposition(from, to)) return {from, to};
    return {from, row_major(extents), to};
}

Order behind(const Stage& stage, const Chosen& chosen) {
    const Order body = without(chosen.order, taken_in(stage, chosen.rotation));
    if (stage.kind != OperationKind::update_slice) return merged(joined(made_in(stage, chosen.rotation), body));
    return merged(chosen.order) == row_major(stage.before) ? row_major(stage.after)
                                                           : merged(joined(made_by(stage), body));
}

}  // namespace reshard
