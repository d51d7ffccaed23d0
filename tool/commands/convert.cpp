// `reshard convert`: files in one sharding become files in another.
#include "tool/commands/convert.hpp"

#include <chrono>

#include <fmt/format.h>

#include "report/numbers.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

Result<Index> bytes_or(const char* option, const std::string& text, Index otherwise) {
    if (text.empty()) return otherwise;
    return in(option, parse_bytes(text));
}

std::string sentence(const files::Converted& done, bool dry_run) {
    const auto ratio =
        done.granules_bound > 0 ? static_cast<double>(done.granules) / static_cast<double>(done.granules_bound) : 1.0;
    std::string text = fmt::format(
        "{}, {} in {}   read {} of {}, {}   granules {} / bound {} = {:.2f}\n", plural(done.tensors, "tensor"),
        format_bytes(done.target_bytes), plural(done.files, "file"), format_bytes(done.read_bytes),
        format_bytes(done.source_bytes), done.batches == 1 ? "1 batch" : fmt::format("{} batches", done.batches),
        done.granules, done.granules_bound, ratio);
    if (done.passes == 2)
        text += dry_run ? "two passes through the scratch folder would read and write each byte twice\n"
                        : "two passes through the scratch folder: each byte was read and written twice\n";
    if (dry_run) text += "nothing was written\n";
    if (done.finished_before) text += "an earlier run had made it\n";
    if (done.resumed > 0) text += fmt::format("batches done before: {}\n", done.resumed);
    if (done.verified) text += "all was read again: the checksums are right\n";
    return text;
}

Json as_json(const files::Converted& done) {
    return {{"schema", 1},
            {"tensors", done.tensors},
            {"files", done.files},
            {"source_bytes", done.source_bytes},
            {"target_bytes", done.target_bytes},
            {"read_bytes", done.read_bytes},
            {"batches", done.batches},
            {"granules", done.granules},
            {"granules_bound", done.granules_bound},
            {"passes", done.passes},
            {"resumed_batches", done.resumed},
            {"finished_before", done.finished_before},
            {"verified", done.verified}};
}

}  // namespace

Result<files::ConvertOptions> file_options(const Arguments& arguments) {
    files::ConvertOptions options;
    if (!arguments.form.empty()) {
        RESHARD_ASSIGN(options.form, in("--to", files::parse_form(arguments.form)));
    } else {
        options.form = files::form_of_path(arguments.into);
    }
    options.chunks = arguments.chunks;
    options.shards = arguments.shards;
    options.codec = arguments.codec;
    options.scratch = arguments.scratch;
    if (!arguments.rules.empty()) {
        RESHARD_ASSIGN(options.rules, in("--rules", read_text(arguments.rules)));
    }
    if (!arguments.list.empty()) {
        RESHARD_TRY(const auto& text, read_list_text(arguments.list));
        RESHARD_ASSIGN(options.list, in("--list", parse_tensors(text)));
    }
    for (const std::string& text : arguments.casts) {
        RESHARD_TRY(auto& cast, in("--cast", files::parse_cast(text)));
        options.casts.push_back(std::move(cast));
    }
    RESHARD_ASSIGN(options.memory, bytes_or("--memory", arguments.memory, options.memory));
    RESHARD_ASSIGN(options.granule, bytes_or("--granule", arguments.granule, options.granule));
    RESHARD_ASSIGN(options.file_bytes_max, bytes_or("--file-bytes", arguments.file_bytes, options.file_bytes_max));
    options.jobs = arguments.jobs;
    options.verify = arguments.verify;
    options.resume = arguments.resume;
    options.dry_run = arguments.dry_run;
    return options;
}

std::string plural(Index count, const char* one) { return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s"); }

Result<int> convert(const Arguments& arguments) {
    RESHARD_TRY(auto& options, file_options(arguments));
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    Progress progress(!arguments.json);
    options.progress = [&](const files::ConvertProgress& now) {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        const double rate = static_cast<double>(now.written_bytes) / std::max(seconds, 1e-9);
        const double left = static_cast<double>(now.target_bytes - now.written_bytes) / std::max(rate, 1.0);
        progress.at(fmt::format("{} of {}, {}, {} left,", format_bytes(now.written_bytes),
                                format_bytes(now.target_bytes), format_rate(rate), format_seconds(left)),
                    now.written_bytes, now.target_bytes);
    };
    RESHARD_TRY(const auto& done, files::convert(arguments.from, arguments.into, options));
    return answer(arguments.json ? line(as_json(done)) : sentence(done, arguments.dry_run));
}

}  // namespace reshard::cli
