// The registered memory of this process. Pages belong to the process, so it has one registry. Memory that one backend
// has registered is fast on every other backend too, and no backend can register it twice.
#pragma once

#include <mpi.h>

#include <atomic>
#include <map>
#include <mutex>

#include "backends/mpi/shm/arena.hpp"
#include "backends/mpi/shm/registered_pages.hpp"

namespace reshard::mpi {

class Registry {
public:
    [[nodiscard]] static Registry& of_process();

    /// Errors: as RegisteredPages::make; usage if a byte is registered already. Meanwhile other threads can find all
    /// other registered memory.
    [[nodiscard]] Result<std::shared_ptr<RegisteredPages>> add(std::span<std::byte> memory, OnFork on_fork,
                                                               RegisteredPages::Held held);

    /// As RegisteredPages::end. Memory that has ended is not found any more.
    Result<void> end(RegisteredPages& pages);
    void forget(const RegisteredPages& pages);

    /// True if nothing is registered. Takes no lock.
    [[nodiscard]] bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    /// The registration that holds the whole range; null if no registration does.
    [[nodiscard]] std::shared_ptr<RegisteredPages> find(const std::byte* start, Index bytes);

private:
    struct Entry {
        std::uintptr_t end = 0;
        std::shared_ptr<RegisteredPages> pages;  // null while they are made
    };
    std::mutex mutex_;
    std::map<std::uintptr_t, Entry> entries_;  // by begin; they do not overlap
    std::atomic<std::size_t> count_ = 0;       // of the entries
};

/// Memory that is registered for a backend and counted by its arena.
class RegisteredMemory final : public Registered {
public:
    /// Errors: as Registry::add.
    [[nodiscard]] static Result<std::unique_ptr<RegisteredMemory>> make(const std::shared_ptr<Arena>& arena,
                                                                        std::span<std::byte> memory, OnFork on_fork);
    ~RegisteredMemory() override;  ///< if a run still uses it, it ends with its last owner
    Result<void> end() override;

private:
    RegisteredMemory(std::shared_ptr<Arena> arena, std::shared_ptr<RegisteredPages> pages)
        : arena_(std::move(arena)), pages_(std::move(pages)) {}

    std::shared_ptr<Arena> arena_;
    std::shared_ptr<RegisteredPages> pages_;
};

/// The caller's memory that moves again and again. It is registered once the moves have cost as much as a registration
/// (Options::register_after).
class RepeatedMemory {
public:
    /// No smaller memory is registered: too much of it lies in pages that others share.
    static constexpr std::size_t bytes_min = std::size_t{1} << 20;

    RepeatedMemory(std::shared_ptr<Arena> arena, Index register_after)
        : arena_(std::move(arena)), register_after_(register_after) {}

    /// Counts a run that moved this memory through bounce buffers.
    void count(std::span<const std::byte> memory);

    /// Registers what has moved often enough, before a run. A source waits for one run more than a target: data that
    /// goes into registered targets bounces no more. Memory that cannot be registered is counted anew.
    void register_due(std::span<const Buffers> buffers);

private:
    struct Entry {
        std::size_t bytes = 0;
        Index runs = 0;
        std::unique_ptr<RegisteredMemory> held = nullptr;
    };
    void register_due(std::span<const std::byte> memory, Index after);

    std::shared_ptr<Arena> arena_;
    Index register_after_;
    std::mutex mutex_;
    std::map<const std::byte*, Entry> entries_;  // by begin
};

/// Collective. As mpi::moves_that_repay.
[[nodiscard]] Result<Index> measure_moves_that_repay(MPI_Comm communicator);

}  // namespace reshard::mpi
