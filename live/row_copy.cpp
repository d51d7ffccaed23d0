#include "live/row_copy.hpp"

namespace reshard::live {
namespace {

// Shorter runs share too many lines with their neighbours: past the caches such a copy takes twice as long.
constexpr Index streamed_run_min = Index{64} << 10;

}  // namespace

RowCopy::RowCopy(const WantedMoves& moves, Index publisher, Store store)
    : moves_(moves), publisher_(publisher), large_(store) {}

void RowCopy::enter(Index move) {
    if (move == move_) return;
    leave();
    move_ = move;
    const WantedMoves::Move& one = moves_.moves()[static_cast<std::size_t>(move)];
    if (one.weight == 0) return;
    places_.emplace(moves_.tensors()[one.tensor].layout, publisher_);
    sum_.emplace(moves_.keys(), static_cast<Index>(one.tensor));
}

void RowCopy::leave() {
    if (sum_) part_ = added(part_, weighted(sum_->total(), moves_.moves()[static_cast<std::size_t>(move_)].weight));
    sum_.reset();
    places_.reset();
    move_ = -1;
}

void RowCopy::copy(Index offset, Index bytes, const std::byte* from, std::byte* to) {
    const Store store = bytes < streamed_run_min ? Store::cached : large_;
    if (!sum_) return copy_kernels().rows[static_cast<std::size_t>(store)]({1, bytes, 0, 0}, from, to);
    places_->each(offset, bytes, [&](Index position, Index size) {
        sum_->copy(from, to, position, size, store);
        from += size;
        to += size;
    });
}

void RowCopy::row(const Row& row, const std::byte* source, std::byte* target) {
    enter(row.array);
    const std::byte* const from = source + row.source_offset;
    std::byte* const to = target + row.target_offset;
    const Rows rows{row.runs, row.run_bytes, row.source_stride, row.target_stride};
    const Store store = row.run_bytes < streamed_run_min ? Store::cached : large_;
    if (!sum_) return copy_kernels().rows[static_cast<std::size_t>(store)](rows, from, to);
    for (Index run = 0; run < row.runs; ++run)
        copy(row.source_offset + run * row.source_stride, row.run_bytes, from + run * row.source_stride,
             to + run * row.target_stride);
}

void RowCopy::piece(const Row& row, Index run, Index place, std::span<const std::byte> bytes, std::byte* target) {
    enter(row.array);
    copy(row.source_offset + run * row.source_stride + place, std::ssize(bytes), bytes.data(),
         target + row.target_offset + run * row.target_stride + place);
}

std::uint64_t RowCopy::end() {
    leave();
    if (large_ == Store::streaming) store_fence();
    return part_;
}

}  // namespace reshard::live
