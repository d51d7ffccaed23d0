#include "bindings/scalapack/kept.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "bindings/scalapack/agreed.hpp"
#include "reshard/synthesize.hpp"
#include "src/base/try.hpp"

namespace reshard::scalapack {
namespace {

extern "C" int reshard_scalapack_drop(MPI_Comm, int, void* kept, void*) {
    delete static_cast<Kept*>(kept);
    return MPI_SUCCESS;
}

int new_key(MPI_Comm_delete_attr_function* drop) {
    int key = MPI_KEYVAL_INVALID;
    return MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &key, nullptr) == MPI_SUCCESS ? key : MPI_KEYVAL_INVALID;
}

// What hangs on a communicator under a key; null when nothing does.
Result<void*> attribute(MPI_Comm communicator, int key) {
    void* value = nullptr;
    int found = 0;
    if (key == MPI_KEYVAL_INVALID ||
        MPI_Comm_get_attr(communicator, key, static_cast<void*>(&value), &found) != MPI_SUCCESS)
        return fail(Code::backend, "p?gemr2d: MPI has no attributes for it");
    return found != 0 ? value : nullptr;
}

Result<void> hang(MPI_Comm communicator, int key, void* value) {
    if (MPI_Comm_set_attr(communicator, key, value) == MPI_SUCCESS) return {};
    return fail(Code::backend, "p?gemr2d: MPI takes no attribute");
}

bool same(const End& a, const End& b) {
    return a.grid == b.grid && a.begin == b.begin && std::memcmp(&a.descriptor, &b.descriptor, sizeof(Descriptor)) == 0;
}

std::optional<Storage> storage_of(const End& end, const Cyclic& cyclic) {
    if (!end.inside()) return std::nullopt;
    return storage_of(cyclic, {end.shape.place[0], end.shape.place[1]}, end.descriptor.leading);
}

}  // namespace

bool same(const Question& a, const Question& b) {
    return a.dtype == b.dtype && a.shape == b.shape && same(a.source, b.source) && same(a.target, b.target);
}

Result<std::uint64_t> number_of_grid(MPI_Comm communicator) {
    static const int key = new_key(MPI_COMM_NULL_DELETE_FN);
    static std::atomic<std::uintptr_t> last = 0;
    RESHARD_TRY(void* const known, attribute(communicator, key));
    if (known != nullptr) return reinterpret_cast<std::uintptr_t>(known);
    const std::uintptr_t number = ++last;
    RESHARD_CHECK(hang(communicator, key, reinterpret_cast<void*>(number)));  // NOLINT: a number, never a place
    return number;
}

Result<Kept*> Kept::of(MPI_Comm communicator) {
    static const int key = new_key(reshard_scalapack_drop);
    RESHARD_TRY(void* const known, attribute(communicator, key));
    if (known != nullptr) return static_cast<Kept*>(known);
    RESHARD_TRY(auto& backend, mpi::make_backend(communicator));
    std::unique_ptr<Kept> made(new Kept(communicator, std::move(backend)));
    RESHARD_CHECK(hang(communicator, key, made.get()));
    return made.release();
}

Result<Executor*> Kept::find_or_prepare(const Question& question) {
    const auto known =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return same(entry.question, question); });
    RESHARD_TRY(const bool all, all_know(known == entries_.end() ? nullptr : &*known));
    if (all) {
        entries_.splice(entries_.begin(), entries_, known);
        return &entries_.front().executor;
    }
    RESHARD_TRY(auto& executor, prepare(question));
    if (entries_.size() == executors_max) entries_.pop_back();
    entries_.push_front({question, ++numbers_, std::move(executor)});
    return &entries_.front().executor;
}

// A process outside of both grids may know a question that the others do not; then nobody does.
Result<bool> Kept::all_know(const Entry* entry) const {
    const Index number = entry == nullptr ? 0 : entry->number;
    std::array<Index, 2> least = {number, -number};
    if (MPI_Allreduce(MPI_IN_PLACE, least.data(), 2, MPI_INT64_T, MPI_MIN, communicator_) != MPI_SUCCESS)
        return fail(Code::backend, "p?gemr2d: MPI_Allreduce failed");
    return least[0] > 0 && least[0] == -least[1];
}

Result<Executor> Kept::prepare(const Question& question) {
    RESHARD_TRY(const auto& agreed, agree(communicator_, question));
    const std::array<Index, 2> shape = {question.shape[0], question.shape[1]};
    RESHARD_TRY(auto& source, layout_of(agreed.source.cyclic, shape, question.dtype, agreed.source.ranks));
    RESHARD_TRY(auto& target, layout_of(agreed.target.cyclic, shape, question.dtype, agreed.target.ranks));
    Options options;
    options.capabilities = backend_->capabilities();
    RESHARD_TRY(const auto& made, synthesize(Problem{std::move(source), std::move(target)}, options));
    const Storages storages{storage_of(question.source, agreed.source.cyclic),
                            storage_of(question.target, agreed.target.cyclic)};
    return Executor::prepare(made, *backend_, storages);
}

}  // namespace reshard::scalapack
