// The prices of steps between placements of digits.
#pragma once

#include "src/price/copy_runs.hpp"
#include "src/price/level_price.hpp"
#include "src/tables/step_kinds.hpp"
#include "synth/search/digit_levels.hpp"
#include "synth/search/edge_cost.hpp"

namespace reshard {

/// The prices of steps between placed digits, as EdgeCosts has them.
class DigitPrices {
public:
    /// `levels`: what each level carries; null if one level has the rate of a device alone.
    DigitPrices(const DigitFacts& facts, Objective objective, const Machine& machine, const DigitLevels* levels)
        : facts_(facts), objective_(objective), machine_(machine), levels_(levels), first_message_(index_max) {
        element_ = size_of(facts.space.like->dtype);
        last_copy_ = copy(facts.there);
        for (const Level& level : machine.levels) {
            first_message_ = std::min(first_message_, saturating_add(level.start_ps, level.latency_ps));
            fastest_ = std::max(fastest_, level.bytes_per_second);
        }
        const Bits all = ~(~Bits{0} << facts.digits);
        further_move_ = saturating_add(first_message_, copy(facts.space.elements / facts.product(all)));
    }

    [[nodiscard]] bool by_levels() const { return levels_ != nullptr; }
    [[nodiscard]] bool timed() const { return objective_ == Objective::time; }
    [[nodiscard]] bool counts_runs() const { return timed() && machine_.copy_run_ps > 0; }

    /// The time of the copies that leave a tile; 0 if the objective is not the time.
    [[nodiscard]] Index copies(Index tile) const { return timed() ? copy(tile) : 0; }

    /// A move inside groups of these digits, without its runs. Each device receives so many messages and elements.
    [[nodiscard]] EdgeCost of_group(Bits group, Index messages, Index copies, Index received) const {
        if (objective_ == Objective::bytes) return {received, 1};
        if (objective_ == Objective::steps) return {1, received};
        const Index time = by_levels() ? levels_->group_picoseconds(group, received)
                                       : level_picoseconds(machine_.levels[0], received, 0, messages, element_);
        return {saturating_add(copies, time), 1};
    }

    /// A permute without its runs. On several levels it is a lower bound, since levels carry what the states say.
    [[nodiscard]] EdgeCost of_permute(Index tile) const {
        if (objective_ == Objective::bytes) return {tile, 1};
        if (objective_ == Objective::steps) return {1, tile};
        const Index time = saturating_add(first_message_, transfer(tile));
        return {saturating_add(copy(tile), time), 1};
    }

    /// The same between two states. pre: by_levels()
    [[nodiscard]] EdgeCost of_permute(const PlacedDigits& before, const PlacedDigits& after) const {
        return {saturating_add(copy(facts_.space.elements / after.shards), levels_->permute_picoseconds(before, after)),
                1};
    }
    /// No more, and takes less time. pre: by_levels()
    [[nodiscard]] EdgeCost floor_of_permute(const PlacedDigits& before, const PlacedDigits& after) const {
        return {
            saturating_add(copy(facts_.space.elements / after.shards), levels_->least_picoseconds(before, after, 0)),
            1};
    }

    [[nodiscard]] EdgeCost of_slice(bool arrives) const { return {timed() && arrives ? last_copy_ : 0, 0}; }

    /// A zero_fill without its runs.
    [[nodiscard]] EdgeCost of_fill(Index tile) const { return {copies(tile), 0}; }

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
        const Index time = saturating_add(first_message_, transfer(ahead.elements));
        return {saturating_add(last_copy_, saturating_add(time, ahead.moves > 1 ? further_move_ : 0)), ahead.moves};
    }

    /// No less. More than one move makes a further tile, and so does a slice of a digit that moved.
    [[nodiscard]] EdgeCost least(Ahead ahead, const PlacedDigits& from) const {
        EdgeCost least = this->least(ahead);
        if (!timed() || by_levels() || facts_.space.sums || ahead.moves != 1) return least;
        const LastMove last = last_move(facts_, from);
        const Index waits = saturating_multiply(last.messages - 1, machine_.levels[0].latency_ps);
        const Index one = saturating_add(waits, runs_picoseconds(facts_.there, last.run, machine_));
        least.first =
            saturating_add(least.first, std::min({one, further_move_, copy(saturating_multiply(2, facts_.there))}));
        return least;
    }

    /// No less, from a state to the target. pre: by_levels()
    [[nodiscard]] EdgeCost least(Ahead ahead, const PlacedDigits& from, const PlacedDigits& target) const {
        const EdgeCost least = this->least(ahead);
        const Index time = levels_->least_picoseconds(from, target, ahead.elements);
        return {std::max(least.first, saturating_add(last_copy_, time)), least.second};
    }

private:
    [[nodiscard]] Index copy(Index tile) const {
        return transfer_picoseconds(saturating_multiply(tile, element_), machine_.copy_bytes_per_second);
    }
    [[nodiscard]] Index transfer(Index elements) const {
        return transfer_picoseconds(saturating_multiply(elements, element_), fastest_);
    }

    const DigitFacts& facts_;
    const Objective objective_;
    const Machine& machine_;
    const DigitLevels* const levels_;
    Index element_ = 1;
    Index last_copy_ = 0;
    Index further_move_ = 0;  ///< a move beside the last: a message, and the copies of the least tile
    Index first_message_;     ///< start and latency, the least of all levels
    Index fastest_ = 1;       ///< bytes a second, the most of all levels
};

}  // namespace reshard
