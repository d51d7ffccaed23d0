#include "backends/mpi/shm/bounce_pieces.hpp"

#include <algorithm>

#include "src/base/cache_line.hpp"

namespace reshard::mpi {
namespace {

constexpr Index piece_bytes = Index{64} << 10;  // of several rows, so that rows for several peers are dealt in turn
constexpr Index strip = 64;                     // elements of a transposed piece along the source; fits the kernels

// One dimension of a part, and how it is cut.
struct Dim {
    Index extent;
    Index source_stride;
    Index target_stride;
    Index block;  // elements of a piece
};

// Cuts evenly, rather than into full blocks and a rest.
Index even_block(Index extent, Index most) {
    return ceil_divide(extent, ceil_divide(extent, std::max(most, Index{1})));
}

// Takes inner dimensions whole as long as they fit, then a block of the next one, and single indices of the others.
void cut_rows(std::vector<Dim>& dims, Index packed_bytes, Index target_bytes, Index slot_bytes) {
    Index inner = packed_bytes;
    bool whole = true;
    for (std::size_t k = dims.size(); k-- > 0;) {
        Dim& dim = dims[k];
        if (!whole) {
            dim.block = 1;
        } else if (inner * dim.extent <= slot_bytes) {
            dim.block = dim.extent;
            inner *= dim.extent;
        } else {
            dim.block = even_block(dim.extent, slot_bytes / inner);
            // Whole cache lines of the target, if this dimension is contiguous there.
            const Index line = line_bytes / target_bytes;
            if (dim.target_stride == target_bytes && dim.block > line) dim.block -= dim.block % line;
            whole = false;
        }
    }
}

using Found = std::vector<Dim>::iterator;

// Squares have long runs on both sides.
void cut_square(Found source_run, Found target_run, Index packed_bytes, Index target_bytes, Index slot_bytes) {
    const Index room = slot_bytes / packed_bytes;
    const Index line = line_bytes / target_bytes;
    source_run->block = std::min(source_run->extent, strip);
    target_run->block = std::min(target_run->extent, room / source_run->block);
    if (target_run->block > line) target_run->block -= target_run->block % line;
    if (target_run->block == target_run->extent) {
        source_run->block = std::min(source_run->extent, room / target_run->block);
    }
}

std::vector<Dim> dims_of(const PeerRegion& part) {
    std::vector<Dim> dims;
    for (std::size_t k = 0; k < part.target.extents.size(); ++k) {
        if (part.target.extents[k] == 1) continue;
        dims.push_back({part.target.extents[k], part.source.strides_bytes[k], part.target.strides_bytes[k], 1});
    }
    return dims;
}

// The bytes of an element in a slot.
Index packed_element(const PeerRegion& part) { return std::min(part.source.element_bytes, part.target.element_bytes); }

// The dimensions, in packing order. A transposed part follows the order of the source: long runs
// are packed, and transposed when they are copied out.
std::vector<Dim> cut_dims(const PeerRegion& part, Index slot_bytes) {
    slot_bytes = std::min(slot_bytes, piece_bytes);
    const Index target_bytes = part.target.element_bytes;
    std::vector<Dim> dims = dims_of(part);
    const auto find_source = [&] { return std::ranges::find(dims, part.source.element_bytes, &Dim::source_stride); };
    const auto find_target = [&] { return std::ranges::find(dims, target_bytes, &Dim::target_stride); };
    const bool transposed = find_source() != dims.end() && find_source() != find_target();
    const auto stride = transposed ? &Dim::source_stride : &Dim::target_stride;
    std::ranges::stable_sort(dims, [&](const Dim& a, const Dim& b) { return a.*stride > b.*stride; });
    const auto source_run = find_source();
    const auto target_run = find_target();
    const bool square = transposed && target_run != dims.end() && sent_bytes(part) > slot_bytes &&
                        source_run->extent >= strip && target_run->extent >= strip && slot_bytes >= strip * line_bytes;
    if (square) {
        cut_square(source_run, target_run, packed_element(part), target_bytes, slot_bytes);
    } else {
        cut_rows(dims, packed_element(part), target_bytes, slot_bytes);
    }
    return dims;
}

// The copy of a block of a part, where it begins in the part's first block. Packed, its elements are dense, in the
// order of the dimensions. The packed block has `bytes` bytes.
BoxCopy copy_of_block(const PeerRegion& part, const std::vector<Dim>& dims, std::vector<Index> extents,
                      BouncePieces::Side side, Index& bytes) {
    using Side = BouncePieces::Side;
    const ElementCast cast = side == Side::both     ? part.cast
                             : side == Side::sender ? at_sender(part.cast)
                                                    : at_receiver(part.cast);
    Region source{part.source.offset_bytes, part.source.element_bytes, std::move(extents), {}};
    Region target{part.target.offset_bytes, part.target.element_bytes, source.extents, {}};
    for (const Dim& dim : dims) {
        source.strides_bytes.push_back(dim.source_stride);
        target.strides_bytes.push_back(dim.target_stride);
    }
    Region packed{0, packed_element(part), source.extents, source.extents};
    bytes = packed_element(part);
    for (std::size_t k = dims.size(); k-- > 0; bytes *= source.extents[k]) packed.strides_bytes[k] = bytes;
    return {side == Side::receiver ? packed : source, side == Side::sender ? packed : target, cast};
}

}  // namespace

BoxCopy copy_of_part(const PeerRegion& part, BouncePieces::Side side) {
    std::vector<Dim> dims = dims_of(part);
    std::ranges::stable_sort(dims, std::ranges::greater(), &Dim::target_stride);
    std::vector<Index> extents;
    for (const Dim& dim : dims) extents.push_back(dim.extent);
    Index bytes = 0;
    return copy_of_block(part, dims, std::move(extents), side, bytes);
}

Index place_of(const PeerRegion& part, Index used) {
    const Index unit = std::min(part.source.element_bytes, part.target.element_bytes);
    return ceil_divide(used, unit) * unit;
}

PackedParts::PackedParts(const std::vector<PeerRegion>& parts, std::size_t peer, BouncePieces::Side side) {
    for (const PeerRegion& part : parts) {
        if (part.peer != peer) continue;
        const Index place = place_of(part, bytes_);
        parts_.push_back({part.array, place, copy_of_part(part, side)});
        bytes_ = place + sent_bytes(part);
    }
}

void PackedParts::pack(const std::vector<const std::byte*>& sources, std::byte* message) const {
    for (const Part& part : parts_) part.copy.run(sources[part.array], message + part.place);
}

void PackedParts::unpack(const std::byte* message, const std::vector<std::byte*>& targets) const {
    for (const Part& part : parts_) part.copy.run(message + part.place, targets[part.array]);
}

BouncePieces::Grid BouncePieces::grid_of(const PeerRegion& part, Index slot_bytes, Side side) {
    Grid grid;
    grid.array = part.array;
    const std::vector<Dim> dims = cut_dims(part, slot_bytes);
    std::size_t shapes = 1;
    for (const Dim& dim : dims) {
        grid.cuts.push_back({ceil_divide(dim.extent, dim.block), dim.block * dim.source_stride,
                             dim.block * dim.target_stride, dim.extent % dim.block != 0});
        if (grid.cuts.back().shorter) shapes *= 2;
    }
    for (std::size_t shape = 0; shape < shapes; ++shape) {
        std::vector<Index> extents;
        std::size_t bit = 1;
        for (std::size_t k = 0; k < dims.size(); ++k) {
            const bool last = grid.cuts[k].shorter && (shape & bit) != 0;
            if (grid.cuts[k].shorter) bit *= 2;
            extents.push_back(last ? dims[k].extent % dims[k].block : dims[k].block);
        }
        grid.copies.push_back(copy_of_block(part, dims, std::move(extents), side, grid.bytes.emplace_back()));
    }
    return grid;
}

BouncePieces::BouncePieces(const std::vector<PeerRegion>& parts, Index slot_bytes, Side side)
    : slot_bytes_(slot_bytes) {
    std::size_t most_cuts = 0;
    for (const PeerRegion& part : parts) {
        parts_.push_back(grid_of(part, slot_bytes, side));
        bytes_ += sent_bytes(part);
        most_cuts = std::max(most_cuts, parts_.back().cuts.size());
    }
    part_ = parts_.size();
    at_.reserve(most_cuts);
}

bool BouncePieces::in_rows() const {
    return std::ranges::any_of(parts_, [](const Grid& part) { return part.copies.front().in_rows(); });
}

void BouncePieces::restart(const std::vector<char>& staged) {
    staged_ = staged;
    part_ = 0;
    skip();
}

// Goes to the next part that is staged.
void BouncePieces::skip() {
    while (part_ < parts_.size() && staged_[parts_[part_].array] == 0) ++part_;
    if (part_ < parts_.size()) at_.assign(parts_[part_].cuts.size(), 0);
}

void BouncePieces::advance() {
    const std::vector<Cut>& cuts = parts_[part_].cuts;
    for (std::size_t k = cuts.size(); k-- > 0; at_[k] = 0) {
        if (++at_[k] < cuts[k].blocks) return;
    }
    ++part_;
    skip();
}

// Empty if all pieces have moved, or if the slot has no room for the next one.
std::optional<BouncePieces::Piece> BouncePieces::next(Index& used) {
    if (finished()) return std::nullopt;
    const Grid& part = parts_[part_];
    std::size_t shape = 0;
    std::size_t bit = 1;
    Piece piece{nullptr, part.array, 0, 0, used};
    for (std::size_t k = 0; k < part.cuts.size(); ++k) {
        const Cut& cut = part.cuts[k];
        piece.source += at_[k] * cut.source_stride;
        piece.target += at_[k] * cut.target_stride;
        if (!cut.shorter) continue;
        if (at_[k] + 1 == cut.blocks) shape |= bit;
        bit *= 2;
    }
    if (part.bytes[shape] > slot_bytes_ - used) return std::nullopt;
    piece.copy = &part.copies[shape];
    used += part.bytes[shape];
    advance();
    return piece;
}

bool BouncePieces::pack(std::byte* slot, Index& used, const std::vector<const std::byte*>& sources,
                        DealtCopies& copies) {
    const auto piece = next(used);
    if (piece) copies.add(*piece->copy, sources[piece->array] + piece->source, slot + piece->place);
    return piece.has_value();
}

bool BouncePieces::move(const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets,
                        Store store) {
    Index used = 0;
    const auto piece = next(used);
    if (piece) {
        piece->copy->run(sources[piece->array] + piece->source, targets[piece->array] + piece->target, store);
    }
    return piece.has_value();
}

void BouncePieces::unpack(const std::byte* slot, const std::vector<std::byte*>& targets, Store store) {
    Index used = 0;
    while (const auto piece = next(used)) {
        piece->copy->run(slot + piece->place, targets[piece->array] + piece->target, store);
    }
}

}  // namespace reshard::mpi
