// Compares the synthesizer with the exact optimum of its vocabulary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <random>

#include "differential/reference.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

struct Field {
    const char* name;
    Mesh mesh;
    std::vector<Index> shape;
    std::vector<AtomList> cuts;
    bool whole_axes;  ///< only pairs of layouts that do not cut an axis
    int sample;       ///< pairs in a short run; a long run takes all pairs, or `long_sample` pairs
    int long_sample = 0;
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

/// True if no digit of the layout begins or ends inside an axis.
bool keeps_axes_whole(const Layout& layout) {
    for (const Dim& dim : layout.dims)
        for (const Atom& atom : dim.atoms) {
            const auto names = names_of(layout.mesh, atom);
            if (!names) return false;
            for (const SubAxis& part : *names) {
                const auto axis = std::ranges::find(layout.mesh.axes, part.axis, &Axis::name);
                if (part.size != 0 && part.size != axis->size) return false;
            }
        }
    return true;
}

struct Tally {
    Index pairs = 0;
    Index at_optimum = 0;
    Index bound_met = 0;  ///< pairs with an optimum at the bound, which depends on the vocabulary and not the search
    double ratio_sum = 0;
    double worst = 1;
    std::string worst_pair;
};

Options by_bytes(Vocabulary vocabulary) {
    Options options;
    options.vocabulary = vocabulary;
    options.objective = Objective::bytes;
    return options;
}

void compare(const Layout& source, const Layout& target, Index optimum, Tally& tally) {
    const std::string question = "reshard plan --mesh " + format(source.mesh) + " '" + format(source) + "' '" +
                                 format(target) + "' --objective bytes";
    ASSERT_NE(optimum, index_max) << "the reference finds no way: " << question;
    const auto made = synthesize(source, target, by_bytes(Vocabulary::collectives));
    ASSERT_TRUE(made.has_value()) << question << ": " << made.error().message;
    const auto verdict = check(made->plan());
    ASSERT_TRUE(verdict.has_value()) << question;
    EXPECT_LE(verdict->peak_bytes, verdict->floor_bytes) << question;
    const auto direct = synthesize(source, target, by_bytes(Vocabulary::all));
    ASSERT_TRUE(direct.has_value()) << question;
    EXPECT_LE(direct->verdict().peak_bytes, direct->verdict().floor_bytes) << question;
    EXPECT_EQ(direct->verdict().received_bytes_max_device, direct->verdict().lower_bound_bytes) << question;
    const Index received = verdict->received_bytes_max_device / 4;
    // The reference adds up the busiest receiver of each step. The busiest device of the whole plan may receive less.
    const double ratio = received <= optimum ? 1 : static_cast<double>(received) / static_cast<double>(optimum);
    // If the search says that it is complete, the plan must be optimal.
    if (made->search_complete) {
        EXPECT_LE(received, optimum) << question << "\n" << format(made->plan());
    }
    ++tally.pairs;
    if (optimum * 4 == verdict->lower_bound_bytes) ++tally.bound_met;
    tally.ratio_sum += ratio;
    if (received <= optimum) ++tally.at_optimum;
    if (ratio > tally.worst) {
        tally.worst = ratio;
        tally.worst_pair = question + " receives " + std::to_string(received) + ", optimum " + std::to_string(optimum);
    }
}

class OptimumTest : public ::testing::TestWithParam<Field> {};

TEST_P(OptimumTest, CollectivesAreWithinReachOfTheExactOptimum) {
    const Field& field = GetParam();
    const Reference reference(field.mesh, field.shape, field.cuts);
    const auto& layouts = reference.layouts();
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < layouts.size(); ++i)
        if (!field.whole_axes || keeps_axes_whole(layouts[i])) ends.push_back(i);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (const std::size_t source : ends)
        for (const std::size_t target : ends)
            if (missing_elements(layouts[source], layouts[target]) > 0) pairs.emplace_back(source, target);
    const auto wanted = static_cast<std::size_t>(long_run() ? field.long_sample : field.sample);
    if (wanted != 0 && wanted < pairs.size()) {
        // The sample must be the same everywhere, which std::shuffle does not guarantee.
        std::mt19937_64 random(20211203);
        for (std::size_t i = 0; i < wanted; ++i) std::swap(pairs[i], pairs[i + random() % (pairs.size() - i)]);
        pairs.resize(wanted);
    }
    std::ranges::sort(pairs);
    Tally tally;
    std::map<std::pair<std::size_t, Index>, std::vector<Index>> known;
    for (const auto& [source, target] : pairs) {
        const Index floor = std::max(tile_elements(layouts[source]), tile_elements(layouts[target]));
        if (!known.empty() && known.begin()->first.first != source) known.clear();
        auto& optima = known[{source, floor}];
        if (optima.empty()) optima = reference.optima(source, floor);
        compare(layouts[source], layouts[target], optima[target], tally);
        if (HasFatalFailure()) return;
    }
    const double share = 100.0 * static_cast<double>(tally.at_optimum) / static_cast<double>(tally.pairs);
    std::printf(
        "%-24s %4zu layouts %6lld pairs: at the optimum %6.2f%%, mean %.4f, worst %.3f; optimum = bound %.0f%%\n",
        field.name, layouts.size(), static_cast<long long>(tally.pairs), share,
        tally.ratio_sum / static_cast<double>(tally.pairs), tally.worst,
        100.0 * static_cast<double>(tally.bound_met) / static_cast<double>(tally.pairs));
    if (!tally.worst_pair.empty()) std::printf("    worst: %s\n", tally.worst_pair.c_str());
    EXPECT_GT(tally.pairs, 50);
    EXPECT_EQ(tally.at_optimum, tally.pairs) << tally.worst_pair;
}

