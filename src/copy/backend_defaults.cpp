// The defaults of a backend, its runs and its bound buffers.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/backends/backend.hpp"
#include "src/base/try.hpp"
#include "src/copy/copy.hpp"

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

Result<Backend*> Backend::group(std::span<const Index> ranks) {
    const bool ascend = std::ranges::adjacent_find(ranks, std::ranges::greater_equal()) == ranks.end();
    if (!ascend || !std::ranges::binary_search(ranks, rank()) || ranks.front() < 0 || ranks.back() >= size()) {
        return fail(Code::usage,
                    fmt::format("ranks {} of {} are no group of rank {}: they must ascend and have this rank",
                                fmt::join(ranks, ", "), size(), rank()));
    }
    const std::vector<Index> key(ranks.begin(), ranks.end());
    const auto known = groups_.find(key);
    if (known != groups_.end()) return known->second.get();
    RESHARD_TRY(auto& made, make_group(ranks));
    return groups_.emplace(key, std::move(made)).first->second.get();
}

Result<std::unique_ptr<Backend>> Backend::make_group(std::span<const Index>) {
    return fail(Code::unsupported, fmt::format("the backend {} has no groups of ranks", name()));
}

Result<void> Backend::put(std::span<const std::byte> own, std::span<std::byte> memory) {
    if (!own.empty()) std::memcpy(memory.data(), own.data(), own.size());
    return {};
}

Result<void> Backend::get(std::span<const std::byte> memory, std::span<std::byte> own) {
    return Backend::put(memory, own);
}

Result<void> Backend::fill(std::span<std::byte> memory, const Slot& slot, std::span<const Box> boxes,
                           std::span<const std::byte> element) {
    for (const Box& box : boxes)
        BoxFill(region_of(slot, box, std::ssize(element)), pattern_of(element)).run(memory.data());
    return {};
}

Result<Registration> Backend::register_memory(std::span<std::byte> memory, OnFork) {
    return Registration(memory, nullptr);
}

}  // namespace reshard
