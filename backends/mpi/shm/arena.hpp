// The memory of one backend. The arena keeps its own shared segments for reuse when they are given back, and maps each
// segment of a peer once. It counts every byte that it hands out. Several threads may use it at once.
#pragma once

#include <atomic>
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

/// Segments of peers that are in use. A segment that nobody holds is unmapped some time after its maker has dropped it.
using Views = std::vector<std::shared_ptr<const Segment>>;

class Arena : public std::enable_shared_from_this<Arena> {
public:
    /// The memory of `rank`. If `shared` is false it hands out private pages, which no peer reaches.
    Arena(bool shared, Index rank) : shared_(shared), rank_(rank) {}

    [[nodiscard]] Index rank() const { return rank_; }
    [[nodiscard]] bool shares() const { return shared_; }

    /// True if the ranks of this machine share cores, whichever of them meet: a rank that waits lets others run.
    [[nodiscard]] bool crowded() const { return crowded_; }
    void find_crowded(bool crowded) { crowded_ = crowded_ || crowded; }

    /// Returns page-aligned memory, all pages allocated. It is private if the system has no shared memory.
    [[nodiscard]] Result<std::unique_ptr<Memory>> take(Index bytes);

    /// As above, and returns the address that peers use.
    [[nodiscard]] Result<Address> take(Index bytes, std::unique_ptr<Memory>& memory) {
        RESHARD_ASSIGN(memory, take(bytes));
        return find(memory->bytes().data(), bytes).value_or(Address{});
    }

    /// How often memory was handed out or given back. While it is the same, find() returns the same addresses.
    [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

    /// The address of a range of this process. Empty unless the range lies wholly in one of its segments.
    [[nodiscard]] std::optional<Address> find(const std::byte* start, Index bytes);

    /// Returns where `address` lies in this process. The pointer is valid while `held` keeps the view added to it. The
    /// first call for a segment of a peer maps it.
    [[nodiscard]] Result<std::byte*> reach(const Address& address, Views& held);

    /// Gives memory back once `unused` returns true: no peer reads it any more. Each take() asks `unused` again.
    void retire(std::unique_ptr<Memory> memory, std::function<bool()> unused);

    /// Gives back all retired memory, since nothing will be taken any more. Peers have their own mappings, so whatever
    /// they still read keeps its contents.
    void close();

    [[nodiscard]] MemoryUse use();

    /// Counts bytes that other objects hold for this backend, and bytes of the caller's memory that are registered.
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
    bool crowded_ = false;
    std::atomic<std::uint64_t> changes_ = 0;
    std::mutex mutex_;
    std::map<const std::byte*, Block> blocks_;  // by start
    std::map<SegmentName, std::shared_ptr<const Segment>> peers_;
    std::size_t peers_max_ = 64;  // above so many mapped segments it looks for dropped ones
    std::vector<std::pair<std::function<bool()>, std::unique_ptr<Memory>>> retired_;
    bool closed_ = false;
    MemoryUse use_;
};

}  // namespace reshard::mpi
