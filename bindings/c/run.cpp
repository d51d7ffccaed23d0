// Executors, their bound buffers, and runs in flight.
#include <algorithm>

#include "bindings/c/answer.hpp"

namespace reshard::c {
namespace {

Result<Storages> storages_of(const Plan& plan, const reshard_storage* source, const reshard_storage* target) {
    Storages both;
    RESHARD_ASSIGN(both.source, storage_of(source, plan.source.dims.size()));
    RESHARD_ASSIGN(both.target, storage_of(target, plan.target.dims.size()));
    return both;
}

Result<Storages> storages_of(const reshard_plan* plan, const reshard_storage* source, const reshard_storage* target) {
    RESHARD_TRY(const auto* const given, need(plan));
    return storages_of(given->made.plan(), source, target);
}

Result<std::vector<Storages>> storages_of(const reshard_list* list, const reshard_storage* sources,
                                          const reshard_storage* targets) {
    RESHARD_TRY(const auto* const given, need(list));
    std::vector<Storages> storages;
    for (const Plan& plan : given->made.list().plans) {
        RESHARD_TRY(auto& one, storages_of(plan, sources, targets));
        storages.push_back(std::move(one));
        if (sources != nullptr) ++sources;
        if (targets != nullptr) ++targets;
    }
    return storages;
}

// An executor of the storages, and more, that `asked` reads. `prepare` gets them.
template <class Asked, class Prepare>
int make_executor(reshard_executor** place, reshard_backend* backend, reshard_error** error, const Asked& asked,
                  const Prepare& prepare) noexcept {
    return make_together(place, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_executor>> {
        RESHARD_TRY(auto* const rank, need(backend));
        RESHARD_TRY(const auto& arguments, or_tell(rank->backend, placed.and_then(asked)));
        RESHARD_TRY(auto& made, prepare(rank->backend, arguments));
        return std::make_unique<reshard_executor>(rank, std::move(made));
    });
}

reshard_sizes sizes_of(const Executor& executor) {
    reshard_sizes sizes = RESHARD_SIZES_INITIALIZER;
    sizes.arrays = std::ssize(executor.plans());
    sizes.buckets = static_cast<int64_t>(executor.bucket_count());
    for (const RankPlan& plan : executor.plans()) {
        sizes.source_bytes = saturating_add(sizes.source_bytes, plan.source_bytes);
        sizes.target_bytes = saturating_add(sizes.target_bytes, plan.target_bytes);
    }
    sizes.workspace_bytes = executor.workspace_bytes();
    sizes.staging_bytes = executor.staging_bytes();
    sizes.footprint_bytes = executor.footprint_bytes();
    return sizes;
}

Result<Buffers> buffers_of(const reshard_buffers& given, std::span<std::byte> workspace) {
    Buffers buffers;
    if (given.donated != nullptr) {
        RESHARD_ASSIGN(buffers.donated, need_bytes(given.donated, given.source_bytes, "donated"));
    } else {
        RESHARD_ASSIGN(buffers.source, need_bytes(given.source, given.source_bytes, "source"));
    }
    RESHARD_ASSIGN(buffers.target, need_bytes(given.target, given.target_bytes, "target"));
    buffers.workspace = workspace;
    if (given.workspace != nullptr) {
        RESHARD_ASSIGN(buffers.workspace, need_bytes(given.workspace, given.workspace_bytes, "workspace"));
    }
    return buffers;
}

// The workspace is shared by the arrays of a list, so one is enough for all that bring none.
Result<std::unique_ptr<reshard_bound>> bound_to(reshard_executor* ready, std::optional<int64_t> bucket,
                                                const reshard_buffers* given, int64_t count) {
    RESHARD_TRY(const std::size_t arrays, need_count(count, 0, "count"));
    if (given == nullptr && arrays > 0) return fail(Code::usage, "struct reshard_buffers is needed, NULL was given");
    const auto buckets = static_cast<int64_t>(ready->executor.bucket_count());
    if (bucket && (*bucket < 0 || *bucket >= buckets)) {
        return fail(Code::usage, "there is no bucket " + std::to_string(*bucket) + " of " + std::to_string(buckets));
    }
    for (std::size_t i = 0; i < arrays; ++i)
        RESHARD_CHECK(known_size<reshard_buffers>(given[i].size, "reshard_buffers"));
    auto made = std::make_unique<reshard_bound>(ready);
    const Index needed = ready->executor.workspace_bytes();
    const bool brought = std::all_of(given, given + arrays, [](const auto& one) { return one.workspace != nullptr; });
    if (needed > 0 && !brought) {
        RESHARD_ASSIGN(made->workspace, ready->backend->backend.allocate(needed));
    }
    std::vector<Buffers> buffers;
    for (std::size_t i = 0; i < arrays; ++i) {
        RESHARD_TRY(const auto& one,
                    buffers_of(given[i], made->workspace ? made->workspace->bytes() : std::span<std::byte>()));
        buffers.push_back(one);
    }
    RESHARD_ASSIGN(made->bound, bucket ? ready->executor.bind(static_cast<std::size_t>(*bucket), buffers)
                                       : ready->executor.bind(buffers));
    return made;
}

int make_bound(reshard_executor* executor, std::optional<int64_t> bucket, const reshard_buffers* buffers, int64_t count,
               reshard_bound** bound, reshard_error** error) noexcept {
    return make_together(bound, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_bound>> {
        RESHARD_TRY(auto* const ready, need(executor));
        return or_excuse(ready->executor, placed.and_then([&] { return bound_to(ready, bucket, buffers, count); }));
    });
}

// The tiles of a run of one array.
Result<std::pair<std::span<const std::byte>, std::span<std::byte>>> tiles_of(const Executor& executor,
                                                                             const void* source, int64_t source_bytes,
                                                                             void* target, int64_t target_bytes) {
    RESHARD_TRY(const auto read, need_bytes(source, source_bytes, "source"));
    RESHARD_TRY(const auto written, need_bytes(target, target_bytes, "target"));
    if (executor.plans().size() == 1) return std::pair(read, written);
    return fail(Code::usage, "this executor is of a list: bind its buffers and start them");
}

Result<void> report(int* place, const Result<bool>& done) {
    RESHARD_CHECK(done);
    *place = *done ? 1 : 0;
    return {};
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_executor_make(reshard_backend* backend, const reshard_plan* plan, const reshard_storage* source,
                          const reshard_storage* target, reshard_executor** executor, reshard_error** error) {
    return make_executor(
        executor, backend, error, [&] { return storages_of(plan, source, target); },
        [&](Backend& rank, const Storages& storages) { return Executor::prepare(plan->made, rank, storages); });
}

int reshard_executor_make_list(reshard_backend* backend, const reshard_list* list, const reshard_storage* sources,
                               const reshard_storage* targets, reshard_executor** executor, reshard_error** error) {
    return make_executor(
        executor, backend, error, [&] { return storages_of(list, sources, targets); },
        [&](Backend& rank, const auto& storages) { return Executor::prepare(list->made, rank, storages); });
}

int reshard_executor_make_as(reshard_backend* backend, const reshard_plan* plan, const char* execution,
                             const reshard_storage* source, const reshard_storage* target, reshard_executor** executor,
                             reshard_error** error) {
    const auto asked = [&]() -> Result<std::pair<Storages, Execution>> {
        RESHARD_TRY(const auto& storages, storages_of(plan, source, target));
        if (execution == nullptr) return fail(Code::usage, "the text of an execution is needed, NULL was given");
        RESHARD_TRY(const auto& as, parse_execution(execution));
        return std::pair(storages, as);
    };
    return make_executor(executor, backend, error, asked, [&](Backend& rank, const auto& given) {
        const Judged<Plan>& judged = plan->made;
        return Executor::prepare(judge(judged.plan(), given.second, {.memory = judged.limits().memory}), rank,
                                 given.first);
    });
}

int64_t reshard_executor_arrivals(const reshard_executor* executor) {
    const auto ready = need(executor);
    return ready ? static_cast<int64_t>((*ready)->executor.arrival_count()) : -1;
}

int reshard_executor_sizes(const reshard_executor* executor, reshard_sizes* sizes, reshard_error** error) {
    return answer(executor, error, [&](auto& ready) { return fill(sizes, sizes_of(ready.executor), "reshard_sizes"); });
}

int reshard_executor_describe(const reshard_executor* executor, reshard_text** text, reshard_error** error) {
    return make(text, executor, error, [&](auto& ready) { return ready.executor.describe(); });
}

int reshard_executor_run(reshard_executor* executor, const void* source, int64_t source_bytes, void* target,
                         int64_t target_bytes, reshard_error** error) {
    return answer(executor, error, [&](auto& ready) -> Result<void> {
        Executor& given = ready.executor;
        RESHARD_TRY(const auto& tiles, or_excuse(given, tiles_of(given, source, source_bytes, target, target_bytes)));
        return given.run(tiles.first, tiles.second);
    });
}

int reshard_executor_bind(reshard_executor* executor, const reshard_buffers* buffers, int64_t count,
                          reshard_bound** bound, reshard_error** error) {
    return make_bound(executor, std::nullopt, buffers, count, bound, error);
}

int reshard_executor_bind_bucket(reshard_executor* executor, int64_t bucket, const reshard_buffers* buffers,
                                 int64_t count, reshard_bound** bound, reshard_error** error) {
    return make_bound(executor, bucket, buffers, count, bound, error);
}

int reshard_bound_start(reshard_bound* bound, reshard_ticket** ticket, reshard_error** error) {
    return make(ticket, bound, error, [&](auto& given) { return ticket_of(given, given.bound->start()); });
}

int reshard_bound_start_withheld(reshard_bound* bound, reshard_ticket** ticket, reshard_error** error) {
    return make(ticket, bound, error,
                [&](auto& given) { return ticket_of(given, given.bound->start({.offers_withheld = true})); });
}

int reshard_bound_start_on(reshard_bound* bound, void* queue, reshard_ticket** ticket, reshard_error** error) {
    return make(ticket, bound, error, [&](auto& given) { return ticket_of(given, given.bound->start_on(queue)); });
}

int reshard_ticket_test(reshard_ticket* ticket, int* done, reshard_error** error) {
    return answer(ticket, error, [&](auto& run) -> Result<void> {
        if (done == nullptr) return fail(Code::usage, "there is no place for `done`: NULL");
        return report(done, run.ticket->test());
    });
}

int reshard_ticket_wait(reshard_ticket* ticket, reshard_error** error) {
    return answer(ticket, error, [&](auto& run) { return run.ticket->wait(); });
}

int reshard_ticket_wait_for(reshard_ticket* ticket, int64_t microseconds, int* done, reshard_error** error) {
    return answer(ticket, error, [&](auto& run) -> Result<void> {
        RESHARD_CHECK(need_count(microseconds, 0, "microseconds"));
        if (done == nullptr) return fail(Code::usage, "there is no place for `done`: NULL");
        return report(done, run.ticket->wait_for(microseconds));
    });
}

int reshard_ticket_arrived(reshard_ticket* ticket, int64_t* pieces, reshard_error** error) {
    return answer(ticket, error, [&](auto& run) -> Result<void> {
        if (pieces == nullptr) return fail(Code::usage, "there is no place for `pieces`: NULL");
        RESHARD_TRY(const std::size_t arrived, run.ticket->arrived());
        *pieces = static_cast<int64_t>(arrived);
        return {};
    });
}

int reshard_ticket_offer(reshard_ticket* ticket, int64_t piece, reshard_error** error) {
    return answer(ticket, error, [&](auto& run) -> Result<void> {
        RESHARD_TRY(const std::size_t number, need_count(piece, 0, "piece"));
        return run.ticket->offer(number);
    });
}

}  // extern "C"
