// Compares the synthesizer with the exact optimum over digits, by brute force. A state says which digit of a dimension
// each prime digit of the mesh cuts, and which digits are unreduced. It shares no code with synth, and it asks the
// judge nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <map>
#include <queue>
#include <random>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using Cut = std::vector<int>;          // of a dimension: numbers of mesh digits, major to minor
using Cuts = std::vector<Cut>;         // one for each dimension, and last the unreduced digits
using Cost = std::pair<Index, Index>;  // as the objective compares: bytes and moves, moves and bytes, time and moves
using Places = std::vector<int>;       // for each mesh digit: 0 if it cuts nothing, else the number of a place

// One level, and copies that cost their bytes alone: the time of runs depends on the view of a plan.
Machine plain_laptop() {
    Machine machine = laptop();
    machine.copy_run_ps = 0;
    return machine;
}

// Every digit is of size 2. Places are the digits of each dimension that an end cuts, one mesh digit each, and then the
// rest of each dimension, which takes any number of mesh digits. Unreduced digits have the last place.
class Digits {
public:
    Digits(int mesh_digits, const Cuts& source, const Cuts& target, Index elements)
        : source_(static_cast<std::size_t>(mesh_digits), 0), target_(source_), elements_(elements) {
        const std::size_t rank = source.size() - 1;
        for (std::size_t i = 0; i < rank; ++i) {
            place(source[i], source_);
            place(target[i], target_);
            single_ += static_cast<int>(std::max(source[i].size(), target[i].size()));
        }
        places_ = single_ + static_cast<int>(rank);
        sums_ = !source[rank].empty() || !target[rank].empty();
        for (const int digit : source[rank]) source_[static_cast<std::size_t>(digit)] = unreduced();
        for (const int digit : target[rank]) target_[static_cast<std::size_t>(digit)] = unreduced();
    }

    /// The least cost of steps from the source to the target.
    Cost optimum(Objective objective) {
        floor_ = std::max(tile(source_), tile(target_));
        std::map<Places, Cost> best = {{source_, Cost{}}};
        using Entry = std::pair<Cost, Places>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
        open.emplace(Cost{}, source_);
        while (!open.empty()) {
            const auto [paid, state] = open.top();
            open.pop();
            if (state == target_) return paid;
            if (paid > best[state]) continue;
            for_each_step(state, [&, paid = paid](const Places& next, Work work) {
                const Cost step = price(objective, next, work);
                const Cost cost = {paid.first + step.first, paid.second + step.second};
                const auto [known, fresh] = best.try_emplace(next, cost);
                if (!fresh && known->second <= cost) return;
                known->second = cost;
                open.emplace(cost, next);
            });
        }
        return {index_max, index_max};
    }

private:
    struct Work {
        Index received = 0;  // elements
        Index messages = 0;
        bool copies = true;
    };
    using Visit = std::function<void(const Places&, Work)>;  // the state after a step

    // A slice takes time only if it is the last step.
    [[nodiscard]] Cost price(Objective objective, const Places& next, Work work) const {
        const Index moves = work.received > 0 ? 1 : 0;
        if (objective == Objective::bytes) return {work.received, moves};
        if (objective == Objective::steps) return {moves, work.received};
        const Machine machine = plain_laptop();
        const auto copy = transfer_picoseconds(4 * tile(next), machine.copy_bytes_per_second);
        if (moves == 0) return {work.copies || next == target_ ? copy : 0, 0};
        const Level& level = machine.levels[0];
        return {copy + level.start_ps + work.messages * level.latency_ps +
                    transfer_picoseconds(4 * work.received, level.bytes_per_second),
                1};
    }

    void place(const Cut& cut, Places& places) const {
        for (std::size_t j = 0; j < cut.size(); ++j)
            places[static_cast<std::size_t>(cut[j])] = single_ + static_cast<int>(j) + 1;
    }

    [[nodiscard]] int unreduced() const { return places_ + 1; }
    [[nodiscard]] bool cuts(int place) const { return place != 0 && place != unreduced(); }

    [[nodiscard]] Index tile(const Places& state) const {
        return elements_ >> std::ranges::count_if(state, [&](int place) { return cuts(place); });
    }

    [[nodiscard]] bool is_free(const Places& state, int place) const {
        return place > single_ || std::ranges::find(state, place) == state.end();
    }

