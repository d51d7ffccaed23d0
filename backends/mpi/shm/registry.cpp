#include "backends/mpi/shm/registry.hpp"

#include <fmt/format.h>

namespace reshard::mpi {

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

}  // namespace reshard::mpi
