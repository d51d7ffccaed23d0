#include "reshard/model/transfer.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/row_end.hpp"

namespace reshard {

namespace {

Result<void> at_least(Index value, Index least, std::string_view what) {
    if (value >= least) return {};
    return fail(Code::usage, fmt::format("{} is {}; at least {} is needed", what, value, least));
}

Result<void> well_formed(const WayCosts& costs) {
    RESHARD_CHECK(at_least(costs.message_picoseconds, 0, "the time of a message"));
    RESHARD_CHECK(at_least(costs.run_picoseconds, 0, "the time of a run"));
    return at_least(costs.bytes_per_second, 1, "the bytes per second");
}

Index picoseconds_of(const WayCosts& costs, Index messages, const PeerTransfer& transfer) {
    const Index bytes = transfer_picoseconds(transfer.bytes, costs.bytes_per_second);
    return saturating_add(saturating_multiply(messages, costs.message_picoseconds),
                          saturating_add(saturating_multiply(transfer.blocks, costs.run_picoseconds), bytes));
}

// The part of a row from its run `first` on, with `runs` runs.
Row part_of(Row row, Index first, Index runs) {
    row.source_offset += first * row.source_stride;
    row.target_offset += first * row.target_stride;
    row.runs = runs;
    if (runs == 1) row.source_stride = row.target_stride = 0;
    return row;
}

// The bytes of one run from `begin` on.
Row part_of_run(const Row& row, Index run, Index begin, Index bytes) {
    Row part = part_of(row, run, 1);
    part.source_offset += begin;
    part.target_offset += begin;
    part.run_bytes = bytes;
    return part;
}

// Buckets that are filled one after another.
class Buckets {
public:
    explicit Buckets(Index size) : size_(size) {}

    void add(const Row& row) {
        for (Index run = 0; run < row.runs;) {
            if (row.run_bytes > size_) {
                add_in_pieces(row, run++);
                continue;
            }
            if (row.run_bytes > left_) open();
            const Index runs = std::min(row.runs - run, left_ / row.run_bytes);
            put(part_of(row, run, runs));
            run += runs;
        }
    }
    std::vector<std::vector<Row>> filled() && { return std::move(buckets_); }

private:
    void add_in_pieces(const Row& row, Index run) {
        for (Index begin = 0; begin < row.run_bytes;) {
            if (left_ == 0) open();
            const Index bytes = std::min(left_, row.run_bytes - begin);
            put(part_of_run(row, run, begin, bytes));
            begin += bytes;
        }
    }
    void open() {
        buckets_.emplace_back();
        left_ = size_;
    }
    void put(const Row& row) {
        buckets_.back().push_back(row);
        left_ -= row.runs * row.run_bytes;
    }

    Index size_;
    Index left_ = 0;
    std::vector<std::vector<Row>> buckets_;
};

}  // namespace

Result<Index> packed_bytes(std::span<const Row> rows) {
    Index total = 0;
    for (const Row& row : rows) {
        RESHARD_CHECK(well_formed(row));
        const auto bytes = checked_multiply(row.runs, row.run_bytes);
        const auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
        if (!sum) return fail(Code::overflow, "the bytes of the rows do not fit 64 bits");
        total = *sum;
    }
    return total;
}

Result<std::vector<PeerTransfer>> choose_transfers(std::span<const Row> rows, Index rank, const TransferCosts& costs,
                                                   Index staging_bytes) {
    RESHARD_CHECK(packed_bytes(rows));
    RESHARD_CHECK(well_formed(costs.direct));
    RESHARD_CHECK(well_formed(costs.packed));
    RESHARD_CHECK(at_least(staging_bytes, 1, "the size of a bucket"));
    std::map<Index, PeerTransfer> of_peer;
    for (const Row& row : rows) {
        if (row.peer == rank) continue;
        PeerTransfer& transfer = of_peer[row.peer];
        transfer.bytes += row.runs * row.run_bytes;
        transfer.blocks += row.runs;
    }
    std::vector<PeerTransfer> transfers;
    for (auto& [peer, transfer] : of_peer) {
        transfer.peer = peer;
        transfer.direct_picoseconds = picoseconds_of(costs.direct, 1, transfer);
        transfer.packed_picoseconds =
            picoseconds_of(costs.packed, ceil_divide(transfer.bytes, staging_bytes), transfer);
        transfer.packed = transfer.packed_picoseconds < transfer.direct_picoseconds;
        transfers.push_back(transfer);
    }
    return transfers;
}

Result<std::vector<std::vector<Row>>> buckets_of(std::span<const Row> rows, Index staging_bytes) {
    RESHARD_CHECK(packed_bytes(rows));
    RESHARD_CHECK(at_least(staging_bytes, 1, "the size of a bucket"));
    Buckets buckets(staging_bytes);
    for (const Row& row : rows) buckets.add(row);
    return std::move(buckets).filled();
}

}  // namespace reshard
