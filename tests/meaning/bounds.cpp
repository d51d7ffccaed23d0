// Lower bounds by counting, and plans that must meet them.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "meaning/asked.hpp"

namespace reshard::test {

namespace {

/// The most elements that a device wants and has not.
Index most_foreign(const std::vector<Holder>& before, const std::vector<Holder>& after) {
    Index most = 0;
    for (std::size_t device = 0; device < before.size(); ++device) {
        const std::set<Index> has(before[device].elements.begin(), before[device].elements.end());
        const auto foreign = [&](Index element) { return !has.contains(element); };
        most = std::max<Index>(most, std::ranges::count_if(after[device].elements, foreign));
    }
    return most;
}

/// What the busiest device would get if each fetched every summand of its tile that it does not hold, in elements. And
/// whether every device holds one of each.
struct Fetched {
    Index most = 0;
    bool held = true;
};

Fetched fetch_every_summand(Index summands, const std::vector<Holder>& before, const std::vector<Holder>& after) {
    Fetched fetched;
    for (std::size_t device = 0; device < before.size(); ++device) {
        const std::set<Index> has(before[device].elements.begin(), before[device].elements.end());
        Index receipts = 0;
        for (const Index element : after[device].elements) {
            receipts += has.contains(element) ? summands - 1 : summands;
            fetched.held = fetched.held && has.contains(element);
        }
        fetched.most = std::max(fetched.most, receipts);
    }
    return fetched;
}

// On one mesh, where sizes divide and devices want only what they hold a summand of, sums meet their bound. Elsewhere
// they may not: an element that none of its receivers holds a summand of needs a receipt more than the bound counts; of
// an uneven cut the member with the largest piece receives all its summands, while the bound lets all members share the
// receipts evenly; and a cut that would nest may be over the peak that every plan keeps. There a plan receives little
// more than would fetching every summand, and mostly less.
std::string objection_to_reduction(const Answer& answer, const std::vector<Holder>& before,
                                   const std::vector<Holder>& after) {
    const Draft& draft = answer.draft;
    if (draft.source.mesh != draft.target.mesh || summands(draft.target) > 1) return "";
    const Fetched fetched = fetch_every_summand(summands(draft.source), before, after);
    const Index most = fetched.most * size_of(draft.dtype);
    if (divides(draft.source) && divides(draft.target) && fetched.held)
        return answer.made.optimal ? "" : "its sums receive more than the bound";
    if (3 * answer.made.verdict.received_bytes_max_device <= 5 * most) return "";
    return fmt::format("its sums receive much more than all summands, {}", most);
}

}  // namespace

std::string objection_to_bounds(const Answer& answer, const std::vector<Holder>& before,
                                const std::vector<Holder>& after) {
    const Draft& draft = answer.draft;
    const bool free = draft.vocabulary == Vocabulary::all && draft.objective == Objective::bytes && !draft.footprint;
    if (with_sums(draft)) return free ? objection_to_reduction(answer, before, after) : "";
    const Index bound = most_foreign(before, after) * size_of(draft.dtype);
    const Index stated = answer.made.verdict.lower_bound_bytes;
    if (stated != bound) return fmt::format("the lower bound is {}, not {}", bound, stated);
    return free && !answer.made.optimal ? fmt::format("it receives more than the bound, {}", bound) : "";
}

}  // namespace reshard::test
