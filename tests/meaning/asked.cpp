#include "meaning/asked.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include <fmt/format.h>

#include "meaning/holders.hpp"
#include "reshard/text.hpp"

namespace reshard::test {

namespace {

/// The numbers of the elements in a device's tile, in memory order.
std::vector<Index> elements_of(const Layout& layout, Index device) {
    std::vector<Index> elements;
    const Tile held = tile(layout, device);
    if (count(held) == 0) return elements;
    elements.push_back(0);
    for (std::size_t i = 0; i < held.size(); ++i) {
        std::vector<Index> longer;
        for (const Index element : elements)
            for (const Interval& interval : held[i].intervals)
                for (Index index = interval.begin; index < interval.end; ++index)
                    longer.push_back(element * layout.dims[i].extent + index);
        elements = std::move(longer);
    }
    return elements;
}

/// True if the problem must have a plan.
bool must_have_a_plan(const Draft& draft) {
    if (draft.footprint || (draft.peak && *draft.peak < 1)) return false;
    if (draft.vocabulary == Vocabulary::all) return true;
    return draft.source.mesh == draft.target.mesh && divides(draft.source) && divides(draft.target) &&
           !with_sums(draft) && draft.source.dims.size() == draft.target.dims.size();
}

std::string objection_to_error(const Draft& draft, const Error& error) {
    if (must_have_a_plan(draft)) return "no plan: " + error.message;
    if (error.code != Code::infeasible) return fmt::format("refused as {}: {}", name(error.code), error.message);
    if (error.message.empty() || error.message.find('\n') != std::string::npos) return "its error is no sentence";
    return "";
}

std::string objection_to_explain(const Answer& answer) {
    Options options = answer.asked.options;
    options.explain = true;
    const auto explained = synthesize(answer.asked.problem, options);
    if (!explained) return "plan has an answer, explain has none: " + explained.error().message;
    const Synthesis& made = answer.made;
    if (explained->plan() != made.plan())
        return fmt::format("plan and explain choose different plans, {} B and {} B:\n{}{}",
                           made.verdict().received_bytes_max_device, explained->verdict().received_bytes_max_device,
                           format(made.plan()), format(explained->plan()));
    if (explained->verdict() != made.verdict() || explained->picoseconds != made.picoseconds ||
        explained->execution() != made.execution())
        return "plan and explain judge the plan differently";
    if (explained->optimal != made.optimal) return "plan and explain disagree on optimal";
    if (explained->search_complete != made.search_complete) return "plan and explain disagree on search_complete";
    if (explained->alternatives.empty() || explained->alternatives.front().plan() != made.plan())
        return "explain does not begin with the plan";
    return "";
}

std::string objection_to_verdict(const Answer& answer, const std::vector<Holder>& before,
                                 const std::vector<Holder>& after, Tally& tally) {
    const Synthesis& made = answer.made;
    const Draft& draft = answer.draft;
    const Limits& limits = answer.asked.options.limits;
    const auto verdict = check(made.plan(), made.execution(), limits);
    if (!verdict) return "the judge refuses it: " + verdict.error().message;
    if (*verdict != made.verdict()) return "its verdict is not the judge's";
    const Index size = size_of(draft.dtype);
    const Index floor = std::max(largest_tile(before), largest_tile(after)) * size;
    if (verdict->floor_bytes != floor) return fmt::format("the floor is {}, not {}", floor, verdict->floor_bytes);
    if (verdict->peak_bytes > floor) return fmt::format("the peak, {}, is over the floor", verdict->peak_bytes);
    if (limits.memory.footprint_bytes_max && verdict->footprint_bytes > *limits.memory.footprint_bytes_max)
        return "over the limit";
    if (verdict->received_bytes_max_device < verdict->lower_bound_bytes) return "it receives less than the bound";
    if (made.optimal != (verdict->received_bytes_max_device == verdict->lower_bound_bytes)) return "optimal is untrue";
    if (made.optimal && draft.objective == Objective::bytes && !made.search_complete) return "optimal, not complete";
    for (const Step& step : made.plan().steps)
        if (draft.vocabulary == Vocabulary::collectives && step.kind == StepKind::exchange) return "it exchanges";
    const auto again = parse_plan(format(made.plan()));
    if (!again || *again != made.plan()) return "its text is another plan:\n" + format(made.plan());
    return objection_to_bounds(answer, before, after, tally);
}

void count(const Draft& draft, Tally& tally) {
    ++tally.questions;
    tally.across +=
        draft.source.mesh.devices != draft.target.mesh.devices || draft.source.mesh.sizes != draft.target.mesh.sizes;
    tally.uneven += !divides(draft.source) || !divides(draft.target);
    tally.reduced += with_sums(draft);
    tally.foreign += draft.notation != Notation::jax;
}

/// Checks everything except completeness. `into` receives the answer, if there is one.
std::string objection_to_answer(const Draft& draft, const cli::Request& asked, std::optional<Synthesis>& into,
                                Tally& tally) {
    const Index world = world_of(draft);
    const auto before = holders(draft.source, world);
    const auto after = holders(draft.target, world);
    const Problem& problem = asked.problem;
    if (auto wrong = difference(problem.source, before); !wrong.empty()) return "the source is read wrong: " + wrong;
    if (auto wrong = difference(problem.target, after); !wrong.empty()) return "the target is read wrong: " + wrong;
    if (auto wrong = objection_to_notations(draft, asked); !wrong.empty()) return wrong;
    auto made = synthesize(problem, asked.options);
    if (!made) {
        ++tally.refused;
        return objection_to_error(draft, made.error());
    }
    ++tally.planned;
    into = std::move(*made);
    const Plan& plan = into->plan();
    if (draft.peak && *draft.peak < 1 && into->verdict().floor_bytes > 0) return "a peak below the floor is planned";
    const Answer answer{draft, asked, *into};
    if (auto wrong = objection_to_explain(answer); !wrong.empty()) return wrong;
    if (auto wrong = difference(plan.source, before); !wrong.empty()) return "the plan starts elsewhere: " + wrong;
    if (auto wrong = difference(plan.target, after); !wrong.empty()) return "the plan ends elsewhere: " + wrong;
    if (auto wrong = objection_to_verdict(answer, before, after, tally); !wrong.empty()) return wrong;
    const std::string wrong = objection_to_move(answer);
    return wrong.empty() ? "" : wrong + "\n" + format(plan);
}

}  // namespace

std::string difference(const Layout& layout, const std::vector<Holder>& held) {
    std::map<Index, Index> numbered;  // ours -> the layout's
    std::set<Index> taken;
    for (std::size_t i = 0; i < held.size(); ++i) {
        const auto device = static_cast<Index>(i);
        if (position_of(layout.mesh, device).has_value() != held[i].within)
            return fmt::format("device {} is {} the mesh", device, held[i].within ? "not in" : "in");
        if (elements_of(layout, device) != held[i].elements) return fmt::format("the tile of device {}", device);
        if (!held[i].within) continue;
        const Index number = summand(layout, device);
        const auto [entry, fresh] = numbered.emplace(held[i].summand, number);
        if (entry->second != number || (fresh && !taken.insert(number).second))
            return fmt::format("the summand of device {}", device);
    }
    if (world_size(layout.mesh) > static_cast<Index>(held.size())) return "more devices";
    return "";
}

std::string objection(const Draft& draft, Tally& tally) {
    count(draft, tally);
    // CPU time and not wall time, because the machine may be busy.
    const std::clock_t begin = std::clock();
    const auto asked = cli::understand(question_of(draft));
    if (!asked) return "it is not understood: " + describe(asked.error());
    std::optional<Synthesis> made;
    const std::string wrong = objection_to_answer(draft, *asked, made, tally);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > tally.seconds) {
        tally.seconds = seconds;
        tally.slowest = command_line(question_of(draft));
    }
    if (!wrong.empty() || !made) return wrong;
    constexpr double seconds_max = 2;
    if (seconds > seconds_max) return fmt::format("it takes {:.1f} s", seconds);
    return objection_to_completeness({draft, *asked, *made}, tally);
}

}  // namespace reshard::test
