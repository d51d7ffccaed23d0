#include "backends/mpi/shm/shm_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/mpi/shm/registry.hpp"

namespace reshard::mpi {
namespace {

std::string name_of(std::size_t index) {
    return fmt::format("array {}: the memory of its {}", index / 2, index % 2 == 0 ? "source" : "target");
}

}  // namespace

Result<ShmAddresses> ShmAddresses::bind(Arena& arena, const PeerRegions* reached, std::span<const Buffers> buffers,
                                        std::span<const Index> source_bytes, std::span<const Index> target_bytes) {
    ShmAddresses bound;
    bound.reached_ = reached;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        bound.bytes_.push_back(source_bytes[i]);
        bound.bytes_.push_back(target_bytes[i]);
    }
    RESHARD_CHECK(bound.rebind(arena, buffers));
    return bound;
}

Result<void> ShmAddresses::rebind(Arena& arena, std::span<const Buffers> others) {
    const auto start_together = [](const Buffers& a, const Buffers& b) {
        return a.source.data() == b.source.data() && a.target.data() == b.target.data();
    };
    if (kept_at_ == arena.changes() && std::ranges::equal(buffers, others, start_together)) return renew(arena);
    forget();
    buffers.assign(others.begin(), others.end());
    for (const Buffers& own : buffers) {
        sources.push_back(own.source.data());
        targets.push_back(own.target.data());
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i)
        addresses.push_back(reached_ == nullptr ? Address{} : arena.find(start(i), bytes_[i]).value_or(Address{}));
    return renew(arena);
}

bool ShmAddresses::unbind() {
    if (reached_ == nullptr && std::ranges::count(registered_, nullptr) == std::ssize(registered_)) return true;
    forget();
    return false;
}

void ShmAddresses::forget() {
    kept_at_.reset();
    buffers.clear();
    sources.clear();
    targets.clear();
    addresses.clear();
    registered_.clear();
    read_by_peers.clear();
    written_by_peers.clear();
}

const std::byte* ShmAddresses::start(std::size_t index) const {
    const Buffers& own = buffers[index / 2];
    return index % 2 == 0 ? own.source.data() : own.target.data();
}

// Buffers of one registration are mostly neighbours in the list, so the registration is checked once for all of them.
Result<void> ShmAddresses::renew(const Arena& arena) {
    if (!arena.shares()) return {};
    if (Registry::of_process().empty() && std::ranges::count(registered_, nullptr) == std::ssize(registered_))
        return {};
    registered_.resize(addresses.size());
    bool changed = false;
    const RegisteredPages* asked = nullptr;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (bytes_[i] == 0 || (is_shared(addresses[i]) && !registered_[i])) continue;  // empty, or the arena's
        auto found = Registry::of_process().find(start(i), bytes_[i]);
        if (found && found.get() != asked && !found->is_intact())
            return fail(Code::backend, fmt::format("{} was freed or mapped anew while it was registered", name_of(i)));
        asked = found ? found.get() : asked;
        if (found == registered_[i]) continue;
        changed = true;
        addresses[i] =
            found ? Address{found->name(), found->offset_of(reinterpret_cast<std::uintptr_t>(start(i)))} : Address{};
        registered_[i] = std::move(found);
    }
    if (changed && reached_ != nullptr) find_shadows();
    return {};
}

void ShmAddresses::find_shadows() {
    const auto find = [&](const std::vector<PeerRegion>& parts, std::size_t side, Region PeerRegion::*region) {
        std::vector<ShadowCopy> copies;
        for (const PeerRegion& part : parts) {
            const std::size_t index = 2 * part.array + side;
            if (registered_[index]) add_shadow_copies(copies, part, part.*region, start(index), *registered_[index]);
        }
        return copies;
    };
    read_by_peers = find(reached_->sends, 0, &PeerRegion::source);
    written_by_peers = find(reached_->receives, 1, &PeerRegion::target);
}

std::vector<RegisteredPages::Use> ShmAddresses::use() const {
    std::vector<RegisteredPages::Use> uses;
    for (const auto& pages : registered_) {
        if (pages) uses.emplace_back(pages);
    }
    return uses;
}

Result<void> ShmAddresses::kept(Arena& arena) const {
    const std::uint64_t changes = arena.changes();
    if (kept_at_ == changes) return {};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const bool registered = !registered_.empty() && registered_[i];
        if (!is_shared(addresses[i]) || registered || arena.find(start(i), 1) == addresses[i]) continue;
        return fail(Code::backend, fmt::format("{} was given back after it was bound", name_of(i)));
    }
    kept_at_ = changes;
    return {};
}

}  // namespace reshard::mpi
