// Extents of 1, tight extents, and extents that do not divide, compared with the exact optimum over every ragged layout
// of a small mesh. A plan that is called complete or optimal must be so, and a list of alternatives changes no plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <random>

#include "differential/reference.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/price.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

struct Field {
    const char* name;
    Mesh mesh;
    std::vector<AtomList> cuts;
    std::size_t rank;
    int shapes;  ///< random shapes in a short run
    int pairs;   ///< pairs of layouts for each shape and objective in a short run
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

constexpr Index move_weight = 1'000'000'000;

/// The figure that the objective adds up.
Index priced(Objective objective, const Layout& before, const Step& step, const Move& move, const Machine& machine) {
    switch (objective) {
        case Objective::time:
            return step_picoseconds(before, step, move, machine);
        case Objective::bytes:
            return move.received;
        case Objective::steps:
            break;
    }
    return (is_local(step.kind) ? 0 : move_weight) + move.received;
}

/// The same for a whole plan. It may be less than the sum, since different devices may be busy in different steps.
template <class Made>
Index priced(Objective objective, const Made& made) {
    const Index received = made.verdict().received_bytes_max_device / size_of(made.plan().source.dtype);
    switch (objective) {
        case Objective::time:
            return made.picoseconds;
        case Objective::bytes:
            return received;
        case Objective::steps:
            break;
    }
    return steps_that_move(made.plan()) * move_weight + received;
}

struct Tally {
    Index pairs = 0;
    Index complete = 0;
    Index at_optimum = 0;
    Index optimal = 0;
};

class Compared {
public:
    Compared(const Field& field, const std::vector<Index>& shape, Objective objective, const Machine& machine)
        : objective_(objective),
          machine_(machine),
          reference_(
              field.mesh, shape, field.cuts,
              {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute},
              [=](const Layout& before, const Step& step, const Move& move) {
                  return priced(objective, before, step, move, machine);
              },
              Reference::Ragged::yes) {}

    void compare(std::size_t pairs, std::mt19937_64& random, Tally& tally) {
        const std::size_t count = reference_.layouts().size();
        const bool all = pairs >= count * count;
        for (std::size_t i = 0; i < (all ? count * count : pairs); ++i) {
            const std::size_t place = all ? i : random() % (count * count);
            compare(place / count, place % count, tally);
            if (::testing::Test::HasFailure()) return;
        }
    }

private:
    const std::vector<Index>& optima(std::size_t source, Index floor) {
        std::vector<Index>& known = known_[{source, floor}];
        if (known.empty()) known = reference_.optima(source, floor);
        return known;
    }

    // The optimum of the reference. A last slice is charged with the copy of its tile.
    Index optimum(std::size_t source, std::size_t target) {
        const Layout& end = reference_.layouts()[target];
        const Index floor = std::max(tile_elements(reference_.layouts()[source]), tile_elements(end));
        const std::vector<Index>& least = optima(source, floor);
        if (objective_ != Objective::time) return least[target];
        const Index copy = transfer_picoseconds(tile_bytes(end), machine_.copy_bytes_per_second);
        Index best = index_max;
        for (std::size_t before = 0; before < least.size(); ++before) {
            if (least[before] == index_max) continue;
            for (const StepKind kind :
                 {StepKind::slice, StepKind::all_gather, StepKind::all_to_all, StepKind::permute}) {
                const Step step{kind, end};
                const auto move = type_valid_step(reference_.layouts()[before], step);
                if (!move) continue;
                const Index last = priced(objective_, reference_.layouts()[before], step, *move, machine_);
                const Index copied = kind == StepKind::slice ? copy : 0;
                best = std::min(best, saturating_add(least[before], saturating_add(last, copied)));
            }
        }
        return best;
    }

