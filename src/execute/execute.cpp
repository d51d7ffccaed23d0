#include "reshard/execute.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/apart.hpp"
#include "src/base/try.hpp"
#include "src/execute/bucket_run.hpp"
#include "src/execute/lower_list.hpp"
#include "src/execute/memory_ranges.hpp"

namespace reshard {

namespace {

std::string_view buffer_name(BufferId buffer, bool donate) {
    switch (buffer) {
        case BufferId::source:
            return donate ? "donated source" : "source";
        case BufferId::target:
            return "target";
        case BufferId::workspace:
        case BufferId::staging:
            break;
    }
    return "workspace";
}

// Arrays that run one after another share workspaces. Sources are only read, but donated sources are written. If
// sources are donated, a later bucket may write where they were. All other memory must be apart.
bool may_overlap(const BufferRange& a, const BufferRange& b, bool donate) {
    if (a.buffer == b.buffer) return a.buffer == BufferId::workspace || (a.buffer == BufferId::source && !donate);
    const BufferRange& source = a.buffer == BufferId::source ? a : b;
    const BufferRange& other = a.buffer == BufferId::source ? b : a;
    return donate && source.buffer == BufferId::source && other.bucket > source.bucket;
}

Result<void> require_apart(const std::vector<BufferRange>& ranges, bool donate) {
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        for (std::size_t j = i + 1; j < ranges.size(); ++j) {
            const BufferRange& a = ranges[i];
            const BufferRange& b = ranges[j];
            if (!before(a.begin, b.end) || !before(b.begin, a.end) || may_overlap(a, b, donate)) continue;
            return fail(Code::mismatch,
                        fmt::format("the {} of array {} and the {} of array {} overlap in memory",
                                    buffer_name(a.buffer, donate), a.array, buffer_name(b.buffer, donate), b.array));
        }
    }
    return {};
}

Result<void> add_range(std::vector<BufferRange>& ranges, std::span<const std::byte> bytes, Index needed,
                       BufferRange range) {
    if (static_cast<std::uint64_t>(needed) > bytes.size()) {
        return fail(Code::mismatch, fmt::format("the {} of array {} needs {} bytes, the buffer has {}",
                                                buffer_name(range.buffer, false), range.array, needed, bytes.size()));
    }
    if (bytes.data() == nullptr && !bytes.empty()) {
        return fail(Code::mismatch, fmt::format("the {} of array {} is null but {} bytes long",
                                                buffer_name(range.buffer, false), range.array, bytes.size()));
    }
    // Only what a run may touch counts: a buffer may be larger than the tile in it.
    range.begin = bytes.data();
    range.end = bytes.data() + needed;
    if (needed > 0) ranges.push_back(range);
    return {};
}

// All pieces of an array lie in its buffers and share its workspace, one after another or a half each.
Result<void> check_ranges(BoundBuckets& all, std::span<const RankPlan> plans,
                          std::span<const std::vector<std::size_t>> arrays, bool donate) {
    std::vector<BufferRange>& ranges = all.ranges;
    ranges.clear();
    for (std::size_t b = 0; b < arrays.size(); ++b) {
        for (const std::size_t i : arrays[b]) {
            const RankPlan& plan = plans[i];
            const Buffers& own = all.buffers_of[i];
            RESHARD_CHECK(add_range(ranges, own.source, plan.source_bytes, {{}, {}, BufferId::source, i, b}));
            RESHARD_CHECK(add_range(ranges, own.target, plan.target_bytes, {{}, {}, BufferId::target, i, b}));
            RESHARD_CHECK(add_range(ranges, own.workspace, plan.workspace_bytes, {{}, {}, BufferId::workspace, i, b}));
        }
    }
    return require_apart(ranges, donate);
}

// The steps of `some` arrays, each by its position among the steps of all `bound` arrays.
std::vector<std::size_t> places_of_steps(std::span<const RankPlan> plans, std::span<const std::size_t> bound,
                                         std::span<const std::size_t> some) {
    std::vector<std::size_t> first_step_of(plans.size());
    std::size_t steps = 0;
    for (const std::size_t array : bound)
        first_step_of[array] = std::exchange(steps, steps + plans[array].steps.size());
    std::vector<std::size_t> places;
    for (const std::size_t array : some) {
        for (std::size_t k = 0; k < plans[array].steps.size(); ++k) places.push_back(first_step_of[array] + k);
    }
    return places;
}

// A donated source under both its names. One that is not needed may be given as it likes: a rank may have no tile.
Result<Buffers> name_source(Buffers buffers, const RankPlan& plan, std::size_t array, bool donate) {
    if (!buffers.donated.empty()) {
        buffers.source = buffers.donated;
    } else if (donate && plan.source_bytes > 0) {
        return fail(Code::mismatch,
                    fmt::format("the source of array {} is donated and may be written: it must be given "
                                "as Buffers::donated",
                                array));
    }
    return buffers;
}

bool are_same(const Buffers& some, const Buffers& others) {
    const auto same = [](std::span<const std::byte> a, std::span<const std::byte> b) {
        return a.data() == b.data() && a.size() == b.size();
    };
    return same(some.source, others.source) && same(some.target, others.target) &&
           same(some.workspace, others.workspace) && same(some.donated, others.donated);
}

}  // namespace

