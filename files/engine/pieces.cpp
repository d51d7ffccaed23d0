#include "files/engine/pieces.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "files/base/crc32c.hpp"
#include "files/base/parallel.hpp"
#include "files/formats/zarr.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr std::size_t numbers_each = 5;  // low and high half of the place, of the size, and the checksum
constexpr Index room_min = Index{1} << 20;

// A piece in its file, as the journal keeps it.
struct Written {
    StoredPiece place;
    std::uint32_t raw = 0;
};

Written written(std::span<const std::uint32_t> numbers, Index piece) {
    const auto at = numbers.subspan(static_cast<std::size_t>(piece) * numbers_each, numbers_each);
    const auto whole = [](std::uint32_t low, std::uint32_t high) {
        return static_cast<Index>(std::uint64_t{high} << 32U | low);
    };
    return {{whole(at[0], at[1]), whole(at[2], at[3])}, at[4]};
}

void set_written(std::span<std::uint32_t> numbers, Index piece, const Written& one) {
    const auto at = numbers.subspan(static_cast<std::size_t>(piece) * numbers_each, numbers_each);
    const auto half = [](Index number, unsigned shift) {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) >> shift);
    };
    at[0] = half(one.place.offset, 0);
    at[1] = half(one.place.offset, 32);
    at[2] = half(one.place.bytes, 0);
    at[3] = half(one.place.bytes, 32);
    at[4] = one.raw;
}

Result<Coder> encoder_of(const NewFiles& files) {
    RESHARD_TRY(auto& codecs, parse_codecs(files.what.codecs));
    return Coder::make(std::move(codecs), size_of(files.what.tensors.front().dtype));
}

Index room_of(const NewFiles& files, const Coder& coder) {
    return std::max(coder.bound(files.what.piece_bytes), room_min);
}

}  // namespace

std::size_t journal_numbers(const NewFiles& files) {
    if (!files.compressed()) return files.summed.size();
    return numbers_each * files.what.files.size() * static_cast<std::size_t>(files.pieces_each);
}

Result<Index> encoding_bytes(const NewFiles& files) {
    if (!files.compressed()) return 0;
    RESHARD_TRY(const auto& coder, encoder_of(files));
    return saturating_add(saturating_add(room_of(files, coder), files.what.piece_bytes),
                          coder.encode_memory(files.what.piece_bytes));
}

// Elements of a piece that lie in memory. Sorted by file and piece.
struct PieceWriter::Part {
    Index file = 0;
    Index piece = 0;  // in the file
    Region in_piece;
    Region in_memory;
};

struct PieceWriter::Piece {
    Index number = 0;       // among the pieces of all files
    std::size_t first = 0;  // of the parts
    std::size_t last = 0;
    Index at = 0;  // in the worker's room
    Index bytes = 0;
    std::uint32_t raw = 0;
};

PieceWriter::PieceWriter(const Job& job, Index room, Pages pages, std::vector<Coder> coders)
    : job_(&job), room_(room), pages_(std::move(pages)), coders_(std::move(coders)) {}

Result<PieceWriter> PieceWriter::make(const Job& job) {
    std::vector<Coder> coders;
    for (Index worker = 0; worker < job.workers; ++worker) {
        RESHARD_TRY(auto& coder, encoder_of(job.target));
        coders.push_back(std::move(coder));
    }
    const Index room = room_of(job.target, coders.front());
    RESHARD_TRY(auto& pages, Pages::allocate(saturating_multiply(job.workers, room + job.target.what.piece_bytes)));
    return PieceWriter(job, room, std::move(pages), std::move(coders));
}

