// A conversion from its question to its files.
#include "reshard/files/convert.hpp"

#include <sys/stat.h>

#include <tuple>

#include <fmt/format.h>

#include "files/engine/checksums.hpp"
#include "files/engine/run.hpp"
#include "files/engine/unfinished.hpp"
#include "files/formats/json_text.hpp"
#include "files/manifest.hpp"
#include "files/passes.hpp"
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
    RESHARD_ASSIGN(job.target,
                   new_files({asked.wanted.targets, options, file, job.source.rest, job.source.codecs, boxes_max}));
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

// Divides the memory. Codecs need much of it for each worker, so fewer workers may have to do.
Result<MemoryShares> share(Job& job, Index memory) {
    MemoryShares shares;
    Index worker = 0;  // bytes
    while (true) {
        const Index room = memory - plan_bytes(job);
        shares.stretch_bytes = std::clamp<Index>(room / (8 * job.workers), 1 << 16, 1 << 22) / 4096 * 4096;
        RESHARD_TRY(const auto& reading, reading_bytes(job.source, shares.stretch_bytes));
        RESHARD_TRY(const auto& encoding, encoding_bytes(job.target));
        worker = saturating_add(reading, encoding);
        if (job.workers == 1 || saturating_multiply(job.workers, worker) <= room / 2) break;
        --job.workers;
    }
    const Index fixed = saturating_add(plan_bytes(job), saturating_multiply(job.workers, worker));
    // An eighth is for the lists of reads and of their places.
    shares.batch_bytes = memory - std::min(fixed, memory);
    shares.batch_bytes -= shares.batch_bytes / 8;
    constexpr Index least = 1 << 20;
    if (shares.batch_bytes >= least) return shares;
    const bool raw = job.source.piece_bytes == 0 && !job.target.compressed();
    const Index needed = raw ? plan_bytes(job) + job.workers * ((1 << 16) + 4096) : fixed;
    return fail(Code::infeasible,
                fmt::format("{} bytes of memory are too few: {} tensors in {} files take {} at least", memory,
                            job.source.tensors.size(), job.source.files.size(), saturating_add(needed, 2 * least)));
}