Result<Executor> Executor::prepare(const Result<Judged<Plan>>& plan, Backend& backend, const Storages& storages) {
    const auto listed = [](const Judged<Plan>& one) { return judge(std::span(&one, 1), {{0}}, one.limits().memory); };
    return prepare(plan.and_then(listed), backend, std::span(&storages, 1));
}

Result<Executor> Executor::prepare(const Result<Judged<ListPlan>>& judged, Backend& backend,
                                   std::span<const Storages> storages) {
    auto lowered = judged ? lower_list(*judged, backend, storages) : tl::unexpected(judged.error());
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(
        backend.agree(lowered.map([&](const LoweredList&) { return fingerprint(judged->list(), judged->memory()); })));
    Executor executor;
    executor.plans_ = std::move(lowered->arrays);
    executor.backend_ = &backend;
    const MemoryPolicy& memory = judged->memory();
    executor.donate_ = memory.donate;
    for (LoweredBucket& lowered_bucket : lowered->buckets) {
        Bucket bucket{std::move(lowered_bucket.array_of), {}, std::move(lowered_bucket.place_of)};
        const auto room = memory.footprint_bytes_max ? std::optional(lowered_bucket.staging_room) : std::nullopt;
        RESHARD_CHECK(prepare_bucket(bucket, std::move(lowered_bucket.pieces), backend, room));
        executor.arrays_.push_back(std::move(lowered_bucket.arrays));
        executor.buckets_.push_back(std::move(bucket));
    }
    executor.state_ = std::make_shared<RunState>();
    for (const Bucket& bucket : executor.buckets_)
        executor.state_->prepared.insert(executor.state_->prepared.end(), bucket.prepared.begin(),
                                         bucket.prepared.end());
    const bool is_one = executor.plans_.size() == 1 && executor.state_->prepared.size() == 1;
    if (is_one && !memory.donate)
        executor.state_->at_once = {dynamic_cast<AtOnce*>(executor.buckets_.front().prepared.front().get())};
    return executor;
}

// All at once; or pieces that overlap each by itself, so that each starts and ends alone.
Result<void> Executor::prepare_bucket(Bucket& bucket, std::vector<RankPlan> pieces, Backend& backend,
                                      std::optional<Index> staging_room) {
    std::vector<std::vector<RankPlan>> parts;
    if (bucket.place_of.empty()) {
        parts.push_back(std::move(pieces));
    } else {
        for (RankPlan& piece : pieces) parts.push_back({std::move(piece)});
    }
    const auto room = staging_room.value_or(index_max) / std::max<Index>(std::ssize(parts), 1);
    for (std::vector<RankPlan>& part : parts) {
        RESHARD_TRY(auto& prepared,
                    staging_room ? backend.prepare_within(std::move(part), room) : backend.prepare(std::move(part)));
        bucket.prepared.push_back(std::move(prepared));
    }
    return {};
}

