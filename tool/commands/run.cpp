// `reshard run`: moves real data, and believes nothing: every element that arrived is compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/padding.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/run_report.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/data/changed_values.hpp"
#include "tool/data/verify.hpp"
#include "tool/output/tile_files.hpp"
#include "tool/ranks/memory_use.hpp"
#include "tool/ranks/session.hpp"
#include "tool/request/halo_request.hpp"

namespace reshard::cli {
namespace {

// A run's question, the same on every rank.
struct Job {
    const Arguments& arguments;
    const Request& asked;
    const Synthesis& made;
    std::optional<DType> raw;  // what raw elements of the input are
};

// The source as the caller has it. A transposition sees it in another order, and padding without some elements.
const Layout& source_of(const Job& job) {
    return job.asked.keeps_places() ? job.asked.problem.source : job.asked.written.source;
}

// The layouts of the tiles. A plan may see the ends of a reshape in another shape.
const Layout& source_tiles(const Job& job) {
    return job.asked.keeps_places() ? job.made.plan().source : job.asked.written.source;
}
const Layout& target_tiles(const Job& job) {
    return job.asked.changes.fill ? job.asked.written.target : job.made.plan().target;
}

Session::TileBytes bytes_of_tiles(const Job& job, Index rank) {
    const auto bytes = [&](const Layout& layout) {
        return saturating_multiply(count(tile(layout, rank)), size_of(layout.dtype));
    };
    return {bytes(source_tiles(job)), bytes(target_tiles(job))};
}

// The array's values on one rank, and how it lies in files.
struct Opened {
    std::unique_ptr<Values> values;
    FileStyle style;
};

std::unique_ptr<Values> values_of_target(const Job& job, const Opened& opened) {
    const MoveOptions& changes = job.asked.changes;
    ValuesChange change{source_of(job).dtype, job.asked.problem.target.dtype, changes.permute,
                        opened.style.fortran_order};
    if (changes.fill) {
        change.fill = changes.fill;
        change.extents = shape(*permuted(job.asked.written.source, changes.permute));
    }
    return changed(*opened.values, std::move(change));
}

FileStyle style_of_target(const Job& job, FileStyle style) {
    const DType dtype = job.asked.problem.target.dtype;
    if (dtype != source_of(job).dtype) style.descr = files::descr_of(dtype);
    return style;
}

Result<Opened> open_input(const Job& job) {
    const Layout& source = source_of(job);
    RESHARD_TRY(auto& file, ArrayFile::open(job.arguments.input, job.raw));
    if (file.header().shape != shape(source)) {
        return fail(Code::mismatch, fmt::format("'{}' has shape [{}], the source layout has [{}]", job.arguments.input,
                                                fmt::join(file.header().shape, ","), fmt::join(shape(source), ",")));
    }
    if (file.dtype() != source.dtype) {
        return fail(Code::mismatch, fmt::format("'{}' has elements of {}, the source layout of {}", job.arguments.input,
                                                name(file.dtype()), name(source.dtype)));
    }
    FileStyle style{file.header().descr, file.header().fortran_order};
    if (style.descr[0] != '|') style.descr[0] = '<';
    return Opened{from_file(std::move(file), source.reduction), style};
}

Result<Opened> open_values(const Job& job) {
    if (!job.arguments.input.empty()) return open_input(job);
    const Layout& source = source_of(job);
    const bool reduced = summand_count(source) > 1 || summand_count(job.asked.problem.target) > 1;
    return Opened{generated(source, reduced), {files::descr_of(source.dtype), false}};
}

// The file's order is kept in memory, and the move is left to go from one column-major tile to the other. A transposed
// source is a view of the tile.
Storages storages_of(const Job& job, Index rank, bool fortran_order) {
    if (!fortran_order && job.asked.keeps_places()) return {};
    const Tile held = tile(source_tiles(job), rank);
    const Tile wanted = tile(target_tiles(job), rank);
    const Storage source = fortran_order ? column_major(held) : row_major(held);
    return {permuted(source, job.asked.changes.permute), fortran_order ? column_major(wanted) : row_major(wanted)};
}

// Writes the fill value to the elements of a target tile that have none in the source.
Result<void> pad(const Job& job, Index rank, bool fortran_order, std::span<std::byte> tile) {
    const MoveOptions& changes = job.asked.changes;
    if (!changes.fill) return {};
    Problem ends = job.asked.written;
    RESHARD_ASSIGN(ends.source, permuted(ends.source, changes.permute));
    if (fortran_order) {  // row-major in the dimensions from the last to the first
        std::vector<Index> backwards;
        for (Index dim = std::ssize(ends.source.dims); dim-- > 0;) backwards.push_back(dim);
        RESHARD_ASSIGN(ends.source, permuted(ends.source, backwards));
        RESHARD_ASSIGN(ends.target, permuted(ends.target, backwards));
    }
    return fill_padding(ends.source, ends.target, rank, tile, *changes.fill);
}

// Both are written before either has its name.
Result<void> write_files(Rank& rank, const Job& job, const Opened& opened, Session& mover) {
    const std::string& tiles = job.arguments.tiles;
    const std::string& output = job.arguments.output;
    std::optional<NewFolder> folder;
    std::optional<NewFile> array;
    if (!tiles.empty()) {
        RESHARD_ASSIGN(folder, write_tiles(rank, tiles, {source_tiles(job), opened.style, mover.source()},
                                           {target_tiles(job), style_of_target(job, opened.style), mover.target()}));
    }
    if (!output.empty()) {
        RESHARD_ASSIGN(
            array, write_array(rank, output, target_tiles(job), style_of_target(job, opened.style), mover.target()));
    }
    Result<void> named;
    if (folder) named = folder->commit();
    if (named && array) named = array->commit();
    return agree(rank, named);
}

RunReport report_of(Rank& rank, const Job& job, Session& mover, const ResidentGrowth& growth) {
    RunReport report;
    report.target_bytes = sum(rank, {static_cast<Index>(mover.target().size())}).front();
    report.step_seconds = largest(rank, seconds_of_plan(job.made.plan(), mover.rank_plan(), mover.step_seconds()));
    report.transport = mover.transport();
    report.step_seconds.resize(job.made.plan().steps.size(), -1.0);
    report.memory = memory_taken(rank, growth, mover.accounted());
    return report;
}

Result<RunReport> move_and_verify(Rank& rank, const Job& job) {
    Progress progress(rank.index() == 0);
    RESHARD_CHECK(may_write(rank, job.arguments.output, job.arguments.tiles));
    RESHARD_TRY(const auto& opened, agree(rank, open_values(job)));
    const bool fortran = opened.style.fortran_order;
    const ResidentGrowth growth;
    RESHARD_TRY(auto& mover, Session::make(rank, rank.backend(), job.made, storages_of(job, rank.index(), fortran),
                                           TileMemory::allocated, bytes_of_tiles(job, rank.index())));
    const auto filled = fill(*opened.values, source_tiles(job), rank.index(), fortran, mover->source(), progress);
    RESHARD_CHECK(agree(rank, filled));
    mover->wipe();
    progress.at("moving", 0, 1);
    RESHARD_TRY(const auto& seconds, mover->move(rank));
    RESHARD_CHECK(agree(rank, pad(job, rank.index(), fortran, mover->target())));
    const auto wanted = values_of_target(job, opened);
    RESHARD_TRY(const auto& verified, verify(rank, *wanted, target_tiles(job), fortran, mover->target(), progress));
    RunReport report = report_of(rank, job, *mover, growth);
    report.seconds = seconds;
    report.verified = verified;
    // A wrong array is not written: each output file was verified.
    if (verified.wrong > 0) return report;
    RESHARD_CHECK(write_files(rank, job, opened, *mover));
    return report;
}

Result<int> run_rank(Rank& rank, const Job& job, const Ranks& ranks) {
    RESHARD_TRY(auto& report, move_and_verify(rank, job));
    report.backend = ranks.name();
    report.ranks = rank.size();
    report.one_process = ranks.one_process();
    if (rank.index() == 0) {
        answer(job.arguments.json ? line(run_json(job.asked, job.made, report))
                                  : run_text(job.asked, job.made, report));
    }
    return report.verified.wrong == 0 ? exit_ok : exit_wrong;
}

Result<void> sensible(const Arguments& arguments, const Problem& problem) {
    if (!arguments.tiles.empty() && arguments.question.donate) {
        return fail(Code::usage, "--tiles writes the sources too, and --donate gives their memory away");
    }
    if (!arguments.dtype.empty() && arguments.input.empty()) {
        return fail(Code::usage, "--dtype says what the elements of --input are; there is no --input");
    }
    const Layout& source = problem.source;
    const bool rounds =
        source.reduction == Reduction::avg || (source.reduction == Reduction::prod && is_complex(source.dtype));
    if (!arguments.input.empty() && summand_count(source) > 1 && rounds) {
        return fail(Code::unsupported, fmt::format("--input: {} of {} rounds; it is verified with generated data only",
                                                   name(source.reduction), name(source.dtype)));
    }
    if (summand_count(problem.target) == 1) return {};
    if (!arguments.output.empty()) {
        return fail(Code::usage, "--output: a target with unreduced axes is many summands, not one array");
    }
    if (!arguments.input.empty()) {
        return fail(Code::unsupported, "--input: a target with unreduced axes is verified with generated data only");
    }
    return {};
}

}  // namespace

Result<int> run(const Arguments& arguments) {
    if (!arguments.list.empty()) return run_list(arguments);
    if (asks_for_halos(arguments.question)) return run_halos(arguments);
    RESHARD_TRY(auto& asked, understand(arguments.question));
    RESHARD_CHECK(sensible(arguments, asked.problem));
    remark(asked.note);
    std::optional<DType> raw;
    if (!arguments.dtype.empty()) {
        RESHARD_ASSIGN(raw, in("--dtype", parse_dtype(arguments.dtype)));
    }
    RESHARD_TRY(auto& ranks, make_ranks(arguments.backend, rank_count(asked.problem),
                                        std::chrono::seconds(arguments.timeout), arguments.ranks_per_node));
    asked.options.capabilities = ranks->capabilities();
    RESHARD_TRY(const auto& made, synthesize(asked.problem, asked.options));
    const Job job{arguments, asked, made, raw};
    return ranks->each(arguments.json, [&](Rank& rank) { return run_rank(rank, job, *ranks); });
}

}  // namespace reshard::cli