std::vector<PieceWriter::Part> PieceWriter::parts_of(const Geometry& geometry) const {
    const Index piece_bytes = job_->target.what.piece_bytes;
    std::vector<Part> parts;
    for (const WriteRange& range : geometry.writes)
        for (Index begin = range.begin; begin < range.end;) {
            const Index piece = begin / piece_bytes;
            const Index end = std::min(range.end, (piece + 1) * piece_bytes);
            parts.push_back({range.file,
                             piece,
                             {begin - piece * piece_bytes, 1, {end - begin}, {1}},
                             {range.memory + begin - range.begin, 1, {end - begin}, {1}}});
            begin = end;
        }
    for (const WriteRuns& runs : geometry.runs) {
        const Index piece = runs.in_file.offset_bytes / piece_bytes;
        Part part{runs.file,
                  piece,
                  runs.in_file,
                  {runs.memory, runs.in_file.element_bytes, runs.in_file.extents,
                   dense_strides(runs.in_file.extents, runs.in_file.element_bytes)}};
        part.in_piece.offset_bytes -= piece * piece_bytes;
        parts.push_back(std::move(part));
    }
    std::ranges::stable_sort(parts, {}, [](const Part& part) { return std::pair(part.file, part.piece); });
    return parts;
}

// Returns the bytes of a piece: where they are, or gathered among elements with the fill value.
std::span<const std::byte> PieceWriter::decoded(std::span<const Part> parts, const std::byte* memory,
                                                std::byte* gathered) const {
    const auto bytes = static_cast<std::size_t>(job_->target.what.piece_bytes);
    const Part& first = parts.front();
    const bool whole =
        first.in_piece.element_bytes == 1 && first.in_piece.extents == std::vector{job_->target.what.piece_bytes};
    if (whole) return {memory + first.in_memory.offset_bytes, bytes};
    const std::string& fill = job_->target.fill;
    for (std::size_t at = 0; at < bytes; at += fill.size()) std::memcpy(gathered + at, fill.data(), fill.size());
    for (const Part& part : parts) BoxCopy(part.in_memory, part.in_piece).run(memory, gathered);
    return {gathered, bytes};
}

Result<void> PieceWriter::encode(Piece& piece, std::span<const Part> parts, const std::byte* memory, Index worker,
                                 std::span<std::byte> into) {
    std::byte* const gathered = pages_.at() + job_->workers * room_ + worker * job_->target.what.piece_bytes;
    RESHARD_ASSIGN(piece.bytes,
                   coders_[static_cast<std::size_t>(worker)].encode(decoded(parts, memory, gathered), into));
    piece.raw = crc32c_raw(into.first(static_cast<std::size_t>(piece.bytes)));
    return {};
}

// An earlier run may have written some pieces.
void PieceWriter::recall(std::span<const std::uint32_t> numbers) {
    const NewFiles& target = job_->target;
    ends_.assign(target.what.files.size(), 0);
    for (std::size_t file = 0; file < ends_.size(); ++file)
        for (Index i = 0; i < target.pieces_each; ++i) {
            const StoredPiece place = written(numbers, static_cast<Index>(file) * target.pieces_each + i).place;
            ends_[file] = std::max(ends_[file], place.offset + place.bytes);
        }
}

// Encodes pieces into the room of one worker, one behind the other.
Result<void> PieceWriter::encode_run(std::span<Piece> run, std::span<const Part> parts, const std::byte* memory,
                                     Index worker, Index at) {
    const Index bound = coders_.front().bound(job_->target.what.piece_bytes);
    for (Piece& piece : run) {
        piece.at = at;
        at += bound;
        RESHARD_CHECK(encode(piece, parts.subspan(piece.first, piece.last - piece.first), memory, worker,
                             {pages_.at() + piece.at, static_cast<std::size_t>(bound)}));
    }
    return {};
}

Result<void> PieceWriter::put(std::span<const Piece> run, std::span<const Part> parts, OpenFiles& files,
                              std::span<const std::uint32_t> numbers) {
    for (const Piece& piece : run) {
        RESHARD_TRY(const auto& file, files.at(parts[piece.first].file));
        const std::span bytes(pages_.at() + piece.at, static_cast<std::size_t>(piece.bytes));
        RESHARD_CHECK(file->write(bytes, written(numbers, piece.number).place.offset));
    }
    return {};
}

