// If steps overlap, an exchange competes with plans of several steps in pieces. With all steps allowed, no plan ends
// later than with the collectives alone.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/chains.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

/// Nodes of 2 or 3 devices, alone or in racks of 2 or 3 nodes. Latencies and pieces may be free or not.
Machine random_machine(Random& random) {
    const Index node = 2 + below(random, 2);
    const Index rack = node * (2 + below(random, 2));
    Machine machine{"random", {}, index_max};
    if (below(random, 3) == 0) machine.piece_ps = 2'000'000;
    for (const Index devices : {node, rack, index_max}) {
        if (devices == rack && below(random, 2) == 0) continue;
        machine.levels.push_back({fmt::format("level{}", machine.levels.size()), devices, machine.piece_ps,
                                  1'000'000 << below(random, 3), 0, below(random, 4) == 0});
    }
    return machine;
}

/// Each axis shards one of two dimensions or is unreduced.
std::string random_sum(Random& random) {
    constexpr std::array<const char*, 3> reductions = {"U", "max", "avg"};
    std::array<std::vector<const char*>, 3> lists;
    for (const char* axis : {"a", "b", "c"}) lists[static_cast<std::size_t>(below(random, 3))].push_back(axis);
    const auto text = [](const char* before, const std::vector<const char*>& axes, const char* behind) {
        return axes.empty() ? "" : fmt::format("{}({}){}", before, fmt::join(axes, ","), behind);
    };
    const std::string reduction = fmt::format("{{{}:", reductions[static_cast<std::size_t>(below(random, 3))]);
    return fmt::format("f32[48{},48{}]{}", text("@", lists[0], ""), text("@", lists[1], ""),
                       text(reduction.c_str(), lists[2], "}"));
}

/// Two layouts with sums of any kind on one mesh, or a problem between any two meshes.
std::string random_text(Random& random, int question) {
    if (question % 2 == 0) return random_pair(random(), 24);
    if (question % 4 == 1) return random_question(random(), 16);
    constexpr const char* mesh = "a=2,b=3,c=2";
    const std::string source = random_sum(random);
    return fmt::format("{}\n{}\n{}\n{}", mesh, source, mesh, random_sum(random));
}

/// Makes the array longer, so that it can be cut. A dimension with stated intervals is unchanged.
void lengthen(Problem& problem, Index by) {
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i) {
        Dim& source = problem.source.dims[i];
        Dim& target = problem.target.dims[i];
        if (source.pieces.empty() && target.pieces.empty()) source.extent = target.extent = by * source.extent;
    }
}

std::vector<Step> first_step(const Problem& problem, const Options& options) {
    const auto made = synthesize(problem, options);
    return made && !made->plan().steps.empty() ? std::vector{made->plan().steps.front()} : std::vector<Step>{};
}

TEST(StepsOverlap, NoPlanOfAllStepsEndsLaterThanThatOfTheCollectives) {
    Random random(drawn_seed());
    Index planned = 0;
    Index in_pieces = 0;
    for (int question = cases(2000); question > 0; --question) {
        const std::string text = random_text(random, question);
        Problem problem = problem_of(text);
        lengthen(problem, below(random, 4) == 0 ? 1 : 16);
        Options options;
        options.machine = random_machine(random);
        options.capabilities.steps_overlap = true;
        const Index ends = tile_bytes(problem.source) + tile_bytes(problem.target);
        if (below(random, 4) == 0) options.limits.memory.footprint_bytes_max = ends + below(random, ends + 1);
        if (below(random, 8) == 0) options.first_steps = first_step(problem, options);
        const auto all = synthesize(problem, options);
        options.vocabulary = Vocabulary::collectives;
        const auto collectives = synthesize(problem, options);
        if (!collectives) continue;
        ++planned;
        if (overlaps(collectives->execution())) ++in_pieces;
        EXPECT_TRUE(all && all->picoseconds <= collectives->picoseconds)
            << text << "\n"
            << format(options.machine) << (all ? format(all->plan()) : all.error().message) << "\nin "
            << (all ? all->picoseconds : 0) << ", with collectives in " << collectives->picoseconds << " "
            << format(collectives->execution()) << "\n"
            << format(collectives->plan());
    }
    std::printf("%lld questions, %lld of which collectives answer in pieces that overlap\n",
                static_cast<long long>(planned), static_cast<long long>(in_pieces));
    EXPECT_GT(in_pieces, planned / 10);
}

}  // namespace
}  // namespace reshard::test
