// Compares the synthesizer with the exact optimum if digits may also be unreduced: every reduction, every zero_fill and
// the steps between, over every layout of a small mesh.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
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
    AtomList digits;
    std::vector<Index> shape;
    std::size_t pairs;       ///< pairs in a short run
    std::size_t long_pairs;  ///< pairs in a long run; 0: all
    bool heavy = false;      ///< only in a long run, because its reference takes a while
    /// Digits cut one after another. The objective bytes also gets pairs without sums. For the objective steps, plans
    /// between such pairs could save steps by making sums, which is not searched.
    bool by_turns = false;
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

struct Tally {
    Index pairs = 0;
    Index planned = 0;  ///< pairs that have a way
    Index at_optimum = 0;
    Index complete = 0;
    Index bounded = 0;    ///< pairs with an optimum at the lower bound
    Index unbounded = 0;  ///< pairs that must receive something but have no bound
    double worst = 1;
    std::string worst_pair;
};

constexpr Index element = 4;
constexpr Index move_weight = 1'000'000'000;

class Compared {
public:
    Compared(const Field& field, Vocabulary vocabulary, Objective objective)
        : vocabulary_(vocabulary),
          objective_(objective),
          reference_(
              field.mesh, field.shape, {field.digits}, kinds(vocabulary),
              [=](const Layout&, const Step& step, const Move& move) {
                  return move.received + (objective == Objective::steps && !is_local(step.kind) ? move_weight : 0);
              },
              field.by_turns ? Reference::Ragged::by_turns : Reference::Ragged::yes, Reference::Sums::yes),
          all_pairs_(field.by_turns && objective == Objective::bytes) {}

    // The sample is the same everywhere. Sources are in order, since all targets of one source are found together.
    void compare(std::size_t wanted, Tally& tally) {
        const std::size_t count = reference_.layouts().size();
        std::vector<std::size_t> places;
        std::mt19937_64 random(20211203);
        const bool all = wanted == 0 || wanted >= count * count;
        for (std::size_t i = 0; i < (all ? count * count : wanted); ++i)
            places.push_back(all ? i : random() % (count * count));
        std::ranges::sort(places);
        for (const std::size_t place : places) {
            compare(place / count, place % count, tally);
            if (::testing::Test::HasFatalFailure()) return;
        }
    }

private:
    static std::vector<StepKind> kinds(Vocabulary vocabulary) {
        std::vector<StepKind> kinds(all_step_kinds.begin(), all_step_kinds.end());
        if (vocabulary == Vocabulary::collectives) std::erase(kinds, StepKind::exchange);
        return kinds;
    }

    Index optimum(std::size_t source, std::size_t target) {
        const auto& layouts = reference_.layouts();
        const Index floor = std::max(tile_elements(layouts[source]), tile_elements(layouts[target]));
        if (!known_.empty() && known_.begin()->first.first != source) known_.clear();
        std::vector<Index>& optima = known_[{source, floor}];
        if (optima.empty()) optima = reference_.optima(source, floor);
        return optima[target];
    }

    void compare(std::size_t from, std::size_t to, Tally& tally) {
        const Layout& source = reference_.layouts()[from];
        const Layout& target = reference_.layouts()[to];
        if (source.unreduced.empty() && target.unreduced.empty() && !all_pairs_) return;
        const std::string question = "reshard plan --mesh " + format(source.mesh) + " '" + format(source) + "' '" +
                                     format(target) + "' --vocabulary " + std::string(name(vocabulary_)) +
                                     " --objective " + std::string(name(objective_));
        Options options;
        options.vocabulary = vocabulary_;
        options.objective = objective_;
        const auto made = synthesize(source, target, options);
        const Index best = optimum(from, to);
        ++tally.pairs;
        if (!made) {
            EXPECT_EQ(best, index_max) << question << "\n" << made.error().message;
            tally.at_optimum += best == index_max ? 1 : 0;
            return;
        }
        ++tally.planned;
        const Verdict& verdict = made->verdict();
        const Index least = best % move_weight;
        const Index moves = objective_ == Objective::steps ? steps_that_move(made->plan()) : 0;
        const Index received = verdict.received_bytes_max_device / element + moves * move_weight;
        EXPECT_LE(verdict.lower_bound_bytes, least * element) << question << "\n" << format(made->plan());
        EXPECT_LE(verdict.peak_bytes, verdict.floor_bytes) << question;
        tally.complete += made->search_complete ? 1 : 0;
        tally.bounded += verdict.lower_bound_bytes == least * element ? 1 : 0;
        tally.unbounded += verdict.lower_bound_bytes == 0 && best > 0 ? 1 : 0;
        tally.at_optimum += received <= best ? 1 : 0;
        if (made->search_complete) {
            EXPECT_LE(received, best) << question << "\n" << format(made->plan());
        }
        const double ratio = static_cast<double>(received) / static_cast<double>(std::max<Index>(best, 1));
        if (received <= best || ratio <= tally.worst) return;
        tally.worst = ratio;
        tally.worst_pair = question + " receives " + std::to_string(received) + ", optimum " + std::to_string(best);
    }

