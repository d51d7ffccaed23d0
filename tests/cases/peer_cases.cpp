// The peers' own tables, row by row. Each row is read, planned and judged at full size, then moved by the tool's own
// code, and every element is checked. Alone, all rows move on threads of this process; under an MPI launcher, the
// rows that fit its ranks. With --full, arrays move at their own size if both ends take at most 2 GiB over all devices.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>

#include "cases/peer_line.hpp"
#include "reshard/planner/simulate.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "tool/console/exit.hpp"
#include "tool/data/verify.hpp"
#include "tool/ranks/session.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::cli {
namespace {

constexpr Index moved_bytes_max = Index{8} << 20;
constexpr Index local_ranks_max = 512;
constexpr Index full_bytes_max = Index{2} << 30;

struct Row {
    std::string id;
    Result<Problem> problem;
};

std::vector<Row> read_rows() {
    std::vector<Row> rows;
    for (const char* file : {"xla", "dtensor", "shardy"}) {
        std::ifstream in(std::string(RESHARD_TESTS_DIR "/cases/") + file + ".jsonl");
        for (std::string text; std::getline(in, text);) {
            const auto question =
                own_line(text).and_then([](const std::string& own) { return parse_problem_line(own).question; });
            const auto asked = question.and_then(understand);
            rows.push_back({Json::parse(text).value("id", "?"), asked.map(&Request::problem)});
        }
    }
    return rows;
}

// The ids of the first table of README.md: rows that are not moved, each with its reason.
std::set<std::string> listed_ids() {
    std::ifstream in(RESHARD_TESTS_DIR "/cases/README.md");
    std::set<std::string> ids;
    bool inside = false;
    for (std::string text; std::getline(in, text);) {
        if (text.starts_with("## ")) inside = text == "## Not moved";
        if (inside && text.starts_with("| `")) ids.insert(text.substr(3, text.find('`', 3) - 3));
    }
    return ids;
}

Index bytes_over_devices(const Problem& problem) {
    const auto all = [](const Layout& layout) { return saturating_multiply(tile_bytes(layout), device_count(layout)); };
    return saturating_add(all(problem.source), all(problem.target));
}

// A smaller array with extents that leave the same remainders for every shard count of both ends. pre: no pieces.
Problem scaled(Problem problem) {
    std::vector<Index> periods;
    for (std::size_t i = 0; i < problem.source.dims.size(); ++i)
        periods.push_back(std::lcm(shard_count(problem.source.dims[i]), shard_count(problem.target.dims[i])));
    while (global_bytes(problem.source) > moved_bytes_max || bytes_over_devices(problem) > 8 * moved_bytes_max) {
        std::size_t longest = 0;
        const auto times = [&](std::size_t i) { return problem.source.dims[i].extent / periods[i]; };
        for (std::size_t i = 0; i < periods.size(); ++i)
            if (times(i) > times(longest)) longest = i;
        if (times(longest) < 2) break;
        const Index extent =
            times(longest) / 2 * periods[longest] + problem.source.dims[longest].extent % periods[longest];
        problem.source.dims[longest].extent = problem.target.dims[longest].extent = extent;
    }
    return problem;
}

Index ranks_of(const Problem& problem) {
    return std::max(world_size(problem.source.mesh), world_size(problem.target.mesh));
}

// Moves the array once and checks every element. Returns the number of wrong elements.
Result<Index> wrong_elements(Rank& rank, const Judged<Plan>& judged) {
    const Plan& plan = judged.plan();
    Progress progress(false);
    const bool reduced = summand_count(plan.source) > 1 || summand_count(plan.target) > 1;
    const auto values = generated(plan.source, reduced);
    auto mover = Session::make(rank, rank.backend(), judged);
    if (!mover) return tl::unexpected(mover.error());
    const auto filled = fill(*values, plan.source, rank.index(), false, (*mover)->source(), progress);
    if (auto all = agree(rank, filled); !all) return tl::unexpected(all.error());
    (*mover)->wipe();
    if (auto moved = (*mover)->move(rank); !moved) return tl::unexpected(moved.error());
    const auto verified = verify(rank, *values, plan.target, false, (*mover)->target(), progress);
    if (!verified) return tl::unexpected(verified.error());
    return verified->wrong;
}

int failures = 0;

void complain_about(const std::string& id, const std::string& what) {
    ++failures;
    std::printf("%s: %s\n", id.c_str(), what.c_str());
}

// Every row is either read or listed, never both.
void compare_with_list(const std::vector<Row>& rows) {
    std::set<std::string> listed = listed_ids();
    for (const Row& row : rows) {
        if (row.problem && listed.contains(row.id)) complain_about(row.id, "is listed as not moved, and is read");
        if (!row.problem && !listed.contains(row.id))
            complain_about(row.id, "not read: " + describe(row.problem.error()));
        listed.erase(row.id);
    }
    for (const std::string& id : listed) complain_about(id, "is listed, and is no row");
}

std::optional<Judged<Plan>> planned(const Row& row, const Problem& problem) {
    const auto made = synthesize(problem);
    if (!made) {
        complain_about(row.id, "not planned: " + made.error().message);
        return std::nullopt;
    }
    const auto verdict = check(made->plan());
    if (!verdict || *verdict != made->verdict()) complain_about(row.id, "the judge says otherwise");
    return *made;
}

void move_on(Ranks& ranks, const Row& row, const Judged<Plan>& plan) {
    ranks.each(false, [&](Rank& rank) {
        const auto wrong = wrong_elements(rank, plan);
        if (rank.index() != 0) return 0;
        if (!wrong) complain_about(row.id, "not moved: " + wrong.error().message);
        if (wrong && *wrong > 0)
            complain_about(row.id, std::to_string(*wrong) + " elements are wrong\n" + format(plan.plan()));
        return 0;
    });
}

// For more devices than the local backend drives: carries out the meaning of the plan, element by element.
void simulate_it(const Row& row, const Plan& plan) {
    Index elements = 1;
    for (const Dim& dim : plan.source.dims) elements *= dim.extent;
    std::vector<std::int64_t> array(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::int64_t>(i) * 7 + 1;
    auto tiles = distribute(plan.source, array);
    if (tiles) tiles = simulate(plan, std::move(*tiles));
    if (!tiles) return complain_about(row.id, "not simulated: " + tiles.error().message);
    if (!denotes(plan.target, *tiles, array)) complain_about(row.id, "simulated wrong\n" + format(plan));
}

int main_of(bool full) {
    const std::vector<Row> rows = read_rows();
    const Index launched = launched_ranks();
    auto shared =
        launched > 0 ? make_ranks("mpi", launched, std::chrono::minutes(5)) : Result<std::unique_ptr<Ranks>>(nullptr);
    if (!shared) return complain(shared.error());
    if (launched == 0) compare_with_list(rows);
    int moved = 0;
    int simulated = 0;
    for (const Row& row : rows) {
        if (!row.problem) continue;
        const bool pieces = has_pieces(row.problem->source) || has_pieces(row.problem->target);
        const bool fits = full && bytes_over_devices(*row.problem) <= full_bytes_max;
        if (launched == 0) static_cast<void>(planned(row, *row.problem));
        const Problem problem = pieces || fits ? *row.problem : scaled(*row.problem);
        if (launched > 0 && ranks_of(problem) > launched) continue;
        const auto plan = planned(row, problem);
        if (!plan) continue;
        if (ranks_of(problem) > local_ranks_max) {
            simulate_it(row, plan->plan());
            ++simulated;
            continue;
        }
        auto own = launched > 0 ? Result<std::unique_ptr<Ranks>>(nullptr) : local_ranks(ranks_of(problem));
        if (!own) return complain(own.error());
        move_on(launched > 0 ? **shared : **own, row, *plan);
        ++moved;
    }
    if (speaks()) std::printf("%zu rows, %d moved, %d simulated, %d wrong\n", rows.size(), moved, simulated, failures);
    return failures == 0 && moved > 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::cli

int main(int argc, char** argv) { return reshard::cli::main_of(argc > 1 && std::string_view(argv[1]) == "--full"); }
