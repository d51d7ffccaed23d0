#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "files/engine/run.hpp"
#include "files/engine/stored_view.hpp"
#include "files/engine/unfinished.hpp"
#include "files/formats/json_text.hpp"
#include "files/ranks/question.hpp"
#include "files/wanted.hpp"
#include "reshard/files/load.hpp"
#include "src/base/try.hpp"

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
};

Result<std::vector<ListedTensor>> list_of(std::span<const SavedTile> tiles) {
    std::set<std::string_view> names;
    std::vector<ListedTensor> list;
    for (const SavedTile& tile : tiles) {
        if (!names.insert(tile.name).second)
            return fail(Code::mismatch, fmt::format("{} is there twice", in_quotes(tile.name)));
        list.push_back({tile.name, tile.dtype, tile.shape});
    }
    return list;
}

Result<std::vector<RankTensor>> tensors_of(std::span<const SavedTile> tiles, const Wanted& wanted,
                                           const Backend& backend) {
    std::vector<RankTensor> tensors;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        const auto& layout = wanted.sources[i].layout;
        RESHARD_CHECK(enough_ranks(backend, *layout));
        const std::size_t bytes =
            tile_count(*layout, backend.rank()) * static_cast<std::size_t>(size_of(layout->dtype));
        if (bytes != tiles[i].bytes.size())
            return fail(Code::mismatch, fmt::format("the tile of {} has {} bytes by the rules, and {} are given",
                                                    in_quotes(tiles[i].name), bytes, tiles[i].bytes.size()));
        // The bytes are only read, because the exchange goes from tiles to shares.
        auto* const first = const_cast<std::byte*>(tiles[i].bytes.data());
        tensors.push_back({layout, {first, bytes}});
    }
    return tensors;
}

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
        for (const SharedPart& shared : round) {
            const Part& part = shared.part;
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
    RESHARD_ASSIGN(saving.tensors, tensors_of(tiles, wanted, backend));
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

// One rank makes the files and gives them their names.
Result<std::optional<Unfinished>> begun(const Backend& backend, const Saving& saving, const std::string& to,
                                        const std::string& fingerprint, const ConvertOptions& options) {
    std::optional<Unfinished> made;
    if (backend.rank() != 0) return made;
    const bool single = is_one_file(options.form);
    RESHARD_CHECK(may_name(to, single));
    RESHARD_TRY(auto& unfinished, Unfinished::begin(to, single, fingerprint, saving.job.target, false));
    RESHARD_CHECK(unfinished.reserve(saving.job.target));
    made.emplace(std::move(unfinished));
    return made;
}

// Moves each round to the ranks that write it, and writes it.
class Rounds {
public:
    Rounds(Company& company, const Saving& saving, const OpenFolder& folder)
        : company_(company),
          saving_(saving),
          folder_(folder),
          writer_(saving.job, folder),
          exchange_(company.backend()) {}

    Result<void> run() {
        RESHARD_TRY(const auto& shares,
                    company_.all_have(company_.backend().allocate(std::max<Index>(saving_.share_bytes, 1))));
        RESHARD_TRY(const auto& batch, company_.all_have(Pages::allocate(saving_.batch_bytes)));
        for (std::size_t i = 0; i < saving_.rounds.size(); ++i) {
            const Round& round = saving_.rounds[i];
            RESHARD_CHECK(
                exchange_.run(round, Exchange::Way::to_shares, saving_.tensors, shares->bytes(), saving_.offsets[i]));
            RESHARD_CHECK(company_.all_well(write(round, shares->bytes().data(), batch.at())));
        }
        return company_.all_well(sync());
    }

    [[nodiscard]] Index written_bytes() const { return written_; }
    [[nodiscard]] std::span<const std::uint32_t> sums() const { return writer_.sums; }

private:
    Result<void> write(const Round& round, const std::byte* shares, std::byte* memory) {
        Batch batch;
        const Index rank = company_.backend().rank();
        for (const SharedPart& shared : round)
            if (share_bytes(shared, rank) > 0) batch.push_back(block_of(shared, rank));
        const Geometry geometry = make_geometry(saving_.job, batch);
        place_from_memory(saving_.job, geometry, shares, memory);
        for (const WriteRange& range : geometry.writes) files_.insert(range.file);
        for (const WriteRuns& runs : geometry.runs) files_.insert(runs.file);
        written_ += geometry.memory_bytes;
        return writer_.write(geometry, memory);
    }

    Result<void> sync() const {
        const std::vector<Index> numbers(files_.begin(), files_.end());
        return sync_files(folder_, saving_.job.target, numbers, saving_.job.workers);
    }

    Company& company_;
    const Saving& saving_;
    OpenFolder folder_;
    TargetWriter writer_;
    Exchange exchange_;
    std::set<Index> files_;  // that this rank has written
    Index written_ = 0;
};

}  // namespace

Result<Saved> save(Backend& backend, const std::string& path, std::span<const SavedTile> tiles,
                   const ConvertOptions& options) {
    Company company(backend);
    RESHARD_TRY(const auto& into, company.all_have(new_path(path)));
    const auto& [to, file] = into;
    RESHARD_TRY(const auto& saving, company.all_have(prepare(backend, file, tiles, options)));
    std::string list;
    for (const SavedTile& tile : tiles)
        list += fmt::format("{} {}[{}]\n", tile.name, name(tile.dtype), fmt::join(tile.shape, ","));
    const std::uint64_t number = hash_of(options, list + file).value();
    RESHARD_CHECK(company.agree(number, "options, or names, types and shapes of tensors,"));
    const std::string fingerprint = fmt::format("{:016x}", number);
    RESHARD_TRY(auto& unfinished, company.all_have(begun(backend, saving, to, fingerprint, options)));
    RESHARD_TRY(const auto& folder, company.all_have(unfinished ? unfinished->folder() : Unfinished::folder_of(to)));
    Rounds rounds(company, saving, folder);
    RESHARD_CHECK(rounds.run());
    RESHARD_TRY(const auto& sums, company.combined(rounds.sums()));
    const auto finished = [&]() -> Result<void> {
        if (!unfinished) return {};
        const std::string manifest = manifest_of(saving.job, "reshard save", fingerprint, sums);
        RESHARD_CHECK(unfinished->flush(saving.job.target, manifest, saving.job.workers));
        return unfinished->finish(saving.job.target);
    };
    RESHARD_CHECK(company.all_well(finished()));
    Saved saved;
    for (const StoredFile& one : saving.job.target.what.files) saved.target_bytes += one.bytes;
    saved.files = std::ssize(saving.job.target.what.files);
    saved.written_bytes = rounds.written_bytes();
    saved.rounds = std::ssize(saving.rounds);
    return saved;
}

}  // namespace reshard::files
