// `reshard run --list`: many arrays, bucket by bucket under one limit; every element that arrived is compared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "report/numbers.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/exit.hpp"
#include "tool/data/changed_values.hpp"
#include "tool/data/verify.hpp"
#include "tool/ranks/ranks.hpp"
#include "tool/ranks/session.hpp"

namespace reshard::cli {
namespace {

struct ListJob {
    const RequestList& asked;
    const ListSynthesis& made;
};

struct ListReport {
    Verified verified;
    double seconds = 0;    ///< of all buckets, each from the barrier before to the slowest rank's end
    Index most_bytes = 0;  ///< of the rank with most, by the backend's own count; 0 where it does not count
    Index accounted = 0;   ///< of that with most: what the executor says that it holds
};

/// One rank's memory for the arrays of a list.
class ListMover {
public:
    ListMover(Rank& rank, const ListJob& job, Executor executor)
        : rank_(rank),
          job_(job),
          executor_(std::move(executor)),
          sources_(job.made.list().plans.size()),
          targets_(job.made.list().plans.size()) {}

    Result<ListReport> move() {
        ListReport report;
        Progress progress(rank_.index() == 0);
        for (std::size_t i = 0; i < sources_.size(); ++i) RESHARD_CHECK(agree(rank_, fill_source(i, progress)));
        for (std::size_t bucket = 0; bucket < executor_.bucket_count(); ++bucket) {
            progress.at("moving", static_cast<Index>(bucket), static_cast<Index>(executor_.bucket_count()));
            RESHARD_CHECK(agree(rank_, take_targets(bucket)));
            rank_.barrier();
            const auto begin = std::chrono::steady_clock::now();
            const auto moved = run(bucket);
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
            RESHARD_CHECK(agree(rank_, moved));
            report.seconds += largest(rank_, std::vector<double>{spent.count()}).front();
            for (const std::size_t i : executor_.bucket(bucket))
                if (job_.asked.memory.donate) sources_[i].reset();
        }
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            RESHARD_TRY(const auto& verified, verify_target(i, progress));
            report.verified.wrong += verified.wrong;
            report.verified.of += verified.of;
        }
        const std::vector<Index> most =
            largest(rank_, std::vector<Index>{rank_.backend().memory_use().most_bytes, executor_.footprint_bytes()});
        report.most_bytes = most[0];
        report.accounted = most[1];
        return report;
    }

private:
    [[nodiscard]] std::unique_ptr<Values> values(std::size_t array) const {
        const Plan& plan = job_.made.list().plans[array];
        const bool reduced = summand_count(plan.source) > 1 || summand_count(plan.target) > 1;
        return generated(plan.source, reduced, array + 1);
    }

    // The program's own copy is gone before the next array is filled.
    Result<void> fill_source(std::size_t array, Progress& progress) {
        const Index bytes = executor_.plans()[array].source_bytes;
        RESHARD_ASSIGN(sources_[array], rank_.backend().allocate(bytes));
        std::vector<std::byte> own(static_cast<std::size_t>(bytes));
        const Layout& source = job_.made.list().plans[array].source;
        RESHARD_CHECK(fill(*values(array), source, rank_.index(), false, own, progress));
        return rank_.backend().put(own, sources_[array]->bytes().first(own.size()));
    }

    // Overwritten, so that nothing found there later is what another move brought.
    Result<void> take_targets(std::size_t bucket) {
        RESHARD_ASSIGN(workspace_, rank_.backend().allocate(executor_.workspace_bytes()));
        for (const std::size_t i : executor_.bucket(bucket)) {
            const Index bytes = executor_.plans()[i].target_bytes;
            RESHARD_ASSIGN(targets_[i], rank_.backend().allocate(bytes));
            const std::vector<std::byte> wiped(static_cast<std::size_t>(bytes), std::byte{0xa5});
            RESHARD_CHECK(rank_.backend().put(wiped, targets_[i]->bytes().first(wiped.size())));
        }
        return {};
    }

