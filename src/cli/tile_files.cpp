#include "tile_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "json.hpp"
#include "pieces.hpp"
#include "reshard/text.hpp"

namespace reshard::cli {
namespace {

std::string header_of(const FileStyle& style, const std::vector<Index>& sizes) {
    return npy_header(style.descr, style.fortran_order, sizes);
}

// Of the devices that hold the same tile, the first writes it.
bool writes(const Layout& layout, Index rank) {
    const auto position = position_of(layout.mesh, rank);
    return position && value_of(complement(used_atoms(layout), device_count(layout)), *position) == 0;
}

Result<void> begin_array(const std::string& path, const std::string& header, Index bytes) {
    auto file = File::create(path);
    if (!file) return tl::unexpected(file.error());
    if (auto wide = file->reserve(bytes); !wide) return wide;
    if (auto written = file->write(std::as_bytes(std::span(header)), 0); !written) return written;
    return file->finish();
}

Result<void> write_my_tile(Rank& rank, const std::string& path, const Layout& target, const FileStyle& style,
                           Index data_offset, std::span<const std::byte> tile_bytes) {
    if (!writes(target, rank.index())) return {};
    auto file = File::open_to_write(path);
    if (!file) return tl::unexpected(file.error());
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
        return write_box(*file, data_offset, sizes, piece, size, part);
    };
    if (auto written = for_each_piece(held, count(held), write); !written) return written;
    return file->finish();
}

Result<void> named(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) == 0) return {};
    return fail(Code::io, fmt::format("cannot create '{}': {}", to, std::strerror(errno)));
}

Result<void> make_folder(const std::string& folder) {
    struct stat status {};
    if (::mkdir(folder.c_str(), 0777) == 0) return {};
    if (errno == EEXIST && ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
    return fail(Code::io, fmt::format("cannot create folder '{}': {}", folder, std::strerror(errno)));
}

Result<void> write_whole(const std::string& path, const std::string& head, std::span<const std::byte> body) {
    auto file = File::create(path);
    if (!file) return tl::unexpected(file.error());
    if (auto written = file->write(std::as_bytes(std::span(head)), 0); !written) return written;
    if (auto written = file->write(body, static_cast<Index>(head.size())); !written) return written;
    return file->finish();
}

// One tile of one rank, and what its JSON says of it.
Result<Json> write_tile(const std::string& folder, const std::string& file, const Layout& layout, Index rank,
                        const FileStyle& style, std::span<const std::byte> bytes) {
    const Tile held = tile(layout, rank);
    const auto used = bytes.first(static_cast<std::size_t>(count(held) * size_of(layout.dtype)));
    auto written = write_whole(folder + "/" + file, header_of(style, extents(held)), used);
    if (!written) return tl::unexpected(written.error());
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

Result<void> write_my_tiles(Index rank, const std::string& folder, const Plan& plan, const FileStyle& style,
                            std::span<const std::byte> source, std::span<const std::byte> target) {
    const bool takes_part = position_of(plan.source.mesh, rank) || position_of(plan.target.mesh, rank);
    if (!takes_part) return {};
    const std::string stem = fmt::format("rank{}", rank);
    auto from = write_tile(folder, stem + ".source.npy", plan.source, rank, style, source);
    if (!from) return tl::unexpected(from.error());
    auto to = write_tile(folder, stem + ".target.npy", plan.target, rank, style, target);
    if (!to) return tl::unexpected(to.error());
    const Json json = {
        {"schema", 1},     {"rank", rank}, {"dtype", name(plan.source.dtype)}, {"shape", shape(plan.source)},
        {"source", *from}, {"target", *to}};
    return write_whole(folder + "/" + stem + ".json", line(json), {});
}

}  // namespace

Result<void> write_array(Rank& rank, const std::string& path, const Layout& target, const FileStyle& style,
                         std::span<const std::byte> tile_bytes) {
    const std::string header = header_of(style, shape(target));
    const auto head = static_cast<Index>(header.size());
    // All ranks must mean the same file, and two runs into one folder must not.
    const std::string partial = fmt::format("{}.partial-{}", path, rank.share(std::to_string(getpid())).front());
    Result<void> begun;
    if (rank.index() == 0) begun = begin_array(partial, header, head + global_bytes(target));
    if (auto all = agree(rank, begun); !all) {
        if (rank.index() == 0) ::unlink(partial.c_str());
        return all;
    }
    auto written = agree(rank, write_my_tile(rank, partial, target, style, head, tile_bytes));
    Result<void> finished;
    if (rank.index() == 0) {
        finished = written ? named(partial, path) : written;
        if (!finished) ::unlink(partial.c_str());
    }
    if (!written) return written;
    return agree(rank, finished);
}

Result<void> write_tiles(Rank& rank, const std::string& folder, const Plan& plan, const FileStyle& style,
                         std::span<const std::byte> source, std::span<const std::byte> target) {
    Result<void> made;
    if (rank.index() == 0) made = make_folder(folder);
    if (auto all = agree(rank, made); !all) return all;
    return agree(rank, write_my_tiles(rank.index(), folder, plan, style, source, target));
}

}  // namespace reshard::cli