Result<void> PieceWriter::write(const Geometry& geometry, const std::byte* memory, OpenFiles& files,
                                std::span<std::uint32_t> numbers, const std::function<void(Index)>& wrote) {
    const NewFiles& target = job_->target;
    if (ends_.empty()) recall(numbers);
    const std::vector<Part> parts = parts_of(geometry);
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Index number = parts[i].file * target.pieces_each + parts[i].piece;
        if (i == 0 || number != pieces.back().number) pieces.push_back({number, i, i});
        pieces.back().last = i + 1;
    }
    // In each turn every worker encodes as many pieces as its room holds. Then the pieces get their places, in order.
    const auto run =
        static_cast<std::size_t>(std::max<Index>(room_ / coders_.front().bound(target.what.piece_bytes), 1));
    const std::size_t turn_max = run * static_cast<std::size_t>(job_->workers);
    for (std::span<Piece> left(pieces); !left.empty();) {
        const std::span<Piece> turn = left.first(std::min(left.size(), turn_max));
        left = left.subspan(turn.size());
        const auto runs = static_cast<Index>((turn.size() + run - 1) / run);
        const auto run_at = [&](Index number) {
            const std::size_t first = static_cast<std::size_t>(number) * run;
            return turn.subspan(first, std::min(run, turn.size() - first));
        };
        RESHARD_CHECK(for_each_number(runs, job_->workers, [&](Index number, Index worker) {
            return encode_run(run_at(number), parts, memory, worker, number * room_);
        }));
        for (const Piece& piece : turn) {
            Index& end = ends_[static_cast<std::size_t>(parts[piece.first].file)];
            set_written(numbers, piece.number, {{end, piece.bytes}, piece.raw});
            end += piece.bytes;
        }
        RESHARD_CHECK(for_each_number(runs, job_->workers,
                                      [&](Index number, Index) { return put(run_at(number), parts, files, numbers); }));
        if (wrote) wrote(std::ssize(turn) * target.what.piece_bytes);
    }
    return {};
}

namespace {

// Returns the index of a shard with its checksum.
std::string index_of(const NewFiles& files, std::span<const std::uint32_t> numbers, Index file) {
    std::string index;
    for (Index i = 0; i < files.pieces_each; ++i) {
        const StoredPiece place = written(numbers, file * files.pieces_each + i).place;
        const bool there = place.bytes > 0;
        append_number(index, there ? place.offset : -1);
        append_number(index, there ? place.bytes : -1);
    }
    append_sum(index);
    return index;
}

// Completes one file, and returns the raw checksum of its pieces.
Result<std::uint32_t> seal_file(NewFiles& files, const OpenFolder& folder, std::span<const std::uint32_t> numbers,
                                Index number) {
    std::vector<Written> pieces;
    for (Index i = 0; i < files.pieces_each; ++i) {
        const Written one = written(numbers, number * files.pieces_each + i);
        if (one.place.bytes > 0) pieces.push_back(one);
    }
    std::ranges::sort(pieces, {}, [](const Written& one) { return one.place.offset; });
    std::uint32_t sum = 0;
    Index end = 0;
    for (const Written& one : pieces) {
        sum = crc32c_shifted(sum, one.place.bytes) ^ one.raw;
        end += one.place.bytes;
    }
    StoredFile& stored = files.what.files[static_cast<std::size_t>(number)];
    files.summed[static_cast<std::size_t>(number)].end = end;
    RESHARD_TRY(const auto& file, folder.file(stored.path, OpenFolder::Way::update));
    if (files.indexed) {
        const std::string index = index_of(files, numbers, number);
        RESHARD_CHECK(file.write(std::as_bytes(std::span(index)), end));
        end += std::ssize(index);
    }
    stored.bytes = end;
    // A run that was killed may have written more.
    if (::ftruncate(file.descriptor(), end) != 0) return cannot("write", stored.path);
    return sum;
}

}  // namespace

Result<std::vector<std::uint32_t>> seal(NewFiles& files, const OpenFolder& folder,
                                        std::span<const std::uint32_t> numbers, Index workers) {
    std::vector<std::uint32_t> sums(files.what.files.size(), 0);
    const auto done = for_each_number(std::ssize(sums), workers, [&](Index number, Index) -> Result<void> {
        RESHARD_ASSIGN(sums[static_cast<std::size_t>(number)], seal_file(files, folder, numbers, number));
        return {};
    });
    if (!done) return tl::unexpected(done.error());
    return sums;
}

}  // namespace reshard::files