    void for_each_step(const Places& state, const Visit& visit) const {
        for_each_slice(state, visit);
        if (sums_) {
            for_each_zero_fill(state, visit);
            for_each_reduction(state, visit);
        }
        // Every set of digits that leave their places: for good, or for others.
        for (unsigned leaving = 1; leaving >> state.size() == 0; ++leaving) {
            Places rest = state;
            std::vector<bool> lost(static_cast<std::size_t>(places_) + 1, false);
            bool cut = true;
            for (std::size_t k = 0; k < state.size(); ++k) {
                if ((leaving >> k & 1) == 0) continue;
                cut = cut && cuts(state[k]);
                lost[static_cast<std::size_t>(state[k])] = true;
                rest[k] = 0;
            }
            if (!cut) continue;
            const Index others = (Index{1} << std::popcount(leaving)) - 1;
            if (tile(rest) <= floor_) visit(rest, {tile(rest) - tile(state), others});
            deal(rest, leaving, lost, [&](const Places& next) {
                visit(next, {tile(state) - (tile(state) >> std::popcount(leaving)), others});
            });
        }
        for_each_permute(state, visit);
    }

    void for_each_slice(const Places& state, const Visit& visit) const {
        for (std::size_t k = 0; k < state.size(); ++k)
            for (int place = 1; state[k] == 0 && place <= places_; ++place) {
                if (!is_free(state, place)) continue;
                Places next = state;
                next[k] = place;
                visit(next, {0, 0, false});
            }
    }

    // Every set of digits that were idle or cut a place becomes unreduced.
    void for_each_zero_fill(const Places& state, const Visit& visit) const {
        for (unsigned filled = 1; filled >> state.size() == 0; ++filled) {
            Places next = state;
            for (std::size_t k = 0; k < state.size(); ++k)
                if ((filled >> k & 1) != 0) next[k] = unreduced();
            if (tile(next) <= floor_) visit(next, {});
        }
    }

    // Every set of unreduced digits, by an all_reduce, and by a reduce_scatter to every choice of places.
    void for_each_reduction(const Places& state, const Visit& visit) const {
        for (unsigned reduced = 1; reduced >> state.size() == 0; ++reduced) {
            Places rest = state;
            bool sum = true;
            for (std::size_t k = 0; k < state.size(); ++k) {
                if ((reduced >> k & 1) == 0) continue;
                sum = sum && state[k] == unreduced();
                rest[k] = 0;
            }
            if (!sum) continue;
            const Index others = (Index{1} << std::popcount(reduced)) - 1;
            const Index scattered = tile(state) - (tile(state) >> std::popcount(reduced));
            visit(rest, {2 * scattered, 2 * others});
            deal(rest, reduced, std::vector<bool>(static_cast<std::size_t>(places_) + 1, false),
                 [&](const Places& next) {
                     visit(next, {scattered, others});
                 });
        }
    }

    // Every way to give the digits in `entering` new places. A place that lost a digit gets none.
    void deal(Places& state, unsigned entering, const std::vector<bool>& lost,
              const std::function<void(const Places&)>& visit) const {
        if (entering == 0) return visit(state);
        const auto k = static_cast<std::size_t>(std::countr_zero(entering));
        for (int place = 1; place <= places_; ++place) {
            if (lost[static_cast<std::size_t>(place)] || !is_free(state, place)) continue;
            state[k] = place;
            deal(state, entering & (entering - 1), lost, visit);
            state[k] = 0;
        }
    }

    // Whole tiles move: the same places are cut, by any digits of the mesh, and as many digits are unreduced.
    void for_each_permute(const Places& state, const Visit& visit) const {
        Places next = state;
        std::ranges::sort(next);
        do {
            if (next != state) visit(next, {tile(state), 1});
        } while (std::ranges::next_permutation(next).found);
    }

    Places source_;
    Places target_;
    Index elements_;
    Index floor_ = 0;
    int single_ = 0;  // places for one digit
    int places_ = 0;
    bool sums_ = false;  // some digit is unreduced at an end
};