    void compare(std::size_t from, std::size_t to, Tally& tally) {
        const Layout& source = reference_.layouts()[from];
        const Layout& target = reference_.layouts()[to];
        if (source.dims == target.dims) return;
        const std::string question = "reshard plan --mesh " + format(source.mesh) + " '" + format(source) + "' '" +
                                     format(target) + "' --vocabulary collectives --objective " +
                                     std::string(name(objective_)) + " --machine " + machine_.name;
        Options options;
        options.vocabulary = Vocabulary::collectives;
        options.objective = objective_;
        options.machine = machine_;
        const auto made = synthesize(source, target, options);
        options.explain = true;
        const auto explained = synthesize(source, target, options);
        ASSERT_EQ(made.has_value(), explained.has_value()) << question;
        const Index best = optimum(from, to);
        ++tally.pairs;
        // Cuts by turns may allow a way that the reference does not have, since it cuts only once.
        const bool by_turns =
            made && std::ranges::any_of(made->plan().steps, [](const Step& step) { return has_pieces(step.layout); });
        ASSERT_TRUE(made.has_value() == (best != index_max) || by_turns) << question << "\nthe optimum is " << best;
        if (!made) return;
        EXPECT_EQ(made->plan(), explained->plan()) << question << "\n"
                                                   << format(made->plan()) << "\nexplain:\n"
                                                   << format(explained->plan());
        EXPECT_EQ(made->search_complete, explained->search_complete) << question;
        EXPECT_EQ(made->verdict(), explained->verdict()) << question;
        EXPECT_EQ(made->optimal,
                  made->verdict().received_bytes_max_device == missing_elements(source, target) * size_of(source.dtype))
            << question;
        const Index price = priced(objective_, *made);
        tally.complete += made->search_complete ? 1 : 0;
        tally.optimal += made->optimal ? 1 : 0;
        tally.at_optimum += price <= best ? 1 : 0;
        if (made->search_complete) {
            EXPECT_LE(price, best) << question << "\n" << format(made->plan());
        }
        for (const Alternative& other : explained->alternatives) {
            if (other.verdict().peak_bytes > made->verdict().floor_bytes) continue;
            EXPECT_LE(price, priced(objective_, other)) << question << "\n" << other.rule << " is better";
        }
    }

