#include "files/ranks/exchange.hpp"

#include <algorithm>
#include <map>

#include "src/base/try.hpp"

namespace reshard::files {

namespace {

// A part of a tensor as an array of its own, in this rank's tile.
struct PartTile {
    Layout layout;
    Storage storage;               // which begins at its first element
    std::span<std::byte> bytes{};  // which begin there
};

Result<PartTile> part_tile(const RankTensor& tensor, const Part& shared, Index rank) {
    const Box& held = shared.held;
    RESHARD_TRY(auto& layout, layout_of(TensorPart{shared.layout, held}));
    layout.dtype = tensor.layout->dtype;
    const Tile all = tile(*shared.layout, rank);
    const Tile own = tile(layout, rank);
    PartTile part{std::move(layout), row_major(own), {}};
    if (count(own) == 0) return part;
    part.storage = row_major(all);
    Index first = 0;
    for (std::size_t k = 0; k < held.size(); ++k)
        first += intersect(all[k], Side{{{0, held[k].begin}}}).size() * part.storage.strides[k];
    part.bytes = tensor.bytes.subspan(static_cast<std::size_t>(first * size_of(tensor.layout->dtype)));
    return part;
}

// True if the part is one run of bytes in every tile.
bool is_band(const Box& held, const Layout& layout) {
    for (std::size_t k = 1; k < held.size(); ++k)
        if (held[k].size() != layout.dims[k].extent) return false;
    return true;
}

// Two parts of one tensor are not written together if their bytes are interleaved.
std::vector<std::vector<std::size_t>> buckets_of(const Round& round, Exchange::Way way) {
    std::vector<std::vector<std::size_t>> buckets(1);
    std::map<std::size_t, std::size_t> parts_of;  // each tensor's parts that are no bands, so far
    for (std::size_t i = 0; i < round.size(); ++i) {
        const Part& part = round[i].part;
        const bool apart = way == Exchange::Way::to_shares || is_band(part.held, *part.layout);
        const std::size_t bucket = apart ? 0 : parts_of[part.tensor]++;
        if (bucket == buckets.size()) buckets.emplace_back();
        buckets[bucket].push_back(i);
    }
    std::erase_if(buckets, [](const auto& bucket) { return bucket.empty(); });
    return buckets;
}

}  // namespace

Result<void> Exchange::run(const Round& round, Way way, std::span<const RankTensor> tensors,
                           std::span<std::byte> shares, std::span<const Index> offsets) {
    const Index rank = backend_->rank();
    std::vector<Judged<Plan>> plans;
    std::vector<Storages> storages;
    std::vector<Buffers> buffers;
    Options options;
    options.capabilities = backend_->capabilities();
    for (std::size_t i = 0; i < round.size(); ++i) {
        const SharedPart& shared = round[i];
        RESHARD_TRY(const auto& part, part_tile(tensors[shared.part.tensor], shared.part, rank));
        const auto bytes = static_cast<std::size_t>(share_bytes(shared, rank));
        // An empty share has no place. Memory behind the last share belongs to others.
        const std::span<std::byte> share =
            bytes == 0 ? std::span<std::byte>() : shares.subspan(static_cast<std::size_t>(offsets[i]), bytes);
        const bool out = way == Way::to_tiles;
        RESHARD_TRY(const auto& made, out ? plans_.synthesize({shared.share, part.layout}, options)
                                          : plans_.synthesize({part.layout, shared.share}, options));
        plans.push_back(made);
        storages.push_back(out ? Storages{std::nullopt, part.storage} : Storages{part.storage, std::nullopt});
        buffers.push_back(out ? Buffers{share, part.bytes, {}} : Buffers{part.bytes, share, {}});
    }
    RESHARD_TRY(const auto& list, judge(plans, buckets_of(round, way)));
    RESHARD_TRY(auto& executor, Executor::prepare(list, *backend_, storages));
    std::unique_ptr<Memory> workspace;
    if (executor.workspace_bytes() > 0) {
        RESHARD_ASSIGN(workspace, backend_->allocate(executor.workspace_bytes()));
    }
    for (std::size_t bucket = 0; bucket < executor.bucket_count(); ++bucket) {
        std::vector<Buffers> bound;
        for (const std::size_t i : executor.bucket(bucket)) {
            bound.push_back(buffers[i]);
            if (workspace) bound.back().workspace = workspace->bytes();
        }
        RESHARD_TRY(const auto& ready, executor.bind(bucket, bound));
        RESHARD_TRY(const auto& run, ready->start());
        RESHARD_CHECK(run->wait());
    }
    return {};
}

}  // namespace reshard::files
