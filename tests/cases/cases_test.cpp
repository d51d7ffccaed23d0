// Named problems: from the literature, from the peers, and from every bug ever found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "cases/rows.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/jsonl.hpp"
#include "support/price.hpp"
#include "support/replay.hpp"

namespace reshard::test {
namespace {

/// Arrays above this many device-elements are planned and judged at their full size. They are moved at the least size
/// with the same shard counts.
constexpr Index moved_elements_max = Index{1} << 21;

std::string line(const Json& row) {
    return row["id"].text + ": reshard plan --mesh '" + row["mesh"].text + "' '" + row["source"].text + "' '" +
           row["target"].text + "'";
}

Problem problem_of(const Json& row) {
    const auto mesh = parse_mesh(row["mesh"].text);
    if (!mesh) throw std::runtime_error(describe(mesh.error()));
    const auto source = parse_layout(*mesh, row["source"].text);
    if (!source) throw std::runtime_error(describe(source.error()));
    const auto target = parse_layout(*mesh, row["target"].text);
    if (!target) throw std::runtime_error(describe(target.error()));
    return {*source, *target};
}

Options by_bytes(Vocabulary vocabulary) {
    Options options;
    options.vocabulary = vocabulary;
    options.objective = Objective::bytes;
    return options;
}

/// The problem with the smallest extents that all shard counts divide.
Problem smallest(Problem problem) {
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i) {
        Index extent = shard_count(problem.source.dims[i]);
        while (extent % shard_count(problem.target.dims[i]) != 0) extent += shard_count(problem.source.dims[i]);
        problem.source.dims[i].extent = problem.target.dims[i].extent = extent;
    }
    return problem;
}

/// Plans, judges and moves. Returns the reason why the result is wrong; empty if it is right. If no plan is found, that
/// is wrong only if `must`.
std::string planned_wrong(const Problem& problem, Vocabulary vocabulary, bool must, std::optional<Synthesis>& made) {
    auto result = synthesize(problem, by_bytes(vocabulary));
    if (!result) return must ? "not planned: " + result.error().message : "";
    const auto verdict = check(result->plan());
    if (!verdict) return "refused: " + verdict.error().message;
    if (verdict->peak_bytes > verdict->floor_bytes) return "peak above the floor";
    if (verdict->received_bytes_max_device < verdict->lower_bound_bytes) return "below the bound";
    made = *result;
    const Index elements =
        device_count(problem.source) * std::max(tile_elements(problem.source), tile_elements(problem.target));
    if (elements <= moved_elements_max) return replay(result->plan(), *verdict);
    const auto small = synthesize(smallest(problem), by_bytes(vocabulary));
    if (!small) return "not planned when smaller: " + small.error().message;
    return replay(small->plan(), small->verdict());
}

TEST(Cases, EachHasAnIdOfItsOwn) {
    std::map<std::string, std::string> files;
    for (const char* file : {"named", "shardy", "xla", "dtensor"})
        for (const Json& row : read_jsonl(std::string(RESHARD_TESTS_DIR "/cases/") + file + ".jsonl")) {
            const auto [first, fresh] = files.emplace(row["id"].text, file);
            EXPECT_TRUE(fresh) << row["id"].text << " is in " << first->second << ".jsonl and in " << file << ".jsonl";
            EXPECT_NE(row["id"].text, "");
        }
    EXPECT_GT(files.size(), 300U);
}

TEST(NamedCases, ArePlannedJudgedAndMovedRight) {
    for (const Json& row : read_jsonl(RESHARD_TESTS_DIR "/cases/named.jsonl")) {
        SCOPED_TRACE(line(row));
        const Problem problem = problem_of(row);
        const bool divide = divides(problem.source) && divides(problem.target);
        for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
            std::optional<Synthesis> made;
            EXPECT_EQ(planned_wrong(problem, vocabulary, vocabulary == Vocabulary::all || divide, made), "");
            if (!made) continue;
            const Verdict& verdict = made->verdict();
            const Index element = size_of(problem.source.dtype);
            if (row.has("bound")) {
                EXPECT_EQ(verdict.lower_bound_bytes, static_cast<Index>(row["bound"].number) * element);
            }
            const bool sums = summand_count(problem.source) + summand_count(problem.target) > 2;
            if (vocabulary == Vocabulary::all && !sums && divide) {
                EXPECT_EQ(verdict.received_bytes_max_device, verdict.lower_bound_bytes) << format(made->plan());
            }
            if (vocabulary == Vocabulary::collectives && row.has("collectives")) {
                EXPECT_LE(verdict.received_bytes_max_device, static_cast<Index>(row["collectives"].number) * element)
                    << format(made->plan());
            }
        }
    }
}

