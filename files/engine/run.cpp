#include "files/engine/run.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include "files/base/cast.hpp"
#include "files/base/crc32c.hpp"
#include "files/base/parallel.hpp"
#include "files/formats/json_text.hpp"

namespace reshard::files {

namespace {

constexpr Index overhang = 16;  // bytes after a stretch, for an element that begins in it
constexpr Index write_max = Index{8} << 20;
constexpr Index write_out_min = Index{1} << 20;

// The pieces of compressed files that the geometry has overlaps in.
std::vector<Stretch> pieces_of(const Checkpoint& source, const Geometry& geometry) {
    std::vector<Stretch> all;
    for (std::size_t i = 0; i < geometry.reads.size(); ++i) {
        const ReadRange& range = geometry.reads[i];
        const std::vector<StoredPiece>& pieces = source.files[static_cast<std::size_t>(range.file)].pieces;
        for (Index begin = range.begin; begin < range.end; begin += source.piece_bytes) {
            const StoredPiece& piece = pieces[static_cast<std::size_t>(begin / source.piece_bytes)];
            all.push_back({range.file, begin, begin + source.piece_bytes, i, piece.offset, piece.bytes});
        }
    }
    return all;
}

std::vector<Stretch> stretches_of(const Checkpoint& source, const Geometry& geometry, Index bytes) {
    if (source.piece_bytes > 0) return pieces_of(source, geometry);
    std::vector<Stretch> all;
    for (std::size_t i = 0; i < geometry.reads.size(); ++i) {
        const ReadRange& range = geometry.reads[i];
        for (Index begin = range.begin; begin < range.end;) {
            const Index end = std::min(range.end, (begin / bytes + 1) * bytes);
            all.push_back({range.file, begin, end, i, begin, end - begin});
            begin = end;
        }
    }
    return all;
}

// Copies the elements of an overlap that begin between two bytes of the file.
class Placer {
public:
    Placer(const Overlap& overlap, Index begin, Index end, const std::byte* stretch, std::byte* memory)
        : overlap_(overlap), begin_(begin), end_(end), stretch_(stretch), memory_(memory) {}

    void place(const Region& source, const Region& target) const {
        Index last = source.offset_bytes;  // where the last element begins
        std::size_t outer = 0;
        for (std::size_t k = 0; k < source.extents.size(); ++k) {
            last += (source.extents[k] - 1) * source.strides_bytes[k];
            const bool longer = source.extents[outer] == 1 || source.strides_bytes[k] > source.strides_bytes[outer];
            if (source.extents[k] > 1 && longer) outer = k;
        }
        if (last < begin_ || source.offset_bytes >= end_) return;
        if (source.offset_bytes >= begin_ && last < end_) return copy(source, target);
        const Index extent = source.extents[outer];
        const Index stride = source.strides_bytes[outer];
        const Index inner = last - (extent - 1) * stride - source.offset_bytes;
        // The indices of this dimension from `first` to `beyond` are wholly inside.
        const Index first = source.offset_bytes >= begin_ ? 0 : ceil_divide(begin_ - source.offset_bytes, stride);
        const Index room = end_ - inner - source.offset_bytes;
        const Index beyond = room <= 0 ? 0 : std::min(extent, ceil_divide(room, stride));
        const Index middle = std::min(first, extent);
        if (first > 0) part(source, target, outer, middle - 1, middle);
        if (beyond > first) part(source, target, outer, first, beyond);
        const Index after = std::max(beyond, middle);
        if (after < extent) part(source, target, outer, after, after + 1);
    }

private:
    void part(Region source, Region target, std::size_t dim, Index first, Index beyond) const {
        for (Region* region : {&source, &target}) {
            region->offset_bytes += first * region->strides_bytes[dim];
            region->extents[dim] = beyond - first;
        }
        place(source, target);
    }

    void copy(Region source, const Region& target) const {
        source.offset_bytes -= begin_;
        if (overlap_.swapped) return copy_swapped(overlap_.from, overlap_.to, source, target, stretch_, memory_);
        if (overlap_.from != overlap_.to)
            return cast_box(overlap_.from, overlap_.to, source, target, stretch_, memory_);
        BoxCopy(source, target).run(stretch_, memory_);
    }

