// Direct or packed: whether the runs of a peer go one by one, or packed into bounded staging memory.
#pragma once

#include "reshard/model/rows.hpp"

namespace reshard {

/// The bytes of all runs of the rows. Errors: mismatch (a row with a negative number, without runs or without bytes);
/// overflow.
[[nodiscard]] Result<Index> packed_bytes(std::span<const Row> rows);

/// The costs of a transport, as measured. reshard.rows.measure_costs measures them for a transport written in Python.
struct TransferCosts {
    Index block_picoseconds = 0;      ///< for each block of memory, however small
    Index wire_bytes_per_second = 1;  ///< of large blocks
    Index pack_bytes_per_second = 1;  ///< bytes that are packed at one end and unpacked at the other
    friend bool operator==(const TransferCosts&, const TransferCosts&) = default;
};

/// How the rows of one peer go.
struct PeerTransfer {
    Index peer = 0;
    bool packed = false;           ///< packing takes less time
    Index bytes = 0;               ///< of all its rows
    Index blocks = 0;              ///< runs of all its rows
    Index direct_picoseconds = 0;  ///< if every run is a block
    Index packed_picoseconds = 0;  ///< if every bucket is a block, packed and unpacked
    friend bool operator==(const PeerTransfer&, const PeerTransfer&) = default;
};

/// Decides for each peer, ascending. Both ends of a pair decide the same, because their rows have the same runs. Local
/// copies (peer == rank) are left out. `staging_bytes` is the size of a bucket.
/// Errors: usage (a rate or a size below 1, a negative time); as packed_bytes.
[[nodiscard]] Result<std::vector<PeerTransfer>> choose_transfers(std::span<const Row> rows, Index rank,
                                                                 const TransferCosts& costs, Index staging_bytes);

/// Cuts rows into buckets of at most `staging_bytes` packed bytes, in order. Both ends cut at the same bytes. A run
/// that does not fit a bucket is cut too. Errors: usage (a size below 1); as packed_bytes.
[[nodiscard]] Result<std::vector<std::vector<Row>>> buckets_of(std::span<const Row> rows, Index staging_bytes);

}  // namespace reshard
