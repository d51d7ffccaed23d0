#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "files/engine/run.hpp"
#include "files/engine/stored_view.hpp"
#include "files/engine/unfinished.hpp"
#include "files/formats/json_text.hpp"
#include "files/manifest.hpp"
#include "files/ranks/question.hpp"
#include "files/ranks/tiles.hpp"
#include "files/wanted.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/rule_ends.hpp"

namespace reshard::files {

namespace {

// Everything that a rank knows before anything moves. The job's source is the rank's shares, all in one file that is
// memory. Its tensors are parts, in the order of the rounds.
struct Saving {
    Job job;
    std::vector<RankTensor> tensors;
    std::vector<Round> rounds;
    std::vector<std::vector<Index>> offsets;  // of each part's share, by round
    Index share_bytes = 0;                    // of the largest round
    Index batch_bytes = 0;                    // of the largest round in files
    std::vector<Index> round_bytes;           // of all ranks in files, by round
};

Result<std::vector<Part>> parts_of(const Job& job, const Wanted& wanted) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < wanted.moves.size(); ++i) {
        const Move& move = wanted.moves[i];
        RESHARD_TRY(auto& part, make_part(move, wanted.parts[i], false, wanted.sources[move.source].layout->dtype,
                                          job.target.what.tensors[move.target]));
        parts.push_back(std::move(part));
    }
    return parts;
}

// Describes each target in the view of its moves, so that no move has a view. Errors: unsupported.
Result<void> view_targets(Job& job, Wanted& wanted) {
    std::vector<const std::vector<Index>*> views(wanted.targets.size(), nullptr);
    for (const Move& move : wanted.moves) {
        const NewTensor& target = wanted.targets[move.target];
        const std::vector<Index>*& view = views[move.target];
        if (target.padded || (view != nullptr && *view != move.target_view))
            return fail(Code::unsupported,
                        fmt::format("{} is {}; save it as it is, and convert it", in_quotes(target.name),
                                    target.padded ? "padded" : "written in groups of several sizes"));
        view = &move.target_view;
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
        StoredTensor& tensor = job.target.what.tensors[i];
        if (views[i] != nullptr && !views[i]->empty()) tensor = in_view(tensor, *views[i]);
    }
    for (Move& move : wanted.moves) move.target_view.clear();
    return {};
}

Block block_of(const SharedPart& shared, Index rank) {
    return {shared.part.stored, in_file_of(shared.part, as_box(tile(shared.share, rank)))};
}

Result<void> add_rounds(Saving& saving, Index rank) {
    Checkpoint& source = saving.job.source;
    for (const Round& round : saving.rounds) {
        std::vector<Index>& offsets = saving.offsets.emplace_back();
        Index end = 0;
        Index batch = 0;
        Index all = 0;
        for (const SharedPart& shared : round) {
            const Part& part = shared.part;
            all += target_bytes(saving.job, {part.stored, part.in_file});
            StoredTensor tensor = stored_share(shared, rank, 0, end);
            if (!tensor.boxes.empty()) batch += target_bytes(saving.job, block_of(shared, rank));
            const auto dims = match_dims(part.held, part.in_file, part.order);
            if (!dims) return fail(Code::mismatch, "a part differs in shape from what it is in files");
            saving.job.moves.push_back(
                {source.tensors.size(), part.stored, whole_box(shape(shared.share)), part.in_file, *dims});
            source.tensors.push_back(std::move(tensor));
            offsets.push_back(end);
            // Each share is aligned for all element types.
            end += ceil_divide(share_bytes(shared, rank), 16) * 16;
        }
        saving.share_bytes = std::max(saving.share_bytes, end);
        saving.batch_bytes = std::max(saving.batch_bytes, batch);
        saving.round_bytes.push_back(all);
    }
    source.files.push_back({"", saving.share_bytes});
    // A job has its moves by target. Parts of one target keep the order of the rounds.
    std::ranges::stable_sort(saving.job.moves, {}, &Move::target);
    return {};
}