/// Rows on one mesh, with no unreduced axes and no device orders.
std::vector<Json> shardy_rows() {
    std::vector<Json> rows = read_jsonl(RESHARD_TESTS_DIR "/cases/shardy.jsonl");
    std::erase_if(rows, [](const Json& row) {
        return row.has("target_mesh") || row.has("unreduced") || row.has("device_ids") || row.has("target_device_ids");
    });
    return rows;
}

TEST(ShardyCases, AllRowsOnOneMeshArePlannedJudgedAndMovedRight) {
    const auto rows = shardy_rows();
    EXPECT_GE(rows.size(), 80U);
    for (const Json& row : rows) {
        SCOPED_TRACE(line(row));
        const Problem problem = problem_of(row);
        const bool divide = divides(problem.source) && divides(problem.target);
        for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
            std::optional<Synthesis> made;
            EXPECT_EQ(planned_wrong(problem, vocabulary, vocabulary == Vocabulary::all || divide, made), "");
            if (made && vocabulary == Vocabulary::all && divide) {
                EXPECT_EQ(made->verdict().received_bytes_max_device, made->verdict().lower_bound_bytes);
            }
        }
    }
}

struct Score {
    int better = 0;
    int equal = 0;
    int worse = 0;
    std::string rows;  ///< the ids of the rows that are worse

    void count(double mine, double theirs, const std::string& id) {
        if (mine < theirs)
            ++better;
        else if (mine == theirs)
            ++equal;
        else
            ++worse, rows += " " + id;
    }
};

/// True for rows where the peer arrives, does not pad or reduce, and states a figure not below the true bound.
bool comparable(const Json& row) {
    if (row["padded"].number != 0 || !row.has("lower_bound_elements") || !row.has("peer_received_elements"))
        return false;
    for (const Json& step : row["peer_steps"].list)
        if (step.text == "reduce_scatter" || step.text == "all_reduce") return false;
    return row["outcome"].text != "kept" && row["peer_received_elements"].number >= row["lower_bound_elements"].number;
}

TEST(ShardyCases, AgainstThePeerPerMetric) {
    std::printf("%-12s %-9s %6s %6s %6s\n", "vocabulary", "metric", "better", "equal", "worse");
    for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all}) {
        Score received, peak, steps;
        int compared = 0;
        for (const Json& row : shardy_rows()) {
            if (!comparable(row)) continue;
            const Problem problem = problem_of(row);
            const auto made = synthesize(problem, by_bytes(vocabulary));
            if (!made) {
                ADD_FAILURE() << line(row) << ": " << made.error().message;
                continue;
            }
            ++compared;
            const double element = static_cast<double>(size_of(problem.source.dtype));
            EXPECT_EQ(static_cast<double>(made->verdict().lower_bound_bytes) / element,
                      row["lower_bound_elements"].number)
                << line(row);
            received.count(static_cast<double>(made->verdict().received_bytes_max_device) / element,
                           row["peer_received_elements"].number, row["id"].text);
            peak.count(static_cast<double>(made->verdict().peak_bytes) / element, row["peer_peak_elements"].number,
                       row["id"].text);
            steps.count(static_cast<double>(steps_that_move(made->plan())), row["peer_collectives"].number,
                        row["id"].text);
        }
        EXPECT_GE(compared, 50);
        const std::string word(name(vocabulary));
        for (const auto& [metric, score] : {std::pair("received", received), {"peak", peak}, {"steps", steps}}) {
            std::printf("%-12s %-9s %6d %6d %6d%s\n", word.c_str(), metric, score.better, score.equal, score.worse,
                        score.rows.c_str());
            EXPECT_EQ(score.worse, 0) << metric << score.rows;
        }
    }
}

TEST(DTensorCases, PlainPlacementsArePlannedJudgedAndMovedRight) {
    int met = 0;
    for (const Json& row : read_jsonl(RESHARD_TESTS_DIR "/cases/dtensor.jsonl")) {
        const auto problem = problem_of_dtensor(row);
        if (!problem || has_pieces(problem->source) || has_pieces(problem->target)) continue;
        SCOPED_TRACE(row["id"].text + ": " + format(problem->source) + " -> " + format(problem->target));
        std::optional<Synthesis> made;
        EXPECT_EQ(planned_wrong(*problem, Vocabulary::all, true, made), "");
        ++met;
    }
    std::printf("%d rows\n", met);
    EXPECT_GE(met, 20);
}

