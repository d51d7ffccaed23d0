#include "tool/output/tile_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "files/formats/npy.hpp"
#include "files/formats/safetensors.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/copy/box_runs.hpp"
#include "src/schedule/box_cut.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

// True for the first of the devices that hold the same tile, which writes it.
bool writes_array(const Layout& layout, Index rank) {
    const auto position = position_of(layout.mesh, rank);
    return position && value_of(complement(used_atoms(layout), device_count(layout)), *position) == 0;
}

constexpr Index round_bytes = Index{1} << 20;

// Returns the tile of the array that a rank writes, in the order of the file.
Tile written_tile(const Layout& layout, Index rank, bool fortran_order) {
    if (!writes_array(layout, rank)) return nothing(layout.dims.size());
    Tile held = tile(layout, rank);
    if (fortran_order) std::reverse(held.begin(), held.end());
    return held;
}

// Returns the whole array as a box, in the order of the file.
Box whole_box(const Layout& layout, bool fortran_order) {
    Box whole = files::whole_box(shape(layout));
    if (fortran_order) std::reverse(whole.begin(), whole.end());
    return whole;
}

Slot dense(const Tile& tile) {
    Slot slot;
    slot.tile = tile;
    slot.storage = row_major(tile);
    return slot;
}

// Copies the common part of two tiles between the first tile, which is dense, and bytes that hold it box after box.
void copy_common(const Tile& tile, const Tile& other, Index size, const std::byte* from, std::byte* to, bool pack) {
    const Slot slot = dense(tile);
    for (const Box& box : boxes_of(intersect(tile, other))) {
        const Region there = region_of(slot, box, size);
        const Region packed = packed_region(box, size);
        if (pack) {
            BoxCopy(there, packed).run(from, to);
            to += bytes_of(packed);
        } else {
            BoxCopy(packed, there).run(from, to);
            from += bytes_of(packed);
        }
    }
}

// Collective: writes the elements of the array part by part. Rank 0 has the stream, the others null. Errors, on all
// ranks: io.
Result<void> stream_array(Rank& rank, const File* stream, const Layout& layout, bool fortran_order,
                          std::span<const std::byte> tile) {
    const Index size = size_of(layout.dtype);
    std::vector<Tile> tiles;
    for (Index r = 0; r < rank.size(); ++r) tiles.push_back(written_tile(layout, r, fortran_order));
    const Tile& mine = tiles[static_cast<std::size_t>(rank.index())];
    std::vector<std::byte> bytes;
    return for_each_piece(
        as_tile(whole_box(layout, fortran_order)), round_bytes / size, [&](const Box& piece, Index) -> Result<void> {
            const Tile round = as_tile(piece);
            std::string part(static_cast<std::size_t>(count(intersect(mine, round)) * size), '\0');
            copy_common(mine, round, size, tile.data(), std::as_writable_bytes(std::span(part)).data(), true);
            const std::vector<std::string> parts = rank.share(std::move(part));
            Result<void> written;
            if (stream != nullptr) {
                bytes.resize(static_cast<std::size_t>(count(piece) * size));
                for (std::size_t r = 0; r < tiles.size(); ++r)
                    copy_common(round, tiles[r], size, std::as_bytes(std::span(parts[r])).data(), bytes.data(), false);
                written = stream->append(bytes);
            }
            return agree(rank, written);
        });
}

std::string header_of(const FileStyle& style, const std::vector<Index>& sizes) {
    return files::npy_header(style.descr, style.fortran_order, sizes);
}

Result<NewFile> begin_array(Destination destination, bool other_processes, const std::string& header, Index bytes) {
    RESHARD_TRY(auto& begun, NewFile::begin(std::move(destination), other_processes));
    RESHARD_CHECK(begun.file().reserve(bytes));
    RESHARD_CHECK(begun.file().write(std::as_bytes(std::span(header)), 0));
    return std::move(begun);
}

// Writes a dense tile to its places in a file whose data begin at `data_offset`.
Result<void> write_boxes(const File& file, Index data_offset, const Box& whole, const Tile& held, Index size,
                         std::span<const std::byte> bytes) {
    const Region in_file = packed_region(whole, size, data_offset);
    const Slot slot = dense(held);
    for (const Box& box : boxes_of(held))
        RESHARD_CHECK(for_each_run(
            within(in_file, whole, box), region_of(slot, box, size), [&](Index to, Index from, Index length) {
                return file.write(bytes.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(length)), to);
            }));
    return {};
}

// Opens the file by the path that rank 0 named.
Result<void> add_my_tile(Rank& rank, const std::string& way, const std::string& path, const Layout& target,
                         const FileStyle& style, Index data_offset, std::span<const std::byte> tile_bytes) {
    if (!writes_array(target, rank.index())) return {};
    RESHARD_TRY(auto& file, File::open_again(way, path));
    const Tile held = written_tile(target, rank.index(), style.fortran_order);
    RESHARD_CHECK(write_boxes(file, data_offset, whole_box(target, style.fortran_order), held, size_of(target.dtype),
                              tile_bytes));
    return file.finish();
}

