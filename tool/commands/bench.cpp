// `reshard bench`: the plan against the baselines, in one process a rank, round by round in turn, so that what the
// machine does to one it does to all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/check.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/contestant.hpp"
#include "tool/commands/run_report.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/halo_request.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr const char* naive_name = "gather, then slice";
constexpr const char* callers_name = "caller's memory";
constexpr const char* registered_name = "registered";

// The default question: 256 MiB from row blocks to column blocks over all ranks.
Question with_default_problem(Question question, Index ranks) {
    question.mesh = fmt::format("x={}", ranks);
    question.source = "f32[8192@x,8192]";
    question.target = "f32[8192,8192@x]";
    return question;
}

std::vector<Contestant> contestants(Rank& rank, const Request& asked, const Synthesis& made) {
    const bool mpi = rank.backend().name() == "mpi";
    Problem problem = asked.problem;  // of the others, which move the source's type
    problem.target.dtype = problem.source.dtype;
    const bool reduced = summand_count(problem.source) > 1 || summand_count(problem.target) > 1;
    const std::vector<Index>& permute = asked.changes.permute;
    const Moved moved{permute.empty() ? problem.source : asked.written.source, permute, reduced};
    std::vector<Contestant> all;
    const auto add = [&](std::string_view name, Result<Judged<Plan>> plan, Carrier carrier) {
        all.emplace_back(std::string(name), std::move(plan), carrier, moved);
    };
    const auto as_steps = [](const Plan& plan) { return judge(plan, AsSteps{}); };
    add("this plan", within(made, {}), Carrier::own);
    if (problem != asked.problem)
        if (const auto plain = synthesize(problem, asked.options))
            add("without the cast", within(*plain, {}), Carrier::own);
    if (!permute.empty())
        all.emplace_back("source in order", within(made, {}), Carrier::own, Moved{problem.source, {}, reduced});
    add(naive_name, gather_then_slice(problem).and_then(as_steps), mpi ? Carrier::messages : Carrier::own);
    const auto direct = as_steps({problem.source, problem.target, {{StepKind::exchange, problem.target}}});
    if (made.plan().steps.size() > 1 && direct) add("direct exchange", direct, Carrier::own);
    if (mpi) add("MPI_Alltoallw", direct, Carrier::alltoallw);
    if (mpi && asked.options.capabilities.ranks_per_node < rank.size()) {  // between nodes
        add("isend and irecv of boxes", direct, Carrier::messages_of_boxes);
        add("MPI_Bcast per unit task", direct, Carrier::broadcasts);
    }
    // A sum that MPI has one call for.
    if (const auto whole = as_steps({problem.source, problem.target, {{StepKind::all_reduce, problem.target}}});
        mpi && whole)
        add("MPI_Allreduce", whole, Carrier::reductions);
    if (const auto parts = as_steps({problem.source, problem.target, {{StepKind::reduce_scatter, problem.target}}});
        mpi && parts)
        add("MPI_Reduce_scatter", parts, Carrier::reductions);
    if (mpi && asked.options.capabilities.ranks_per_node > 1) {
        add(callers_name, within(made, {}), Carrier::callers_memory);
        add(registered_name, within(made, {}), Carrier::registered);
    }
    return all;
}

std::vector<Score> measure(Rank& rank, const Request& asked, const Synthesis& made, Index rounds) {
    std::vector<Contestant> all = contestants(rank, asked, made);
    std::vector<Contestant*> order;
    for (Contestant& one : all) order.push_back(&one);
    Progress progress(rank.index() == 0);
    for (Contestant& one : all) one.measure_memory(rank, progress);
    for (Contestant& one : all) one.take_place(rank, progress);
    for (Index round = 0; round < rounds; ++round) {
        progress.at("measuring", round, rounds);
        for (Contestant* one : order) one->round(rank, progress);
        std::rotate(order.begin(), order.begin() + 1, order.end());  // nobody is always first
    }
    std::vector<Score> scores;
    for (const Contestant& one : all) scores.push_back(one.score());
    return scores;
}

const Score* measured(const std::vector<Score>& scores, std::string_view name) {
    const auto found = std::ranges::find(scores, name, &Score::name);
    return found == scores.end() || found->error || found->seconds.empty() ? nullptr : &*found;
}

double naive_seconds(const std::vector<Score>& scores) {
    const Score* const naive = measured(scores, naive_name);
    return naive == nullptr ? 0 : median(naive->seconds);
}

// The number of moves after which registering the caller's memory has paid for itself; 0: never.
Index moves_that_pay(const std::vector<Score>& scores) {
    const Score* const callers = measured(scores, callers_name);
    const Score* const registered = measured(scores, registered_name);
    if (callers == nullptr || registered == nullptr) return 0;
    const double saved = median(callers->seconds) - median(registered->seconds);
    return saved > 0 ? static_cast<Index>(std::ceil(registered->register_seconds / saved)) : 0;
}

std::string registering(const std::vector<Score>& scores) {
    const Score* const registered = measured(scores, registered_name);
    if (registered == nullptr) return {};
    const Index moves = moves_that_pay(scores);
    return fmt::format("registering the caller's tiles and ending that took {}\nit pays {}\n",
                       format_seconds(registered->register_seconds),
                       moves > 0 ? fmt::format("from {} moves on", moves) : std::string("for no number of moves here"));
}

std::string ratio(double naive, double seconds) {
    return naive > 0 && seconds > 0 ? fmt::format("{:.2f}x", naive / seconds) : "-";
}

