// The registered memory of this process. There is one registry for the process, since pages belong to the process.
// Memory that one backend has registered is fast on every other backend too, and none can register it twice.
#pragma once

#include <map>
#include <mutex>

#include "backends/mpi/shm/arena.hpp"
#include "backends/mpi/shm/registered_pages.hpp"

namespace reshard::mpi {

class Registry {
public:
    [[nodiscard]] static Registry& of_process();

    /// Errors: as RegisteredPages::make; usage where a byte is registered already. Other threads find the rest
    /// meanwhile.
    [[nodiscard]] Result<std::shared_ptr<RegisteredPages>> add(std::span<std::byte> memory, OnFork on_fork,
                                                               RegisteredPages::Held held);

    /// As RegisteredPages::end; what has ended is not found any more.
    Result<void> end(RegisteredPages& pages);
    void forget(const RegisteredPages& pages);

    /// The registered pages that hold the whole range, or null.
    [[nodiscard]] std::shared_ptr<RegisteredPages> find(const std::byte* start, Index bytes);

private:
    struct Entry {
        std::uintptr_t end = 0;
        std::shared_ptr<RegisteredPages> pages;  // null while they are made
    };
    std::mutex mutex_;
    std::map<std::uintptr_t, Entry> entries_;  // by begin; they do not overlap
};

/// Registered for a backend, and counted by its arena.
class RegisteredMemory final : public Registered {
public:
    /// Errors: as Registry::add.
    [[nodiscard]] static Result<std::unique_ptr<RegisteredMemory>> make(const std::shared_ptr<Arena>& arena,
                                                                        std::span<std::byte> memory, OnFork on_fork);
    ~RegisteredMemory() override;  ///< where a run still uses it, it ends with the last one that knows it
    Result<void> end() override;

private:
    RegisteredMemory(std::shared_ptr<Arena> arena, std::shared_ptr<RegisteredPages> pages)
        : arena_(std::move(arena)), pages_(std::move(pages)) {}

    std::shared_ptr<Arena> arena_;
    std::shared_ptr<RegisteredPages> pages_;
};

}  // namespace reshard::mpi