    const Overlap& overlap_;
    Index begin_;
    Index end_;
    const std::byte* stretch_;
    std::byte* memory_;
};

// Divides the writes into parts. A file takes one writer at a time, so each worker gets a file of its own, in groups of
// as many files as workers.
std::vector<WriteRange> parts_of(const std::vector<WriteRange>& writes, Index workers) {
    struct Turn {
        Index group;   // of as many files as workers
        Index number;  // of the part in its file
        WriteRange part;
    };
    std::vector<Turn> turns;
    Index files = 0;  // so far
    Index number = 0;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        const WriteRange& range = writes[i];
        if (i > 0 && range.file != writes[i - 1].file) {
            ++files;
            number = 0;
        }
        for (Index begin = range.begin; begin < range.end;) {
            const Index end = std::min(range.end, (begin / write_max + 1) * write_max);
            turns.push_back({files / workers, number++, {range.file, begin, end, range.memory + begin - range.begin}});
            begin = end;
        }
    }
    std::ranges::stable_sort(turns, {}, [](const Turn& turn) { return std::pair(turn.group, turn.number); });
    std::vector<WriteRange> parts;
    for (const Turn& turn : turns) parts.push_back(turn.part);
    return parts;
}

}  // namespace

void Ahead::reach(Index bytes) {
    while (asked_bytes_ < bytes) {
        const Index next = asked_++;
        if (next >= std::ssize(stretches_)) return;
        const Stretch& stretch = stretches_[static_cast<std::size_t>(next)];
        asked_bytes_ += stretch.bytes;
        const auto file = files_->at(stretch.file);
        if (file)  // else the read says why not
            (void)::posix_fadvise((*file)->descriptor(), stretch.at, stretch.bytes, POSIX_FADV_WILLNEED);
    }
}

namespace {

Index largest_piece(const Checkpoint& source) {
    Index largest = 0;
    for (const StoredFile& file : source.files)
        for (const StoredPiece& piece : file.pieces) largest = std::max(largest, piece.bytes);
    return largest;
}

// Blosc writes in its header how far apart it put bytes, so a decoder needs no size of elements.
Result<Coder> decoder_of(const Checkpoint& source) {
    RESHARD_TRY(auto& codecs, parse_codecs(source.codecs));
    return Coder::make(std::move(codecs), 1);
}

// A worker's buffer: what it reads, or a decoded piece and a compressed one behind it.
Index buffer_bytes_of(const Checkpoint& source, Index stretch_bytes) {
    if (source.piece_bytes == 0) return stretch_bytes + overhang;
    return saturating_add(source.piece_bytes, saturating_add(largest_piece(source), overhang));
}

}  // namespace

Result<Index> reading_bytes(const Checkpoint& source, Index stretch_bytes) {
    if (source.piece_bytes == 0) return stretch_bytes + 4096;
    RESHARD_TRY(const auto& coder, decoder_of(source));
    return saturating_add(saturating_add(buffer_bytes_of(source, 0), 4096), coder.decode_memory(source.piece_bytes));
}

SourceReader::SourceReader(const Job& job, Index stretch_bytes, Pages stretches, std::vector<Coder> coders)
    : job_(&job),
      stretch_bytes_(stretch_bytes),
      buffer_bytes_(buffer_bytes_of(job.source, stretch_bytes)),
      stretches_(std::move(stretches)),
      coders_(std::move(coders)),
      files_(std::make_unique<OpenFiles>(job.source.files, &File::open_to_read)) {}

Result<SourceReader> SourceReader::make(const Job& job, Index stretch_bytes) {
    RESHARD_TRY(auto& stretches,
                Pages::allocate(saturating_multiply(job.workers, buffer_bytes_of(job.source, stretch_bytes))));
    std::vector<Coder> coders;
    for (Index worker = 0; job.source.piece_bytes > 0 && worker < job.workers; ++worker) {
        RESHARD_TRY(auto& coder, decoder_of(job.source));
        coders.push_back(std::move(coder));
    }
    return SourceReader(job, stretch_bytes, std::move(stretches), std::move(coders));
}