Result<Saving> prepare(const Backend& backend, const std::string& file, std::span<const SavedTile> tiles,
                       const ConvertOptions& options) {
    RESHARD_CHECK(host_only(backend));
    RESHARD_CHECK(sensible(options));
    if (!says_end(options.rules, "source"))
        return fail(Code::usage, "rules must say where the tensors are: a line `source` and a mesh, then layouts");
    if (!options.codec.empty() && options.codec != "none")
        return fail(Code::unsupported, "ranks write zarr without compression; convert it to compress it");
    Saving saving;
    RESHARD_TRY(const auto& list, list_of(tiles));
    RESHARD_TRY(auto& wanted, wanted_of(with_ends(options.rules, options.form), list, options.casts));
    RESHARD_ASSIGN(saving.tensors, tensors_of(tiles, wanted.sources, backend));
    RESHARD_ASSIGN(saving.job.target, new_files({wanted.targets, options, file, {}, {}}));
    RESHARD_CHECK(view_targets(saving.job, wanted));
    for (const StoredTensor& tensor : saving.job.target.what.tensors) saving.job.target_boxes.emplace_back(tensor);
    RESHARD_TRY(auto& parts, parts_of(saving.job, wanted));
    RESHARD_TRY(const auto& room, room_of(options.memory, 0, options, backend));
    const auto weigh = [&](const SharedPart& shared, Index rank) -> Index {
        const Index share = share_bytes(shared, rank);
        return share == 0 ? 0 : share + 16 + target_bytes(saving.job, block_of(shared, rank));
    };
    RESHARD_ASSIGN(saving.rounds, rounds_of(std::move(parts), backend.size(), options.granule, room, weigh));
    RESHARD_CHECK(add_rounds(saving, backend.rank()));
    saving.job.target_boxes.clear();
    complete(saving.job, options);
    saving.job.workers = workers_of(options, backend);
    return saving;
}

// Two runs do the same save if their questions, their ranks and the bytes of their tiles are equal. Only a run that may
// be resumed looks at the bytes.
Result<std::string> fingerprint_of(Company& company, const Saving& saving, Hash hash, const ConvertOptions& options) {
    if (options.resume) {
        Hash own;
        own.add(fmt::format("{} {} {}\n", saving.rounds.size(), saving.share_bytes, saving.job.workers));
        for (const RankTensor& tensor : saving.tensors)
            own.add(fmt::format("{:08x} {}\n", crc32c_raw(tensor.bytes), tensor.bytes.size()));
        RESHARD_TRY(const auto& numbers, company.numbers(own.value()));
        for (const std::uint64_t number : numbers) add_text(hash, fmt::format("{:016x}", number));
    }
    return fmt::format("{:016x}", hash.value());
}

// The beginning of a save. Rank 0 makes the files and gives them their names.
struct Begun {
    std::optional<Unfinished> unfinished;  // on rank 0
    bool finished_before = false;
    Index resumed = 0;  // rounds
};

Result<Begun> begin_here(const Saving& saving, const std::string& to, const std::string& fingerprint,
                         const ConvertOptions& options) {
    Begun begun;
    const bool single = is_one_file(options.form);
    if (options.resume) {
        RESHARD_ASSIGN(begun.finished_before, finished_before(to, single, fingerprint, options));
    } else {
        RESHARD_CHECK(may_name(to, single));
    }
    if (begun.finished_before) return begun;
    RESHARD_TRY(auto& unfinished, Unfinished::begin(to, single, fingerprint, saving.job.target, options.resume));
    RESHARD_CHECK(unfinished.reserve(saving.job.target));
    begun.resumed = unfinished.journal().batches();
    begun.unfinished.emplace(std::move(unfinished));
    return begun;
}

