// Redistribute keeps a backend as an attribute of the caller's communicator, and its executors with the backend.
#include "reshard/redistribute.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/mpi/base/handles.hpp"
#include "reshard/backends/mpi.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// One for the process, until MPI_Finalize. Lists the communicators that have a backend, in the order of creation.
struct Attributes {
    std::mutex mutex;
    int backend = MPI_KEYVAL_INVALID;  // keys
    int end = MPI_KEYVAL_INVALID;
    std::vector<MPI_Comm> communicators;
    std::atomic<std::uint64_t> dropped = 0;  // so many backends have gone
};

using Kept = std::shared_ptr<Backend>;  // the attribute of a communicator

// The backend that a thread used last. MPI finds an attribute, and says whether it runs, in about 0.1 us. It drops all
// attributes before it ends or gives a handle to another communicator, so the entry is right as long as none is
// dropped.
struct Last {
    MPI_Comm communicator = MPI_COMM_NULL;
    Kept* kept = nullptr;
    std::uint64_t dropped = 0;
};

Attributes& attributes() {
    static auto* const only = new Attributes;  // never freed: MPI_Finalize may come after static objects have gone
    return *only;
}

// Internal: a program may have this library twice, once inside the C library, and each copy drops its own backends.
extern "C" {

// The communicator goes, or clear was called.
static int reshard_mpi_drop_backend(MPI_Comm communicator, int, void* backend, void*) {
    {
        const std::lock_guard lock(attributes().mutex);
        std::erase(attributes().communicators, communicator);
        attributes().dropped.fetch_add(1, std::memory_order_acq_rel);
    }
    const std::unique_ptr<Kept> kept(static_cast<Kept*>(backend));
    if (kept->use_count() > 1) clear(**kept);  // drops its executors now, even if the caller holds the backend
    return MPI_SUCCESS;
}

// MPI_Finalize frees the attributes of MPI_COMM_SELF first, while all of MPI still works. Last made, first dropped:
// an order that the ranks of all communicators have in common.
static int reshard_mpi_drop_all(MPI_Comm, int, void*, void*) {
    for (;;) {
        std::unique_lock lock(attributes().mutex);
        if (attributes().communicators.empty()) break;
        const MPI_Comm last = attributes().communicators.back();
        lock.unlock();
        MPI_Comm_delete_attr(last, attributes().backend);
    }
    MPI_Comm_free_keyval(&attributes().backend);
    MPI_Comm_free_keyval(&attributes().end);
    return MPI_SUCCESS;
}

}  // extern "C"

// Makes our first attribute of MPI_COMM_SELF, which is therefore dropped last.
Result<void> make_keys() {
    const std::lock_guard lock(attributes().mutex);
    if (attributes().end != MPI_KEYVAL_INVALID) return {};
    const int made =
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, reshard_mpi_drop_backend, &attributes().backend, nullptr);
    RESHARD_CHECK(checked(made, "MPI_Comm_create_keyval"));
    const int ended = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, reshard_mpi_drop_all, &attributes().end, nullptr);
    RESHARD_CHECK(checked(ended, "MPI_Comm_create_keyval"));
    return checked(MPI_Comm_set_attr(MPI_COMM_SELF, attributes().end, nullptr), "MPI_Comm_set_attr");
}

// The attribute of a communicator, null if it has none.
Result<Kept*> found_on(MPI_Comm communicator) {
    if (!usable()) return fail(Code::backend, "MPI is not running: call MPI_Init first, and not after MPI_Finalize");
    if (communicator == MPI_COMM_NULL) return fail(Code::backend, "there is no rank on MPI_COMM_NULL");
    RESHARD_CHECK(make_keys());
    Kept* kept = nullptr;
    int found = 0;
    const int got = MPI_Comm_get_attr(communicator, attributes().backend, static_cast<void*>(&kept), &found);
    RESHARD_CHECK(checked(got, "MPI_Comm_get_attr"));
    return found != 0 ? kept : nullptr;
}

Result<Kept*> make_on(MPI_Comm communicator) {
    RESHARD_TRY(auto& backend, make_backend(communicator));
    auto made = std::make_unique<Kept>(std::move(backend));
    const int set = MPI_Comm_set_attr(communicator, attributes().backend, made.get());
    RESHARD_CHECK(checked(set, "MPI_Comm_set_attr"));
    const std::lock_guard lock(attributes().mutex);
    attributes().communicators.push_back(communicator);
    return made.release();
}

}  // namespace

Result<std::shared_ptr<Backend>> known_backend(MPI_Comm communicator) {
    thread_local Last last;
    const std::uint64_t dropped = attributes().dropped.load(std::memory_order_acquire);
    if (last.kept != nullptr && last.communicator == communicator && last.dropped == dropped) return *last.kept;
    RESHARD_TRY(auto* const kept, found_on(communicator));
    if (kept == nullptr) return nullptr;
    last = {communicator, kept, dropped};
    return *kept;
}

Result<std::shared_ptr<Backend>> backend_of(MPI_Comm communicator) {
    RESHARD_TRY(auto known, known_backend(communicator));
    if (known) return known;
    RESHARD_TRY(auto* const kept, make_on(communicator));
    return *kept;
}

Result<void> redistribute(MPI_Comm communicator, const Layout& source, const Layout& target, ConstElements in,
                          Elements out, const MoveOptions& options) {
    RESHARD_TRY(const auto& backend, backend_of(communicator));
    return reshard::redistribute(*backend, source, target, in, out, options);
}

void clear(MPI_Comm communicator) {
    const auto kept = found_on(communicator);
    if (kept && *kept != nullptr) MPI_Comm_delete_attr(communicator, attributes().backend);
}

}  // namespace reshard::mpi