std::unique_ptr<Ahead> SourceReader::ahead_of(const Geometry& geometry) {
    return std::make_unique<Ahead>(stretches_of(job_->source, geometry, stretch_bytes_), *files_);
}

// Brings the bytes of a stretch to `bytes`. Elements that begin in a stretch of a raw file may end behind it.
Result<void> SourceReader::fetch(const Stretch& stretch, const ReadRange& range, Index worker, std::byte* bytes) {
    RESHARD_TRY(const auto& file, files_->at(range.file));
    if (coders_.empty()) {
        const Index end = std::min(stretch.end + overhang - 1, range.end);
        return file->read({bytes, static_cast<std::size_t>(end - stretch.begin)}, stretch.begin);
    }
    const std::span<std::byte> encoded(bytes + job_->source.piece_bytes, static_cast<std::size_t>(stretch.bytes));
    RESHARD_CHECK(file->read(encoded, stretch.at));
    const std::span<std::byte> decoded(bytes, static_cast<std::size_t>(job_->source.piece_bytes));
    auto done = coders_[static_cast<std::size_t>(worker)].decode(encoded, decoded);
    if (done) return {};
    return fail(done.error().code, fmt::format("'{}': the chunk at byte {} {}",
                                               job_->source.files[static_cast<std::size_t>(range.file)].path,
                                               stretch.at, done.error().message));
}

Result<void> SourceReader::read(const Geometry& geometry, std::byte* memory) {
    return read(geometry, memory, *ahead_of(geometry));
}

Result<void> SourceReader::read(const Geometry& geometry, std::byte* memory, Ahead& ahead) {
    RESHARD_CHECK(for_each_number(std::ssize(geometry.fills), job_->workers, [&](Index number, Index) -> Result<void> {
        const FilledBox& filled = geometry.fills[static_cast<std::size_t>(number)];
        BoxFill(filled.in_memory, filled.element).run(memory);
        return {};
    }));
    const std::vector<Stretch>& stretches = ahead.stretches();
    // The furthest end among the overlaps up to each one. A binary search in it finds the first overlap of a stretch.
    std::vector<Index> reach;
    for (const ReadRange& range : geometry.reads)
        for (std::size_t i = range.first; i < range.last; ++i) {
            const Index end = geometry.overlaps[i].end;
            reach.push_back(i == range.first ? end : std::max(reach.back(), end));
        }
    std::atomic<Index> read_bytes{0};
    return for_each_number(std::ssize(stretches), job_->workers, [&](Index number, Index worker) -> Result<void> {
        const Stretch& stretch = stretches[static_cast<std::size_t>(number)];
        ahead.reach(read_bytes.fetch_add(stretch.bytes) + stretch.bytes + ahead_max);
        const ReadRange& range = geometry.reads[stretch.range];
        std::byte* const bytes = stretches_.at() + worker * buffer_bytes_;
        RESHARD_CHECK(fetch(stretch, range, worker, bytes));
        const auto from = reach.begin() + static_cast<std::ptrdiff_t>(range.first);
        const auto to = reach.begin() + static_cast<std::ptrdiff_t>(range.last);
        auto i = static_cast<std::size_t>(std::upper_bound(from, to, stretch.begin) - reach.begin());
        for (; i < range.last && geometry.overlaps[i].begin < stretch.end; ++i) {
            const Overlap& overlap = geometry.overlaps[i];
            Placer(overlap, stretch.begin, stretch.end, bytes, memory).place(overlap.in_file, overlap.in_memory);
        }
        return {};
    });
}

void place_from_memory(const Job& job, const Geometry& geometry, const std::byte* source, std::byte* memory) {
    // This cannot fail: the source is memory, and nothing is filled.
    (void)for_each_number(std::ssize(geometry.overlaps), job.workers, [&](Index number, Index) -> Result<void> {
        const Overlap& overlap = geometry.overlaps[static_cast<std::size_t>(number)];
        Placer(overlap, 0, overlap.end, source, memory).place(overlap.in_file, overlap.in_memory);
        return {};
    });
}

