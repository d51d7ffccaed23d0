#include "backends/mpi/window.hpp"

#include <algorithm>
#include <numeric>

namespace reshard::mpi {
namespace {

constexpr Index line_bytes = 64;

Region reordered(const Region& region, const std::vector<std::size_t>& order) {
    Region result{region.offset_bytes, region.element_bytes, {}, {}};
    for (const std::size_t k : order) {
        result.extents.push_back(region.extents[k]);
        result.strides_bytes.push_back(region.strides_bytes[k]);
    }
    return result;
}

bool runs_along(const Region& region, std::size_t k) { return region.strides_bytes[k] == region.element_bytes; }

// Dimensions in the order in which the target lies, so that a piece is a few long runs of it. A turned part goes in the
// order of the source: long runs are packed, and turned when they are copied out.
Part in_order(Part part) {
    bool turned = false;
    for (std::size_t k = 0; k < part.target.extents.size(); ++k) {
        turned = turned || (part.target.extents[k] > 1 && runs_along(part.source, k) && !runs_along(part.target, k));
    }
    const std::vector<Index> strides = turned ? part.source.strides_bytes : part.target.strides_bytes;
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < part.target.extents.size(); ++k) {
        if (part.target.extents[k] > 1) order.push_back(k);
    }
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return strides[a] > strides[b]; });
    part.source = reordered(part.source, order);
    part.target = reordered(part.target, order);
    return part;
}

Region packed_at(Index offset, const Region& like) {
    Region packed{offset, like.element_bytes, like.extents, like.extents};
    Index stride = like.element_bytes;
    for (std::size_t k = like.extents.size(); k-- > 0;) {
        packed.strides_bytes[k] = stride;
        stride *= like.extents[k];
    }
    return packed;
}

Region region_at(const Region& whole, const std::vector<Index>& at, std::vector<Index> extents) {
    Region region{whole.offset_bytes, whole.element_bytes, std::move(extents), whole.strides_bytes};
    for (std::size_t k = 0; k < at.size(); ++k) region.offset_bytes += at[k] * whole.strides_bytes[k];
    return region;
}

}  // namespace

std::vector<WindowSlot> deal_window(const std::vector<Index>& incoming, Index window_bytes) {
    const Index all = std::accumulate(incoming.begin(), incoming.end(), Index{0});
    const Index half = std::max(line_bytes, std::min(window_bytes / 2, all));
    std::vector<WindowSlot> slots(incoming.size());
    Index offset = 0;
    for (std::size_t i = 0; i < incoming.size(); ++i) {
        if (incoming[i] == 0) continue;
        // In proportion, without a product that leaves 64 bits.
        const auto share = static_cast<Index>(static_cast<double>(half) *
                                              (static_cast<double>(incoming[i]) / static_cast<double>(all)));
        slots[i].offset = offset;
        slots[i].bytes = std::min(std::max(share / line_bytes, Index{1}) * line_bytes,
                                  ceil_divide(incoming[i], line_bytes) * line_bytes);
        offset += slots[i].bytes;
    }
    for (WindowSlot& slot : slots) slot.half_bytes = offset;
    return slots;
}

Pieces::Pieces(std::vector<Part> parts) {
    for (Part& part : parts) parts_.push_back(in_order(std::move(part)));
    part_ = parts_.size();
}

void Pieces::restart(const std::vector<char>& staged) {
    staged_ = staged;
    part_ = 0;
    skip();
}

// To the next part that is staged.
void Pieces::skip() {
    while (part_ < parts_.size() && staged_[parts_[part_].array] == 0) ++part_;
    if (part_ < parts_.size()) at_.assign(parts_[part_].target.extents.size(), 0);
}

// As many whole inner dimensions as have room, and a piece of the next one. A piece never crosses an outer index.
bool Pieces::next(Index room, Index& used, Piece& piece) {
    if (finished()) return false;
    const Part& part = parts_[part_];
    const std::vector<Index>& extents = part.target.extents;
    Index inner = part.target.element_bytes;
    std::size_t cut = extents.size();  // the dimension that is cut; dimensions past it are whole
    while (cut > 0 && at_[cut - 1] == 0 && inner * extents[cut - 1] <= room - used) inner *= extents[--cut];
    std::vector<Index> taken(extents.size(), 1);
    for (std::size_t k = cut; k < extents.size(); ++k) taken[k] = extents[k];
    if (cut > 0) {
        taken[cut - 1] = std::min(extents[cut - 1] - at_[cut - 1], (room - used) / inner);
        // Whole cache lines of the target, where it runs along the dimension that is cut.
        const Index line = line_bytes / part.target.element_bytes;
        if (taken[cut - 1] > line && taken[cut - 1] < extents[cut - 1] - at_[cut - 1])
            taken[cut - 1] -= taken[cut - 1] % line;
        if (taken[cut - 1] == 0) return false;
        inner *= taken[cut - 1];
    } else if (inner > room - used) {
        return false;
    }
    piece.array = part.array;
    piece.source = region_at(part.source, at_, taken);
    piece.target = region_at(part.target, at_, taken);
    piece.packed = packed_at(used, piece.target);
    used += inner;
    if (cut == 0) {
        ++part_;
        skip();
        return true;
    }
    at_[cut - 1] += taken[cut - 1];
    for (std::size_t k = cut; k-- > 0 && at_[k] == extents[k];) {
        at_[k] = 0;
        if (k > 0) {
            ++at_[k - 1];
        } else {
            ++part_;
            skip();
        }
    }
    return true;
}

void Pieces::pack(std::byte* slot, Index slot_bytes, const std::vector<const std::byte*>& sources) {
    Piece piece;
    for (Index used = 0; next(slot_bytes, used, piece);) {
        BoxCopy(piece.source, piece.packed).run(sources[piece.array], slot);
    }
}

void Pieces::unpack(const std::byte* slot, Index slot_bytes, const std::vector<std::byte*>& targets, Store store) {
    Piece piece;
    for (Index used = 0; next(slot_bytes, used, piece);) {
        BoxCopy(piece.packed, piece.target).run(slot, targets[piece.array], store);
    }
}

}  // namespace reshard::mpi
