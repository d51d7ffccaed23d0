// Lower bounds from counting, and plans that must meet them.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "meaning/asked.hpp"

namespace reshard::test {

namespace {

/// The most elements that a device wants and does not have.
Index most_foreign(const std::vector<Holder>& before, const std::vector<Holder>& after) {
    Index most = 0;
    for (std::size_t device = 0; device < before.size(); ++device) {
        const std::set<Index> has(before[device].elements.begin(), before[device].elements.end());
        const auto foreign = [&](Index element) { return !has.contains(element); };
        most = std::max<Index>(most, std::ranges::count_if(after[device].elements, foreign));
    }
    return most;
}

/// The elements that the busiest device would receive if each device fetched every missing summand of its tile.
Index fetching_every_summand(Index summands, const std::vector<Holder>& before, const std::vector<Holder>& after) {
    Index most = 0;
    for (std::size_t device = 0; device < before.size(); ++device) {
        const std::set<Index> has(before[device].elements.begin(), before[device].elements.end());
        Index receipts = 0;
        for (const Index element : after[device].elements) receipts += has.contains(element) ? summands - 1 : summands;
        most = std::max(most, receipts);
    }
    return most;
}

// Some sums miss their bound for three reasons. If no receiver of an element holds a summand of it, it needs one
// receipt more than the bound counts. The bound lets all replicas share the receipts, which no nested cut can do. If a
// cut that shares them leaves tiles on other devices, these move once more. A plan receives at most twice as much as
// fetching every summand.
std::string objection_to_reduction(const Answer& answer, const std::vector<Holder>& before,
                                   const std::vector<Holder>& after, Tally& tally) {
    const Draft& draft = answer.draft;
    if (draft.source.mesh != draft.target.mesh || summands(draft.target) > 1) return "";
    const Index most = fetching_every_summand(summands(draft.source), before, after) * size_of(draft.dtype);
    ++tally.bounded_sums;
    tally.sums_at_bound += answer.made.optimal;
    if (!divides(draft.source) || !divides(draft.target)) return "";
    if (answer.made.verdict().received_bytes_max_device <= 2 * most) return "";
    return fmt::format("its sums receive more than twice all summands, {}", most);
}

}  // namespace

std::string objection_to_bounds(const Answer& answer, const std::vector<Holder>& before,
                                const std::vector<Holder>& after, Tally& tally) {
    const Draft& draft = answer.draft;
    const bool free = draft.vocabulary == Vocabulary::all && draft.objective == Objective::bytes && !draft.footprint;
    if (with_sums(draft)) return free ? objection_to_reduction(answer, before, after, tally) : "";
    const Index bound = most_foreign(before, after) * size_of(draft.dtype);
    const Index stated = answer.made.verdict().lower_bound_bytes;
    if (stated != bound) return fmt::format("the lower bound is {}, not {}", bound, stated);
    return free && !answer.made.optimal ? fmt::format("it receives more than the bound, {}", bound) : "";
}

}  // namespace reshard::test
