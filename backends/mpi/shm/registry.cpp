#include "backends/mpi/shm/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/mpi/base/agree.hpp"

namespace reshard::mpi {
namespace {

constexpr std::size_t entries_max = 1024;

template <class Body>
double seconds_of_body(const Body& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The time of a registration and its end, and the time of a copy of as many bytes. Infinity if the system refuses.
std::array<double, 2> registration_and_copy() {
    constexpr std::size_t bytes = std::size_t{8} << 20;
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes, std::byte{2});
    std::array<double, 3> copies{};
    for (double& copy : copies) copy = seconds_of_body([&] { std::memcpy(to.data(), from.data(), bytes); });
    std::ranges::sort(copies);
    bool registered = false;
    const double there_and_back = seconds_of_body([&] {
        const auto pages = RegisteredPages::make(from, OnFork::withhold, [](Index) {});
        registered = pages && (*pages)->end();
    });
    return {registered ? there_and_back : std::numeric_limits<double>::infinity(), copies[1]};
}

}  // namespace

// Never destroyed: registered memory may outlive the program's other objects.
Registry& Registry::of_process() {
    static auto* const only = new Registry;
    return *only;
}

Result<std::shared_ptr<RegisteredPages>> Registry::add(std::span<std::byte> memory, OnFork on_fork,
                                                       RegisteredPages::Held held) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::uintptr_t end = begin + memory.size();
    {
        const std::lock_guard lock(mutex_);
        auto next = entries_.lower_bound(begin);
        const bool after = next != entries_.end() && next->first < end;
        const bool before = next != entries_.begin() && std::prev(next)->second.end > begin;
        if (after || before) {
            const std::uintptr_t other = after ? next->first : std::prev(next)->first;
            return fail(Code::usage, fmt::format("this memory cannot be registered: it lies in what was registered at "
                                                 "{:#x} and has not been ended",
                                                 other));
        }
        entries_.emplace(begin, Entry{end, nullptr});
        count_.store(entries_.size(), std::memory_order_release);
    }
    auto made = RegisteredPages::make(memory, on_fork, std::move(held));
    const std::lock_guard lock(mutex_);
    if (made) {
        entries_.at(begin).pages = *made;
    } else {
        entries_.erase(begin);
        count_.store(entries_.size(), std::memory_order_release);
    }
    return made;
}

Result<void> Registry::end(RegisteredPages& pages) {
    auto ended = pages.end();
    if (pages.ended()) forget(pages);
    return ended;
}

void Registry::forget(const RegisteredPages& pages) {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(pages.range().begin);
    if (entry == entries_.end() || entry->second.pages.get() != &pages) return;
    entries_.erase(entry);
    count_.store(entries_.size(), std::memory_order_release);
}

std::shared_ptr<RegisteredPages> Registry::find(const std::byte* start, Index bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(start);
    const std::lock_guard lock(mutex_);
    auto above = entries_.upper_bound(begin);
    if (above == entries_.begin()) return nullptr;
    const Entry& entry = std::prev(above)->second;
    return begin + static_cast<std::uintptr_t>(bytes) <= entry.end ? entry.pages : nullptr;
}

Result<std::unique_ptr<RegisteredMemory>> RegisteredMemory::make(const std::shared_ptr<Arena>& arena,
                                                                 std::span<std::byte> memory, OnFork on_fork) {
    const auto held = [arena](Index change) { arena->count_held(change); };
    RESHARD_TRY(auto& pages, Registry::of_process().add(memory, on_fork, held));
    arena->count_registered(pages->range().bytes());
    return std::unique_ptr<RegisteredMemory>(new RegisteredMemory(arena, std::move(pages)));
}

RegisteredMemory::~RegisteredMemory() {
    if (end() || pages_->ended()) return;
    Registry::of_process().forget(*pages_);
    arena_->count_registered(-pages_->range().bytes());
}

Result<void> RegisteredMemory::end() {
    if (pages_->ended()) return {};
    auto ended = Registry::of_process().end(*pages_);
    if (pages_->ended()) arena_->count_registered(-pages_->range().bytes());
    return ended;
}

void RepeatedMemory::count(std::span<const std::byte> memory) {
    if (memory.size() < bytes_min) return;
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= entries_max) std::erase_if(entries_, [](const auto& one) { return !one.second.held; });
    Entry& entry = entries_[memory.data()];
    if (entry.bytes != memory.size()) entry = {.bytes = memory.size()};
    ++entry.runs;
}

void RepeatedMemory::register_due(std::span<const Buffers> buffers) {
    for (const Buffers& own : buffers) {
        register_due(own.target, register_after_);
        register_due(own.source, register_after_ + 1);
    }
}

void RepeatedMemory::register_due(std::span<const std::byte> memory, Index after) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(memory.data());
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (entry.held || entry.runs < after || entry.bytes != memory.size()) return;
    auto made =
        RegisteredMemory::make(arena_, {const_cast<std::byte*>(memory.data()), memory.size()}, OnFork::withhold);
    entry.runs = 0;
    if (made) entry.held = std::move(*made);
}

// Ranks that share cores or a memory bus delay each other here as they do in a run. Unregistered data of other ranks is
// copied twice, registered data once. One part of the array in `ranks` is expected to stay on its rank.
Result<Index> measure_moves_that_repay(MPI_Comm communicator) {
    RESHARD_CHECK(all_succeeded(communicator, {}, 1));
    RESHARD_TRY(const auto& seconds, reduced(communicator, registration_and_copy(), MPI_DOUBLE, MPI_SUM));
    const auto ranks = static_cast<double>(size_of_communicator(communicator));
    const double moves = std::ceil(seconds[0] / seconds[1] * ranks / (ranks - 1));
    return moves < 1e9 ? std::max<Index>(1, static_cast<Index>(moves)) : index_max - 1;
}

}  // namespace reshard::mpi