/// Rows with sizes that divide: XLA's padding says nothing about our plans.
TEST(XlaCases, TilingsArePlannedJudgedAndMovedRight) {
    int met = 0;
    for (const Json& row : read_jsonl(RESHARD_TESTS_DIR "/cases/xla.jsonl")) {
        const auto problem = problem_of_xla(row);
        if (!problem) continue;
        SCOPED_TRACE(row["id"].text + ": " + format(problem->source) + " -> " + format(problem->target));
        std::optional<Synthesis> made;
        EXPECT_EQ(planned_wrong(*problem, Vocabulary::all, true, made), "");
        const bool divide = divides(problem->source) && divides(problem->target);
        EXPECT_EQ(planned_wrong(*problem, Vocabulary::collectives, divide, made), "");
        ++met;
    }
    std::printf("%d rows\n", met);
    EXPECT_GE(met, 40);
}

/// Pairs that XLA replicates in full. Here the peak stays at the floor, and no device receives the whole array.
TEST(XlaCases, PairsThatAreReplicatedInFullElsewhereKeepTheFloor) {
    int met = 0;
    for (const Json& row : read_jsonl(RESHARD_TESTS_DIR "/cases/xla.jsonl")) {
        const auto problem = problem_of_xla(row);
        if (!row.has("peak_buffer_ratio") || !problem) continue;
        ++met;
        for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
            const auto made = synthesize(*problem, by_bytes(vocabulary));
            if (!made && vocabulary == Vocabulary::collectives && !divides(problem->target)) continue;
            ASSERT_TRUE(made.has_value()) << row["id"].text << ": " << made.error().message;
            EXPECT_EQ(made->verdict().peak_bytes, made->verdict().floor_bytes) << row["id"].text;
            EXPECT_LT(made->verdict().received_bytes_max_device, global_bytes(problem->source)) << row["id"].text;
        }
    }
    EXPECT_GE(met, 15);
}

// Compares with figures that DTensor and XLA state, with the objective bytes: steps that communicate, and XLA's largest
// buffer. Rows must divide (nothing is padded) and state enough steps (zero only if nothing moves). The buffers of
// XLA's rows are a model's prediction: one gather of everything takes few steps, at many times the peak.
TEST(PeerCases, DTensorAndXlaPerMetric) {
    std::printf("%-8s %-12s %-6s %6s %6s %6s\n", "peer", "vocabulary", "metric", "better", "equal", "worse");
    for (const auto& [peer, file, figure] :
         {std::tuple("dtensor", RESHARD_TESTS_DIR "/cases/dtensor.jsonl", "total_collectives"),
          std::tuple("xla", RESHARD_TESTS_DIR "/cases/xla.jsonl", "expects")})
        for (const Vocabulary vocabulary : {Vocabulary::collectives, Vocabulary::all}) {
            Score steps, peak;
            for (const Json& row : read_jsonl(file)) {
                const auto problem = peer == std::string("xla") ? problem_of_xla(row) : problem_of_dtensor(row);
                if (!problem || !divides(problem->source) || !divides(problem->target)) continue;
                const auto made = synthesize(*problem, by_bytes(vocabulary));
                ASSERT_TRUE(made.has_value()) << row["id"].text << ": " << made.error().message;
                if (row.has(figure) && !row.has("peak_buffer_ratio")) {
                    const Json& stated = row[figure];
                    const double theirs =
                        stated.kind == Json::Kind::list ? static_cast<double>(stated.list.size()) : stated.number;
                    const bool moves = made->verdict().lower_bound_bytes > 0;
                    if (theirs >= (moves ? 1.0 : 0.0))
                        steps.count(static_cast<double>(steps_that_move(made->plan())), theirs, row["id"].text);
                }
                if (row.has("peak_buffer_ratio"))
                    peak.count(static_cast<double>(made->verdict().peak_bytes) /
                                   static_cast<double>(made->verdict().floor_bytes),
                               row["peak_buffer_ratio"].number, row["id"].text);
            }
            for (const auto& [metric, score] : {std::pair("steps", steps), {"peak", peak}}) {
                if (score.better + score.equal + score.worse == 0) continue;
                std::printf("%-8s %-12s %-6s %6d %6d %6d%s\n", peer, std::string(name(vocabulary)).c_str(), metric,
                            score.better, score.equal, score.worse, score.rows.c_str());
                EXPECT_EQ(score.worse, 0) << peer << " " << metric << score.rows;
            }
        }
}

}  // namespace
}  // namespace reshard::test
