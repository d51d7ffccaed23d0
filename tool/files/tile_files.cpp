#include "tool/files/tile_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/files/array_stream.hpp"
#include "tool/files/box_runs.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

std::string header_of(const FileStyle& style, const std::vector<Index>& sizes) {
    return npy_header(style.descr, style.fortran_order, sizes);
}

Result<void> writable(const Result<Destination>& destination) {
    return destination ? Result<void>() : tl::unexpected(destination.error());
}

Result<NewFile> begin_array(Destination destination, bool other_processes, const std::string& header, Index bytes) {
    auto begun = NewFile::begin(std::move(destination), other_processes);
    if (!begun) return begun;
    RESHARD_CHECK(begun->file().reserve(bytes));
    RESHARD_CHECK(begun->file().write(std::as_bytes(std::span(header)), 0));
    return begun;
}

Result<void> write_my_tile(Rank& rank, File file, const Layout& target, const FileStyle& style, Index data_offset,
                           std::span<const std::byte> tile_bytes) {
    std::vector<Index> sizes = shape(target);
    Tile held = tile(target, rank.index());
    if (style.fortran_order) {
        std::reverse(sizes.begin(), sizes.end());
        held = reversed(std::move(held));
    }
    const Index size = size_of(target.dtype);
    const auto write = [&](const Box& piece, Index first) {
        const auto part =
            tile_bytes.subspan(static_cast<std::size_t>(first * size), static_cast<std::size_t>(count(piece) * size));
        return write_box(file, data_offset, sizes, piece, size, part);
    };
    RESHARD_CHECK(for_each_piece(held, count(held), write));
    return file.finish();
}

// By the way that rank 0 named.
Result<void> add_my_tile(Rank& rank, const std::string& way, const std::string& path, const Layout& target,
                         const FileStyle& style, Index data_offset, std::span<const std::byte> tile_bytes) {
    if (!writes_array(target, rank.index())) return {};
    RESHARD_TRY(auto& file, File::open_again(way, path));
    return write_my_tile(rank, std::move(file), target, style, data_offset, tile_bytes);
}

Result<void> write_stream(Rank& rank, const std::string& path, const Layout& target, const FileStyle& style,
                          std::span<const std::byte> tile_bytes) {
    const std::string header = header_of(style, shape(target));
    std::optional<File> stream;
    Result<void> opened;
    if (rank.index() == 0) {
        auto file = File::open_stream(path);
        opened = file ? file->append(std::as_bytes(std::span(header))) : tl::unexpected(file.error());
        if (opened) stream = std::move(*file);
    }
    RESHARD_CHECK(agree(rank, opened));
    auto done = stream_array(rank, stream ? &*stream : nullptr, target, style.fortran_order, tile_bytes);
    if (!done) return done;
    return agree(rank, stream ? stream->finish() : Result<void>());
}

// Where tiles are written, and where they will be.
struct Folder {
    std::string partial;
    std::string shown;
};

Result<void> write_whole(const Folder& folder, const std::string& name, const std::string& head,
                         std::span<const std::byte> body) {
    RESHARD_TRY(auto& file, File::create(folder.partial + "/" + name, folder.shown + "/" + name));
    RESHARD_CHECK(file.write(std::as_bytes(std::span(head)), 0));
    RESHARD_CHECK(file.write(body, static_cast<Index>(head.size())));
    return file.finish();
}