TargetWriter::TargetWriter(const Job& job, const OpenFolder& folder, bool read_soon)
    : sums(journal_numbers(job.target), 0),
      job_(&job),
      read_soon_(read_soon),
      files_(std::make_unique<OpenFiles>(job.target.what.files, open_in(folder, OpenFolder::Way::update))),
      mutex_(std::make_unique<std::mutex>()) {}

Result<void> TargetWriter::write(const Geometry& geometry, const std::byte* memory,
                                 const std::function<void(Index)>& wrote) {
    if (job_->target.compressed()) {
        if (!pieces_) {
            RESHARD_TRY(auto& made, PieceWriter::make(*job_));
            pieces_.emplace(std::move(made));
        }
        return pieces_->write(geometry, memory, *files_, sums, wrote);
    }
    const auto bytes_at = [&](Index at, Index begin, Index end) {
        return std::span(memory + at, static_cast<std::size_t>(end - begin));
    };
    const std::vector<WriteRange> parts = parts_of(geometry.writes, job_->workers);
    const Index ranges = std::ssize(parts);
    return for_each_number(ranges + std::ssize(geometry.runs), job_->workers, [&](Index number, Index) -> Result<void> {
        if (number < ranges) {
            const WriteRange& part = parts[static_cast<std::size_t>(number)];
            RESHARD_CHECK(put(part.file, part.begin, bytes_at(part.memory, part.begin, part.end)));
            if (wrote) wrote(part.end - part.begin);
            return {};
        }
        const WriteRuns& runs = geometry.runs[static_cast<std::size_t>(number - ranges)];
        return for_each_run(
            runs, [&](Index begin, Index end, Index at) { return put(runs.file, begin, bytes_at(at, begin, end)); });
    });
}

void TargetWriter::add_sums(const Geometry& geometry, const std::byte* memory) {
    const auto add = [&](Index file, Index begin, Index end, Index at) {
        sum(file, begin, {memory + at, static_cast<std::size_t>(end - begin)});
        return Result<void>();
    };
    for (const WriteRange& range : geometry.writes) (void)add(range.file, range.begin, range.end, range.memory);
    for (const WriteRuns& runs : geometry.runs)
        (void)for_each_run(runs, [&](Index begin, Index end, Index at) { return add(runs.file, begin, end, at); });
}

Result<void> TargetWriter::put(Index number, Index begin, std::span<const std::byte> bytes) {
    RESHARD_TRY(const auto& file, files_->at(number));
    // Small parts leave pages incomplete, so the disk does not begin with them yet.
    const bool out = std::ssize(bytes) >= write_out_min && !read_soon_;
    RESHARD_CHECK(out ? file->write_out(bytes, begin) : file->write(bytes, begin));
    sum(number, begin, bytes);
    return {};
}

void TargetWriter::sum(Index file, Index begin, std::span<const std::byte> bytes) {
    const std::vector<SummedBytes>& summed = job_->target.summed;
    const Index end = begin + std::ssize(bytes);
    auto at = std::ranges::upper_bound(summed, std::pair(file, begin), {},
                                       [](const SummedBytes& one) { return std::pair(one.file, one.begin); });
    if (at != summed.begin()) --at;
    for (; at != summed.end() && (at->file < file || (at->file == file && at->begin < end)); ++at) {
        const Index first = std::max(begin, at->begin);
        const Index last = std::min(end, at->end);
        if (at->file != file || first >= last) continue;
        const auto part =
            bytes.subspan(static_cast<std::size_t>(first - begin), static_cast<std::size_t>(last - first));
        const std::uint32_t raw = crc32c_shifted(crc32c_raw(part), at->end - last);
        const std::lock_guard held(*mutex_);
        sums[static_cast<std::size_t>(at - summed.begin())] ^= raw;
    }
}

}  // namespace reshard::files
