#include "overlap/steps.hpp"

#include <memory>

namespace reshard::overlap {
namespace {

constexpr Index values = 1000;

// Row-major numbers, in the whole array, of the elements of a tile in its order.
std::vector<Index> numbers_of(const Tile& tile, const std::vector<Index>& shape) {
    std::vector<Index> numbers = {0};
    for (std::size_t dim = 0; dim < tile.size(); ++dim) {
        std::vector<Index> longer;
        for (const Index number : numbers)
            for (const Interval& interval : tile[dim].intervals)
                for (Index i = interval.begin; i < interval.end; ++i) longer.push_back(number * shape[dim] + i);
        numbers = std::move(longer);
    }
    return numbers;
}

// The value of an element of one summand, so small that sums are exact.
float value(Index number, Index summand) { return static_cast<float>(number % values + summand * (number % 7)); }

// A rank's tile of the array with these summands.
std::vector<float> tile_of(const Layout& layout, Index rank, Index summands) {
    std::vector<float> tile_values;
    for (const Index number : numbers_of(tile(layout, rank), shape(layout))) {
        float sum = 0;
        for (Index one = 0; one < summands; ++one) sum += value(number, one);
        tile_values.push_back(summand_count(layout) > 1 ? value(number, summand(layout, rank)) : sum);
    }
    return tile_values;
}

struct Way {
    Judged<Plan> plan;
    Executor executor;
    std::vector<float> target;
    std::vector<std::byte> workspace;
    std::unique_ptr<Bound> bound;

    Way(const Judged<Plan>& judged, Backend& backend, const std::vector<float>& source)
        : plan(judged),
          executor(must(Executor::prepare(judged, backend))),
          target(tile_count(judged.plan().target, backend.rank())),
          workspace(static_cast<std::size_t>(executor.workspace_bytes())),
          bound(must(executor.bind(
              {std::as_bytes(std::span(source)), std::as_writable_bytes(std::span(target)), workspace}))) {}
};

}  // namespace

nlohmann::json measure(const StepsProblem& problem, const Machine& machine, Backend& backend, int rounds) {
    const Mesh mesh = must(parse_mesh(problem.mesh));
    const Layout source = must(parse_layout(mesh, problem.source));
    const Layout target = must(parse_layout(mesh, problem.target));
    Options options;
    options.machine = machine;
    options.capabilities = backend.capabilities();
    const Synthesis chosen = must(synthesize(source, target, options));
    options.capabilities.steps_overlap = false;
    const Synthesis before = must(synthesize(source, target, options));

    const std::vector<float> held = tile_of(source, backend.rank(), summand_count(source));
    const std::vector<float> wanted = tile_of(target, backend.rank(), summand_count(source));
    std::map<std::string, std::unique_ptr<Way>> ways;
    ways["chosen"] = std::make_unique<Way>(chosen, backend, held);
    ways["steps"] = std::make_unique<Way>(before, backend, held);
    ways["steps of chosen"] = std::make_unique<Way>(must(judge(chosen.plan(), AsSteps{})), backend, held);
    RoundTimes times;
    Index wrong = 0;
    for (int round = 0; round <= rounds; ++round) {
        for (const auto& name : {"steps", "chosen", "steps of chosen", "steps again"}) {
            Way& way = *ways[std::string(name) == "steps again" ? "steps" : name];
            std::ranges::fill(way.target, -1.0F);
            race(times, round, name, [&] { must(way.bound->start().value()->wait()); });
            wrong += sum_of(count_wrong(way.target, wanted));
        }
    }
    std::vector<std::string> steps;
    for (const Step& step : chosen.plan().steps) steps.emplace_back(name(step.kind));
    const auto levels = plan_times(chosen.plan(), chosen.verdict(), machine).levels;
    return {{"work", "steps"},
            {"ranks", backend.size()},
            {"source", problem.source},
            {"target", problem.target},
            {"steps", steps},
            {"pieces", piece_count(chosen.execution())},
            {"levels_picoseconds", levels},
            {"predicted_seconds", static_cast<double>(chosen.picoseconds) / 1e12},
            {"predicted_steps_seconds", static_cast<double>(before.picoseconds) / 1e12},
            {"seconds", medians(times)},
            {"wrong", wrong}};
}

}  // namespace reshard::overlap
