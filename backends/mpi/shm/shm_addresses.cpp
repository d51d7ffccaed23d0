#include "backends/mpi/shm/shm_addresses.hpp"

#include <fmt/format.h>

namespace reshard::mpi {

ShmAddresses ShmAddresses::bind(Arena& arena, std::span<const Buffers> buffers, std::span<const Index> source_bytes,
                                std::span<const Index> target_bytes) {
    ShmAddresses bound{{buffers.begin(), buffers.end()}, {}};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        bound.addresses.push_back(arena.find(buffers[i].source.data(), source_bytes[i]).value_or(Address{}));
        bound.addresses.push_back(arena.find(buffers[i].target.data(), target_bytes[i]).value_or(Address{}));
    }
    return bound;
}

Result<void> ShmAddresses::kept(Arena& arena) const {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        if (!is_shared(addresses[i])) continue;
        const std::byte* start = i % 2 == 0 ? buffers[i / 2].source.data() : buffers[i / 2].target.data();
        if (arena.find(start, 1) == addresses[i]) continue;
        return fail(Code::backend, fmt::format("array {}: the memory of its {} was given back after it was bound",
                                               i / 2, i % 2 == 0 ? "source" : "target"));
    }
    return {};
}

}  // namespace reshard::mpi