// Every way to cut `rank` dimensions by some of the digits, in any order. With `sums` digits may also be unreduced.
std::vector<Cuts> all_cuts(int digits, std::size_t rank, bool sums) {
    std::vector<Cuts> all = {Cuts(rank + 1)};
    for (int digit = 0; digit < digits; ++digit)
        for (std::size_t k = all.size(); k-- > 0;) {
            for (std::size_t i = 0; i < rank; ++i)
                for (std::size_t at = 0; at <= all[k][i].size(); ++at) {
                    Cuts more = all[k];
                    more[i].insert(more[i].begin() + static_cast<std::ptrdiff_t>(at), digit);
                    all.push_back(more);
                }
            if (!sums) continue;
            all.push_back(all[k]);
            all.back().back().push_back(digit);
        }
    return all;
}

struct Field {
    const char* name;
    Mesh mesh;
    int digits;  ///< of the mesh
    std::size_t rank;
    std::size_t sample;       ///< pairs in a short run; 0: all
    std::size_t long_sample;  ///< pairs in a long run; 0: all
    Objective objective = Objective::bytes;
    bool sums = false;  ///< only pairs with unreduced digits
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

constexpr Index extent = 256;

Layout layout_of(const Field& field, const Cuts& cuts) {
    const auto atoms_of = [&](const Cut& cut) {
        AtomList atoms;
        for (const int digit : cut) atoms.push_back({2, Index{1} << (field.digits - 1 - digit)});
        return canonical(atoms);
    };
    Layout layout{DType::f32, field.mesh, {}, atoms_of(cuts.back())};
    for (std::size_t i = 0; i < field.rank; ++i) layout.dims.emplace_back(extent, atoms_of(cuts[i]));
    return layout;
}

struct Tally {
    Index pairs = 0;
    Index complete = 0;
    Index in_views = 0;
};

void compare(const Field& field, const Cuts& from, const Cuts& to, Tally& tally) {
    const Layout source = layout_of(field, from);
    const Layout target = layout_of(field, to);
    Index elements = 1;
    for (std::size_t i = 0; i < field.rank; ++i) elements *= extent;
    const Cost optimum = Digits(field.digits, from, to, elements).optimum(field.objective);
    Options options;
    options.vocabulary = Vocabulary::collectives;
    options.objective = field.objective;
    options.machine = plain_laptop();
    const std::string question = "reshard plan --mesh " + format(field.mesh) + " '" + format(source) + "' '" +
                                 format(target) + "' --vocabulary collectives --objective " +
                                 std::string(name(field.objective));
    const auto made = synthesize(source, target, options);
    ASSERT_TRUE(made.has_value()) << question << ": " << made.error().message;
    EXPECT_LE(made->verdict().peak_bytes, made->verdict().floor_bytes) << question;
    const Index received = made->verdict().received_bytes_max_device / 4;
    const Index moves =
        std::ranges::count_if(made->plan().steps, [](const Step& step) { return !is_local(step.kind); });
    Cost cost = {received, moves};
    if (field.objective == Objective::steps) cost = {moves, received};
    if (field.objective == Objective::time) cost = {made->picoseconds, moves};
    EXPECT_EQ(cost.first, optimum.first) << question << "\n" << format(made->plan());
    EXPECT_EQ(cost.second, optimum.second) << question << "\n" << format(made->plan());
    EXPECT_TRUE(made->search_complete) << question;
    ++tally.pairs;
    if (made->search_complete) ++tally.complete;
    if (made->rule == "split_dims") ++tally.in_views;
}

class DigitsTest : public ::testing::TestWithParam<Field> {};

TEST_P(DigitsTest, CollectivesCostTheLeastOverDigits) {
    const Field& field = GetParam();
    const std::vector<Cuts> cuts = all_cuts(field.digits, field.rank, field.sums);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < cuts.size(); ++i)
        for (std::size_t j = 0; j < cuts.size(); ++j)
            if (i != j && (!field.sums || !cuts[i].back().empty() || !cuts[j].back().empty())) pairs.emplace_back(i, j);
    const std::size_t wanted = long_run() ? field.long_sample : field.sample;
    if (wanted != 0 && wanted < pairs.size()) {
        std::mt19937_64 random(20211203);
        for (std::size_t i = 0; i < wanted; ++i) std::swap(pairs[i], pairs[i + random() % (pairs.size() - i)]);
        pairs.resize(wanted);
    }
    Tally tally;
    for (const auto& [i, j] : pairs) {
        compare(field, cuts[i], cuts[j], tally);
        if (HasFatalFailure()) return;
    }
    std::printf("%-12s %4zu layouts %6lld pairs: %lld complete, %lld in views\n", field.name, cuts.size(),
                static_cast<long long>(tally.pairs), static_cast<long long>(tally.complete),
                static_cast<long long>(tally.in_views));
}