// Collective. The other ranks learn what rank 0 has found.
Result<Begun> begin(Company& company, const Saving& saving, const std::string& to, const std::string& fingerprint,
                    const ConvertOptions& options) {
    const bool first = company.backend().rank() == 0;
    RESHARD_TRY(auto& begun,
                company.all_have(first ? begin_here(saving, to, fingerprint, options) : Result<Begun>(Begun{})));
    RESHARD_TRY(const auto& resumed, company.numbers(static_cast<std::uint64_t>(begun.resumed)));
    RESHARD_TRY(const auto& finished, company.numbers(begun.finished_before ? 1 : 0));
    begun.resumed = static_cast<Index>(resumed[0]);
    begun.finished_before = finished[0] != 0;
    return std::move(begun);
}

// Moves each round to the ranks that write it, and writes it.
class SaveRounds {
public:
    SaveRounds(Company& company, const Saving& saving, const OpenFolder& folder)
        : company_(company),
          saving_(saving),
          folder_(folder),
          writer_(saving.job, folder),
          exchange_(company.backend()) {}

    // `done`: called on all ranks after each round that was written. Errors: as done.
    Result<void> run(Index resumed, const std::function<Result<void>(std::size_t round)>& done) {
        RESHARD_TRY(const auto& shares,
                    company_.all_have(company_.backend().allocate(std::max<Index>(saving_.share_bytes, 1))));
        RESHARD_TRY(const auto& batch, company_.all_have(Pages::allocate(saving_.batch_bytes)));
        for (std::size_t i = 0; i < saving_.rounds.size(); ++i) {
            const Round& round = saving_.rounds[i];
            RESHARD_CHECK(
                exchange_.run(round, Exchange::Way::to_shares, saving_.tensors, shares->bytes(), saving_.offsets[i]));
            const Geometry geometry = place(round, shares->bytes().data(), batch.at());
            if (static_cast<Index>(i) < resumed) {
                writer_.add_sums(geometry, batch.at());
                continue;
            }
            written_ += geometry.memory_bytes;
            RESHARD_CHECK(company_.all_well(writer_.write(geometry, batch.at())));
            RESHARD_CHECK(done(i));
        }
        return company_.all_well(sync());
    }

    // Brings everything that this rank has written to the disk.
    Result<void> sync() const {
        const std::vector<Index> numbers(files_.begin(), files_.end());
        return sync_files(folder_, saving_.job.target, numbers, saving_.job.workers);
    }

    [[nodiscard]] Index written_bytes() const { return written_; }
    [[nodiscard]] std::span<const std::uint32_t> sums() const { return writer_.sums; }

private:
    Geometry place(const Round& round, const std::byte* shares, std::byte* memory) {
        Batch batch;
        const Index rank = company_.backend().rank();
        for (const SharedPart& shared : round)
            if (share_bytes(shared, rank) > 0) batch.push_back(block_of(shared, rank));
        Geometry geometry = make_geometry(saving_.job, batch);
        place_from_memory(saving_.job, geometry, shares, memory);
        for (const WriteRange& range : geometry.writes) files_.insert(range.file);
        for (const WriteRuns& runs : geometry.runs) files_.insert(runs.file);
        return geometry;
    }

    Company& company_;
    const Saving& saving_;
    OpenFolder folder_;
    TargetWriter writer_;
    Exchange exchange_;
    std::set<Index> files_;  // that this rank has written
    Index written_ = 0;
};

// Follows the rounds that all ranks have written: the journal gets a line for each, and rank 0 reports progress.
class Recorder {
public:
    Recorder(Company& company, const Saving& saving, Begun& begun, const ConvertOptions& options)
        : company_(company), begun_(begun), options_(options), bytes_(saving.round_bytes) {
        for (const Index bytes : bytes_) progress_.target_bytes += bytes;
        for (Index i = 0; i < begun.resumed; ++i) progress_.written_bytes += bytes_[static_cast<std::size_t>(i)];
    }