    const Vocabulary vocabulary_;
    const Objective objective_;
    const Reference reference_;
    const bool all_pairs_;
    std::map<std::pair<std::size_t, Index>, std::vector<Index>> known_;
};

class SumsTest : public ::testing::TestWithParam<Field> {};

TEST_P(SumsTest, PlansWithSumsAreAtTheExactOptimum) {
    const Field& field = GetParam();
    if (field.heavy && !long_run()) GTEST_SKIP() << "RESHARD_LONG=1 runs it";
    for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all})
        for (const Objective objective : {Objective::bytes, Objective::steps}) {
            Tally tally;
            Compared(field, vocabulary, objective).compare(long_run() ? field.long_pairs : field.pairs, tally);
            std::printf(
                "%-19s %-11s %-5s %6lld pairs: %6lld at the optimum, %6lld complete, %6lld at their bound, "
                "%5lld without one, worst %.3f\n",
                field.name, std::string(name(vocabulary)).c_str(), std::string(name(objective)).c_str(),
                static_cast<long long>(tally.pairs), static_cast<long long>(tally.at_optimum),
                static_cast<long long>(tally.complete), static_cast<long long>(tally.bounded),
                static_cast<long long>(tally.unbounded), tally.worst);
            EXPECT_GT(tally.pairs, 50);
            EXPECT_EQ(tally.at_optimum, tally.pairs) << tally.worst_pair;
            // Four digits are searched to the end.
            if (field.heavy) {
                EXPECT_EQ(tally.complete, tally.planned);
            }
        }
}

const AtomList digits_23 = {{2, 3}, {3, 1}};
const AtomList digits_222 = {{2, 4}, {2, 2}, {2, 1}};
const AtomList digits_232 = {{2, 6}, {3, 2}, {2, 1}};
const AtomList digits_2222 = {{2, 8}, {2, 4}, {2, 2}, {2, 1}};

const Mesh mesh_23{{"a", 2}, {"b", 3}};
const Mesh mesh_222{{"a", 2}, {"b", 2}, {"c", 2}};
const Mesh mesh_232{{"a", 2}, {"b", 3}, {"c", 2}};
const Mesh mesh_44{{"x", 4}, {"y", 4}};

