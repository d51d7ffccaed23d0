#include "reshard/model/address.hpp"

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/row_end.hpp"
#include "src/model/tile_address.hpp"

namespace reshard {

namespace {

Result<StridedMemory> placed(const Row& row, std::uint64_t base, std::uint64_t device, RowSide side) {
    const auto bytes = static_cast<std::uint64_t>(row.run_bytes);
    const RowEnd end = end_of(row, side);
    if (end.reach == index_max || base > UINT64_MAX - static_cast<std::uint64_t>(end.reach))
        return fail(Code::overflow,
                    fmt::format("a row at offset {} from {:#x} reaches past 64 bits", end.offset, base));
    return StridedMemory{base + static_cast<std::uint64_t>(end.offset), bytes, device,
                         row.runs > 1 ? static_cast<std::uint64_t>(end.stride) : bytes,
                         static_cast<std::uint64_t>(row.runs)};
}

}  // namespace

Result<std::uint64_t> own_address(const OwnTiles& own, Index array) {
    if (array < 0 || array >= std::ssize(own.addresses))
        return fail(Code::mismatch,
                    fmt::format("a row of array {}; there are own addresses of {}", array, own.addresses.size()));
    const std::uint64_t base = own.addresses[static_cast<std::size_t>(array)];
    if (base == 0) return fail(Code::mismatch, fmt::format("array {} has no own address", array));
    return base;
}

Result<std::uint64_t> peer_address(const PeerTiles& peers, Index array, Index peer) {
    const Index ranks = peers.arrays > 0 ? std::ssize(peers.addresses) / peers.arrays : 0;
    if (array < 0 || array >= peers.arrays || peer < 0 || peer >= ranks)
        return fail(Code::mismatch,
                    fmt::format("a row of array {} and peer {}; there are addresses of {} arrays and {} "
                                "ranks",
                                array, peer, peers.arrays, ranks));
    const std::uint64_t base = peers.addresses[static_cast<std::size_t>(peer * peers.arrays + array)];
    if (base == 0) return fail(Code::mismatch, fmt::format("array {} has no address on rank {}", array, peer));
    return base;
}

std::uint64_t peer_device(const PeerTiles& peers, Index peer) {
    return peer < std::ssize(peers.devices) ? peers.devices[static_cast<std::size_t>(peer)] : 0;
}

Result<AddressedRows> addressed(std::span<const Row> rows, RowSide side, const OwnTiles& own, const PeerTiles& peers) {
    AddressedRows memory;
    memory.local.reserve(rows.size());
    memory.remote.reserve(rows.size());
    const bool sends = side == RowSide::send;
    for (const Row& row : rows) {
        RESHARD_CHECK(well_formed(row));
        RESHARD_TRY(const auto near_base, own_address(own, row.array));
        RESHARD_TRY(const auto far_base, peer_address(peers, row.array, row.peer));
        const RowSide far = sends ? RowSide::receive : RowSide::send;
        RESHARD_TRY(const auto& near_memory, placed(row, near_base, own.device, side));
        RESHARD_TRY(const auto& far_memory, placed(row, far_base, peer_device(peers, row.peer), far));
        memory.local.push_back(near_memory);
        memory.remote.push_back(far_memory);
    }
    return memory;
}

Result<std::vector<MemoryBlock>> blocks_of(std::span<const StridedMemory> memory) {
    std::uint64_t total = 0;
    for (const StridedMemory& strided : memory) {
        if (strided.count > UINT32_MAX || (total += strided.count) > UINT32_MAX)
            return fail(Code::unsupported, "more than 2^32 blocks of memory; pack the rows instead");
    }
    std::vector<MemoryBlock> blocks;
    blocks.reserve(total);
    for (const StridedMemory& strided : memory)
        for (std::uint64_t i = 0; i < strided.count; ++i)
            blocks.push_back({strided.address + i * strided.stride, strided.bytes});
    return blocks;
}

}  // namespace reshard