    Result<void> run(std::size_t bucket) {
        std::vector<Buffers> buffers;
        for (const std::size_t i : executor_.bucket(bucket)) {
            buffers.push_back({sources_[i]->bytes(), targets_[i]->bytes(), workspace_->bytes()});
            if (job_.asked.memory.donate) buffers.back().donated = sources_[i]->bytes();
        }
        RESHARD_TRY(auto& bound, executor_.bind(bucket, buffers));
        auto ticket = bound->start();
        auto done = ticket ? (*ticket)->wait() : tl::unexpected(ticket.error());
        workspace_.reset();
        return done;
    }

    Result<Verified> verify_target(std::size_t array, Progress& progress) {
        std::vector<std::byte> own(static_cast<std::size_t>(executor_.plans()[array].target_bytes));
        auto got = rank_.backend().get(targets_[array]->bytes().first(own.size()), own);
        RESHARD_CHECK(agree(rank_, got));
        const Plan& plan = job_.made.list().plans[array];
        const auto of_source = values(array);
        const auto wanted = changed(*of_source, {plan.source.dtype, plan.target.dtype});
        return verify(rank_, *wanted, plan.target, false, own, progress);
    }

    Rank& rank_;
    const ListJob& job_;
    Executor executor_;
    std::vector<std::unique_ptr<Memory>> sources_;
    std::vector<std::unique_ptr<Memory>> targets_;
    std::unique_ptr<Memory> workspace_;
};

Result<ListReport> move_and_verify_all(Rank& rank, const ListJob& job) {
    RESHARD_TRY(auto& executor, agree(rank, Executor::prepare(job.made, rank.backend())));
    Index own = 0;  // the program's copy of one end of one array
    for (const RankPlan& plan : executor.plans()) own = std::max({own, plan.source_bytes, plan.target_bytes});
    RESHARD_CHECK(enough_memory(rank, saturating_add(executor.footprint_bytes() - executor.staging_bytes(), own)));
    return ListMover(rank, job, std::move(executor)).move();
}

std::string run_list_text(const ListJob& job, const ListReport& report, Rank& rank, const Ranks& ranks) {
    std::string text = fmt::format("{}   {} ranks   {}   wrong {} of {}\n",
                                   report.verified.wrong == 0 ? green("ok", page()) : red("WRONG", page()), rank.size(),
                                   ranks.name(), report.verified.wrong, report.verified.of);
    text += list_text(job.asked, job.made);
    text += fmt::format("moved in {}   a rank accounts for {}", format_seconds(report.seconds),
                        format_bytes(report.accounted));
    if (report.most_bytes > 0) text += fmt::format("   high-water mark {}", format_bytes(report.most_bytes));
    return text + "\n";
}

Json run_list_json(const ListJob& job, const ListReport& report, Rank& rank, const Ranks& ranks) {
    Json json = list_json(job.asked, job.made);
    json["backend"] = ranks.name();
    json["ranks"] = rank.size();
    json["wrong"] = report.verified.wrong;
    json["elements_verified"] = report.verified.of;
    json["seconds_measured"] = report.seconds;
    json["accounted_bytes"] = report.accounted;
    json["high_water_bytes"] = report.most_bytes > 0 ? Json(report.most_bytes) : Json();
    return json;
}

Result<int> run_rank(Rank& rank, const ListJob& job, const Ranks& ranks, bool as_json) {
    RESHARD_TRY(const auto& report, move_and_verify_all(rank, job));
    if (rank.index() == 0)
        answer(as_json ? line(run_list_json(job, report, rank, ranks)) : run_list_text(job, report, rank, ranks));
    return report.verified.wrong == 0 ? exit_ok : exit_wrong;
}

}  // namespace

Result<int> run_list(const Arguments& arguments) {
    if (arguments.list == "-") return fail(Code::usage, "--list: every rank reads the list, give a file");
    RESHARD_TRY(auto& asked, read_list(arguments));
    RESHARD_TRY(auto& ranks, make_ranks(arguments.backend, rank_count(asked), std::chrono::seconds(arguments.timeout),
                                        arguments.ranks_per_node));
    asked.options.capabilities = ranks->capabilities();
    RESHARD_TRY(const auto& made, synthesize(std::span<const Problem>(asked.problems), asked.options, asked.memory));
    const ListJob job{asked, made};
    return ranks->each(arguments.json, [&](Rank& rank) { return run_rank(rank, job, *ranks, arguments.json); });
}

}  // namespace reshard::cli
