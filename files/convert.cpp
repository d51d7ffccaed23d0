// A conversion from its question to its files.
#include "reshard/files/convert.hpp"

#include <sys/stat.h>

#include <tuple>

#include <fmt/format.h>

#include "files/engine/run.hpp"
#include "files/engine/unfinished.hpp"
#include "files/formats/json_text.hpp"
#include "files/wanted.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr Index box_bytes = 1024;                 // of a plan
constexpr Index boxes_always = 4096;              // are always listed, before `share` checks the memory
constexpr Index plan_bytes_min = Index{8} << 20;  // of a process of this library

// Sets the element of the padding.
Result<void> pad(Job& job, std::span<const NewTensor> targets) {
    for (std::size_t i = 0; i < targets.size(); ++i)
        if (targets[i].padded)
            job.target.what.tensors[i].fill.assign(static_cast<std::size_t>(size_of(targets[i].dtype)), '\0');
    for (const Move& move : job.moves)
        if (targets[move.target].padded && !job.source.tensors[move.source].fill.empty())
            return fail(Code::unsupported, fmt::format("{} has a fill value, so {} cannot be padded",
                                                       in_quotes(job.source.tensors[move.source].name),
                                                       in_quotes(targets[move.target].name)));
    return {};
}

Result<Job> make_job(const std::string& from, const std::string& file, const ConvertOptions& options) {
    RESHARD_TRY(auto& asked, open_source(from, with_ends(options.rules, options.form), options));
    Job job;
    job.source = std::move(asked.source);
    const Index boxes_max = std::max<Index>((options.memory - plan_bytes_min) / box_bytes, boxes_always);
    RESHARD_ASSIGN(job.target, new_files({asked.wanted.targets, options, file, job.source.rest, boxes_max}));
    job.moves = std::move(asked.wanted.moves);
    RESHARD_CHECK(pad(job, asked.wanted.targets));
    complete(job, options);
    return job;
}

// Returns the memory, without buffers, of a process of this library and of the plan's boxes.
Index plan_bytes(const Job& job) {
    Index boxes = 0;
    for (const StoredTensor& tensor : job.source.tensors) boxes += std::ssize(tensor.boxes) + 1;
    for (const StoredTensor& tensor : job.target.what.tensors) boxes += std::ssize(tensor.boxes) + 1;
    return plan_bytes_min + job.workers * (Index{128} << 10) + box_bytes * boxes;
}

Result<MemoryShares> share(const Job& job, Index memory) {
    const Index plan = plan_bytes(job);
    MemoryShares shares;
    shares.stretch_bytes = std::clamp<Index>((memory - plan) / (8 * job.workers), 1 << 16, 1 << 22) / 4096 * 4096;
    // An eighth is for the lists of reads and of their places.
    shares.batch_bytes = memory - plan - job.workers * (shares.stretch_bytes + 4096);
    shares.batch_bytes -= shares.batch_bytes / 8;
    constexpr Index least = 1 << 20;
    if (shares.batch_bytes >= least) return shares;
    return fail(Code::infeasible, fmt::format("{} bytes of memory are too few: {} tensors in {} files take {} at least",
                                              memory, job.source.tensors.size(), job.source.files.size(),
                                              plan + job.workers * ((1 << 16) + 4096) + 2 * least));
}

// Two runs do the same job if their files are unchanged and their questions are equal.
std::string fingerprint_of(const Job& job, const ConvertOptions& options, std::size_t batches) {
    std::string text = fmt::format("{} {} {} {} {} {}\n{}\n", name(options.form), options.memory, options.granule,
                                   options.file_bytes_max, job.workers, batches, options.rules);
    text += fmt::format("{}; {}\n", fmt::join(options.chunks, ","), fmt::join(options.shards, ","));
    for (const Cast& cast : options.casts) text += fmt::format("{}={}\n", cast.pattern, reshard::name(cast.dtype));
    for (const StoredFile& file : job.source.files) {
        struct stat status {};
        (void)::stat(file.path.c_str(), &status);
        text += fmt::format("{} {} {} {} {}\n", file.path, file.bytes, status.st_ino, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec);
    }
    for (const StoredFile& file : job.target.what.files) text += fmt::format("{} {}\n", file.path, file.bytes);
    Hash hash;
    hash.add(text);
    return fmt::format("{:016x}", hash.value());
}

// Adds up the bytes and granules that batches read and write.
class Account {
public:
    explicit Account(const Job& job) : job_(job), heads_(job.granule) {
        // If no tensor has a file's first byte, the file has a header, and the header was read.
        headed_.assign(job.source.files.size(), true);
        for (const StoredTensor& tensor : job.source.tensors)
            for (const StoredBox& stored : tensor.boxes)
                if (stored.offset == 0) headed_[static_cast<std::size_t>(stored.file)] = false;
        for (std::size_t i = 0; i < headed_.size(); ++i)
            if (headed_[i]) ranges_.emplace_back(static_cast<Index>(i), 0, 1);
        for (const FixedBytes& fixed : job.target.fixed)
            heads_.add(fixed.file, fixed.offset, fixed.offset + std::ssize(fixed.bytes));
        granules_ = heads_.count() + std::ssize(ranges_);
    }

