// Direct or packed: whether the runs of a peer go one by one, or packed into bounded staging memory.
#pragma once

#include "reshard/model/rows.hpp"

namespace reshard {

/// The bytes of all runs of the rows. Errors: mismatch (a row with a negative number, without runs or without bytes);
/// overflow.
[[nodiscard]] Result<Index> packed_bytes(std::span<const Row> rows);

/// The costs of one way to move rows, as measured. They add up.
struct WayCosts {
    Index message_picoseconds = 0;  ///< for each call of the transport
    Index run_picoseconds = 0;      ///< for each run, however short
    Index bytes_per_second = 1;     ///< of long runs
    friend bool operator==(const WayCosts&, const WayCosts&) = default;
};

/// The costs of a transport. reshard.rows.measure_costs measures them for a transport written in Python.
struct TransferCosts {
    WayCosts direct;  ///< one message for all runs of a peer
    WayCosts packed;  ///< one message for each bucket: its runs are packed, sent and unpacked
    friend bool operator==(const TransferCosts&, const TransferCosts&) = default;
};

/// How the rows of one peer go.
struct PeerTransfer {
    Index peer = 0;                ///< the rank at the other end
    bool packed = false;           ///< packing takes less time
    Index bytes = 0;               ///< of all its rows
    Index blocks = 0;              ///< runs of all its rows
    Index direct_picoseconds = 0;  ///< if the transport moves every run by itself
    Index packed_picoseconds = 0;  ///< if the runs go in buckets
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
