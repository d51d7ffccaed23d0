// moves.py compares Python with this: the same moves called from C++, in the same process, on memory from `allocate`.
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"

namespace {

using namespace reshard;

template <class T>
T require(Result<T> result) {
    if (!result) {
        std::fprintf(stderr, "%s\n", describe(result.error()).c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

struct Peer {
    std::unique_ptr<Backend> backend;
    Layout source;
    Layout target;
    std::unique_ptr<Memory> in;
    std::unique_ptr<Memory> out;
    std::unique_ptr<Executor> executor;  // of a transposed target, which redistribute does not take
};

std::unique_ptr<Memory> tile_on(Backend& backend, const Layout& layout) {
    const auto count = static_cast<Index>(tile_count(layout, backend.rank()));
    return require(backend.allocate(count * size_of(layout.dtype)));
}

}  // namespace

extern "C" {

void* peer_make(const MPI_Comm* communicator, const char* mesh, const char* source, const char* target,
                int transposed) {
    auto* const peer = new Peer;
    peer->backend = require(mpi::make_backend(*communicator));
    peer->source = require(parse_layout(require(parse_mesh(mesh)), source));
    peer->target = require(parse_layout(require(parse_mesh(mesh)), target));
    peer->in = tile_on(*peer->backend, peer->source);
    peer->out = tile_on(*peer->backend, peer->target);
    if (transposed != 0) {
        const auto made =
            require(synthesize(peer->source, peer->target, {.capabilities = peer->backend->capabilities()}));
        const Storage lying = column_major(tile(peer->target, peer->backend->rank()));
        peer->executor =
            std::make_unique<Executor>(require(Executor::prepare(made, *peer->backend, Storages{std::nullopt, lying})));
    }
    return peer;
}

void* peer_memory(void* peer, int target) {
    return (target != 0 ? static_cast<Peer*>(peer)->out : static_cast<Peer*>(peer)->in)->bytes().data();
}

/// Seconds of so many moves.
double peer_run(void* handle, int times) {
    Peer& peer = *static_cast<Peer*>(handle);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
        const auto in = peer.in->bytes();
        const auto out = peer.out->bytes();
        require(peer.executor ? peer.executor->run(in, out)
                              : redistribute(*peer.backend, peer.source, peer.target, in, out));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void peer_drop(void* peer) { delete static_cast<Peer*>(peer); }

}  // extern "C"