Result<void> write_stream(Rank& rank, const std::string& path, const Layout& target, const FileStyle& style,
                          std::span<const std::byte> tile_bytes) {
    const std::string header = header_of(style, shape(target));
    const auto open = [&]() -> Result<std::optional<File>> {
        if (rank.index() != 0) return std::nullopt;
        RESHARD_TRY(auto& file, File::open_stream(path));
        RESHARD_CHECK(file.append(std::as_bytes(std::span(header))));
        return std::move(file);
    };
    RESHARD_TRY(auto& stream, agree(rank, open()));
    RESHARD_CHECK(stream_array(rank, stream ? &*stream : nullptr, target, style.fortran_order, tile_bytes));
    return agree(rank, stream ? stream->finish() : Result<void>());
}

// Writes one tile of one rank, and returns its JSON.
Result<Json> write_tile(const PartialFolder& folder, const std::string& file, const Layout& layout, Index rank,
                        const FileStyle& style, std::span<const std::byte> bytes) {
    const Tile held = tile(layout, rank);
    const auto used = bytes.first(static_cast<std::size_t>(count(held) * size_of(layout.dtype)));
    RESHARD_CHECK(write_file(folder, file, header_of(style, extents(held)), used));
    Json json = {{"file", file}, {"layout", format(layout)}, {"summand", summand(layout, rank)}};
    // The tile's place in the array. Sides with several intervals list all of them, in the order of the tile.
    const bool plain = std::ranges::all_of(held, [](const Side& side) { return side.intervals.size() < 2; });
    if (plain) {
        for (const Interval& interval : as_box(held)) {
            json["begin"].push_back(interval.begin);
            json["end"].push_back(interval.end);
        }
        if (held.empty()) json["begin"] = json["end"] = Json::array();
    } else {
        for (const Side& side : held) json["intervals"].push_back(intervals_json(side));
    }
    return json;
}

Result<void> write_my_tiles(Index rank, const PartialFolder& folder, const WrittenEnd& source,
                            const WrittenEnd& target) {
    const bool takes_part = position_of(source.layout.mesh, rank) || position_of(target.layout.mesh, rank);
    if (!takes_part) return {};
    const std::string stem = fmt::format("rank{}", rank);
    const auto write = [&](const char* suffix, const WrittenEnd& end) {
        return write_tile(folder, stem + suffix, end.layout, rank, end.style, end.tile);
    };
    RESHARD_TRY(auto& from, write(".source.npy", source));
    RESHARD_TRY(auto& to, write(".target.npy", target));
    Json json = {
        {"schema", 1},    {"rank", rank}, {"dtype", name(source.layout.dtype)}, {"shape", shape(source.layout)},
        {"source", from}, {"target", to}};
    if (target.layout.dtype != source.layout.dtype) json["target_dtype"] = name(target.layout.dtype);
    if (shape(target.layout) != shape(source.layout)) json["target_shape"] = shape(target.layout);
    return write_file(folder, stem + ".json", line(json), {});
}

// Fails if the file of the whole array lies in the folder of the tiles, which may hold only tiles.
Result<void> apart(const std::string& output, const std::string& tiles) {
    std::error_code unknown;
    const auto folder = std::filesystem::weakly_canonical(tiles + "/", unknown);
    const auto holds = std::filesystem::weakly_canonical(output, unknown).parent_path() / "";
    if (unknown || folder != holds) return {};
    return fail(Code::usage,
                fmt::format("--output: '{}' lies in the folder of --tiles, which holds tiles alone", output));
}

}  // namespace

Result<void> may_write(Rank& rank, const std::string& output, const std::string& tiles) {
    const auto may = [&]() -> Result<void> {
        if (rank.index() != 0) return {};
        if (!output.empty() && !tiles.empty()) RESHARD_CHECK(apart(output, tiles));
        if (!tiles.empty()) RESHARD_CHECK(destination_of_folder(tiles, Contents::tiles));
        if (!output.empty()) RESHARD_CHECK(destination_of_file(output));
        return {};
    };
    return agree(rank, may());
}

Result<std::optional<NewFile>> write_array(Rank& rank, const std::string& path, const Layout& target,
                                           const FileStyle& style, std::span<const std::byte> tile_bytes) {
    const std::string header = header_of(style, shape(target));
    const auto head = static_cast<Index>(header.size());
    const auto begin = [&]() -> Result<std::optional<NewFile>> {
        if (rank.index() != 0) return std::nullopt;
        RESHARD_TRY(const auto& destination, destination_of_file(path));
        if (destination.kind == Destination::Kind::stream) return std::nullopt;
        return begin_array(destination, !rank.one_process(), header, head + global_bytes(target));
    };
    RESHARD_TRY(auto& array, agree(rank, begin()));
    const std::string way = rank.share(array ? array->way() : "").front();  // empty for a stream
    RESHARD_CHECK(way.empty() ? write_stream(rank, path, target, style, tile_bytes)
                              : agree(rank, add_my_tile(rank, way, path, target, style, head, tile_bytes)));
    return std::move(array);
}

Result<std::optional<NewFolder>> write_tiles(Rank& rank, const std::string& path, const WrittenEnd& source,
                                             const WrittenEnd& target) {
    const auto begin = [&]() -> Result<std::optional<NewFolder>> {
        if (rank.index() != 0) return std::nullopt;
        return destination_of_folder(path, Contents::tiles).and_then(NewFolder::begin);
    };
    RESHARD_TRY(auto& folder, agree(rank, begin()));
    const std::string partial = rank.share(folder ? folder->path() : std::string()).front();
    const auto mine = write_my_tiles(rank.index(), {partial, path}, source, target);
    RESHARD_CHECK(agree(rank, mine));
    return std::move(folder);
}

}  // namespace reshard::cli
