// Ranks of this process, and moves in one call.
#include "bindings/c/answer.hpp"

namespace reshard::c {
namespace {

Result<void> move_all(reshard_local* world, const reshard_layout* source, const reshard_layout* target,
                      const reshard_move_options* options, const void* const* in, const int64_t* in_bytes,
                      void* const* out, const int64_t* out_bytes) {
    RESHARD_TRY(auto* const ranks, need(world));
    RESHARD_TRY(const auto* const before, need(source));
    RESHARD_TRY(const auto* const after, need(target));
    RESHARD_TRY(const auto& changes, changes_of(options, after->layout));
    if (in == nullptr || in_bytes == nullptr || out == nullptr || out_bytes == nullptr) {
        return fail(Code::usage, "an array with an entry for each rank is needed, NULL was given");
    }
    std::vector<ConstElements> from;
    std::vector<Elements> to;
    for (Index rank = 0; rank < ranks->world.size(); ++rank) {
        RESHARD_TRY(const auto read, need_bytes(in[rank], in_bytes[rank], "in"));
        RESHARD_TRY(const auto written, need_bytes(out[rank], out_bytes[rank], "out"));
        from.emplace_back(read);
        to.emplace_back(written);
    }
    return local::redistribute(ranks->world, before->layout, after->layout, from, to, changes);
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_local_make(int64_t ranks, const reshard_local_options* options, reshard_local** world,
                       reshard_error** error) {
    return make(world, error, [&]() -> Result<std::unique_ptr<reshard_local>> {
        RESHARD_CHECK(need_count(ranks, 1, "ranks"));
        if (ranks > local::ranks_max)
            return fail(Code::usage, "ranks is " + std::to_string(ranks) + "; at most " +
                                         std::to_string(local::ranks_max) + " are made in one process");
        RESHARD_TRY(const auto& asked, structure<reshard_local_options>(options, RESHARD_LOCAL_OPTIONS_INITIALIZER,
                                                                        "reshard_local_options"));
        RESHARD_CHECK(need_count(asked.timeout_ms, 0, "timeout_ms"));
        return std::make_unique<reshard_local>(ranks,
                                               local::Options{.timeout = std::chrono::milliseconds(asked.timeout_ms)});
    });
}

int reshard_local_backend(reshard_local* world, int64_t rank, reshard_backend** backend, reshard_error** error) {
    return make(backend, world, error, [&](auto& ranks) -> Result<std::unique_ptr<reshard_backend>> {
        RESHARD_CHECK(need_count(rank, 0, "rank"));
        if (rank >= ranks.world.size()) {
            return fail(Code::usage, "there is no rank " + std::to_string(rank) + " in a world of " +
                                         std::to_string(ranks.world.size()));
        }
        return std::make_unique<reshard_backend>(&ranks, ranks.world.rank(rank));
    });
}

int reshard_local_redistribute(reshard_local* world, const reshard_layout* source, const reshard_layout* target,
                               const void* const* in, const int64_t* in_bytes, void* const* out,
                               const int64_t* out_bytes, reshard_error** error) {
    return reshard_local_redistribute_with(world, source, target, nullptr, in, in_bytes, out, out_bytes, error);
}

int reshard_local_redistribute_with(reshard_local* world, const reshard_layout* source, const reshard_layout* target,
                                    const reshard_move_options* options, const void* const* in, const int64_t* in_bytes,
                                    void* const* out, const int64_t* out_bytes, reshard_error** error) {
    return answer(error, [&] { return move_all(world, source, target, options, in, in_bytes, out, out_bytes); });
}

const char* reshard_backend_name(const reshard_backend* backend) {
    return backend == nullptr ? nullptr : backend->backend.name().data();  // a literal
}

int64_t reshard_backend_rank(const reshard_backend* backend) {
    return backend == nullptr ? -1 : backend->backend.rank();
}

int64_t reshard_backend_size(const reshard_backend* backend) {
    return backend == nullptr ? -1 : backend->backend.size();
}

int reshard_redistribute(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                         const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error) {
    return reshard_redistribute_with(backend, source, target, nullptr, in, in_bytes, out, out_bytes, error);
}

int reshard_redistribute_with(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                              const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                              int64_t out_bytes, reshard_error** error) {
    return answer(backend, error, [&](auto& rank) {
        return move_tiles(rank.backend, source, target, options, in, in_bytes, out, out_bytes);
    });
}

int reshard_redistribute_start(reshard_backend* backend, const reshard_layout* source, const reshard_layout* target,
                               const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_ticket** ticket,
                               reshard_error** error) {
    return reshard_redistribute_start_with(backend, source, target, nullptr, in, in_bytes, out, out_bytes, ticket,
                                           error);
}

int reshard_redistribute_start_with(reshard_backend* backend, const reshard_layout* source,
                                    const reshard_layout* target, const reshard_move_options* options, const void* in,
                                    int64_t in_bytes, void* out, int64_t out_bytes, reshard_ticket** ticket,
                                    reshard_error** error) {
    return make_together(ticket, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_ticket>> {
        RESHARD_TRY(auto* const rank, need(backend));
        RESHARD_TRY(const auto& tiles,
                    need_tiles(rank->backend, placed, source, target, options, in, in_bytes, out, out_bytes));
        auto& kept = Redistributor::of(rank->backend);
        return ticket_of(*rank, kept.start(*tiles.source, *tiles.target, tiles.in, tiles.out, tiles.options));
    });
}

int reshard_redistribute_clear(reshard_backend* backend, reshard_error** error) {
    return answer(backend, error, [&](auto& rank) { clear(rank.backend); });
}

int reshard_memory_allocate(reshard_backend* backend, int64_t bytes, reshard_memory** memory, reshard_error** error) {
    return make(memory, backend, error, [&](auto& rank) -> Result<std::unique_ptr<reshard_memory>> {
        RESHARD_CHECK(need_count(bytes, 0, "bytes"));
        RESHARD_TRY(auto& made, rank.backend.allocate(bytes));
        return std::make_unique<reshard_memory>(&rank, std::move(made));
    });
}

void* reshard_memory_address(const reshard_memory* memory) {
    return memory == nullptr ? nullptr : memory->memory->bytes().data();
}

int64_t reshard_memory_bytes(const reshard_memory* memory) {
    return memory == nullptr ? -1 : std::ssize(memory->memory->bytes());
}

int reshard_memory_register(reshard_backend* backend, void* address, int64_t bytes, int on_fork,
                            reshard_registration** registration, reshard_error** error) {
    return make(registration, backend, error, [&](auto& rank) -> Result<std::unique_ptr<reshard_registration>> {
        RESHARD_TRY(const auto& memory, need_bytes(address, bytes, "address"));
        if (on_fork < RESHARD_FORK_SHARES || on_fork > RESHARD_FORK_WITHHOLDS)
            return fail(Code::usage, "`on_fork` is " + std::to_string(on_fork) + ", it is 0 or 1");
        RESHARD_TRY(auto& made, rank.backend.register_memory(memory, static_cast<OnFork>(on_fork)));
        return std::make_unique<reshard_registration>(&rank, std::move(made));
    });
}

int reshard_registration_end(reshard_registration* registration, reshard_error** error) {
    return answer(registration, error, [&](auto& mine) { return mine.held.end(); });
}

}  // extern "C"