INSTANTIATE_TEST_SUITE_P(
    Small, SumsTest,
    ::testing::Values(Field{"2x2x2_rank_2_wide", mesh_222, digits_222, {16, 32}, 1500, 0},
                      Field{"2x2x2_rank_2_tight", mesh_222, digits_222, {4, 2}, 1000, 0},
                      Field{"2x2x2_rank_2_uneven", mesh_222, digits_222, {7, 9}, 1000, 0},
                      Field{"2x2x2_rank_3_wide", mesh_222, digits_222, {16, 8, 8}, 1000, 40000},
                      Field{"2x2x2_rank_3_tight", mesh_222, digits_222, {2, 3, 4}, 500, 20000},
                      Field{"2x3x2_rank_2_wide", mesh_232, digits_232, {24, 36}, 1000, 0},
                      Field{"2x3x2_rank_2_tight", mesh_232, digits_232, {6, 5}, 1000, 0},
                      Field{"2x3x2_rank_3_wide", mesh_232, digits_232, {24, 12, 12}, 500, 40000},
                      Field{"2x3x2_rank_3_tight", mesh_232, digits_232, {2, 3, 4}, 500, 20000},
                      Field{"4x4_rank_2_wide", mesh_44, digits_2222, {64, 32}, 0, 20000, true},
                      Field{"4x4_rank_2_tight", mesh_44, digits_2222, {8, 4}, 0, 20000, true},
                      Field{"4x4_rank_3_wide", mesh_44, digits_2222, {64, 32, 16}, 0, 3000, true},
                      Field{"4x4_rank_3_tight", mesh_44, digits_2222, {4, 2, 8}, 0, 3000, true},
                      Field{"2x2x2_turns", mesh_222, digits_222, {7, 9}, 1000, 0, false, true},
                      Field{"2x2x2_turns_wide", mesh_222, digits_222, {61, 37}, 500, 0, false, true},
                      Field{"2x3x2_turns", mesh_232, digits_232, {7, 5}, 1000, 0, false, true},
                      Field{"2x3x2_turns_wide", mesh_232, digits_232, {101, 59}, 500, 0, false, true},
                      Field{"2x3_turns_rank_3", mesh_23, digits_23, {5, 7, 4}, 1000, 0, false, true}),
    [](const ::testing::TestParamInfo<Field>& field) { return std::string(field.param.name); });

struct Known {
    const char* mesh;
    const char* source;
    const char* target;
    Vocabulary vocabulary;
    Objective objective;
    Index moves;     ///< for the objective steps only
    Index elements;  ///< elements that the busiest device receives
};

// Optima that the reference found in a long run. The search visits many states before it finds them. On 6 x 6 the
// digits of an axis that lies in several cuts become summands in each cut.
TEST(Sums, KnownOptimaAreMet) {
    using enum Vocabulary;
    using enum Objective;
    const Known pairs[] = {
        {"x=4,y=4", "f32[4,2,8]{U:y}", "f32[4,2@(y:(2)2,x:(2)2),8]{U:x:(1)2}", collectives, bytes, 0, 26},
        {"x=4,y=4", "f32[4@y:(2)2,2@x,8@y:(1)2]", "f32[4,2@(x:(2)2,y:(1)2,x:(1)2),8]{U:y:(2)2}", collectives, bytes, 0,
         18},
        {"x=4,y=4", "f32[4@(x:(1)2,y:(2)2),2,8]{U:x:(2)2}", "f32[4,2@(x:(2)2,y:(1)2,x:(1)2),8]{U:y:(2)2}", all, bytes,
         0, 20},
        {"x=4,y=4", "f32[4,2@(y:(2)2,x:(1)2,y:(1)2),8]{U:x:(2)2}", "f32[4@y,2@x:(1)2,8]", all, steps, 2, 16},
        {"x=4,y=4", "f32[64@(x:(2)2,x:(1)2,y),32,16]", "f32[64@x:(1)2,32,16@y:(1)2]{U:y:(2)2}", collectives, steps, 2,
         5120},
        {"x=4,y=4", "f32[64@(y:(2)2,y:(1)2,x),32,16]", "f32[64,32,16]{U:(x,y:(1)2)}", all, steps, 1, 3840},
        {"a=6", "f32[36@a]", "f32[36]{U:a:(1)3}", collectives, bytes, 0, 6},
        {"a=6,b=6", "f32[72@b:(3)2,72,36@a]{U:b:(1)3}", "f32[72@b:(3)2,72@b:(1)3,36]{U:a:(1)3}", collectives, bytes, 0,
         15552},
    };
    for (const Known& known : pairs) {
        const Mesh mesh = *parse_mesh(known.mesh);
        Options options;
        options.vocabulary = known.vocabulary;
        options.objective = known.objective;
        const auto made = synthesize(*parse_layout(mesh, known.source), *parse_layout(mesh, known.target), options);
        ASSERT_TRUE(made.has_value()) << known.source;
        EXPECT_EQ(made->verdict().received_bytes_max_device, known.elements * element) << format(made->plan());
        EXPECT_TRUE(made->search_complete) << known.source;
        if (known.objective == steps) {
            EXPECT_EQ(steps_that_move(made->plan()), known.moves) << format(made->plan());
        }
    }
}

}  // namespace
}  // namespace reshard::test
