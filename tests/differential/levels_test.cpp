// Two network levels, where a byte that leaves the node is eight times as dear. Compares plans with the exact optimum
// over all typed steps, exchanges included (a two-level exchange is an exchange and a gather inside the node), and with
// the lower bound for any protocol.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "differential/reference.hpp"
#include "reshard/boxes/nodes.hpp"
#include "reshard/planner/schedule.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

constexpr Index outside_weight = 8;

struct Field {
    const char* name;
    Mesh mesh;
    AtomList digits;
    std::vector<Index> shape;
    Index inside;  ///< devices per node
    /// The largest allowed mean of plan cost / bound. If nodes have 3 x 2 devices, the exact optimum of typed steps is
    /// at 1.30.
    double bound_mean = 1.25;
    /// The least gain of overlapping steps, on average, with equally dear levels.
    double gain_mean = 1.5;
    /// A short run tests one source in so many, because no closed form holds if digits do not tell nodes apart.
    Index one_source_in = 1;
    /// The same as bound_mean, if moves through nodes compete; 0: they do not.
    double nodes_mean = 0;

    [[nodiscard]] bool asks(Index source) const { return long_run() || source % one_source_in == 0; }
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

/// Only loads count: a byte takes 1 us inside a node and 8 us outside.
Machine machine_of(Index inside) {
    return {"two_levels",
            {{"inside", inside, 0, 1'000'000}, {"outside", index_max, 0, 1'000'000 / outside_weight}},
            1'000'000'000'000'000'000};
}

Index weighted(const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    const std::vector<Index> loads = level_loads(before, step, move, machine);
    return loads[0] + outside_weight * loads[1];
}

Index weighted(const Plan& plan, const Verdict& verdict, const Machine& machine) {
    Index sum = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        sum += weighted(layout_before(plan, i), plan.steps[i], verdict.moves[i], machine);
    return sum;
}

/// Extents are so many times as long if a move goes through nodes, since it divides elements among devices. All other
/// loads grow with the area.
constexpr Index finer = 4;

Layout refined(Layout layout) {
    for (Dim& dim : layout.dims) dim.extent *= finer;
    return layout;
}

/// The load of a move through nodes, weighted as above. Its price has nothing but loads on this machine.
double weighted_through_nodes(const Layout& source, const Layout& target, const Machine& machine) {
    const NodeMove move = through_nodes({refined(source), refined(target)}, machine).value();
    const double element = 1e6 * static_cast<double>(size_of(source.dtype));  // picoseconds inside the node
    double area = 1;
    for (std::size_t i = 0; i < source.dims.size(); ++i) area *= finer;
    return std::round(static_cast<double>(move_picoseconds(move, machine)) / element) / area;
}

/// Adds the row-major numbers of the array's elements that a device holds.
void add_elements(const Layout& layout, Index device, std::set<Index>& elements) {
    const Box box = as_box(tile(layout, device));
    std::vector<Index> numbers = {0};
    for (std::size_t i = 0; i < box.size(); ++i) {
        std::vector<Index> longer;
        for (const Index number : numbers)
            for (Index at = box[i].begin; at < box[i].end; ++at) longer.push_back(number * layout.dims[i].extent + at);
        numbers = std::move(longer);
    }
    elements.insert(numbers.begin(), numbers.end());
}

std::size_t lacking(const std::set<Index>& wanted, const std::set<Index>& held) {
    return static_cast<std::size_t>(
        std::ranges::count_if(wanted, [&](Index element) { return held.count(element) == 0; }));
}

/// Elements that a node wants and does not hold must come in, at best over all its devices (theorem group_lower_bound).
/// Elements that a device lacks beyond its share come at best from inside the node.
double bound(const Layout& source, const Layout& target, Index inside) {
    double outside = 0;
    double foreign = 0;
    // The devices of the fields are 0, 1, ... in any order, so every node is whole.
    for (Index node = 0; node < device_count(source); node += inside) {
        std::set<Index> held;
        std::set<Index> wanted;
        for (Index device = node; device < node + inside; ++device) {
            std::set<Index> mine;
            std::set<Index> want;
            add_elements(source, device, mine);
            add_elements(target, device, want);
            foreign = std::max(foreign, static_cast<double>(lacking(want, mine)));
            held.merge(mine);
            wanted.merge(want);
        }
        outside = std::max(outside, static_cast<double>(lacking(wanted, held)) / static_cast<double>(inside));
    }
    return outside_weight * outside + std::max(0.0, foreign - outside);
}

class LevelsTest : public ::testing::TestWithParam<Field> {};

TEST_P(LevelsTest, PlansAreNearTheExactOptimumOfTwoLevels) {
    const Field& field = GetParam();
    const Machine machine = machine_of(field.inside);
    const Reference reference(
        field.mesh, field.shape, {field.digits},
        {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute, StepKind::exchange},
        [&](const Layout& before, const Step& step, const Move& move) {
            return weighted(before, step, move, machine);
        });
    const auto& layouts = reference.layouts();
    double sum = 0, worst = 1, bound_sum = 0, bound_worst = 1, nodes_sum = 0, nodes_worst = 1;
    Index pairs = 0, at_optimum = 0, bounded = 0, below = 0;
    std::string worst_pair;
    Options options;
    options.machine = machine;
    for (std::size_t source = 0; source < layouts.size(); ++source) {
        if (!field.asks(static_cast<Index>(source))) continue;
        std::map<Index, std::vector<Index>> known;
        for (std::size_t target = 0; target < layouts.size(); ++target) {
            if (missing_elements(layouts[source], layouts[target]) == 0) continue;
            const Index floor = std::max(tile_elements(layouts[source]), tile_elements(layouts[target]));
            auto& optima = known[floor];
            if (optima.empty()) optima = reference.optima(source, floor);
            const auto made = synthesize(layouts[source], layouts[target], options);
            const std::string question = "reshard plan --mesh " + format(field.mesh) + " '" + format(layouts[source]) +
                                         "' '" + format(layouts[target]) + "'";
            ASSERT_TRUE(made.has_value()) << question;
            const Index cost = weighted(made->plan(), made->verdict(), machine);
            const double ratio = static_cast<double>(cost) / static_cast<double>(optima[target]);
            ++pairs;
            sum += ratio;
            if (cost <= optima[target]) ++at_optimum;
            if (ratio > worst) {
                worst = ratio;
                worst_pair = question + " costs " + std::to_string(cost) + ", optimum " +
                             std::to_string(optima[target]) + "\n" + format(made->plan());
            }
            const double least = bound(layouts[source], layouts[target], field.inside);
            if (least == 0) continue;
            ++bounded;
            if (static_cast<double>(cost) < least - 1e-9) ++below;
            bound_sum += static_cast<double>(cost) / least;
            bound_worst = std::max(bound_worst, static_cast<double>(cost) / least);
            if (field.nodes_mean == 0) continue;
            const double through = weighted_through_nodes(layouts[source], layouts[target], machine);
            EXPECT_GE(through, least - 0.1) << question;
            const double best = std::min(through, static_cast<double>(cost)) / least;
            nodes_sum += best;
            nodes_worst = std::max(nodes_worst, best);
        }
    }
    std::printf(
        "%-24s %5lld pairs: at the optimum %6.2f%%, mean %.4f, worst %.3f; over the bound mean %.3f, worst %.2f"
        ", below it %lld\n",
        field.name, static_cast<long long>(pairs), 100.0 * static_cast<double>(at_optimum) / static_cast<double>(pairs),
        sum / static_cast<double>(pairs), worst, bound_sum / static_cast<double>(bounded), bound_worst,
        static_cast<long long>(below));
    const double nodes_mean = nodes_sum / static_cast<double>(bounded);
    if (field.nodes_mean > 0) {
        std::printf("    through nodes if that costs less: over the bound mean %.3f, worst %.2f\n", nodes_mean,
                    nodes_worst);
        EXPECT_LE(nodes_mean, field.nodes_mean);
    }
    if (!worst_pair.empty()) std::printf("    worst: %s\n", worst_pair.c_str());
    EXPECT_LE(sum / static_cast<double>(pairs), 1.02);
    EXPECT_LE(worst, 1.25);
    EXPECT_EQ(below, 0);
    EXPECT_LE(bound_sum / static_cast<double>(bounded), field.bound_mean);
}

/// The load of each level by the schedules of all ranks: the most that one rank receives or sends.
std::vector<Index> scheduled_loads(const Layout& before, const Step& step, const Machine& machine) {
    std::vector<Index> most(machine.levels.size());
    for (Index rank = 0; rank < device_count(before); ++rank) {
        const Schedule mine = schedule(before, step, rank, network_of(machine, device_count(before)));
        for (const auto* transfers : {&mine.receives, &mine.sends}) {
            std::vector<Index> loads(machine.levels.size());
            for (const Transfer& transfer : *transfers) {
                if (transfer.peer == rank) continue;
                std::size_t level = 0;
                while (transfer.peer / machine.levels[level].devices != rank / machine.levels[level].devices) ++level;
                loads[level] += count(transfer.box);
            }
            for (std::size_t i = 0; i < loads.size(); ++i) most[i] = std::max(most[i], loads[i]);
        }
    }
    return most;
}

TEST_P(LevelsTest, LoadsOfExchangesAreThoseOfTheirSchedules) {
    const Field& field = GetParam();
    std::vector<Index> shape = field.shape;
    for (Index& extent : shape) extent *= 2;
    const Reference reference(field.mesh, shape, {field.digits}, {}, {});
    const Machine machine = machine_of(field.inside);
    Index pairs = 0;
    for (const Layout& source : reference.layouts())
        for (const Layout& target : reference.layouts()) {
            const Step step{StepKind::exchange, target};
            const auto move = type_step(source, step);
            if (!move || move->received == 0) continue;
            ++pairs;
            ASSERT_EQ(level_loads(source, step, *move, machine), scheduled_loads(source, step, machine))
                << format(source) << " -> " << format(target);
        }
    std::printf("%-24s %5lld exchanges\n", field.name, static_cast<long long>(pairs));
    EXPECT_GT(pairs, 100);
}

/// Figures of the pairs in a field with plans of several steps, by the ratio of their two levels.
struct Overlapped {
    Index pairs = 0;
    double gain_sum = 0;
    double gain_least = 100;
};

TEST_P(LevelsTest, StepsOverlapWhereLevelsWeighAlike) {
    const Field& field = GetParam();
    std::vector<Index> shape = field.shape;
    for (Index& extent : shape) extent *= 64;
    const Reference reference(field.mesh, shape, {field.digits}, {}, {});
    Overlapped alike;
    Overlapped all;
    Index pairs = 0;
    Index sources = 0;
    for (const Layout& source : reference.layouts()) {
        if (!field.asks(sources++)) continue;
        for (const Layout& target : reference.layouts()) {
            if (missing_elements(source, target) == 0) continue;
            // In turn, a byte outside is as dear as a byte inside, or two, four or eight times as dear.
            Options serial;
            serial.machine = machine_of(field.inside);
            serial.machine.levels[1].bytes_per_second = 1'000'000 >> (pairs++ % 4);
            Options overlapped = serial;
            overlapped.capabilities.steps_overlap = true;
            const auto before = synthesize(source, target, serial);
            const auto after = synthesize(source, target, overlapped);
            ASSERT_TRUE(before && after) << format(source) << " -> " << format(target);
            ASSERT_LE(after->picoseconds, before->picoseconds) << format(source) << " -> " << format(target);
            overlapped.vocabulary = Vocabulary::collectives;
            const auto collectives = synthesize(source, target, overlapped);
            ASSERT_TRUE(collectives) << format(source) << " -> " << format(target);
            EXPECT_LE(after->picoseconds, collectives->picoseconds) << format(source) << " -> " << format(target);
            if (!overlaps(after->execution())) continue;
            const double gain = static_cast<double>(before->picoseconds) / static_cast<double>(after->picoseconds);
            const Times times = plan_times(after->plan(), after->verdict(), serial.machine);
            const auto [less, more] = std::ranges::minmax(times.levels);
            for (Overlapped* told : {&all, 5 * less >= 4 * more ? &alike : nullptr}) {
                if (told == nullptr) continue;
                ++told->pairs;
                told->gain_sum += gain;
                told->gain_least = std::min(told->gain_least, gain);
            }
        }
    }
    const auto mean = [](const Overlapped& told) { return told.gain_sum / static_cast<double>(told.pairs); };
    std::printf("| %s | %lld | %lld | %.2fx | %lld | %.2fx | %.2fx |\n", field.name, static_cast<long long>(pairs),
                static_cast<long long>(all.pairs), mean(all), static_cast<long long>(alike.pairs), mean(alike),
                alike.gain_least);
    ASSERT_GT(alike.pairs, 0);
    EXPECT_GE(mean(alike), field.gain_mean);
}

const AtomList digits_222 = {{2, 4}, {2, 2}, {2, 1}};
const AtomList digits_232 = {{2, 6}, {3, 2}, {2, 1}};
const Mesh mesh_222{{"a", 2}, {"b", 2}, {"c", 2}};
const Mesh mesh_232{{"a", 2}, {"b", 3}, {"c", 2}};
// Orders that digits of the mesh cannot express: a node is any set of devices.
const Mesh shuffled_222{mesh_222.axes, {0, 3, 5, 6, 1, 7, 2, 4}};
const Mesh shuffled_232{mesh_232.axes, {7, 2, 10, 0, 5, 9, 3, 11, 1, 8, 4, 6}};

const std::vector<Field> fields = {
    {"2 nodes of 2x2, rank 2", mesh_222, digits_222, {8, 8}, 4},
    {"2x2 nodes of 2, rank 2", mesh_222, digits_222, {8, 8}, 2},
    {"2 nodes of 3x2, rank 2", mesh_232, digits_232, {12, 12}, 6, 1.31},
    {"2x3 nodes of 2, rank 2", mesh_232, digits_232, {12, 12}, 2},
    {"2 nodes of 2x2, shuffled", shuffled_222, digits_222, {8, 8}, 4, 2.2, 1.3, 5, 1.27},
    {"2x2 nodes of 2, shuffled", shuffled_222, digits_222, {8, 8}, 2, 1.25, 1.3, 5, 1.06},
    {"2 nodes of 3x2, shuffled", shuffled_232, digits_232, {12, 12}, 6, 1.75, 1.3, 5, 1.17},
    {"2x3 nodes of 2, shuffled", shuffled_232, digits_232, {12, 12}, 2, 1.25, 1.3, 5, 1.06},
};

std::string name_of(const ::testing::TestParamInfo<Field>& field) {
    std::string name = field.param.name;
    std::ranges::replace_if(
        name, [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Small, LevelsTest, ::testing::ValuesIn(fields), name_of);

}  // namespace
}  // namespace reshard::test
