#include "synth/program/search.hpp"

#include <algorithm>

#include "synth/program/list_order.hpp"
#include "synth/program/tabu.hpp"

namespace reshard::program {
namespace {

constexpr int justified_max = 4000;  // activities; in larger programs the lists alone are close to the bound
constexpr int exact_first_max = 16;  // activities whose orders are searched completely before any local search
static_assert(exact_first_max <= exact_activities_max);

std::optional<Order> fitting(const Activities& program, const Paths& paths, std::vector<Index>* needed) {
    for (const int kind : {0, 1, 2}) {
        Order order = kind == 0 ? program.written : kind == 1 ? late_moves(program) : lean_order(program, paths);
        const std::vector<Index> most = one_by_one(program, order);
        if (std::ranges::equal(most, program.limits, std::less_equal<>())) return order;
        if (needed == nullptr) continue;
        if (needed->empty()) *needed = most;
        for (std::size_t p = 0; p < most.size(); ++p) (*needed)[p] = std::min((*needed)[p], most[p]);
    }
    return std::nullopt;
}

// The same program run backwards, without memory.
Activities reversed(const Activities& program) {
    Activities back;
    back.resources = program.resources;
    back.all = program.all;
    for (int j = 0; j < program.count(); ++j) {
        back.all[j].before = program.after[j];
        back.all[j].early = 0;  // another activity waits now; it only starts later than it could
    }
    complete(back);
    return back;
}

// Sorts an order by its starts, until nothing changes. Times takes memory only from activities that are earlier in the
// order; one that is later may free it sooner. Sorted, the order still fits, and no activity starts later than before.
Found settled(const Activities& program, Found found) {
    constexpr int rounds_max = 100;  // each of them starts something earlier; one or two are the rule
    Times times(program);
    for (int round = 0; round < rounds_max; ++round) {
        const auto value = times.of(found.order);
        const bool same = round > 0 && value == found.value;
        found.value = value.value_or(found.value);
        if (same) break;
        std::ranges::stable_sort(found.order, {}, [&](int j) { return times.start()[j]; });
    }
    return found;
}

class Lists {
public:
    Lists(const Activities& program, const Paths& paths, const Order& fallback, Index bound)
        : program_(program),
          paths_(paths),
          fallback_(fallback),
          bound_(bound),
          mirror_(reversed(program)),
          times_(program) {
        const auto value = times_.of(fallback);
        best_ = {fallback, value.value_or(Value{index_max, index_max})};
        look(program.written);
    }

    // Three priorities: the longest tail; the written order; the written order, with activities that nothing waits for
    // behind all others. Lists alone first, since they are cheap.
    Found run() {
        const int count = program_.count();
        std::vector<Index> rank(count), tail(count), written(count), useful(count);
        for (int k = 0; k < count; ++k) rank[program_.written[k]] = k;
        for (int j = 0; j < count; ++j) {
            tail[j] = paths_.tail[j] + program_.all[j].picoseconds;
            written[j] = -rank[j];
            useful[j] = -rank[j] - (paths_.tail[j] > 0 ? 0 : count);
        }
        for (const bool justified : {false, true})
            for (Margin margin = 0; margin <= (program_.limited ? margin_max : 0); ++margin)
                for (const auto* priority : {&tail, &written, &useful}) {
                    if (best_.value.end <= bound_ || (justified && count > justified_max)) return std::move(best_);
                    const auto value = look(list_order(program_, *priority, fallback_, margin));
                    if (justified && value) justify(*value, margin);
                }
        return std::move(best_);
    }

private:
    std::optional<Value> look(const Order& order) {
        const std::optional<Value> value = times_.of(order);
        if (value && *value < best_.value) best_ = {order, *value};
        return value;
    }

    // Every activity as late as it can be, and from there as early as it can be. pre: value is of the last order.
    void justify(Value value, Margin margin) {
        for (int round = 0; round < 3 && best_.value.end > bound_; ++round) {
            Times late(mirror_);
            if (!late.of(list_order(mirror_, times_.end(), mirror_.written))) return;
            const auto again = look(list_order(program_, late.end(), fallback_, margin));
            if (!again || again->end >= value.end) return;
            value = *again;
        }
    }

    const Activities& program_;
    const Paths& paths_;
    const Order& fallback_;
    Index bound_;
    Activities mirror_;
    Times times_;
    Found best_;
};

}  // namespace

std::optional<Answer> best_order(const Activities& program, const Budget& budget, std::vector<Index>* needed,
                                 const LowerBound* bound) {
    const Paths paths = paths_of(program);
    const std::optional<Order> fallback = fitting(program, paths, needed);
    if (!fallback) return std::nullopt;
    Answer answer;
    answer.bound = bound != nullptr ? *bound : lower_bound(program, paths);
    answer.found = Lists(program, paths, *fallback, answer.bound.end).run();
    const auto ended = [&] { return answer.found.value.end <= answer.bound.end; };
    if (!ended() && program.count() <= exact_first_max) {
        Exact all = exact(program, paths, std::move(answer.found), answer.bound.end, budget.states);
        answer.found = std::move(all.found);
        answer.found.value = Times(program).of(answer.found.order).value_or(answer.found.value);
        answer.states = all.states;
        if (all.exhausted) answer.ended = Ended::exhausted;
    }
    if (!ended() && answer.ended != Ended::exhausted) {
        answer.rounds = budget.rounds;
        Index left = budget.rounds;
        const auto search = program.limited ? improve : tabu;
        answer.found = search(program, paths, std::move(answer.found), answer.bound.end, left);
        answer.rounds -= left;
    }
    answer.found = settled(program, std::move(answer.found));
    if (ended()) answer.ended = Ended::bound;
    return answer;
}

}  // namespace reshard::program
