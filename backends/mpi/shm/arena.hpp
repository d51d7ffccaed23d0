// All memory of one backend: its own shared segments, which are reused when they are given back, and the segments of
// peers, each mapped once. Counts every byte that it hands out. Safe to use from several threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/mpi/shm/segment.hpp"
#include "reshard/backends/backend.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

/// A place in a segment, in a form that other processes understand.
struct Address {
    SegmentName segment;
    std::int64_t offset = 0;
    friend bool operator==(const Address&, const Address&) = default;
};

/// Segments of peers that are in use. A segment that no view holds is unmapped some time after its maker has dropped
/// it.
using Views = std::vector<std::shared_ptr<const Segment>>;

class Arena : public std::enable_shared_from_this<Arena> {
public:
    /// The memory of `rank`. If `shared` is false it hands out private pages, which no peer reaches.
    Arena(bool shared, Index rank) : shared_(shared), rank_(rank) {}

    [[nodiscard]] Index rank() const { return rank_; }
    [[nodiscard]] bool shares() const { return shared_; }

    /// Page-aligned memory with all its pages taken. Private pages where the system has no shared memory.
    [[nodiscard]] Result<std::unique_ptr<Memory>> take(Index bytes);

    /// The same, and where it lies for peers.
    [[nodiscard]] Result<Address> take(Index bytes, std::unique_ptr<Memory>& memory) {
        RESHARD_ASSIGN(memory, take(bytes));
        return find(memory->bytes().data(), bytes).value_or(Address{});
    }

    /// The address of a range of this process in its segments; nothing unless it lies wholly in one of them.
    [[nodiscard]] std::optional<Address> find(const std::byte* start, Index bytes);

    /// The same place in this process, valid while `held` has what is added to it. Maps the peer's segment when it is
    /// first asked for.
    [[nodiscard]] Result<std::byte*> reach(const Address& address, Views& held);

    /// Gives memory back as soon as `unused` says that no peer reads it any more; asked whenever memory is taken.
    void retire(std::unique_ptr<Memory> memory, std::function<bool()> unused);

    /// Gives back what is retired, since nothing is taken any more. Peers have mappings of their own, so what they
    /// still read stays as it is.
    void close();

    [[nodiscard]] MemoryUse use();

    /// Counts bytes that somebody else holds for this backend, and the caller's that are registered.
    void count_held(Index change);
    void count_registered(Index change);

private:
    struct Block {
        Segment segment;
        Index taken = 0;  // bytes asked for; 0: kept for reuse
    };
    class SharedMemory;
    class PrivateMemory;

    std::map<const std::byte*, Block>::iterator kept_block(Index bytes);
    Result<std::unique_ptr<Memory>> take_private(Index bytes);
    void free_retired();
    void forget_dropped_segments();
    void count(Index change);
    void give_back(const std::byte* start);
    void leave_to_peers(Memory& memory);

    bool shared_;
    Index rank_;
    std::mutex mutex_;
    std::map<const std::byte*, Block> blocks_;  // by start
    std::map<SegmentName, std::shared_ptr<const Segment>> peers_;
    std::size_t peers_max_ = 64;  // mapped before it is looked which of them their makers have dropped
    std::vector<std::pair<std::function<bool()>, std::unique_ptr<Memory>>> retired_;
    bool closed_ = false;
    MemoryUse use_;
};

}  // namespace reshard::mpi
