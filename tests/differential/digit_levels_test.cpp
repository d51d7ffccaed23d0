// Compares plans for the time on two network levels with the exact optimum over digits. Each digit of the array is a
// dimension of size 2 in the reference, and the judge types and prices its steps. It shares no code with synth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "differential/reference.hpp"
#include "reshard/planner/cost.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

struct Field {
    const char* name;
    Mesh mesh;
    std::size_t digits;  ///< of the mesh, and of each dimension
    Index inside;        ///< devices of a node
    bool shared = false;
    Index one_source_in = 1;  ///< in a short run
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

// Copies take a picosecond, and their runs nothing: the time of runs depends on the view of a plan.
Machine machine_of(const Field& field) {
    return {"two_levels",
            {{"inside", field.inside, 700'000, 370'000'000, 7'000'000},
             {"outside", index_max, 1'500'000, 48'000'000, 14'000'000, field.shared}},
            1'000'000'000'000'000'000};
}

AtomList digits_of(const Field& field) {
    AtomList digits;
    for (std::size_t k = 0; k < field.digits; ++k) digits.push_back({2, Index{1} << (field.digits - 1 - k)});
    return digits;
}

// The layout with a dimension for each digit of the array.
Layout in_digits(const Field& field, const Layout& layout) {
    Layout apart{layout.dtype, layout.mesh, {}, {}};
    for (const Dim& dim : layout.dims) {
        std::size_t left = field.digits;
        for (Atom atom : dim.atoms)
            for (; atom.size > 1; --left) {
                atom.size /= 2;
                apart.dims.emplace_back(2, AtomList{{2, atom.size * atom.stride}});
            }
        for (; left > 0; --left) apart.dims.emplace_back(2);
    }
    return apart;
}

std::size_t place_of(const Layout& layout, const std::vector<Layout>& layouts) {
    return static_cast<std::size_t>(std::ranges::find(layouts, layout) - layouts.begin());
}

class DigitLevelsTest : public ::testing::TestWithParam<Field> {};

TEST_P(DigitLevelsTest, CollectivesTakeTheLeastTimeOverDigits) {
    const Field& field = GetParam();
    const Machine machine = machine_of(field);
    const auto cost = [&](const Layout& before, const Step& step, const Move& move) {
        return step_picoseconds(before, step, move, machine);
    };
    const Reference reference(field.mesh, std::vector<Index>(2 * field.digits, 2), {digits_of(field)},
                              {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute}, cost);
    const Index extent = Index{1} << field.digits;
    const std::vector<Layout> ends = Reference(field.mesh, {extent, extent}, {digits_of(field)}).layouts();
    Options options;
    options.vocabulary = Vocabulary::collectives;
    options.machine = machine;
    Index pairs = 0, complete = 0, at_optimum = 0, in_views = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (!long_run() && static_cast<Index>(i) % field.one_source_in != 0) continue;
        const std::size_t from = place_of(in_digits(field, ends[i]), reference.layouts());
        ASSERT_LT(from, reference.layouts().size());
        std::map<Index, std::vector<Index>> by_floor;
        for (const Layout& target : ends) {
            if (equivalent(ends[i], target)) continue;
            const Index floor = std::max(tile_elements(ends[i]), tile_elements(target));
            auto& optima = by_floor[floor];
            if (optima.empty()) optima = reference.optima(from, floor);
            const Index optimum = optima[place_of(in_digits(field, target), reference.layouts())];
            const std::string question = "reshard plan --mesh " + format(field.mesh) + " '" + format(ends[i]) + "' '" +
                                         format(target) + "' --vocabulary collectives";
            const auto made = synthesize(ends[i], target, options);
            ASSERT_TRUE(made.has_value()) << question << ": " << made.error().message;
            // A last slice is charged with the copy of its tile.
            EXPECT_GE(made->picoseconds, optimum) << question << "\n" << format(made->plan());
            const bool best = made->picoseconds <= optimum + 1;
            EXPECT_TRUE(best) << question << " takes " << made->picoseconds << " ps, at best " << optimum << "\n"
                              << format(made->plan());
            EXPECT_TRUE(made->search_complete) << question;
            ++pairs;
            if (made->search_complete) ++complete;
            if (best) ++at_optimum;
            if (made->rule == "split_dims") ++in_views;
        }
    }
    std::printf("%-20s %5lld pairs: %lld at the optimum, %lld complete, %lld in views\n", field.name,
                static_cast<long long>(pairs), static_cast<long long>(at_optimum), static_cast<long long>(complete),
                static_cast<long long>(in_views));
    EXPECT_GT(in_views, 0);
}

INSTANTIATE_TEST_SUITE_P(Meshes, DigitLevelsTest,
                         ::testing::Values(Field{"x2_y2", {{"x", 2}, {"y", 2}}, 2, 2},
                                           Field{"x2_y2_z2_nodes_of_2", {{"x", 2}, {"y", 2}, {"z", 2}}, 3, 2, false, 7},
                                           Field{"x2_y4_nodes_of_4", {{"x", 2}, {"y", 4}}, 3, 4, false, 7},
                                           Field{"x2_y4_shared_nodes", {{"x", 2}, {"y", 4}}, 3, 4, true, 7}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace reshard::test
