#include "files/engine/geometry.hpp"

#include <tuple>

#include "files/base/cast.hpp"
#include "files/engine/stored_view.hpp"
#include "files/formats/safetensors.hpp"

namespace reshard::files {

namespace {

// The common part of a block and one stored box of the target.
struct Piece {
    std::size_t tensor = 0;
    Box box;
    Index file = 0;
    Region in_file;
    Region in_memory;
    Index begin = 0;
    Index end = 0;
};

Index span_of(const Region& region) {
    Index span = region.element_bytes;
    for (std::size_t k = 0; k < region.extents.size(); ++k) span += (region.extents[k] - 1) * region.strides_bytes[k];
    return span;
}

Region region_in(const StoredBox& stored, const Box& box, Index element_bytes) {
    Region region{stored.offset, element_bytes, {}, stored.strides};
    for (std::size_t k = 0; k < box.size(); ++k) {
        region.offset_bytes += (box[k].begin - stored.box[k].begin) * stored.strides[k];
        region.extents.push_back(box[k].size());
    }
    return region;
}

class Maker {
public:
    explicit Maker(const Job& job) : job_(job) {}

    Geometry make(const Batch& batch) {
        for (const Block& block : batch) {
            const StoredTensor& tensor = job_.target.what.tensors[block.tensor];
            job_.target_boxes[block.tensor].meeting(block.box, [&](const StoredBox& stored, Box shared) {
                Region region = region_in(stored, shared, size_of(tensor.dtype));
                const Index begin = region.offset_bytes;
                const Index end = begin + span_of(region);
                pieces_.push_back({block.tensor, std::move(shared), stored.file, std::move(region), {}, begin, end});
            });
        }
        const auto place = [](const Piece& piece) { return std::tuple(piece.file, piece.begin, piece.end); };
        std::ranges::stable_sort(pieces_, {}, place);
        for (std::size_t first = 0; first < pieces_.size();) first = place_group(first);
        for (const Piece& piece : pieces_) read_for(piece);
        join_reads();
        return std::move(made_);
    }

private:
    // If pieces whose spans overlap in the file leave no hole, they lie in memory as in the file. Otherwise each is
    // dense.
    std::size_t place_group(std::size_t first) {
        std::size_t last = first;
        Index end = pieces_[first].end;
        Index held = 0;
        for (; last < pieces_.size() && pieces_[last].file == pieces_[first].file &&
               (last == first || pieces_[last].begin < end);
             ++last) {
            end = std::max(end, pieces_[last].end);
            held += bytes_of(pieces_[last].in_file);
        }
        const Index begin = pieces_[first].begin;
        if (held == end - begin) {
            for (std::size_t i = first; i < last; ++i) {
                pieces_[i].in_memory = pieces_[i].in_file;
                pieces_[i].in_memory.offset_bytes += made_.memory_bytes - begin;
            }
            append({pieces_[first].file, begin, end, made_.memory_bytes});
            made_.memory_bytes += held;
            return last;
        }
        for (std::size_t i = first; i < last; ++i) {
            const Region& region = pieces_[i].in_file;
            pieces_[i].in_memory = {made_.memory_bytes, region.element_bytes, region.extents,
                                    dense_strides(region.extents, region.element_bytes)};
            made_.runs.push_back({pieces_[i].file, region, made_.memory_bytes});
            made_.memory_bytes += bytes_of(region);
        }
        return last;
    }

    void append(const WriteRange& write) {
        const bool goes_on = !made_.writes.empty() && made_.writes.back().file == write.file &&
                             made_.writes.back().end == write.begin &&
                             made_.writes.back().memory + write.begin - made_.writes.back().begin == write.memory;
        if (goes_on) {
            made_.writes.back().end = write.end;
        } else {
            made_.writes.push_back(write);
        }
    }

    void read_for(const Piece& piece) {
        const StoredTensor& tensor = job_.target.what.tensors[piece.tensor];
        if (!tensor.fill.empty()) {
            FilledBox filled{piece.in_memory, {}};
            std::copy_n(reinterpret_cast<const std::byte*>(tensor.fill.data()), tensor.fill.size(),
                        filled.element.begin());
            made_.fills.push_back(std::move(filled));
        }
        for (std::size_t i = job_.first_move[piece.tensor]; i < job_.first_move[piece.tensor + 1]; ++i) {
            const Move& move = job_.moves[i];
            if (move.target_view.empty()) {
                read_for(piece, move);
                continue;
            }
            const StoredBox stored{piece.box, 0, piece.in_memory.offset_bytes, piece.in_memory.strides_bytes};
            for (StoredBox& one : in_view(stored, tensor.shape, move.target_view)) {
                Piece part{piece.tensor, std::move(one.box), piece.file, {}, {}, 0, 0};
                part.in_memory = {one.offset, piece.in_memory.element_bytes, extents_of(part.box), one.strides};
                read_for(part, move);
            }
        }
    }

    static std::vector<Index> extents_of(const Box& box) {
        std::vector<Index> extents;
        for (const Interval& side : box) extents.push_back(side.size());
        return extents;
    }

    void read_for(const Piece& piece, const Move& move) {
        const Box wanted = intersect(piece.box, move.to);
        if (count(wanted) == 0) return;
        if (!job_.source.tensors[move.source].fill.empty()) fill(piece, move, wanted);
        Box from = move.from;
        for (std::size_t k = 0; k < wanted.size(); ++k) {
            if (!move.source_dims[k]) continue;
            const Index shift = move.from[*move.source_dims[k]].begin - move.to[k].begin;
            from[*move.source_dims[k]] = {wanted[k].begin + shift, wanted[k].end + shift};
        }
        job_.source_boxes[move.source].meeting(
            from, [&](const StoredBox& stored, const Box& shared) { add(piece, move, stored, shared); });
    }

