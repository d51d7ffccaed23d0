// Draws calls in an order that can happen. A wait comes only after all ranks have started. Collective calls come in one
// order and hold a rank until all ranks are there. If the calls can end in one order, they end in every order.
#include <algorithm>
#include <random>

#include "schedule.hpp"

namespace reshard::runs {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

class Drawing {
public:
    Drawing(Random& random, Index ranks, const std::vector<List>& lists)
        : random_(random), lists_(lists), ranks_(static_cast<std::size_t>(ranks), Rank(lists.size())) {
        collectives_ = draw_collectives();
        weight_of_wait_ = below(random_, 2) == 0 ? 1 : 6;
        weight_of_start_ = below(random_, 2) == 0 ? 1 : 8;
        burst_ = std::array<std::size_t, 3>{0, 7, 19}[below(random_, 3)];
    }

    std::vector<std::vector<Op>> draw() {
        std::size_t at = 0;
        while (!std::ranges::all_of(ranks_, [&](const Rank& rank) { return over(rank); })) {
            if (below(random_, 20) >= burst_ || enabled(at).empty()) at = below(random_, ranks_.size());
            const auto ops = enabled(at);
            if (!ops.empty()) take(at, ops[below(random_, ops.size())]);
        }
        std::vector<std::vector<Op>> ops;
        for (Rank& rank : ranks_) ops.push_back(std::move(rank.ops));
        return ops;
    }

private:
    struct Progress {
        int bound = 0;  // runs so far
        int started = 0;
        int waited = 0;
    };
    struct Rank {
        explicit Rank(std::size_t executors) : of(executors) {}
        std::vector<Progress> of;  // by executor
        std::size_t collectives = 0;
        std::vector<Op> ops;
    };

    // Prepares every executor in turn, and drops them in another order.
    std::vector<Op> draw_collectives() {
        std::vector<std::size_t> drops(lists_.size());
        for (std::size_t i = 0; i < drops.size(); ++i) drops[i] = i;
        std::ranges::shuffle(drops, random_);
        std::vector<Op> all;
        std::size_t prepared = 0;
        std::size_t dropped = 0;
        const bool prepares_first = below(random_, 2) == 0;
        while (dropped < drops.size()) {
            const bool may_drop = drops[dropped] < prepared && (prepared == drops.size() || !prepares_first);
            if (prepared < drops.size() && (!may_drop || below(random_, 2) == 0))
                all.push_back({Call::prepare, prepared++});
            else if (may_drop)
                all.push_back({Call::drop, drops[dropped++]});
        }
        return all;
    }

    [[nodiscard]] bool over(const Rank& rank) const {
        if (rank.collectives < collectives_.size()) return false;
        for (std::size_t i = 0; i < lists_.size(); ++i) {
            if (rank.of[i].waited < lists_[i].runs) return false;
        }
        return true;
    }
    // After its last collective call, a rank waits for all others.
    [[nodiscard]] bool held(const Rank& rank) const {
        return std::ranges::any_of(ranks_, [&](const Rank& other) { return other.collectives < rank.collectives; });
    }
    [[nodiscard]] bool prepared(const Rank& rank, std::size_t executor) const {
        const auto made = std::span(collectives_).first(rank.collectives);
        return std::ranges::find(made, Op{Call::prepare, executor}) != made.end();
    }
    [[nodiscard]] bool all_started(std::size_t executor, int run) const {
        return std::ranges::all_of(ranks_, [&](const Rank& rank) { return rank.of[executor].started > run; });
    }

    // The calls that the rank may make next, each repeated by its weight.
    [[nodiscard]] std::vector<Op> enabled(std::size_t number) {
        const Rank& rank = ranks_[number];
        std::vector<Op> ops;
        if (held(rank)) return ops;
        if (rank.collectives < collectives_.size()) {
            const Op& next = collectives_[rank.collectives];
            const bool may = next.call == Call::prepare || rank.of[next.executor].started == lists_[next.executor].runs;
            if (may) ops.push_back(next);
        }
        for (std::size_t i = 0; i < lists_.size(); ++i) {
            if (!prepared(rank, i)) continue;
            const Progress& of = rank.of[i];
            if (of.waited < of.started) {
                if (all_started(i, of.waited)) ops.insert(ops.end(), weight_of_wait_, {Call::wait, i, of.waited});
            } else if (of.started < lists_[i].runs) {
                const bool binds = of.bound == of.started;
                ops.insert(ops.end(), weight_of_start_, {binds ? Call::bind : Call::start, i, of.started});
            }
        }
        return ops;
    }

    void take(std::size_t number, Op op) {
        Rank& rank = ranks_[number];
        Progress& of = rank.of[op.executor];
        const List& list = lists_[op.executor];
        switch (op.call) {
            case Call::prepare:
            case Call::drop:
                ++rank.collectives;
                break;
            case Call::bind:
                of.bound = list.rebinds ? op.run + 1 : list.runs;
                break;
            case Call::start:
                ++of.started;
                break;
            case Call::wait:
                ++of.waited;
                op.finish = std::array{Finish::wait, Finish::wait, Finish::poll, Finish::poll_all,
                                       Finish::drop_ticket}[below(random_, 5)];
                break;
        }
        rank.ops.push_back(op);
    }

    Random& random_;
    const std::vector<List>& lists_;
    std::vector<Rank> ranks_;
    std::vector<Op> collectives_;
    std::size_t weight_of_wait_ = 1;
    std::size_t weight_of_start_ = 1;
    std::size_t burst_ = 0;
};

}  // namespace

std::vector<std::vector<Op>> draw_ops(std::uint64_t seed, Index ranks, const std::vector<List>& lists) {
    Random random(seed);
    return Drawing(random, ranks, lists).draw();
}

}  // namespace reshard::runs