    const Objective objective_;
    const Machine machine_;
    const Reference reference_;
    std::map<std::pair<std::size_t, Index>, std::vector<Index>> known_;
};

class RaggedTest : public ::testing::TestWithParam<Field> {};

TEST_P(RaggedTest, WhatIsCalledCompleteIsTheExactOptimum) {
    const Field& field = GetParam();
    std::mt19937_64 random(20211203);
    const int shapes = long_run() ? 10 * field.shapes : field.shapes;
    const std::size_t pairs = long_run() ? std::size_t{1} << 40 : static_cast<std::size_t>(cases(field.pairs));
    for (const Objective objective : {Objective::bytes, Objective::steps, Objective::time}) {
        Tally tally;
        for (int i = 0; i < shapes && !HasFailure(); ++i) {
            std::vector<Index> shape;
            for (std::size_t dim = 0; dim < field.rank; ++dim) {
                const Index extents[] = {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12};
                shape.push_back(extents[random() % std::size(extents)]);
            }
            Compared(field, shape, objective, laptop()).compare(pairs, random, tally);
        }
        std::printf("%-12s %-6s %6lld pairs: %6lld complete, %6lld at the optimum, %6lld optimal\n", field.name,
                    std::string(name(objective)).c_str(), static_cast<long long>(tally.pairs),
                    static_cast<long long>(tally.complete), static_cast<long long>(tally.at_optimum),
                    static_cast<long long>(tally.optimal));
        // The search is exact here and says so, as almost always.
        EXPECT_EQ(tally.complete, tally.at_optimum);
    }
}

// Levels end inside the axes, so the price depends on the devices that take part.
TEST_P(RaggedTest, WhatIsCalledCompleteOnTwoLevelsIsTheExactOptimum) {
    const Field& field = GetParam();
    std::mt19937_64 random(20221203);
    Tally tally;
    for (const char* network : {"ethernet:nodes=2,per_node=4", "ethernet:nodes=3,per_node=3"})
        for (int i = 0; i < (long_run() ? 10 * field.shapes : 2) && !HasFailure(); ++i) {
            std::vector<Index> shape;
            for (std::size_t dim = 0; dim < field.rank; ++dim) shape.push_back(1 + static_cast<Index>(random() % 9));
            Compared(field, shape, Objective::time, *make_machine(network))
                .compare(static_cast<std::size_t>(cases(field.pairs)), random, tally);
        }
    EXPECT_GT(tally.complete, tally.pairs / 2);
}

const AtomList digits_22 = {{2, 2}, {2, 1}};
const AtomList digits_33 = {{3, 3}, {3, 1}};
const AtomList digits_23 = {{2, 3}, {3, 1}};
const AtomList digits_222 = {{2, 4}, {2, 2}, {2, 1}};

const Mesh mesh_22{{"a", 2}, {"b", 2}};
const Mesh mesh_33{{"a", 3}, {"b", 3}};
const Mesh mesh_23{{"a", 2}, {"b", 3}};
const Mesh mesh_42{{"a", 4}, {"b", 2}};
const Mesh mesh_222{{"a", 2}, {"b", 2}, {"c", 2}};
const Mesh mesh_6{{"a", 6}};

INSTANTIATE_TEST_SUITE_P(Small, RaggedTest,
                         ::testing::Values(Field{"2x2_rank_2", mesh_22, {digits_22}, 2, 12, 60},
                                           Field{"2x2_rank_3", mesh_22, {digits_22}, 3, 12, 60},
                                           Field{"2x2_rank_4", mesh_22, {digits_22}, 4, 6, 60},
                                           Field{"3x3_rank_2", mesh_33, {digits_33}, 2, 12, 60},
                                           Field{"3x3_rank_3", mesh_33, {digits_33}, 3, 12, 60},
                                           Field{"3x3_rank_4", mesh_33, {digits_33}, 4, 6, 60},
                                           Field{"2x3_rank_2", mesh_23, {digits_23}, 2, 12, 60},
                                           Field{"2x3_rank_3", mesh_23, {digits_23}, 3, 12, 60},
                                           Field{"6_rank_2", mesh_6, {digits_23, {{3, 2}, {2, 1}}}, 2, 6, 60},
                                           Field{"4x2_rank_2", mesh_42, {digits_222}, 2, 6, 100},
                                           Field{"2x2x2_rank_3", mesh_222, {digits_222}, 3, 3, 100}),
                         [](const ::testing::TestParamInfo<Field>& field) { return std::string(field.param.name); });

// Digits of 2 and of 3 of one axis cross. The unused rest may not be a digit, so all devices take part.
TEST(Ragged, PermutesBetweenCutsOfOneAxisArePricedAsTheJudgeDoes) {
    const Field field{"6_rank_2", mesh_6, {digits_23, {{3, 2}, {2, 1}}}, 2, 1, 0};
    std::mt19937_64 random;
    Tally tally;
    Compared(field, {8, 4}, Objective::time, *make_machine("ethernet:nodes=2,per_node=4"))
        .compare(std::numeric_limits<std::size_t>::max(), random, tally);
    EXPECT_EQ(tally.complete, tally.at_optimum);
}

// Pairs of layouts whose cuts of a dimension do not align, and digits of another dimension. A plan that is called
// complete receives no more than the exact optimum. The judge types and prices the steps of the reference, in the view
// with a dimension for each digit.
struct Misaligned {
    const char* name;
    Mesh mesh;
    AtomList digits;
    Index extent;       ///< of dimension 0, which has no digits in the reference
    std::size_t twos;   ///< dimension 1 is of 2 to this power
    std::size_t pairs;  ///< in a short run; a long run takes ten times as many
    Objective objective = Objective::bytes;
    Reference::Sums sums = Reference::Sums::no;
};

void PrintTo(const Misaligned& field, std::ostream* out) { *out << field.name; }

// The layout with a dimension for each digit of dimension 1.
Layout in_digits(const Misaligned& field, const Layout& layout) {
    Layout apart = layout;
    apart.dims.pop_back();
    for (Atom atom : layout.dims[1].atoms)
        for (; atom.size > 1; atom.size /= 2) apart.dims.emplace_back(2, AtomList{{2, atom.size / 2 * atom.stride}});
    while (apart.dims.size() <= field.twos) apart.dims.emplace_back(2);
    return apart;
}

class MisalignedTest : public ::testing::TestWithParam<Misaligned> {};

TEST_P(MisalignedTest, WhatIsCalledCompleteIsTheOptimumOverTheOtherDigits) {
    const Misaligned& field = GetParam();
    const Index weight = field.objective == Objective::steps ? move_weight : 0;
    std::vector<StepKind> kinds(all_step_kinds.begin(), all_step_kinds.end());
    std::erase(kinds, StepKind::exchange);
    std::vector<Index> shape = {field.extent};
    shape.resize(1 + field.twos, 2);
    const Reference reference(
        field.mesh, shape, {field.digits}, kinds,
        [&](const Layout&, const Step& step, const Move& move) {
            return move.received + (is_local(step.kind) ? 0 : weight);
        },
        Reference::Ragged::no, field.sums);
    const std::vector<Layout> ends = Reference(field.mesh, {field.extent, Index{1} << field.twos}, {field.digits}, {},
                                               {}, Reference::Ragged::no, field.sums)
                                         .layouts();
    const auto place_of = [&](const Layout& layout) {
        const auto& layouts = reference.layouts();
        return static_cast<std::size_t>(std::ranges::find(layouts, in_digits(field, layout)) - layouts.begin());
    };
    Options options;
    options.vocabulary = Vocabulary::collectives;
    options.objective = field.objective;
    std::mt19937_64 random(20211203);
    Index pairs = 0, complete = 0, at_optimum = 0;
    for (std::size_t left = long_run() ? 10 * field.pairs : field.pairs; left > 0; --left) {
        const Layout& source = ends[random() % ends.size()];
        const Layout& target = ends[random() % ends.size()];
        const bool sums = !source.unreduced.empty() || !target.unreduced.empty();
        if (equivalent(source, target) || sums != (field.sums == Reference::Sums::yes)) continue;
        const std::string question = "reshard plan --mesh " + format(source.mesh) + " '" + format(source) + "' '" +
                                     format(target) + "' --vocabulary collectives --objective " +
                                     std::string(name(field.objective));
        const Index floor = std::max(tile_elements(source), tile_elements(target));
        ASSERT_LT(place_of(source), reference.layouts().size()) << question;
        const Index optimum = reference.optima(place_of(source), floor)[place_of(target)];
        const auto made = synthesize(source, target, options);
        ASSERT_TRUE(made.has_value()) << question;
        const Index cost =
            made->verdict().received_bytes_max_device / size_of(source.dtype) + weight * steps_that_move(made->plan());
        if (made->search_complete) {
            EXPECT_LE(cost, optimum) << question << "\n" << format(made->plan());
        }
        ++pairs;
        complete += made->search_complete ? 1 : 0;
        at_optimum += cost <= optimum ? 1 : 0;
    }
    std::printf("%-16s %5lld pairs: %lld complete, %lld at the optimum\n", field.name, static_cast<long long>(pairs),
                static_cast<long long>(complete), static_cast<long long>(at_optimum));
    EXPECT_GT(complete, pairs / 2);
}

const AtomList digits_232 = {{2, 6}, {3, 2}, {2, 1}};
const AtomList digits_223 = {{2, 6}, {2, 3}, {3, 1}};
const Mesh mesh_232{{"a", 2}, {"b", 3}, {"c", 2}};
const Mesh mesh_43{{"x", 4}, {"y", 3}};

INSTANTIATE_TEST_SUITE_P(
    Meshes, MisalignedTest,
    ::testing::Values(
        Misaligned{"2x3x2", mesh_232, digits_232, 12, 3, 300},
        Misaligned{"2x3x2_steps", mesh_232, digits_232, 12, 3, 300, Objective::steps},
        Misaligned{"4x3", mesh_43, digits_223, 12, 4, 300},
        Misaligned{"2x3x2_sums", mesh_232, digits_232, 12, 3, 300, Objective::bytes, Reference::Sums::yes},
        Misaligned{"4x3_sums", mesh_43, digits_223, 12, 4, 300, Objective::bytes, Reference::Sums::yes},
        Misaligned{"4x3_sums_steps", mesh_43, digits_223, 12, 4, 300, Objective::steps, Reference::Sums::yes}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace reshard::test
