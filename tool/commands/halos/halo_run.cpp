#include "tool/commands/halos/halo_run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "src/base/try.hpp"
#include "src/copy/copy.hpp"
#include "tool/ranks/session.hpp"

namespace reshard::cli {
namespace {

constexpr std::byte mark{0xa5};

// Cells of one dimension, and the elements that they hold.
struct Segment {
    Interval cells;
    Interval elements;
};

// Cuts cells of a periodic dimension where the array repeats.
std::vector<Segment> segments_of(const Interval& cells, Index extent) {
    std::vector<Segment> segments;
    for (Index begin = cells.begin; begin < cells.end;) {
        const Index repeat = begin >= 0 ? begin / extent : -ceil_divide(-begin, extent);
        const Index up = repeat * extent;
        const Index end = std::min(cells.end, up + extent);
        segments.push_back({{begin, end}, {begin - up, end - up}});
        begin = end;
    }
    return segments;
}

// visit(cells, elements) for boxes without a repeat.
template <class Visit>
Result<void> each_segment(const Layout& owned, const Box& cells, const Visit& visit, Box elements = {}) {
    const std::size_t dim = elements.size();
    if (dim == cells.size()) return visit(cells, elements);
    for (const Segment& one : segments_of(cells[dim], owned.dims[dim].extent)) {
        Box narrower = cells;
        narrower[dim] = one.cells;
        Box with = elements;
        with.push_back(one.elements);
        RESHARD_CHECK(each_segment(owned, narrower, visit, std::move(with)));
    }
    return {};
}

// Writes the elements of `cells` where they lie in an array with halos. `place` is where the first cell lies.
Result<void> write_cells(Values& values, const HaloLayout& layout, Index rank, const Tile& cells, const Box& place,
                         std::span<std::byte> array) {
    const Index size = size_of(layout.owned.dtype);
    Tile whole;
    for (const Index extent : array_shape(layout, rank)) whole.push_back(Side{{{0, extent}}});
    Storage storage = row_major(whole);
    for (std::size_t k = 0; k < place.size(); ++k) storage.offset += place[k].begin * storage.strides[k];
    const Slot slot{BufferId::target, 0, cells, storage};
    std::vector<std::byte> dense;
    const auto write = [&](const Box& part, const Box& elements) -> Result<void> {
        dense.resize(static_cast<std::size_t>(count(part) * size));
        RESHARD_CHECK(values.total(elements, dense));
        BoxCopy(packed_region(part, size), region_of(slot, part, size)).run(dense.data(), array.data());
        return {};
    };
    for (const Box& box : boxes_of(cells)) RESHARD_CHECK(each_segment(layout.owned, box, write));
    return {};
}

Index array_bytes(const HaloLayout& layout, Index rank) {
    Index bytes = size_of(layout.owned.dtype);
    for (const Index extent : array_shape(layout, rank)) bytes *= extent;
    return bytes;
}

}  // namespace

Result<std::unique_ptr<HaloRun>> HaloRun::make(Rank& rank, const HaloRequest& asked, HaloWay way) {
    const bool on_device = rank.backend().on_device();
    RESHARD_CHECK(
        agree(rank, on_device ? fail(Code::unsupported, "halos run on the backends local and mpi") : Result<void>()));
    RESHARD_TRY(auto& exchange, agree(rank, HaloExchange::prepare(std::span(&asked.move, 1), rank.backend(), {},
                                                                  {asked.machine, way})));
    std::unique_ptr<HaloRun> made(new HaloRun(std::move(exchange), asked.move));
    made->values_ = generated(source_of(asked.move).owned, false);
    const Index bytes = array_bytes(asked.move.target, rank.index());
    RESHARD_CHECK(enough_memory(rank, saturating_multiply(4, bytes)));
    RESHARD_CHECK(agree(rank, made->take_memory(rank)));
    return made;
}

Result<void> HaloRun::take_memory(Rank& rank) {
    const HaloLayout& target = move_.target;
    const Index bytes = array_bytes(target, rank.index());
    RESHARD_ASSIGN(array_, rank.backend().allocate(bytes));
    expected_.assign(static_cast<std::size_t>(bytes), mark);
    start_ = expected_;
    RESHARD_CHECK(write_cells(*values_, target, rank.index(), held_cells(target, rank.index()),
                              filled_of(target, rank.index()), expected_));
    Buffers buffers{{}, array(), {}};
    if (move_.source) {
        const HaloLayout source = source_of(move_);
        RESHARD_ASSIGN(source_, rank.backend().allocate(array_bytes(source, rank.index())));
        std::ranges::fill(source_->bytes(), mark);
        RESHARD_CHECK(write_cells(*values_, source, rank.index(), tile(source.owned, rank.index()),
                                  core_of(source, rank.index()), source_->bytes()));
        buffers.source = source_->bytes();
    } else {
        RESHARD_CHECK(write_cells(*values_, target, rank.index(), tile(target.owned, rank.index()),
                                  core_of(target, rank.index()), start_));
    }
    RESHARD_ASSIGN(bound_, exchange_.bind(std::span(&buffers, 1)));
    return {};
}

Result<double> HaloRun::fill(Rank& rank) {
    std::ranges::copy(start_, array().begin());
    rank.barrier();
    const auto begin = std::chrono::steady_clock::now();
    auto ticket = bound_->start();
    const auto done = ticket ? (*ticket)->wait() : tl::unexpected(ticket.error());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    RESHARD_CHECK(agree(rank, done));
    return largest(rank, std::vector<double>{taken.count()}).front();
}

Verified HaloRun::verify(Rank& rank) const {
    const auto size = static_cast<std::size_t>(size_of(move_.target.owned.dtype));
    Index wrong = 0;
    for (std::size_t at = 0; at < expected_.size(); at += size)
        wrong += std::memcmp(&array()[at], &expected_[at], size) == 0 ? 0 : 1;
    const std::vector<Index> all = sum(rank, {wrong, static_cast<Index>(expected_.size() / size)});
    return {all[0], all[1]};
}

Index HaloRun::received_bytes(Rank& rank) const {
    return largest(rank, std::vector<Index>{exchange_.received_bytes()}).front();
}

}  // namespace reshard::cli