std::size_t Executor::piece_count() const {
    std::size_t pieces = 0;
    for (const Bucket& bucket : buckets_) pieces += bucket.array_of.size();
    return pieces;
}

std::size_t Executor::arrival_count() const {
    std::size_t arrivals = 0;
    for (const Bucket& bucket : buckets_) arrivals += bucket.prepared.size();
    return arrivals;
}

Index Executor::workspace_bytes() const {
    Index bytes = 0;
    for (const RankPlan& plan : plans_) bytes = std::max(bytes, plan.workspace_bytes);
    return bytes;
}

Index Executor::staging_bytes() const {
    Index bytes = 0;
    for (const Bucket& bucket : buckets_)
        for (const auto& prepared : bucket.prepared) bytes = saturating_add(bytes, prepared->staging_bytes());
    return bytes;
}

Index Executor::footprint_bytes() const {
    return saturating_add(bytes_of_buffers(plans_, arrays_, donate_), staging_bytes());
}

std::string Executor::describe() const {
    std::vector<std::string> ways;  // each once
    for (const Bucket& bucket : buckets_) {
        for (const auto& prepared : bucket.prepared) {
            std::string way = prepared->describe();
            if (!way.empty() && std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
        }
    }
    std::string text = fmt::format("{}", fmt::join(ways, "; then "));
    if (arrival_count() > buckets_.size())
        text += fmt::format(", in {} pieces, {} at a time", arrival_count(), backend_->on_device() ? "one" : "two");
    return text;
}

Result<std::unique_ptr<Bound>> Executor::bind(std::span<const Buffers> buffers) {
    std::vector<std::size_t> all(plans_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return bind_buckets(0, buckets_.size(), all, buffers);
}

Result<std::unique_ptr<Bound>> Executor::bind(std::size_t bucket, std::span<const Buffers> buffers) {
    if (bucket < buckets_.size()) return bind_buckets(bucket, 1, arrays_[bucket], buffers);
    return fail(Code::mismatch, fmt::format("there is no bucket {}, the list has {}", bucket, buckets_.size()));
}

void Executor::report_failure(const Error& why) {
    if (state_->in_flight || state_->failed) return;
    for (const Bucket& bucket : buckets_) {
        for (const auto& prepared : bucket.prepared) prepared->report_failure(why);
    }
}

void Executor::abandon(const Error& why) {
    if (!state_->failed) state_->fail(why);
}

Result<std::unique_ptr<Bound>> Executor::bind_buckets(std::size_t first, std::size_t count,
                                                      std::span<const std::size_t> arrays,
                                                      std::span<const Buffers> buffers) {
    auto bound = try_bind(first, count, arrays, buffers);
    for (std::size_t b = first; !bound && b < first + count; ++b) {
        for (const auto& prepared : buckets_[b].prepared) prepared->report_failure(named("bind failed", bound.error()));
    }
    return bound;
}

Result<std::unique_ptr<Bound>> Executor::try_bind(std::size_t first, std::size_t count,
                                                  std::span<const std::size_t> arrays,
                                                  std::span<const Buffers> buffers) {
    if (buffers.size() != arrays.size()) {
        return fail(Code::mismatch,
                    fmt::format("{} arrays were given {} sets of buffers", arrays.size(), buffers.size()));
    }
    auto all = state_->spare.take();
    const bool again = all && all->first == first && all->count == count;
    if (!again) all = std::make_unique<BoundBuckets>();
    all->first = first;
    all->count = count;
    all->buffers_of.resize(plans_.size());
    bool same = again && all->still_bound;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        RESHARD_TRY(const Buffers& given, name_source(buffers[i], plans_[arrays[i]], arrays[i], donate_));
        Buffers& last = all->buffers_of[arrays[i]];
        same = same && are_same(given, last);
        last = given;
    }
    if (same) return guarded(std::move(all), state_);
    RESHARD_CHECK(check_ranges(*all, plans_, std::span(arrays_).subspan(first, count), donate_));
    std::size_t at = 0;  // of the bounds
    for (std::size_t b = first; b < first + count; ++b) {
        const Bucket& bucket = buckets_[b];
        const std::size_t pieces = bucket.array_of.size() / bucket.prepared.size();  // of each that is prepared
        for (std::size_t part = 0; part < bucket.prepared.size(); ++part, ++at) {
            const auto array_of = std::span(bucket.array_of).subspan(part * pieces, pieces);
            all->of_pieces.clear();
            for (const std::size_t array : array_of) all->of_pieces.push_back(all->buffers_of[array]);
            if (again) {
                RESHARD_CHECK(all->rebindable[at]->rebind(all->of_pieces));
                continue;
            }
            RESHARD_TRY(auto& bound, bucket.prepared[part]->bind(all->of_pieces));
            all->prepared.push_back(bucket.prepared[part]);
            all->bounds.push_back(std::move(bound));
            all->steps.push_back(places_of_steps(plans_, arrays, array_of));
        }
        if (!bucket.place_of.empty()) all->place_of = bucket.place_of;  // of a list of one plan
    }
    if (!again) all->find_rebindable();
    return guarded(std::move(all), state_);
}

Result<void> Executor::run(ConstElements source, Elements target) {
    const auto fits = [&](std::optional<DType> given, DType RankPlan::*own) -> Result<void> {
        if (!given || plans_.empty() || *given == plans_.front().*own) return {};
        return fail(Code::mismatch, fmt::format("elements of {} were given for an array of {}", name(*given),
                                                name(plans_.front().*own)));
    };
    RESHARD_CHECK(fits(source.dtype, &RankPlan::dtype));
    RESHARD_CHECK(fits(target.dtype, &RankPlan::target_dtype));
    if (workspace_bytes() > 0 && !workspace_) {
        RESHARD_ASSIGN(workspace_, backend_->allocate(workspace_bytes()));
    }
    return run(Buffers{source.bytes, target.bytes, workspace_ ? workspace_->bytes() : std::span<std::byte>()});
}

Result<void> Executor::run(const Buffers& buffers) { return run(buffers, nullptr); }

Result<void> Executor::run_if(const Buffers& buffers, const Agreed& agreed) { return run(buffers, &agreed); }

Result<void> Executor::run(const Buffers& buffers, const Agreed* agreed) {
    if (moves_at_once(buffers, agreed != nullptr)) return state_->move_at_once(buffers, agreed);
    RESHARD_TRY(auto& bound, bind(buffers));
    RESHARD_TRY(auto& ticket, agreed == nullptr ? bound->start() : bound->start_if(*agreed));
    return ticket->wait();
}

// A bind finds the error of buffers that do not fit.
bool Executor::moves_at_once(const Buffers& buffers, bool agrees) const {
    if (!state_->moves_at_once(agrees)) return false;
    const RankPlan& plan = plans_.front();
    if (!buffers.donated.empty() || !fits(buffers.source, plan.source_bytes) ||
        !fits(buffers.target, plan.target_bytes) || !fits(buffers.workspace, plan.workspace_bytes))
        return false;
    const auto source = buffers.source.first(static_cast<std::size_t>(plan.source_bytes));
    const auto target = buffers.target.first(static_cast<std::size_t>(plan.target_bytes));
    if (plan.workspace_bytes == 0) return apart(source, target);
    const auto workspace = buffers.workspace.first(static_cast<std::size_t>(plan.workspace_bytes));
    return apart(source, target) && apart(source, workspace) && apart(target, workspace);
}

}  // namespace reshard