    void fill(const Piece& piece, const Move& move, const Box& wanted) {
        const StoredTensor& source = job_.source.tensors[move.source];
        const DType to = job_.target.what.tensors[move.target].dtype;
        FilledBox filled{piece.in_memory, {}};
        for (std::size_t k = 0; k < wanted.size(); ++k) {
            filled.in_memory.offset_bytes += (wanted[k].begin - piece.box[k].begin) * piece.in_memory.strides_bytes[k];
            filled.in_memory.extents[k] = wanted[k].size();
        }
        const auto* const element = reinterpret_cast<const std::byte*>(source.fill.data());
        if (source.dtype == to) {
            std::copy_n(element, source.fill.size(), filled.element.begin());
        } else {
            cast_box(source.dtype, to, {0, size_of(source.dtype), {}, {}}, {0, size_of(to), {}, {}}, element,
                     filled.element.data());
        }
        made_.fills.push_back(std::move(filled));
    }

    void add(const Piece& piece, const Move& move, const StoredBox& stored, const Box& shared) {
        Overlap overlap;
        overlap.file = stored.file;
        overlap.from = job_.source.tensors[move.source].dtype;
        overlap.swapped = job_.source.tensors[move.source].swapped;
        overlap.to = job_.target.what.tensors[move.target].dtype;
        const Region whole = region_in(stored, shared, size_of(overlap.from));
        overlap.in_file = {whole.offset_bytes, whole.element_bytes, {}, {}};
        overlap.in_memory = {piece.in_memory.offset_bytes, piece.in_memory.element_bytes, {}, {}};
        for (std::size_t k = 0; k < piece.box.size(); ++k) {
            const auto& dim = move.source_dims[k];
            const Index begin = move.to[k].begin + (dim ? shared[*dim].begin - move.from[*dim].begin : 0);
            overlap.in_file.extents.push_back(dim ? shared[*dim].size() : 1);
            overlap.in_file.strides_bytes.push_back(dim ? whole.strides_bytes[*dim] : 0);
            overlap.in_memory.strides_bytes.push_back(piece.in_memory.strides_bytes[k]);
            overlap.in_memory.offset_bytes += (begin - piece.box[k].begin) * piece.in_memory.strides_bytes[k];
        }
        overlap.in_memory.extents = overlap.in_file.extents;
        append(std::move(overlap));
    }

    // Splits an overlap whose holes are longer than gap_max, so that its parts are read one by one.
    void append(Overlap overlap) {
        const Region& region = overlap.in_file;
        std::size_t outer = 0;
        for (std::size_t k = 1; k < region.extents.size(); ++k)
            if (region.extents[k] > 1 &&
                (region.extents[outer] == 1 || region.strides_bytes[k] > region.strides_bytes[outer]))
                outer = k;
        const Index span = span_of(region);
        overlap.begin = region.offset_bytes;
        overlap.end = region.offset_bytes + span;
        const Index extent = region.extents.empty() ? 1 : region.extents[outer];
        if (extent > 1 &&
            region.strides_bytes[outer] - (span - (extent - 1) * region.strides_bytes[outer]) > gap_max()) {
            for (Index i = 0; i < extent; ++i) {
                Overlap slice = overlap;
                slice.in_file.extents[outer] = slice.in_memory.extents[outer] = 1;
                slice.in_file.offset_bytes += i * overlap.in_file.strides_bytes[outer];
                slice.in_memory.offset_bytes += i * overlap.in_memory.strides_bytes[outer];
                append(std::move(slice));
            }
            return;
        }
        made_.overlaps.push_back(std::move(overlap));
    }

    // A hole up to this length is read rather than left out.
    Index gap_max() const { return job_.granule / 8; }

    void join_reads() {
        std::ranges::stable_sort(made_.overlaps, {},
                                 [](const Overlap& one) { return std::tuple(one.file, one.begin, one.end); });
        for (std::size_t i = 0; i < made_.overlaps.size(); ++i) {
            const Overlap& one = made_.overlaps[i];
            const Index piece = std::max<Index>(job_.source.piece_bytes, 1);
            const Index begin = one.begin / piece * piece;
            const Index end = ceil_divide(one.end, piece) * piece;
            const bool goes_on = !made_.reads.empty() && made_.reads.back().file == one.file &&
                                 begin - made_.reads.back().end <= gap_max();
            if (!goes_on) made_.reads.push_back({one.file, begin, end, i, i});
            made_.reads.back().end = std::max(made_.reads.back().end, end);
            made_.reads.back().last = i + 1;
        }
    }

    const Job& job_;
    std::vector<Piece> pieces_;
    Geometry made_;
};

}  // namespace

Geometry make_geometry(const Job& job, const Batch& batch) { return Maker(job).make(batch); }

Index granules_of(const Geometry& geometry, Index granule) {
    GranuleCount reads(granule);
    for (const ReadRange& range : geometry.reads) reads.add(range.file, range.begin, range.end);
    GranuleCount writes(granule);
    for (const WriteRange& range : geometry.writes) writes.add(range.file, range.begin, range.end);
    Index all = reads.count() + writes.count();
    for (const WriteRuns& runs : geometry.runs) {
        GranuleCount own(granule);
        (void)for_each_run(runs, [&](Index begin, Index end, Index) {
            own.add(runs.file, begin, end);
            return Result<void>();
        });
        all += own.count();
    }
    return all;
}

}  // namespace reshard::files
