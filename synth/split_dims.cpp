// The rule `split_dims`: the search over views in which each digit of a dimension is a dimension of its own.
//
// A dimension cut by (x, y) is a product of digits. In the layouts of its own shape a plan always cuts it from the
// major end. In the view a plan may cut any digit, so y may come before x.
#include <algorithm>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/view.hpp"
#include "synth/rule_table.hpp"
#include "synth/search/refinement.hpp"
#include "synth/search/search.hpp"

namespace reshard {

namespace {

// Appends the places in a dimension at which the atoms cut it, as elements below the cut. The atoms behind `leading`
// shards count.
void append_cuts(const AtomList& atoms, Index extent, Index leading, std::vector<Index>& cuts) {
    Index shards = 1;
    for (const Atom& atom : atoms) {
        shards *= atom.size;
        if (shards > leading) cuts.push_back(extent / shards);
    }
}

// The extents of the digits of one dimension, major to minor. Digits that both ends cut alike at the major end stay
// together with the next one, since the search leaves them out. Cuts that form no chain give one digit.
std::vector<Index> digits_of(const Dim& source, const Dim& target, const Mesh* primes_of) {
    const AtomList leading = common_prefix(source.atoms, target.atoms);
    const Index extent = source.extent;
    std::vector<Index> cuts = {1, extent};
    for (const Dim* dim : {&source, &target}) {
        const AtomList atoms = primes_of != nullptr ? split_into_primes(*primes_of, dim->atoms) : dim->atoms;
        append_cuts(atoms, extent, combinations(leading), cuts);
    }
    std::vector<Index> extents;
    for (const Atom& digit : refinement(std::move(cuts)).value_or(AtomList{{extent, 1}})) extents.push_back(digit.size);
    return extents;
}

// The problem in the view whose dimensions are the digits of both ends: prime digits, or digits as the atoms cut.
// nullopt if an end is no product of such digits.
std::optional<Problem> in_digits(const Problem& problem, bool primes) {
    std::vector<std::vector<Index>> parts;
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i)
        parts.push_back(
            digits_of(problem.source.dims[i], problem.target.dims[i], primes ? &problem.source.mesh : nullptr));
    auto source = in_parts(problem.source, parts);
    auto target = in_parts(problem.target, parts);
    if (!source || !target) return std::nullopt;
    return Problem{*std::move(source), *std::move(target)};
}

EdgeCost cost_of(const Alternative& best, Objective objective) {
    const Index moves = moving_steps(best.plan());
    const Index elements = best.verdict().received_bytes_max_device / size_of(best.plan().source.dtype);
    switch (objective) {
        case Objective::time:
            return {best.picoseconds, moves};
        case Objective::bytes:
            return {elements, moves};
        case Objective::steps:
            break;
    }
    return {moves, elements};
}

// Proposes the best plan of one view if it costs less than the best candidate. True if no plan in prime digits does.
bool search_view(Inquiry& asked, const Problem& seen) {
    const auto space = make_limited_space(seen);
    if (!space || !space->even) return false;
    SearchOptions limits;
    limits.objective = asked.options.objective;
    limits.vocabulary = asked.options.vocabulary;
    limits.tile_max = asked.candidates.peak_bytes_max() / size_of(seen.source.dtype);
    limits.below = cost_of(*asked.candidates.best(), limits.objective);
    Found found = search(*space, limits, asked.options.machine);
    asked.searched.states += found.states;
    if (found.arrived)
        asked.candidates.judge(std::string(asked.rule), Plan{seen.source, seen.target, std::move(found.steps)});
    return found.complete && found.exact_prices && found.all_exchanges && space->whole;
}

}  // namespace

void search_split_dims(Inquiry& asked) {
    bool settled = false;
    std::optional<Problem> before;
    for (const bool primes : {true, false}) {
        const auto seen = in_digits(asked.problem, primes);
        if (!seen || seen == before) continue;
        settled = search_view(asked, *seen) && primes;
        if (settled) break;
        before = seen;
    }
    asked.complete = asked.complete && settled;
}

}  // namespace reshard
