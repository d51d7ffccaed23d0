#include <filesystem>

#include <fmt/format.h>

#include "files/engine/run.hpp"
#include "files/manifest.hpp"
#include "files/ranks/question.hpp"
#include "files/ranks/tiles.hpp"
#include "files/wanted.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

// Everything that a rank knows before it reads.
struct Loading {
    Job job;  // its target is the rank's shares, a file for each round
    std::vector<NewTensor> targets;
    std::vector<Round> rounds;
    std::vector<std::vector<Index>> offsets;  // of each part's share, by round
    Index share_bytes = 0;                    // of the largest round
};

Result<std::vector<Part>> parts_of(const Checkpoint& source, const Wanted& wanted) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < wanted.moves.size(); ++i) {
        const Move& move = wanted.moves[i];
        RESHARD_TRY(auto& part, make_part(move, wanted.parts[i], true, wanted.targets[move.target].dtype,
                                          source.tensors[move.source]));
        parts.push_back(std::move(part));
    }
    return parts;
}

// Adds a target file for each round. The rank's shares follow each other in it, larger elements first.
void add_rounds(Loading& loading, Index rank) {
    NewFiles& target = loading.job.target;
    for (Round& round : loading.rounds) {
        std::ranges::stable_sort(round, std::greater(),
                                 [](const SharedPart& shared) { return size_of(shared.part.dtype); });
        const auto file = static_cast<Index>(target.what.files.size());
        std::vector<Index>& offsets = loading.offsets.emplace_back();
        Index end = 0;
        for (const SharedPart& shared : round) {
            const Part& part = shared.part;
            loading.job.moves.push_back({part.stored, target.what.tensors.size(), part.in_file,
                                         whole_box(shape(shared.share)), part.file_dims, part.file_view});
            target.what.tensors.push_back(stored_share(shared, rank, file, end));
            offsets.push_back(end);
            end += share_bytes(shared, rank);
        }
        target.what.files.push_back({"", end});
        loading.share_bytes = std::max(loading.share_bytes, end);
    }
}

Result<Loading> prepare(const Backend& backend, const std::string& path, const ConvertOptions& options, Hash& hash) {
    RESHARD_CHECK(host_only(backend));
    RESHARD_CHECK(sensible(options));
    Loading loading;
    RESHARD_TRY(auto& asked,
                open_source(path, with_ends(options.rules, fmt::format("ranks={}", backend.size())), options));
    for (const StoredFile& file : asked.source.files)
        add_text(hash, fmt::format("{} {}", std::filesystem::path(file.path).filename().string(), file.bytes));
    Wanted& wanted = asked.wanted;
    loading.job.source = std::move(asked.source);
    RESHARD_CHECK(place_targets(wanted.targets, backend));
    RESHARD_TRY(auto& parts, parts_of(loading.job.source, wanted));
    RESHARD_TRY(const auto& worker, reading_bytes(loading.job.source, stretch_bytes_of(options.memory)));
    RESHARD_TRY(const auto& room, room_of(options.memory, worker, options, backend));
    RESHARD_ASSIGN(loading.rounds, rounds_of(std::move(parts), backend.size(), options.granule, room, &share_bytes));
    add_rounds(loading, backend.rank());
    complete(loading.job, options);
    loading.job.workers = workers_of(options, backend);
    loading.job.granule = 1;  // other ranks read the bytes between
    loading.targets = std::move(wanted.targets);
    return loading;
}

// The blocks of a round that this rank reads.
Batch blocks_of(const Job& job, std::size_t first, std::size_t count_of_parts) {
    Batch batch;
    for (std::size_t i = first; i < first + count_of_parts; ++i)
        for (const StoredBox& own : job.target.what.tensors[i].boxes) batch.push_back({i, own.box});
    return batch;
}

// Compares all files with the checksums of their reshard.json.
Result<void> check_source(Company& company, const std::string& path, const ConvertOptions& options) {
    RESHARD_TRY(const auto& listed, company.all_have(listed_sums(path)));
    return read_again(company, {listed.files, &File::open_to_read, listed.summed}, listed.sums, options);
}

}  // namespace

Result<Loaded> load(Backend& backend, const std::string& path, const ConvertOptions& options) {
    Company company(backend);
    Hash hash = hash_of(options, "");
    add_manner(hash, options);
    RESHARD_TRY(const auto& loading, company.all_have(prepare(backend, path, options, hash)));
    RESHARD_CHECK(company.agree(hash.value(), "options, or the files that are seen,"));
    if (options.verify) RESHARD_CHECK(check_source(company, path, options));
    RESHARD_TRY(auto& loaded, company.all_have(allocated(backend, loading.targets)));
    loaded.verified = options.verify;
    std::vector<RankTensor> tensors;
    for (const LoadedTile& tile : loaded.tiles) tensors.push_back({tile.layout, tile.bytes});
    RESHARD_TRY(const auto& shares, company.all_have(backend.allocate(std::max<Index>(loading.share_bytes, 1))));
    RESHARD_TRY(auto& reader, company.all_have(SourceReader::make(loading.job, stretch_bytes_of(options.memory))));
    Exchange exchange(backend);
    std::size_t first = 0;
    for (std::size_t i = 0; i < loading.rounds.size(); ++i) {
        const Round& round = loading.rounds[i];
        const Geometry geometry = make_geometry(loading.job, blocks_of(loading.job, first, round.size()));
        first += round.size();
        RESHARD_CHECK(company.all_well(reader.read(geometry, shares->bytes().data())));
        for (const ReadRange& range : geometry.reads) loaded.read_bytes += range.end - range.begin;
        RESHARD_CHECK(exchange.run(round, Exchange::Way::to_tiles, tensors, shares->bytes(), loading.offsets[i]));
    }
    loaded.rounds = std::ssize(loading.rounds);
    return std::move(loaded);
}

}  // namespace reshard::files