// Samples with 0 take all pairs.
INSTANTIATE_TEST_SUITE_P(
    Meshes, DigitsTest,
    ::testing::Values(
        Field{"x2_y2_r1", {{"x", 2}, {"y", 2}}, 2, 1, 0, 0}, Field{"x2_y4_r1", {{"x", 2}, {"y", 4}}, 3, 1, 0, 0},
        Field{"x2_y2_r2", {{"x", 2}, {"y", 2}}, 2, 2, 0, 0}, Field{"x2_y4_r2", {{"x", 2}, {"y", 4}}, 3, 2, 400, 0},
        Field{"x2_y2_z2_r2", {{"x", 2}, {"y", 2}, {"z", 2}}, 3, 2, 200, 0},
        Field{"x2_y2_z2_r3", {{"x", 2}, {"y", 2}, {"z", 2}}, 3, 3, 100, 2000},
        Field{"x4_y4_r1", {{"x", 4}, {"y", 4}}, 4, 1, 100, 0}, Field{"x4_y4_r2", {{"x", 4}, {"y", 4}}, 4, 2, 20, 1000},
        Field{"x8_y2_r2", {{"x", 8}, {"y", 2}}, 4, 2, 20, 1000},
        Field{"x2_y2_r2_steps", {{"x", 2}, {"y", 2}}, 2, 2, 0, 0, Objective::steps},
        Field{"x2_y4_r2_steps", {{"x", 2}, {"y", 4}}, 3, 2, 200, 0, Objective::steps},
        Field{"x2_y2_r2_time", {{"x", 2}, {"y", 2}}, 2, 2, 0, 0, Objective::time},
        Field{"x2_y4_r2_time", {{"x", 2}, {"y", 4}}, 3, 2, 200, 0, Objective::time},
        Field{"x4_y4_r2_time", {{"x", 4}, {"y", 4}}, 4, 2, 10, 500, Objective::time},
        Field{"x4_y4_r2_steps", {{"x", 4}, {"y", 4}}, 4, 2, 10, 500, Objective::steps},
        Field{"x2_y2_r1_sums", {{"x", 2}, {"y", 2}}, 2, 1, 0, 0, Objective::bytes, true},
        Field{"x2_y4_r1_sums", {{"x", 2}, {"y", 4}}, 3, 1, 0, 0, Objective::bytes, true},
        Field{"x2_y2_r2_sums", {{"x", 2}, {"y", 2}}, 2, 2, 0, 0, Objective::bytes, true},
        Field{"x2_y4_r2_sums", {{"x", 2}, {"y", 4}}, 3, 2, 400, 0, Objective::bytes, true},
        Field{"x2_y2_z2_r2_sums", {{"x", 2}, {"y", 2}, {"z", 2}}, 3, 2, 200, 0, Objective::bytes, true},
        Field{"x2_y2_z2_r3_sums", {{"x", 2}, {"y", 2}, {"z", 2}}, 3, 3, 100, 2000, Objective::bytes, true},
        Field{"x4_y4_r1_sums", {{"x", 4}, {"y", 4}}, 4, 1, 100, 0, Objective::bytes, true},
        Field{"x8_y2_r1_sums", {{"x", 8}, {"y", 2}}, 4, 1, 100, 0, Objective::bytes, true},
        Field{"x4_y4_r2_sums", {{"x", 4}, {"y", 4}}, 4, 2, 20, 1000, Objective::bytes, true},
        Field{"x8_y2_r2_sums", {{"x", 8}, {"y", 2}}, 4, 2, 20, 1000, Objective::bytes, true},
        Field{"x2_y2_r2_sums_steps", {{"x", 2}, {"y", 2}}, 2, 2, 0, 0, Objective::steps, true},
        Field{"x2_y4_r2_sums_steps", {{"x", 2}, {"y", 4}}, 3, 2, 200, 0, Objective::steps, true},
        Field{"x2_y4_r1_sums_time", {{"x", 2}, {"y", 4}}, 3, 1, 0, 0, Objective::time, true},
        Field{"x2_y4_r2_sums_time", {{"x", 2}, {"y", 4}}, 3, 2, 200, 0, Objective::time, true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace reshard::test