const AtomList digits_222 = {{2, 4}, {2, 2}, {2, 1}};
const AtomList digits_2222 = {{2, 8}, {2, 4}, {2, 2}, {2, 1}};
const AtomList digits_232 = {{2, 6}, {3, 2}, {2, 1}};
const AtomList digits_2_23 = {{2, 6}, {2, 3}, {3, 1}};
const AtomList digits_2_32 = {{2, 6}, {3, 2}, {2, 1}};

const AtomList digits_322 = {{3, 4}, {2, 2}, {2, 1}};
const std::vector<AtomList> digits_66 = {{{2, 18}, {3, 6}, {2, 3}, {3, 1}},
                                         {{2, 18}, {3, 6}, {3, 2}, {2, 1}},
                                         {{3, 12}, {2, 6}, {2, 3}, {3, 1}},
                                         {{3, 12}, {2, 6}, {3, 2}, {2, 1}}};

const Mesh mesh_222{{"a", 2}, {"b", 2}, {"c", 2}};
const Mesh mesh_232{{"a", 2}, {"b", 3}, {"c", 2}};
const Mesh mesh_2222{{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}};
const Mesh mesh_44{{"x", 4}, {"y", 4}};
const Mesh mesh_26{{"x", 2}, {"y", 6}};
const Mesh mesh_12{{"x", 12}};
const Mesh mesh_66{{"x", 6}, {"y", 6}};

INSTANTIATE_TEST_SUITE_P(
    Small, OptimumTest,
    ::testing::Values(
        Field{"2x2x2 rank 2", mesh_222, {8, 8}, {digits_222}, false, 600},
        Field{"2x2x2 rank 2, tight", mesh_222, {4, 4}, {digits_222}, false, 400},
        Field{"2x2x2 rank 3", mesh_222, {8, 8, 8}, {digits_222}, false, 600},
        Field{"2x3x2 rank 2", mesh_232, {12, 12}, {digits_232}, false, 600},
        Field{"2x3x2 rank 3", mesh_232, {12, 12, 12}, {digits_232}, false, 600},
        Field{"4x4 rank 2", mesh_44, {16, 16}, {digits_2222}, true, 0},
        Field{"4x4 rank 3", mesh_44, {16, 16, 16}, {digits_2222}, true, 100},
        Field{"4x4 rank 2, parts", mesh_44, {16, 16}, {digits_2222}, false, 600, 5000},
        Field{"2x6 rank 2", mesh_26, {12, 12}, {digits_2_23, digits_2_32}, true, 0},
        Field{"2x6 rank 3", mesh_26, {12, 12, 12}, {digits_2_23, digits_2_32}, true, 0},
        Field{"2x6 rank 2, one cut", mesh_26, {12, 12}, {digits_2_23}, false, 600},
        Field{"2x6 rank 2, two cuts", mesh_26, {12, 12}, {digits_2_23, digits_2_32}, false, 600},
        Field{"2x6 rank 3, two cuts", mesh_26, {12, 12, 12}, {digits_2_23, digits_2_32}, false, 400},
        Field{"2x6 rank 2, tight", mesh_26, {6, 12}, {digits_2_23, digits_2_32}, false, 400},
        Field{"12 rank 2, three cuts", mesh_12, {12, 12}, {digits_2_23, digits_2_32, digits_322}, false, 600},
        Field{"6x6 rank 2, all cuts", mesh_66, {36, 36}, digits_66, false, 200, 5000},
        Field{"2x2x2x2 rank 2", mesh_2222, {16, 16}, {digits_2222}, false, 600, 5000}),
    [](const ::testing::TestParamInfo<Field>& field) {
        std::string name = field.param.name;
        std::ranges::replace_if(
            name, [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
        return name;
    });

}  // namespace
}  // namespace reshard::test
