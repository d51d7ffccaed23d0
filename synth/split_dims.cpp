// The rule `split_dims`: the search in views. Each digit of a dimension is a dimension of its view.
//
// A dimension cut by (x, y) is a product of digits. In the layouts of its own shape a plan always cuts it from the
// major end. In the view a plan may cut any digit, so y may come before x.
#include <algorithm>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/view.hpp"
#include "synth/rule_table.hpp"
#include "synth/rules/views.hpp"
#include "synth/search/digit_search.hpp"
#include "synth/search/refinement.hpp"
#include "synth/search/search.hpp"

namespace reshard {

namespace {

// Moves that a search on several levels looks at. An exchange takes microseconds to price, and other moves less.
constexpr Index levels_in_views_hops_max = 8000;
constexpr Index collectives_in_views_hops_max = 16'000;

// Placements that a search over digits looks at: of five digits nearly all, of more digits about a millisecond's worth.
constexpr Index few_digits_hops_max = 200'000;
constexpr Index many_digits_hops_max = 20'000;
constexpr std::size_t digits_searched_max = 9;

// Appends the places in a dimension at which the atoms cut it, as elements below the cut. The atoms behind `leading`
// shards count.
void append_cuts(const AtomList& atoms, Index extent, Index leading, std::vector<Index>& cuts) {
    Index shards = 1;
    for (const Atom& atom : atoms) {
        shards *= atom.size;
        if (shards > leading) cuts.push_back(extent / shards);
    }
}

// The extents of the digits of one dimension, major to minor. A common prefix of both ends that is kept stays
// with the digit below it, since the search cancels it. Cuts that form no chain give one digit.
std::vector<Index> digits_of(const Dim& source, const Dim& target, const Mesh* primes_of, bool keeps) {
    const AtomList leading = keeps ? common_prefix(source.atoms, target.atoms) : AtomList{};
    const Index extent = source.extent;
    std::vector<Index> cuts = {1, extent};
    for (const Dim* dim : {&source, &target}) {
        const AtomList atoms = primes_of != nullptr ? split_into_primes(*primes_of, dim->atoms) : dim->atoms;
        append_cuts(atoms, extent, combinations(leading), cuts);
    }
    std::vector<Index> extents;
    for (const Atom& digit : refinement(std::move(cuts)).value_or(AtomList{{extent, 1}})) extents.push_back(digit.size);
    if (extents.empty()) extents.push_back(extent);
    return extents;
}

// A view: the extents of the digits of each dimension.
using Parts = std::vector<std::vector<Index>>;

// The digits of both ends: prime digits, or digits as the atoms cut.
Parts parts_of(const Problem& problem, bool primes, bool keeps = true) {
    Parts parts;
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i)
        parts.push_back(
            digits_of(problem.source.dims[i], problem.target.dims[i], primes ? &problem.source.mesh : nullptr, keeps));
    return parts;
}

// The problem in a view; nullopt if an end is no product of its digits.
std::optional<Problem> in_view(const Problem& problem, const Parts& parts) {
    auto source = in_parts(problem.source, parts);
    auto target = in_parts(problem.target, parts);
    if (!source || !target) return std::nullopt;
    return Problem{*std::move(source), *std::move(target)};
}

// The layout with dimensions `at` and `at + 1` as one; nullopt if that dimension is not cut from its major end.
std::optional<Layout> joined(Layout layout, std::size_t at) {
    Dim& outer = layout.dims[at];
    const Dim& inner = layout.dims[at + 1];
    if (!inner.atoms.empty() && shard_count(outer) != outer.extent) return std::nullopt;
    AtomList atoms = outer.atoms;
    atoms.insert(atoms.end(), inner.atoms.begin(), inner.atoms.end());
    outer = Dim(outer.extent * inner.extent, canonical(std::move(atoms)));
    layout.dims.erase(layout.dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    return layout;
}

// The plan with these two dimensions as one; nullopt if its steps have no type then.
std::optional<Plan> joined(const Plan& plan, std::size_t at) {
    auto source = joined(plan.source, at);
    auto target = joined(plan.target, at);
    if (!source || !target) return std::nullopt;
    Plan made{*std::move(source), *std::move(target), {}, plan.network};
    for (const Step& step : plan.steps) {
        auto layout = joined(step.layout, at);
        if (!layout) return std::nullopt;
        const Layout before = layout_before(made, made.steps.size());
        made.steps.push_back({step.kind, *std::move(layout)});
        if (!type_valid_step(before, made.steps.back())) return std::nullopt;
    }
    return made;
}

// The same plan in a view of as few digits as it can be written in.
Plan with_fewest_digits(Plan plan, const Parts& parts) {
    std::size_t end = plan.source.dims.size();
    for (std::size_t i = parts.size(); i-- > 0;) {
        const std::size_t begin = end - parts[i].size();
        for (std::size_t at = end - 1; at > begin; --at)
            if (auto fewer = joined(plan, at - 1)) plan = *std::move(fewer);
        end = begin;
    }
    return plan;
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

SearchOptions limits_of(const Inquiry& asked) {
    SearchOptions limits;
    limits.objective = asked.options.objective;
    limits.vocabulary = asked.options.vocabulary;
    limits.tile_max = asked.candidates.peak_bytes_max() / size_of(asked.problem.source.dtype);
    limits.below = cost_of(*asked.candidates.best(), limits.objective);
    return limits;
}

void propose(Inquiry& asked, Plan plan, const Parts& parts) {
    asked.candidates.judge(std::string(asked.rule),
                           between_views(asked.problem, with_fewest_digits(std::move(plan), parts)));
}

bool on_levels(const Inquiry& asked) { return depends_on_levels(asked.options.objective, asked.options.machine); }

// Proposes the best plan of one view if it costs less than the best candidate. True if no plan in prime digits does.
bool search_view(Inquiry& asked, const Parts& parts, bool keeps = true) {
    const auto seen = in_view(asked.problem, parts);
    if (!seen) return false;
    const auto space = make_limited_space(*seen, keeps);
    if (!space || !space->even) return false;
    SearchOptions limits = limits_of(asked);
    if (on_levels(asked))
        limits.hops_max =
            limits.vocabulary == Vocabulary::all ? levels_in_views_hops_max : collectives_in_views_hops_max;
    else if (has_summands(*seen) && limits.objective != Objective::time)
        limits.hops_max = sums_hops_max;
    Found found = search(*space, limits, asked.options.machine);
    asked.searched.states += found.states;
    if (found.arrived) propose(asked, {seen->source, seen->target, std::move(found.steps)}, parts);
    return found.complete && found.exact_prices && found.all_exchanges && space->whole;
}

// The same over placements of digits.
bool search_digits_of(Inquiry& asked, const DigitSpace& space) {
    SearchOptions limits = limits_of(asked);
    limits.hops_max = space.digits.size() > searched_max ? many_digits_hops_max : few_digits_hops_max;
    limits.vocabulary = Vocabulary::collectives;
    const DigitsFound found = search_digits(space, limits, asked.options.machine);
    asked.searched.states += found.states;
    if (found.arrived) {
        PathInView seen = in_view(space, found.path);
        Plan plan{seen.layouts.front(), seen.layouts.back(), {}};
        for (std::size_t i = 0; i < found.path.kinds.size(); ++i)
            plan.steps.push_back({found.path.kinds[i], std::move(seen.layouts[i + 1])});
        propose(asked, std::move(plan), seen.parts);
    }
    // The search prices slices as cheaply as any view does.
    const bool priced = !found.arrived || cost_of(*asked.candidates.best(), limits.objective) <= found.price;
    return found.complete && priced;
}

// Searches the digits of one order. True if no plan in them costs less than the best.
bool search_order(Inquiry& asked, DigitSpace space) {
    const Options& options = asked.options;
    const auto takes = [&](const DigitSpace& digits) {
        return digits.packs() && digits.digits.size() <= digits_searched_max &&
               prices_digits(digits, options.objective, options.machine);
    };
    if (space.digits.size() > searched_max) {
        // Few digits take little time, and a better plan ends the search over all digits sooner.
        const DigitSpace fewer = in_fewer_digits(space);
        if (fewer.digits.size() < space.digits.size() && takes(fewer)) search_digits_of(asked, fewer);
    }
    if (options.objective != Objective::time || options.machine.copy_run_ps == 0)
        space = with_one_rest(std::move(space));
    return takes(space) && search_digits_of(asked, space);
}

// On several levels a digit that cuts one place at both ends may gain by moving, since the digits of a group share the
// time of its messages. True if no digit is kept there.
bool moves_all(const DigitSpace& space) {
    return std::ranges::all_of(space.parts, [](const DigitSpace::Part& part) { return part.kept.size == 1; });
}

bool keeps_none(const Problem& problem) {
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i)
        if (!common_prefix(problem.source.dims[i].atoms, problem.target.dims[i].atoms).empty()) return false;
    return true;
}

// Lists of digits: cuts that do not align, sums and exchanges on levels, and blocks of a machine that part a digit. The
// least primes come first.
bool search_lists(Inquiry& asked) {
    const Parts primes = parts_of(asked.problem, true);
    const auto is_split = [](const Parts& parts) {
        return std::ranges::any_of(parts, [](const auto& digits) { return digits.size() > 1; });
    };
    if (is_split(primes)) {
        // Few digits take little time, and a better plan ends the search over prime digits sooner.
        const Parts digits = parts_of(asked.problem, false);
        if (digits != primes) search_view(asked, digits);
        if (!unbeaten(asked) && !search_view(asked, primes)) return false;
    }
    const bool exchanges = asked.options.vocabulary == Vocabulary::all;
    if (exchanges || !on_levels(asked) || keeps_none(asked.problem)) return true;
    // The digits that both ends keep take part if nothing else is left. One exchange does all that they would gain.
    return asked.complete && search_view(asked, parts_of(asked.problem, true, false), false);
}

// The digits of one order. On several levels all of them may move, if they are few.
std::optional<DigitSpace> space_of(const Inquiry& asked, Index order) {
    if (on_levels(asked))
        if (auto space = make_digit_space(asked.problem, order, false); space && space->digits.size() <= searched_max)
            return space;
    return make_digit_space(asked.problem, order);
}

// Searches the digits of every order. nullopt if digits do not describe the question; else true if no plan of
// collectives in them costs less than the best.
std::optional<bool> search_orders(Inquiry& asked) {
    const Options& options = asked.options;
    const Index orders = digit_orders(asked.problem);
    std::optional<bool> settled;
    for (Index order = 0; order < std::min(orders, orders_max); ++order) {
        auto space = space_of(asked, order);
        if (!space) continue;
        const bool priced = prices_digits(*space, options.objective, options.machine);
        const bool all = !on_levels(asked) || moves_all(*space);
        const bool done = priced && search_order(asked, *std::move(space)) && all;
        // The claim is about orders that no block of the machine parts, and about the least primes.
        if (priced || order == 0) settled = done && settled.value_or(orders <= orders_max);
    }
    return settled;
}

// Every layout of these devices divides, so placements of digits describe all layouts.
bool divide_anyhow(const Problem& problem) {
    const Index devices = device_count(problem.source);
    return std::ranges::all_of(problem.source.dims, [&](const Dim& dim) { return dim.extent % devices == 0; });
}

// The sum over the steps is the time of the plan.
bool adds_up(const Inquiry& asked) {
    return asked.options.objective != Objective::time ||
           (!overlaps_levels(asked.options) && piece_count(asked.candidates.best()->execution()) == 1);
}

}  // namespace

void search_split_dims(Inquiry& asked) {
    if (global_bytes(asked.problem.source) == 0) return;
    const auto settled = search_orders(asked);
    // On several levels lists also hold exchanges, and permutes that have no price in closed form.
    const bool exchanges = asked.options.vocabulary == Vocabulary::all;
    if (!settled || (on_levels(asked) && (exchanges || !*settled))) {
        asked.complete = search_lists(asked) && asked.complete;
        return;
    }
    const bool all = asked.complete || (digit_orders(asked.problem) == 1 && divide_anyhow(asked.problem));
    asked.complete = *settled && all && adds_up(asked);
}

}  // namespace reshard
