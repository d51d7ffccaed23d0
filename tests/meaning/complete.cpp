// Compares plans that are called complete with the exact optimum over every layout of the mesh.
#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "differential/reference.hpp"
#include "meaning/asked.hpp"
#include "meaning/holders.hpp"
#include "reshard/text.hpp"
#include "support/price.hpp"

namespace reshard::test {

namespace {

/// Every way to cut each axis into primes, most major first, so that parts of axes can name the digits. Layouts with
/// digits that cross axes are left out; the search leaves them out too.
void add_cuts(std::span<const Axis> axes, Index rest, Index stride, const AtomList& digits,
              std::vector<AtomList>& cuts) {
    if (rest == 1 && axes.empty()) cuts.push_back(digits);
    if (rest == 1 && !axes.empty()) add_cuts(axes.subspan(1), axes.front().size, stride, digits, cuts);
    for (const Index prime : {Index{2}, Index{3}, Index{5}, Index{7}}) {
        if (rest % prime != 0) continue;
        AtomList longer = digits;
        longer.push_back({prime, stride / prime});
        add_cuts(axes, rest / prime, stride / prime, longer, cuts);
    }
}

/// The references of recent shapes. One reference serves all pairs of its layouts.
class Known {
public:
    const Reference& of(const std::string& key, const std::function<Reference()>& make) {
        auto& one = known_[key];
        if (!one) {
            if (known_.size() > kept_max) {
                known_.clear();
                return *(known_[key] = std::make_unique<Reference>(make()));
            }
            one = std::make_unique<Reference>(make());
        }
        return *one;
    }

private:
    static constexpr std::size_t kept_max = 400;
    std::map<std::string, std::unique_ptr<Reference>> known_;
};

/// True for two or three prime digits on one mesh in order, with no summands or limits, in f32, the reference's type.
bool covered(const Answer& answer) {
    const Problem& problem = answer.asked.problem;
    const Limits& limits = answer.asked.options.limits;
    if (!problem.source.mesh.devices.in_order() || problem.source.mesh != problem.target.mesh) return false;
    if (problem.source.dtype != DType::f32 || limits.peak_bytes_max || limits.memory.footprint_bytes_max ||
        limits.memory.donate)
        return false;
    if (!problem.source.unreduced.empty() || !problem.target.unreduced.empty()) return false;
    if (has_pieces(problem.source) || has_pieces(problem.target)) return false;
    const Index devices = device_count(problem.source);
    const auto digits = [](Index number) {
        std::size_t count = 0;
        for (Index prime = 2; number > 1; number % prime == 0 ? (++count, number /= prime) : ++prime) {
        }
        return count;
    };
    const std::size_t rank = problem.source.dims.size();
    return devices > 1 && devices % 11 != 0 && devices % 13 != 0 && rank > 0 &&
           ((digits(devices) <= 2 && rank <= 4) || (digits(devices) == 3 && rank <= 2));
}

std::vector<StepKind> kinds_of(Vocabulary vocabulary) {
    std::vector<StepKind> kinds = {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute};
    if (vocabulary == Vocabulary::all) kinds.push_back(StepKind::exchange);
    return kinds;
}

Index cost(const Layout& before, const Step& step, const Move& move, const Options& options) {
    if (options.objective == Objective::bytes) return move.received;
    if (options.objective == Objective::steps) return is_local(step.kind) ? 0 : 1;
    return step_picoseconds(before, step, move, options.machine);
}

Reference make_reference(const Answer& answer) {
    const Layout& source = answer.asked.problem.source;
    const Options& options = answer.asked.options;
    std::vector<AtomList> cuts;
    add_cuts(source.mesh.axes, 1, device_count(source), {}, cuts);
    return {source.mesh,
            shape(source),
            cuts,
            kinds_of(options.vocabulary),
            [&options](const Layout& before, const Step& step, const Move& move) {
                return cost(before, step, move, options);
            },
            Reference::Ragged::yes};
}

/// The least cost of any plan. A slice is a view, except as the last step, which copies its tile.
Index optimum_of(const Reference& reference, const Answer& answer, std::size_t source, std::size_t target) {
    const Problem& problem = answer.asked.problem;
    const Options& options = answer.asked.options;
    const Index floor = std::max(tile_elements(problem.source), tile_elements(problem.target));
    const std::vector<Index> before = reference.optima(source, floor);
    if (options.objective != Objective::time) return before[target];
    const Index copy = transfer_picoseconds(tile_bytes(problem.target), options.machine.copy_bytes_per_second);
    Index least = index_max;
    for (std::size_t last = 0; last < before.size(); ++last)
        for (const StepKind kind : kinds_of(options.vocabulary)) {
            const Step step{kind, reference.layouts()[target]};
            if (before[last] == index_max) continue;
            if (const auto move = type_step(reference.layouts()[last], step))
                least = std::min(least, before[last] + cost(reference.layouts()[last], step, *move, options) +
                                            (kind == StepKind::slice ? copy : 0));
        }
    return least;
}

Index price(const Synthesis& made, Objective objective) {
    if (objective == Objective::bytes)
        return made.verdict().received_bytes_max_device / size_of(made.plan().source.dtype);
    const Index moves = steps_that_move(made.plan());
    if (objective == Objective::steps || moves == 0) return moves;  // no plan is faster than one that moves nothing
    return made.picoseconds;
}

}  // namespace

std::string objection_to_completeness(const Answer& answer, Tally& tally) {
    if (!covered(answer)) return "";
    static Known known;
    const Problem& problem = answer.asked.problem;
    const Options& options = answer.asked.options;
    const std::string key =
        fmt::format("{} {} {} {} {}", format(problem.source.mesh), fmt::join(shape(problem.source), ","),
                    name(options.objective), name(options.vocabulary), format(options.machine));
    const Reference& reference = known.of(key, [&] { return make_reference(answer); });
    const auto& layouts = reference.layouts();
    const auto place = [&](const Layout& end) {
        return static_cast<std::size_t>(
            std::ranges::find_if(layouts, [&](const Layout& one) { return one.dims == end.dims; }) - layouts.begin());
    };
    const std::size_t source = place(problem.source);
    const std::size_t target = place(problem.target);
    if (source == layouts.size() || target == layouts.size()) return "the reference does not know an end";
    ++tally.referenced;
    const Index optimum = optimum_of(reference, answer, source, target);
    const Index found = price(answer.made, options.objective);
    if (!answer.made.search_complete) return "";
    ++tally.complete;
    if (found <= optimum) return "";
    return fmt::format("search_complete is untrue: {} of {} is found, {} is the optimum\n{}", name(options.objective),
                       found, optimum, format(answer.made.plan()));
}

}  // namespace reshard::test
