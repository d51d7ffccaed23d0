#include "backends/mpi/shm/arena.hpp"

#include <unistd.h>

#include <algorithm>

#include "src/base/try.hpp"
#include "src/copy/page_memory.hpp"

namespace reshard::mpi {

class Arena::SharedMemory final : public Memory {
public:
    SharedMemory(std::shared_ptr<Arena> arena, std::byte* start, Index bytes)
        : arena_(std::move(arena)), start_(start), bytes_(bytes) {}
    ~SharedMemory() override { arena_->give_back(start_); }
    std::span<std::byte> bytes() override { return {start_, static_cast<std::size_t>(bytes_)}; }

private:
    std::shared_ptr<Arena> arena_;
    std::byte* start_;
    Index bytes_;
};

class Arena::PrivateMemory final : public Memory {
public:
    PrivateMemory(std::shared_ptr<Arena> arena, std::unique_ptr<Memory> pages)
        : arena_(std::move(arena)), pages_(std::move(pages)) {}
    ~PrivateMemory() override {
        const std::lock_guard lock(arena_->mutex_);
        arena_->count(-static_cast<Index>(pages_->bytes().size()));
    }
    std::span<std::byte> bytes() override { return pages_->bytes(); }

private:
    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Memory> pages_;
};

// pre: the mutex is held, here and in count.
std::map<const std::byte*, Arena::Block>::iterator Arena::kept_block(Index bytes) {
    auto best = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
        const Index size = at->second.segment.name().bytes;
        const bool fits = at->second.taken == 0 && size >= bytes && size / 2 <= bytes;
        if (fits && (best == blocks_.end() || size < best->second.segment.name().bytes)) best = at;
    }
    return best;
}

void Arena::count(Index change) {
    use_.held_bytes += change;
    use_.most_bytes = std::max(use_.most_bytes, use_.held_bytes);
}

Result<std::unique_ptr<Memory>> Arena::take_private(Index bytes) {
    auto pages = allocate_pages(bytes);
    if (!pages) return pages;
    std::ranges::fill((*pages)->bytes(), std::byte{0});
    count(bytes);
    return std::make_unique<PrivateMemory>(shared_from_this(), std::move(*pages));
}

void Arena::retire(std::unique_ptr<Memory> memory, std::function<bool()> unused) {
    if (unused()) return;  // the memory is freed here
    const std::lock_guard lock(mutex_);
    if (closed_)
        leave_to_peers(*memory);
    else
        retired_.emplace_back(std::move(unused), std::move(memory));
}

// pre: the mutex is held.
void Arena::leave_to_peers(Memory& memory) {
    const auto block = blocks_.find(memory.bytes().data());
    if (block != blocks_.end()) block->second.segment.leave_to_others();
}

void Arena::close() {
    decltype(retired_) freed;  // freed after the mutex is released
    const std::lock_guard lock(mutex_);
    closed_ = true;
    freed.swap(retired_);
    for (auto& [unused, memory] : freed) leave_to_peers(*memory);
}

void Arena::free_retired() {
    std::vector<std::unique_ptr<Memory>> freed;  // freed after the mutex is released
    const std::lock_guard lock(mutex_);
    std::erase_if(retired_, [&](auto& one) {
        if (!one.first()) return false;
        freed.push_back(std::move(one.second));
        return true;
    });
}

Result<std::unique_ptr<Memory>> Arena::take(Index bytes) {
    free_retired();
    const std::lock_guard lock(mutex_);
    if (bytes <= 0 || !shared_) return take_private(bytes);
    auto found = kept_block(bytes);
    if (found == blocks_.end()) {
        // Free the kept blocks before allocating more: none of them fits.
        std::erase_if(blocks_, [](const auto& block) { return block.second.taken == 0; });
        auto segment = Segment::make(bytes);
        if (!segment) return take_private(bytes);
        const std::byte* start = segment->data();
        found = blocks_.emplace(start, Block{std::move(*segment), 0}).first;
    }
    found->second.taken = bytes;
    changes_.fetch_add(1, std::memory_order_release);
    count(bytes);
    return std::make_unique<SharedMemory>(shared_from_this(), found->second.segment.data(), bytes);
}

void Arena::give_back(const std::byte* start) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(start);
    count(-block.taken);
    block.taken = 0;
    changes_.fetch_add(1, std::memory_order_release);
}

std::optional<Address> Arena::find(const std::byte* start, Index bytes) {
    const std::lock_guard lock(mutex_);
    auto above = blocks_.upper_bound(start);
    if (above == blocks_.begin()) return std::nullopt;
    const Block& block = std::prev(above)->second;
    const Index offset = start - block.segment.data();
    if (block.taken == 0 || offset > block.segment.name().bytes || bytes > block.segment.name().bytes - offset) {
        return std::nullopt;
    }
    return Address{block.segment.name(), offset};
}

// Peers make and drop segments throughout their run. pre: the mutex is held.
void Arena::forget_dropped_segments() {
    if (peers_.size() < peers_max_) return;
    std::erase_if(peers_, [](const auto& peer) { return peer.second.use_count() == 1 && !peer.second->is_kept(); });
    peers_max_ = std::max<std::size_t>(64, 2 * peers_.size());
}

Result<std::byte*> Arena::reach(const Address& address, Views& held) {
    const std::lock_guard lock(mutex_);
    auto found = peers_.find(address.segment);
    if (found == peers_.end() && address.segment.process == getpid()) {
        for (const auto& [start, block] : blocks_) {
            if (block.segment.name() == address.segment) return block.segment.data() + address.offset;
        }
        return fail(Code::backend, "a segment of this process is gone");
    }
    if (found == peers_.end()) {
        RESHARD_TRY(auto& opened, Segment::open(address.segment));
        forget_dropped_segments();
        found = peers_.emplace(address.segment, std::make_shared<const Segment>(std::move(opened))).first;
    }
    held.push_back(found->second);
    return found->second->data() + address.offset;
}

void Arena::count_held(Index change) {
    const std::lock_guard lock(mutex_);
    count(change);
}

void Arena::count_registered(Index change) {
    const std::lock_guard lock(mutex_);
    use_.registered_bytes += change;
}

MemoryUse Arena::use() {
    const std::lock_guard lock(mutex_);
    return use_;
}

}  // namespace reshard::mpi
