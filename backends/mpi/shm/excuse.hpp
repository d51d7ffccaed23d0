// Why a rank of a node could not bind or start, in shared memory: one text for all ranks, which is written, read and
// taken back at any time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace reshard::mpi {

/// The text of one rank at a time; zero bytes are nobody's. A sequence lock (Boehm, "Can seqlocks get along with
/// programming language memory models?", 2012): a text that changes while it is read counts for nothing.
class Excuse {
public:
    /// Writes this rank's text, cut if it is too long. Does nothing if another rank's text is there.
    void say(std::size_t rank, const std::string& text) {
        std::uint64_t before = state_.load(std::memory_order_relaxed);
        if (owner(before) != nobody || !state_.compare_exchange_strong(before, changed(before, being_written))) return;
        std::array<std::uint64_t, words> written{};
        std::memcpy(written.data(), text.data(), std::min(text.size(), sizeof written - 1));
        // A reader of a new word then also sees that the text has changed.
        std::atomic_thread_fence(std::memory_order_release);
        for (std::size_t i = 0; i < words; ++i) text_[i].store(written[i], std::memory_order_relaxed);
        state_.store(changed(before, from_one(rank)), std::memory_order_release);
    }

    /// Nobody's, if it was this rank's.
    void take_back(std::size_t rank) {
        const std::uint64_t own = state_.load(std::memory_order_relaxed);
        if (owner(own) == from_one(rank)) state_.store(changed(own, nobody), std::memory_order_relaxed);
    }

    /// The text, if it is this rank's.
    [[nodiscard]] std::optional<std::string> of(std::size_t rank) const {
        const std::uint64_t before = state_.load(std::memory_order_acquire);
        if (owner(before) != from_one(rank)) return std::nullopt;
        std::array<std::uint64_t, words> read{};
        for (std::size_t i = 0; i < words; ++i) read[i] = text_[i].load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (state_.load(std::memory_order_relaxed) != before) return std::nullopt;
        return std::string(reinterpret_cast<const char*>(read.data()));
    }

private:
    static constexpr std::size_t words = 28;
    static constexpr std::uint32_t nobody = 0;
    static constexpr std::uint32_t being_written = UINT32_MAX;
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

    static std::uint32_t from_one(std::size_t rank) { return static_cast<std::uint32_t>(rank) + 1; }
    static std::uint32_t owner(std::uint64_t state) { return static_cast<std::uint32_t>(state); }
    static std::uint64_t changed(std::uint64_t state, std::uint32_t owner) { return ((state >> 32) + 1) << 32 | owner; }

    std::atomic<std::uint64_t> state_;  // how often it has changed, and whose it is
    std::array<std::atomic<std::uint64_t>, words> text_;
};

}  // namespace reshard::mpi