    void add(const Geometry& geometry) {
        granules_ += granules_of(geometry, job_.granule);
        for (const ReadRange& range : geometry.reads) {
            ranges_.emplace_back(range.file, range.begin, range.end);
            read_ += range.end - range.begin;
        }
    }

    void close(Converted& done) {
        std::ranges::sort(ranges_);
        GranuleCount bound(job_.granule);
        Index file = -1;
        Index reached = 0;
        for (const auto& [of, begin, end] : ranges_) {
            bound.add(of, begin, end);
            if (of != file) reached = 0;
            file = of;
            if (begin > 0 || !headed_[static_cast<std::size_t>(of)])
                done.source_bytes += std::max<Index>(end - std::max(begin, reached), 0);
            reached = std::max(reached, end);
        }
        done.granules = granules_;
        done.granules_bound = bound.count();
        done.read_bytes = read_;
        for (const StoredFile& one : job_.target.what.files)
            done.granules_bound += ceil_divide(one.bytes, job_.granule);
    }

private:
    const Job& job_;
    GranuleCount heads_;
    std::vector<bool> headed_;                             // by source file
    std::vector<std::tuple<Index, Index, Index>> ranges_;  // file, begin, end
    Index granules_ = 0;
    Index read_ = 0;
};

Result<void> write_all(const Job& job, const std::vector<Batch>& batches, const MemoryShares& shares,
                       const std::string& fingerprint, const std::string& to, const ConvertOptions& options,
                       Converted& done) {
    const bool single = is_one_file(options.form);
    RESHARD_TRY(auto& unfinished, Unfinished::begin(to, single, fingerprint, job.target, options.resume));
    RESHARD_TRY(auto& reader, SourceReader::make(job, shares.stretch_bytes));
    done.resumed = unfinished.journal().batches();
    // While a batch is written, the disk reads a part of the next one, which the system can keep.
    const Index ahead_bytes = ahead_max + shares.batch_bytes / 8;
    Geometry next = batches.empty() ? Geometry() : make_geometry(job, batches[0]);
    std::unique_ptr<Ahead> ahead = reader.ahead_of(next);
    if (done.resumed == 0) ahead->reach(ahead_max);
    RESHARD_CHECK(unfinished.reserve(job.target));
    RESHARD_TRY(const auto& folder, unfinished.folder());
    RESHARD_TRY(const auto& memory, Pages::allocate(shares.batch_bytes));
    TargetWriter writer(job, folder);
    writer.sums = unfinished.journal().sums();
    Account account(job);
    ConvertProgress progress{0, done.target_bytes};
    for (std::size_t i = 0; i < batches.size(); ++i) {
        Geometry geometry = std::exchange(next, {});
        account.add(geometry);
        progress.written_bytes += geometry.memory_bytes;
        const bool resumed = static_cast<Index>(i) < done.resumed;
        if (!resumed) {
            RESHARD_CHECK(reader.read(geometry, memory.at(), *ahead));
        }
        geometry.overlaps = {};  // the memory has room for the lists of one batch
        if (i + 1 < batches.size()) next = make_geometry(job, batches[i + 1]);
        ahead = reader.ahead_of(next);
        if (resumed) continue;
        std::atomic<Index> asked{ahead_max / 4};
        RESHARD_CHECK(writer.write(geometry, memory.at(), [&](Index bytes) {
            ahead->reach(std::min(asked.fetch_add(bytes) + bytes, ahead_bytes));
        }));
        RESHARD_CHECK(unfinished.journal().add(writer.sums));
        if (options.progress) options.progress(progress);
    }
    account.close(done);
    RESHARD_CHECK(
        unfinished.flush(job.target, manifest_of(job, "reshard convert", fingerprint, writer.sums), job.workers));
    if (options.verify) {
        RESHARD_CHECK(read_again(job, folder, writer.sums, shares.stretch_bytes));
        done.verified = true;
    }
    return unfinished.finish(job.target);
}

}  // namespace

Result<Converted> convert(const std::string& from, const std::string& path, const ConvertOptions& options) {
    RESHARD_CHECK(sensible(options));
    RESHARD_TRY(const auto& into, new_path(path));
    const auto& [to, file] = into;
    RESHARD_TRY(const auto& job, make_job(from, file, options));
    RESHARD_TRY(const auto& shares, share(job, options.memory));
    RESHARD_TRY(const auto& batches, make_batches(job, shares.batch_bytes));
    Converted done;
    done.files = std::ssize(job.target.what.files);
    done.tensors = std::ssize(job.target.what.tensors);
    done.batches = std::ssize(batches);
    for (const StoredFile& one : job.target.what.files) done.target_bytes += one.bytes;
    const std::string fingerprint = fingerprint_of(job, options, batches.size());
    const bool single = is_one_file(options.form);
    RESHARD_TRY(const auto& before, finished_before(to, single, fingerprint, options));
    if (before || options.dry_run) {
        Account account(job);
        for (const Batch& batch : batches) account.add(make_geometry(job, batch));
        account.close(done);
        done.finished_before = before;
        return done;
    }
    RESHARD_CHECK(write_all(job, batches, shares, fingerprint, to, options, done));
    return done;
}

}  // namespace reshard::files