    Result<void> round(std::size_t number, const SaveRounds& rounds) {
        if (options_.resume) RESHARD_CHECK(record(rounds));
        progress_.written_bytes += bytes_[number];
        if (begun_.unfinished && options_.progress) options_.progress(progress_);
        return {};
    }

private:
    // A line of the journal promises that later runs can read the round. Another machine
    // may be lost with its data, unless they are on the disk.
    Result<void> record(const SaveRounds& rounds) {
        const Backend& backend = company_.backend();
        const bool one_machine = backend.capabilities().ranks_per_node >= backend.size();
        if (!one_machine) RESHARD_CHECK(company_.all_well(rounds.sync()));
        if (!begun_.unfinished) return company_.all_well({});
        Journal& journal = begun_.unfinished->journal();
        return company_.all_well(journal.add(std::vector(journal.sums())));
    }

    Company& company_;
    Begun& begun_;
    const ConvertOptions& options_;
    const std::vector<Index>& bytes_;  // of each round
    ConvertProgress progress_;
};

// Brings everything to the disk, reads it again if `options` ask for it, and gives the target its name.
Result<void> finish(Company& company, Saving& saving, Begun& begun, const OpenFolder& folder,
                    std::span<const std::uint32_t> own_sums, const std::string& fingerprint,
                    const ConvertOptions& options) {
    const NewFiles& target = saving.job.target;
    RESHARD_TRY(const auto& sums, company.combined(own_sums));
    const auto flushed = [&]() -> Result<void> {
        if (!begun.unfinished) return {};
        const std::string manifest = manifest_of(saving.job, "reshard save", fingerprint, sums);
        return begun.unfinished->flush(target, manifest, saving.job.workers);
    };
    RESHARD_CHECK(company.all_well(flushed()));
    if (options.verify) {
        const SummedFiles files{target.what.files, open_in(folder, OpenFolder::Way::read), target.summed};
        RESHARD_CHECK(read_again(company, files, sums, options));
    }
    return company.all_well(begun.unfinished ? begun.unfinished->finish(target) : Result<void>());
}

}  // namespace

Result<Saved> save(Backend& backend, const std::string& path, std::span<const SavedTile> tiles,
                   const ConvertOptions& options) {
    Company company(backend);
    RESHARD_TRY(const auto& into, company.all_have(new_path(path)));
    const auto& [to, file] = into;
    RESHARD_TRY(auto& saving, company.all_have(prepare(backend, file, tiles, options)));
    const Hash question = hash_of(options, text_of(tiles) + file);
    Hash asked = question;
    add_manner(asked, options);
    RESHARD_CHECK(company.agree(asked.value(), "options, or names, types and shapes of tensors,"));
    RESHARD_TRY(const auto& fingerprint, fingerprint_of(company, saving, question, options));
    RESHARD_TRY(auto& begun, begin(company, saving, to, fingerprint, options));
    Saved saved;
    for (const StoredFile& one : saving.job.target.what.files) saved.target_bytes += one.bytes;
    saved.files = std::ssize(saving.job.target.what.files);
    saved.rounds = std::ssize(saving.rounds);
    saved.finished_before = begun.finished_before;
    if (begun.finished_before) return saved;
    RESHARD_TRY(const auto& folder,
                company.all_have(begun.unfinished ? begun.unfinished->folder() : Unfinished::folder_of(to)));
    SaveRounds rounds(company, saving, folder);
    Recorder recorder(company, saving, begun, options);
    RESHARD_CHECK(rounds.run(begun.resumed, [&](std::size_t number) { return recorder.round(number, rounds); }));
    RESHARD_CHECK(finish(company, saving, begun, folder, rounds.sums(), fingerprint, options));
    saved.written_bytes = rounds.written_bytes();
    saved.resumed = begun.resumed;
    saved.verified = options.verify;
    return saved;
}

}  // namespace reshard::files