// One tile of one rank, and what its JSON says of it.
Result<Json> write_tile(const Folder& folder, const std::string& file, const Layout& layout, Index rank,
                        const FileStyle& style, std::span<const std::byte> bytes) {
    const Tile held = tile(layout, rank);
    const auto used = bytes.first(static_cast<std::size_t>(count(held) * size_of(layout.dtype)));
    RESHARD_CHECK(write_whole(folder, file, header_of(style, extents(held)), used));
    Json json = {{"file", file}, {"layout", format(layout)}, {"summand", summand(layout, rank)}};
    // Where the tile lies in the array; of sides with several intervals all of them, in the order of the tile.
    const bool plain = std::ranges::all_of(held, [](const Side& side) { return side.intervals.size() < 2; });
    if (plain) {
        for (const Interval& interval : as_box(held)) {
            json["begin"].push_back(interval.begin);
            json["end"].push_back(interval.end);
        }
        if (held.empty()) json["begin"] = json["end"] = Json::array();
    } else {
        for (const Side& side : held) {
            Json intervals = Json::array();
            for (const Interval& interval : side.intervals) intervals.push_back({interval.begin, interval.end});
            json["intervals"].push_back(std::move(intervals));
        }
    }
    return json;
}

Result<void> write_my_tiles(Index rank, const Folder& folder, const Plan& plan, const FileStyle& style,
                            std::span<const std::byte> source, std::span<const std::byte> target) {
    const bool takes_part = position_of(plan.source.mesh, rank) || position_of(plan.target.mesh, rank);
    if (!takes_part) return {};
    const std::string stem = fmt::format("rank{}", rank);
    RESHARD_TRY(auto& from, write_tile(folder, stem + ".source.npy", plan.source, rank, style, source));
    RESHARD_TRY(auto& to, write_tile(folder, stem + ".target.npy", plan.target, rank, style, target));
    const Json json = {
        {"schema", 1},    {"rank", rank}, {"dtype", name(plan.source.dtype)}, {"shape", shape(plan.source)},
        {"source", from}, {"target", to}};
    return write_whole(folder, stem + ".json", line(json), {});
}

// A tile file of a whole array beside the tiles would be in a folder that holds tiles alone.
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
    Result<void> may;
    if (rank.index() == 0) {
        if (!output.empty() && !tiles.empty()) may = apart(output, tiles);
        if (may && !tiles.empty()) may = writable(destination_of_folder(tiles));
        if (may && !output.empty()) may = writable(destination_of_file(output));
    }
    return agree(rank, may);
}

Result<std::optional<NewFile>> write_array(Rank& rank, const std::string& path, const Layout& target,
                                           const FileStyle& style, std::span<const std::byte> tile_bytes) {
    const std::string header = header_of(style, shape(target));
    const auto head = static_cast<Index>(header.size());
    std::optional<NewFile> array;
    std::string way;  // none to a stream
    Result<void> begun;
    if (rank.index() == 0) {
        auto destination = destination_of_file(path);
        begun = destination ? Result<void>() : tl::unexpected(destination.error());
        if (destination && destination->kind != Destination::Kind::stream) {
            auto file = begin_array(*destination, !rank.one_process(), header, head + global_bytes(target));
            begun = file ? Result<void>() : tl::unexpected(file.error());
            if (file) array = std::move(*file);
            if (array) way = array->way();
        }
    }
    RESHARD_CHECK(agree(rank, begun));
    way = rank.share(way).front();
    RESHARD_CHECK(way.empty() ? write_stream(rank, path, target, style, tile_bytes)
                              : agree(rank, add_my_tile(rank, way, path, target, style, head, tile_bytes)));
    return array;
}

Result<std::optional<NewFolder>> write_tiles(Rank& rank, const std::string& path, const Plan& plan,
                                             const FileStyle& style, std::span<const std::byte> source,
                                             std::span<const std::byte> target) {
    std::optional<NewFolder> folder;
    Result<void> begun;
    if (rank.index() == 0) {
        const auto destination = destination_of_folder(path);
        auto made = destination ? NewFolder::begin(*destination) : tl::unexpected(destination.error());
        begun = made ? Result<void>() : tl::unexpected(made.error());
        if (made) folder = std::move(*made);
    }
    RESHARD_CHECK(agree(rank, begun));
    const std::string partial = rank.share(folder ? folder->path() : std::string()).front();
    const auto mine = write_my_tiles(rank.index(), {partial, path}, plan, style, source, target);
    RESHARD_CHECK(agree(rank, mine));
    return folder;
}

}  // namespace reshard::cli
