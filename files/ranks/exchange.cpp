#include "files/ranks/exchange.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/try.hpp"

namespace reshard::files {

namespace {

// True if the array is one run of bytes in every tile.
bool is_band(const PartEnd& end) {
    if (!end.part) return true;
    const TensorPart& part = *end.part;
    if (!part.order.empty()) return false;
    for (std::size_t k = 1; k < part.box->size(); ++k)
        if ((*part.box)[k].size() != part.layout->dims[k].extent) return false;
    return true;
}

// Two parts of one tensor are not written together if their bytes are interleaved.
std::vector<std::vector<std::size_t>> buckets_of(std::span<const ArrayMove> moves) {
    std::vector<std::vector<std::size_t>> buckets(1);
    std::map<std::size_t, std::size_t> parts_of;  // each tensor's parts that are no bands, so far
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const RankArray& target = moves[i].target;
        const std::size_t bucket = target.band ? 0 : parts_of[*target.tensor]++;
        if (bucket == buckets.size()) buckets.emplace_back();
        buckets[bucket].push_back(i);
    }
    std::erase_if(buckets, [](const auto& bucket) { return bucket.empty(); });
    return buckets;
}

}  // namespace

RankArray array_of(const RankTensor& tensor, std::size_t number, const PartEnd& end, Index rank) {
    RankArray array{end.array, {}, {}, is_band(end), number};
    array.layout.dtype = tensor.layout->dtype;
    const Tile held = tile(end.array, rank);
    array.storage = count(held) == 0 ? row_major(held) : end.storage_on(held, rank);
    const Index first = std::exchange(array.storage.offset, 0) * size_of(array.layout.dtype);
    array.bytes = tensor.bytes.subspan(static_cast<std::size_t>(first));
    return array;
}

Result<void> Exchange::run(const Round& round, Way way, std::span<const RankTensor> tensors,
                           std::span<std::byte> shares, std::span<const Index> offsets) {
    const Index rank = backend_->rank();
    std::vector<ArrayMove> moves;
    for (std::size_t i = 0; i < round.size(); ++i) {
        const SharedPart& shared = round[i];
        const Part& part = shared.part;
        RESHARD_TRY(const auto& end, end_of({part.layout, part.held}));
        RankArray held = array_of(tensors[part.tensor], part.tensor, end, rank);
        const auto bytes = static_cast<std::size_t>(share_bytes(shared, rank));
        RankArray share{shared.share, row_major(tile(shared.share, rank)), {}, true, std::nullopt};
        // An empty share has no place. Memory behind the last share belongs to others.
        if (bytes > 0) share.bytes = shares.subspan(static_cast<std::size_t>(offsets[i]), bytes);
        if (way == Way::to_tiles)
            moves.push_back({std::move(share), std::move(held)});
        else
            moves.push_back({std::move(held), std::move(share)});
    }
    return run(moves);
}

Result<void> Exchange::run(std::span<const ArrayMove> moves) {
    std::vector<Judged<Plan>> plans;
    std::vector<Storages> storages;
    Options options;
    options.capabilities = backend_->capabilities();
    for (const auto& [source, target] : moves) {
        options.cast = source.layout.dtype != target.layout.dtype;
        RESHARD_TRY(const auto& made, plans_.synthesize({source.layout, target.layout}, options));
        plans.push_back(made);
        storages.push_back({source.storage, target.storage});
    }
    RESHARD_TRY(const auto& list, judge(plans, buckets_of(moves)));
    RESHARD_TRY(auto& executor, Executor::prepare(list, *backend_, storages));
    std::unique_ptr<Memory> workspace;
    if (executor.workspace_bytes() > 0) {
        RESHARD_ASSIGN(workspace, backend_->allocate(executor.workspace_bytes()));
    }
    for (std::size_t bucket = 0; bucket < executor.bucket_count(); ++bucket) {
        std::vector<Buffers> bound;
        for (const std::size_t i : executor.bucket(bucket)) {
            bound.push_back({moves[i].source.bytes, moves[i].target.bytes, {}});
            if (workspace) bound.back().workspace = workspace->bytes();
        }
        RESHARD_TRY(const auto& ready, executor.bind(bucket, bound));
        RESHARD_TRY(const auto& run, ready->start());
        RESHARD_CHECK(run->wait());
    }
    return {};
}

}  // namespace reshard::files
