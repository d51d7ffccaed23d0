// Rows with addresses: what a transport of registered memory takes.
#pragma once

#include <cstdint>

#include "reshard/model/rows.hpp"

namespace reshard {

/// `count` blocks of `bytes` bytes, `stride` bytes apart. NIXL takes an array of these five numbers as it is.
struct StridedMemory {
    std::uint64_t address = 0;  ///< of the first block
    std::uint64_t bytes = 0;    ///< of each block
    std::uint64_t device = 0;   ///< the device's number, for the transport
    std::uint64_t stride = 0;   ///< from block to block; equal to `bytes` for a single block
    std::uint64_t count = 1;    ///< blocks
    friend bool operator==(const StridedMemory&, const StridedMemory&) = default;
};

/// One block of memory, laid out as POSIX's struct iovec on 64-bit machines.
struct MemoryBlock {
    std::uint64_t address = 0;  ///< of its first byte
    std::uint64_t bytes = 0;    ///< its length
    friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};

/// The tiles of this rank at its own end of the rows: sources if it sends, targets if it receives.
struct OwnTiles {
    std::span<const std::uint64_t> addresses;  ///< of the tile of each array
    std::uint64_t device = 0;                  ///< of this rank
};

/// The tiles of all ranks at the other end.
struct PeerTiles {
    std::span<const std::uint64_t> addresses;     ///< of array a on rank r at r * arrays + a; 0: unknown
    Index arrays = 0;                             ///< arrays of each rank
    std::span<const std::uint64_t> devices = {};  ///< of each rank; empty: 0 everywhere
};

/// The memory of rows at both ends. Element k of each list is the memory of row k.
struct AddressedRows {
    std::vector<StridedMemory> local;   ///< of this rank
    std::vector<StridedMemory> remote;  ///< of the peers
};

/// Adds the addresses of tiles to rows. `side` is the side of the rows, as given to RowSchedule::rows.
/// Errors: mismatch (a row with a negative number, without runs or without bytes; a row of an array or a peer without
/// an address); overflow (an address past 64 bits).
[[nodiscard]] Result<AddressedRows> addressed(std::span<const Row> rows, RowSide side, const OwnTiles& own,
                                              const PeerTiles& peers);

/// The blocks of strided memory, one by one, in order. Errors: unsupported (more than 2^32 blocks: pack the rows).
[[nodiscard]] Result<std::vector<MemoryBlock>> blocks_of(std::span<const StridedMemory> memory);

}  // namespace reshard
