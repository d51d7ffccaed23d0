// The default behaviour of a backend that has no better way.
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

Result<std::unique_ptr<Ticket>> Bound::start_withheld() {
    return fail(Code::unsupported, "what a backend has bound by itself withholds no offers; an executor does");
}

Result<std::unique_ptr<Ticket>> Bound::start_on(void* queue) {
    if (queue == nullptr) return start();
    return fail(Code::unsupported, "this backend runs on no queue");
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
