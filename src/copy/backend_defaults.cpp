// The defaults of a backend, its runs and its bound buffers.
#include <cstring>

#include "reshard/backends/backend.hpp"
#include "src/base/try.hpp"

namespace reshard {

Result<bool> Ticket::wait_for(Index) { return test(); }

Result<void> Ticket::wait() {
    constexpr Index slice = 20'000;  // microseconds
    for (;;) {
        RESHARD_TRY(const auto& done, wait_for(slice));
        if (done) return {};
    }
}

Result<std::size_t> Ticket::arrived() {
    return test().map([](bool done) { return std::size_t{done ? 1U : 0U}; });
}

Result<void> Ticket::offer(std::size_t) { return fail(Code::usage, "offer: the run has no offers withheld"); }

Result<void> Ticket::offer_on(std::size_t, void*) {
    return fail(Code::unsupported, "offer: only a run of an executor, on a backend with queues, takes one on a queue");
}

Result<void*> Ticket::event(std::size_t) {
    return fail(Code::unsupported, "event: only a run of an executor, on a backend with queues, has events of pieces");
}

Result<void> Bound::wait_for_queue(void*) { return fail(Code::unsupported, "this backend has no queues"); }

Result<std::unique_ptr<Ticket>> Bound::start_withheld() {
    return fail(Code::unsupported, "offers can be withheld only from a run of an executor");
}

Result<std::unique_ptr<Ticket>> Bound::start_withheld_on(void*) { return start_withheld(); }

Result<std::unique_ptr<Ticket>> Bound::start_if(const Agreed& agreed) {
    RESHARD_CHECK(agreed());
    return start();
}

Result<std::unique_ptr<Ticket>> Bound::start_on(void* queue) {
    if (queue == nullptr) return start();
    return fail(Code::unsupported, "this backend has no queues");
}

Result<void> Backend::put(std::span<const std::byte> own, std::span<std::byte> memory) {
    if (!own.empty()) std::memcpy(memory.data(), own.data(), own.size());
    return {};
}

Result<void> Backend::get(std::span<const std::byte> memory, std::span<std::byte> own) {
    return Backend::put(memory, own);
}

Result<Registration> Backend::register_memory(std::span<std::byte> memory, OnFork) {
    return Registration(memory, nullptr);
}

}  // namespace reshard
