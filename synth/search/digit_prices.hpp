// The prices of steps between placements of digits.
#pragma once

#include "src/price/copy_runs.hpp"
#include "src/price/level_price.hpp"
#include "src/tables/step_kinds.hpp"
#include "synth/search/digit_facts.hpp"
#include "synth/search/edge_cost.hpp"

namespace reshard {

/// The prices of steps between placed digits, as EdgeCosts has them on one level.
class DigitPrices {
public:
    DigitPrices(const DigitFacts& facts, Objective objective, const Machine& machine)
        : facts_(facts), objective_(objective), machine_(machine), level_(machine.levels[0]) {
        element_ = size_of(facts.space.like->dtype);
        last_copy_ = copy(facts.there);
        first_message_ = saturating_add(level_.start_ps, level_.latency_ps);
    }

    [[nodiscard]] bool timed() const { return objective_ == Objective::time; }
    [[nodiscard]] bool counts_runs() const { return timed() && machine_.copy_run_ps > 0; }

    /// A move without its runs.
    [[nodiscard]] EdgeCost of_move(Index tile_after, Index received, Index messages) const {
        if (objective_ == Objective::bytes) return {received, 1};
        if (objective_ == Objective::steps) return {1, received};
        return {saturating_add(copy(tile_after), level_picoseconds(level_, received, 0, messages, element_)), 1};
    }

    [[nodiscard]] EdgeCost of_slice(bool arrives) const { return {timed() && arrives ? last_copy_ : 0, 0}; }

    [[nodiscard]] EdgeCost runs(StepKind kind, const PlacedDigits& before, const PlacedDigits& after) const {
        if (!counts_runs()) return {0, 0};
        const auto& extents = facts_.space.extents;
        const std::size_t rank = facts_.slots - 1;
        const std::array<Bits, slots_max> held = before.held();
        const std::array<Bits, slots_max> next = after.held();
        if (is_alias(kind)) {
            // Neighbours that a slice cuts are one digit in the view of the plan.
            const Index runs = sliced_runs(rank, [&](std::size_t i) -> SlicedDim {
                const bool follows = (facts_.followed >> i & 1) != 0 && held[i] != next[i];
                return {extents[i + 1] / facts_.product(next[i + 1]), held[i + 1] != next[i + 1] && !follows};
            });
            return {saturating_multiply(runs, machine_.copy_run_ps), 0};
        }
        const Index run = run_elements(rank, [&](std::size_t i) -> CutDim {
            const Index shards = facts_.product(held[i + 1]);
            const bool same = held[i + 1] == next[i + 1];
            return {extents[i + 1], shards, same ? shards : facts_.product(next[i + 1])};
        });
        return {runs_picoseconds(facts_.space.elements / after.shards, run, machine_), 0};
    }

    [[nodiscard]] EdgeCost least(Ahead ahead) const {
        if (objective_ == Objective::bytes) return {ahead.elements, ahead.moves};
        if (objective_ == Objective::steps) return {ahead.moves, ahead.elements};
        if (ahead.moves == 0) return {last_copy_, 0};
        const Index time = saturating_add(saturating_multiply(ahead.moves, first_message_),
                                          transfer_picoseconds(saturating_multiply(ahead.elements, element_),
                                                               std::max<Index>(level_.bytes_per_second, 1)));
        return {saturating_add(last_copy_, time), ahead.moves};
    }

private:
    [[nodiscard]] Index copy(Index tile) const {
        return transfer_picoseconds(saturating_multiply(tile, element_), machine_.copy_bytes_per_second);
    }

    const DigitFacts& facts_;
    const Objective objective_;
    const Machine& machine_;
    const Level& level_;
    Index element_ = 1;
    Index last_copy_ = 0;
    Index first_message_ = 0;
};

}  // namespace reshard