std::string table_of(const std::vector<Score>& scores) {
    Table table({"contestant", ">median", "[min, max]", ">rate", ">accounted", ">resident", ">wrong", ">vs naive"});
    const double naive = naive_seconds(scores);
    for (const Score& score : scores) {
        if (score.error) continue;
        const double seconds = median(score.seconds);
        const auto [least, most] = std::minmax_element(score.seconds.begin(), score.seconds.end());
        table.row({score.name, format_seconds(seconds),
                   fmt::format("[{}, {}]", format_seconds(*least), format_seconds(*most)),
                   format_rate(static_cast<double>(score.target_bytes) / seconds),
                   format_bytes(score.memory.accounted.all()), format_bytes(score.memory.growth_bytes),
                   std::to_string(score.wrong), ratio(naive, seconds)});
    }
    return table.text(page());
}

std::string notes(const std::vector<Score>& scores, Index rounds, bool one_process) {
    std::string text;
    for (const Score& score : scores) {
        if (score.error) text += fmt::format("{} took no part: {}\n", score.name, score.error->message);
    }
    Index verified = 0;
    for (const Score& score : scores) verified += score.verified;
    text += fmt::format(
        "{} timed rounds each, in turn, on memory touched before; rate: target bytes of all ranks in the "
        "median time\n",
        rounds);
    text += registering(scores);
    text += "accounted: source + target + workspace + staging of the rank with most\n";
    const bool exact =
        std::all_of(scores.begin(), scores.end(), [](const Score& s) { return s.error || s.memory.growth_exact; });
    text += fmt::format("resident: growth of {}, each by itself (VmHWM{}); shared pages count where touched\n",
                        one_process ? "the one process with all ranks" : "the largest rank",
                        exact ? "" : ", which could not be reset");
    return text + fmt::format("every result was looked at: {} elements.\n", verified);
}

Json json_of(const Score& score, double naive) {
    Json json = {{"contestant", score.name}};
    if (score.error) {
        json["error"] = {{"code", name(score.error->code)}, {"message", readable(*score.error).message}};
        return json;
    }
    const double seconds = median(score.seconds);
    json["seconds_median"] = seconds;
    json["seconds"] = score.seconds;
    json["target_bytes_all_ranks"] = score.target_bytes;
    json["bytes_per_second"] = static_cast<double>(score.target_bytes) / seconds;
    add_memory(json, score.memory);
    json["wrong"] = score.wrong;
    json["elements_verified"] = score.verified;
    if (score.register_seconds > 0) json["register_seconds"] = score.register_seconds;
    if (naive > 0) json["speed_against_naive"] = naive / seconds;
    return json;
}

// Measures on every rank. Rank 0 reports.
Result<int> bench_rank(Rank& rank, const Arguments& arguments, const Request& asked, const Synthesis& made,
                       const Ranks& ranks) {
    const std::vector<Score> scores = measure(rank, asked, made, arguments.rounds);
    if (rank.index() == 0 && arguments.json) {
        Json json = plan_json(nullptr, asked, made);
        json["backend"] = ranks.name();
        json["ranks"] = rank.size();
        json["rounds"] = arguments.rounds;
        json["resident_growth_of"] = ranks.one_process() ? "one process with all ranks" : "the largest rank";
        json["contestants"] = Json::array();
        for (const Score& score : scores) json["contestants"].push_back(json_of(score, naive_seconds(scores)));
        if (const Index moves = moves_that_pay(scores); moves > 0) json["registering_pays_from_moves"] = moves;
        answer(line(json));
    } else if (rank.index() == 0) {
        const Problem& ends = asked.keeps_places() ? asked.problem : asked.written;
        answer(fmt::format("{} to {}   {} in all   {} ranks   {}\n", format(ends.source), format(ends.target),
                           format_bytes(global_bytes(ends.source)), rank.size(), ranks.name()));
        answer(table_of(scores) + notes(scores, arguments.rounds, ranks.one_process()));
    }
    const Score& plan = scores.front();
    if (plan.error) return rank.index() == 0 ? complain(*plan.error) : exit_code(plan.error->code);
    const bool wrong = std::any_of(scores.begin(), scores.end(), [](const Score& score) { return score.wrong > 0; });
    return wrong ? exit_wrong : exit_ok;
}

}  // namespace

Result<int> bench(const Arguments& arguments) {
    if (asks_for_halos(arguments.question)) return bench_halos(arguments);
    const bool own = !arguments.question.source.empty();
    const Index ranks_started = default_rank_count(arguments.backend);
    const Question question = own ? arguments.question : with_default_problem(arguments.question, ranks_started);
    RESHARD_TRY(auto& asked, understand(question));
    remark(asked.note);
    if (asked.changes.fill)
        return fail(Code::unsupported, "bench does not pad: a run fills the padding, and no contestant's call does");
    if (asked.options.limits.memory.donate)
        return fail(Code::usage, "bench moves one source again and again: it cannot be donated");
    RESHARD_TRY(auto& ranks, make_ranks(arguments.backend, rank_count(asked.problem),
                                        std::chrono::seconds(arguments.timeout), arguments.ranks_per_node));
    asked.options.capabilities = ranks->capabilities();
    RESHARD_TRY(const auto& made, synthesize(asked.problem, asked.options));
    if (piece_count(made.execution()) > 1 && !overlaps(made.execution()))
        return fail(Code::unsupported, fmt::format("the footprint limit is kept in {} pieces only, and the contestants "
                                                   "move an array in one",
                                                   piece_count(made.execution())));
    return ranks->each(arguments.json, [&](Rank& rank) { return bench_rank(rank, arguments, asked, made, *ranks); });
}

}  // namespace reshard::cli