// Two runs do the same job if their files are unchanged and their questions are equal.
std::string fingerprint_of(const Job& job, const ConvertOptions& options, std::size_t batches) {
    std::string text = fmt::format("{} {} {} {} {} {}\n{}\n", name(options.form), options.memory, options.granule,
                                   options.file_bytes_max, job.workers, batches, options.rules);
    text += fmt::format("{}; {}\n", fmt::join(options.chunks, ","), fmt::join(options.shards, ","));
    text += fmt::format("{}\n", job.target.what.codecs);
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

Index bytes_of(const NewFiles& files) {
    Index bytes = 0;
    for (const StoredFile& one : files.what.files) bytes += one.bytes;
    return bytes;
}

// How a run ends.
struct Finish {
    bool durable = true;              // brings the files to the disk
    std::function<void()> read = {};  // called when the sources have been read; may be empty
};

Result<void> write_all(Job& job, const std::vector<Batch>& batches, const MemoryShares& shares,
                       const std::string& fingerprint, const std::string& to, const ConvertOptions& options,
                       const Finish& finish, Converted& done) {
    const bool single = is_one_file(options.form);
    RESHARD_TRY(auto& unfinished, Unfinished::begin(to, single, fingerprint, job.target, options.resume));
    RESHARD_TRY(auto& made, SourceReader::make(job, shares.stretch_bytes));
    std::optional<SourceReader> reader(std::move(made));
    done.resumed = unfinished.journal().batches();
    // While a batch is written, the disk reads a part of the next one, which the system can keep.
    const Index ahead_bytes = ahead_max + shares.batch_bytes / 8;
    Geometry next = batches.empty() ? Geometry() : make_geometry(job, batches[0]);
    std::unique_ptr<Ahead> ahead = reader->ahead_of(next);
    if (done.resumed == 0) ahead->reach(ahead_max);
    RESHARD_CHECK(unfinished.reserve(job.target));
    RESHARD_TRY(const auto& folder, unfinished.folder());
    RESHARD_TRY(const auto& memory, Pages::allocate(shares.batch_bytes));
    TargetWriter writer(job, folder, !finish.durable);
    writer.sums = unfinished.journal().sums();
    Account account(job);
    ConvertProgress progress{0, done.target_bytes};
    for (std::size_t i = 0; i < batches.size(); ++i) {
        Geometry geometry = std::exchange(next, {});
        account.add(geometry);
        progress.written_bytes += geometry.memory_bytes;
        const bool resumed = static_cast<Index>(i) < done.resumed;
        if (!resumed) {
            RESHARD_CHECK(reader->read(geometry, memory.at(), *ahead));
        }
        geometry.overlaps = {};  // the memory has room for the lists of one batch
        if (i + 1 < batches.size()) next = make_geometry(job, batches[i + 1]);
        ahead = reader->ahead_of(next);
        if (resumed) continue;
        std::atomic<Index> asked{ahead_max / 4};
        RESHARD_CHECK(writer.write(geometry, memory.at(), [&](Index bytes) {
            ahead->reach(std::min(asked.fetch_add(bytes) + bytes, ahead_bytes));
        }));
        RESHARD_CHECK(unfinished.journal().add(writer.sums));
        if (options.progress) options.progress(progress);
    }
    account.close(done);
    ahead.reset();
    reader.reset();  // closes the sources
    if (finish.read) finish.read();
    std::vector<std::uint32_t> sums = writer.sums;
    if (job.target.compressed()) {
        RESHARD_ASSIGN(sums, seal(job.target, folder, writer.sums, job.workers));
        done.target_bytes = bytes_of(job.target);
    }
    RESHARD_CHECK(unfinished.flush(job.target, manifest_of(job, "reshard convert", fingerprint, sums), job.workers,
                                   finish.durable));
    if (options.verify) {
        const NewFiles& target = job.target;
        const SummedFiles files{target.what.files, open_in(folder, OpenFolder::Way::read), target.summed};
        RESHARD_TRY(const auto& found, read_sums(files, {}, job.workers, shares.stretch_bytes));
        RESHARD_CHECK(compare_sums(files, sums, found));
        done.verified = true;
    }
    return unfinished.finish(job.target);
}

// A conversion in one pass.
struct Once {
    const std::string& from;
    const NewPath& into;
    const ConvertOptions& options;
    Job job;
    MemoryShares shares;
    std::vector<Batch> batches;
    Converted done;
};

Result<Once> plan_once(const std::string& from, const NewPath& into, const ConvertOptions& options) {
    RESHARD_TRY(auto& job, make_job(from, into.name, options));
    RESHARD_TRY(const auto& shares, share(job, options.memory));
    Once once{from, into, options, std::move(job), shares, {}, {}};
    once.done.files = std::ssize(once.job.target.what.files);
    once.done.tensors = std::ssize(once.job.target.what.tensors);
    once.done.target_bytes = bytes_of(once.job.target);
    return once;
}

// The numbers of a conversion that is not run.
Converted counted(const Once& once) {
    Converted done = once.done;
    Account account(once.job);
    for (const Batch& batch : once.batches) account.add(make_geometry(once.job, batch));
    account.close(done);
    return done;
}

Result<Converted> run_once(Once& once, const Finish& finish) {
    once.done.batches = std::ssize(once.batches);
    const std::string fingerprint = fingerprint_of(once.job, once.options, once.batches.size());
    const bool single = is_one_file(once.options.form);
    RESHARD_ASSIGN(once.done.finished_before, finished_before(once.into.path, single, fingerprint, once.options));
    if (once.done.finished_before || once.options.dry_run) return counted(once);
    RESHARD_CHECK(
        write_all(once.job, once.batches, once.shares, fingerprint, once.into.path, once.options, finish, once.done));
    return once.done;
}

// True if one pass would read or write so much more than both files have that two passes are better.
bool is_wasteful(const Converted& done) {
    constexpr double twice = 2.5;
    constexpr Index granules_few = 64;
    const bool reads = static_cast<double>(done.read_bytes) > twice * static_cast<double>(done.source_bytes);
    const bool moves = done.granules > granules_few &&
                       static_cast<double>(done.granules) > twice * static_cast<double>(done.granules_bound);
    return reads || moves;
}

Result<void> fits(const Once& once) {
    const Index bytes = target_bytes(once.job, once.batches.front().front());
    if (bytes <= once.shares.batch_bytes) return {};
    return fail(Code::infeasible, fmt::format("a block of a pass has {} bytes, and the memory has room for {}", bytes,
                                              once.shares.batch_bytes));
}

// The first pass writes an array in the scratch folder. `direct` is the plan of one pass.
Result<Converted> run_twice(const Once& direct, const Passes& passes) {
    RESHARD_TRY(auto& scratch, ScratchFolder::make(direct.options.scratch));
    const std::string name = direct.job.source.tensors[0].name + ".zarr";  // the array keeps its name
    const NewPath between{scratch.path() + "/" + name, name};
    ConvertOptions options = direct.options;
    options.form = Form::zarr;
    options.chunks = passes.chunks;
    options.shards.clear();
    options.codec = "none";
    options.casts.clear();
    options.verify = options.resume = false;
    RESHARD_TRY(auto& first, plan_once(direct.from, between, options));
    first.batches = grid_batches(first.job, passes.first);
    RESHARD_CHECK(fits(first));
    RESHARD_TRY(Converted done, run_once(first, {.durable = false}));
    // The codec of the source is kept, although the array between has none.
    ConvertOptions last = direct.options;
    if (last.codec.empty() && (last.form == Form::zarr || last.form == Form::zarr2))
        last.codec = direct.job.target.what.codecs.empty() ? "none" : direct.job.target.what.codecs;
    RESHARD_TRY(auto& second, plan_once(between.path, direct.into, last));
    // The array between the passes is removed before the target is brought to the disk. So the system need not write
    // it.
    second.batches = grid_batches(second.job, passes.second);
    RESHARD_CHECK(fits(second));
    RESHARD_TRY(Converted end, run_once(second, {.read = [&] { scratch.remove(); }}));
    end.source_bytes = done.source_bytes;
    end.read_bytes += done.read_bytes;
    end.batches += done.batches;
    end.granules += done.granules;
    end.granules_bound = counted(direct).granules_bound;
    end.passes = 2;
    return end;
}

}  // namespace

Result<Converted> convert(const std::string& from, const std::string& path, const ConvertOptions& options) {
    RESHARD_CHECK(sensible(options));
    if (!options.codec.empty() && options.form != Form::zarr && options.form != Form::zarr2)
        return fail(Code::usage, fmt::format("{} files are not compressed; a codec is for zarr", name(options.form)));
    RESHARD_TRY(const auto& into, new_path(path));
    RESHARD_TRY(auto& once, plan_once(from, into, options));
    RESHARD_ASSIGN(once.batches, make_batches(once.job, once.shares.batch_bytes));
    if (!options.scratch.empty() && options.rules.empty() && once.batches.size() > 1 && is_wasteful(counted(once))) {
        // The array between is one more end, and its boxes take memory, too.
        const auto passes = two_passes(once.job, once.shares.batch_bytes / 8 * 7);
        if (passes && !options.dry_run) {
            RESHARD_CHECK(may_name(into.path, is_one_file(options.form)));
            return run_twice(once, *passes);
        }
        once.done.passes = passes ? 2 : 1;
    }
    return run_once(once, {});
}

}  // namespace reshard::files
