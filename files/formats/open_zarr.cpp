// Opens arrays of zarr: finds the files of chunks and shards, and the chunks in shards.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/arrays.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/zarr.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/name_pattern.hpp"

namespace reshard::files {

namespace {

Index read_number(const std::string& bytes, Index at) {
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(at) + i]);
    return static_cast<Index>(value);
}

// The strides of a chunk in bytes, in the order of the array's dimensions.
std::vector<Index> strides_in_chunk(const ZarrArray& array) {
    const Index size = size_of(array.dtype);
    if (array.order.empty()) return dense_strides(array.chunks, size);
    std::vector<Index> extents;
    for (const std::size_t dim : array.order) extents.push_back(array.chunks[dim]);
    const std::vector<Index> ordered = dense_strides(extents, size);
    std::vector<Index> strides(ordered.size());
    for (std::size_t k = 0; k < ordered.size(); ++k) strides[array.order[k]] = ordered[k];
    return strides;
}

class ZarrReader {
public:
    ZarrReader(std::string folder, ZarrArray array) : folder_(std::move(folder)), array_(std::move(array)) {
        made_.format = array_.v2 ? "zarr v2" : array_.sharded ? "zarr v3 with shards" : "zarr v3";
        made_.rest = array_.rest;
        made_.codecs = format(array_.codecs);
        made_.tensors.push_back(
            {stem_of(folder_), array_.dtype, array_.shape, {}, array_.fill, array_.type, array_.swapped});
        strides_ = strides_in_chunk(array_);
    }

    Result<Checkpoint> read() {
        RESHARD_TRY(const auto& grid, grid_of(array_.shape, array_.files));
        RESHARD_TRY(const auto& chunks, grid_of(array_.shape, array_.chunks));
        static_cast<void>(chunks);
        RESHARD_ASSIGN(chunk_bytes_, dense_bytes(array_.dtype, array_.chunks));
        if (compressed()) made_.piece_bytes = chunk_bytes_;
        RESHARD_TRY(auto& places, places_there(grid));
        std::ranges::sort(places);
        for (const std::vector<Index>& place : places) RESHARD_CHECK(add(place));
        return std::move(made_);
    }

private:
    bool compressed() const { return !array_.codecs.empty(); }

    // The places of a grid whose files exist. They may be few among very many places.
    Result<std::vector<std::vector<Index>>> places_there(const std::vector<Index>& grid) const {
        std::vector<std::vector<Index>> places;
        if (std::ranges::find(grid, 0) != grid.end()) return places;
        const std::string begin = array_.keys_of_v2 ? "" : std::string("c") + array_.separator;
        if (grid.empty()) {
            places.emplace_back();
        } else if (array_.separator == '/') {
            std::vector<Index> place;
            RESHARD_CHECK(look_in(folder_ + "/" + begin, grid, place, places));
        } else {
            RESHARD_TRY(const auto& names, names_in(folder_));
            for (std::string_view name : names)
                if (name.starts_with(begin))
                    if (auto place = place_in(name.substr(begin.size()), grid)) places.push_back(*std::move(place));
        }
        return places;
    }

    static Result<void> look_in(const std::string& folder, const std::vector<Index>& grid, std::vector<Index>& place,
                                std::vector<std::vector<Index>>& places) {
        struct stat status {};
        if (::stat(folder.c_str(), &status) != 0) return errno == ENOENT ? Result<void>() : cannot("read", folder);
        RESHARD_TRY(const auto& names, names_in(folder));
        for (const std::string& name : names) {
            const Index number = notation::number_below(name, grid[place.size()]);
            if (number < 0) continue;
            place.push_back(number);
            if (place.size() == grid.size())
                places.push_back(place);
            else
                RESHARD_CHECK(look_in(folder + name + "/", grid, place, places));
            place.pop_back();
        }
        return {};
    }

    // Reads a key such as 3.0.12. Each number is below the grid's.
    static std::optional<std::vector<Index>> place_in(std::string_view key, const std::vector<Index>& grid) {
        std::vector<Index> place;
        for (const Index count : grid) {
            const std::size_t end = std::min(key.find('.'), key.size());
            place.push_back(notation::number_below(key.substr(0, end), count));
            if (place.back() < 0 || (end == key.size()) != (place.size() == grid.size())) return std::nullopt;
            key.remove_prefix(std::min(end + 1, key.size()));
        }
        return place;
    }

    // A missing file has the fill value in all of its elements.
    Result<void> add(const std::vector<Index>& place) {
        const std::string path = folder_ + "/" + zarr_key(array_, place);
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) {
            if (errno == ENOENT) return {};
            return cannot("read", path);
        }
        const auto number = static_cast<Index>(made_.files.size());
        made_.files.push_back({path, status.st_size});
        const std::vector<Index> begin = begin_of(place, array_.files);
        if (array_.sharded) return add_shard(path, number, begin, status.st_size);
        const Box box = box_at(begin, std::vector<Index>(begin.size(), 0), array_.chunks, array_.shape);
        if (compressed()) return add_piece(box, {0, status.st_size});
        if (status.st_size != chunk_bytes_)
            return fail(Code::io,
                        fmt::format("'{}' has {} bytes, and a chunk has {}", path, status.st_size, chunk_bytes_));
        return add_chunk(number, box, 0);
    }

    // Adds a chunk of the last file. Its elements are at their places among the decoded bytes of all pieces.
    Result<void> add_piece(Box box, StoredPiece piece) {
        std::vector<StoredPiece>& pieces = made_.files.back().pieces;
        const auto begin = checked_multiply(std::ssize(pieces), chunk_bytes_);
        if (!begin || !checked_add(*begin, chunk_bytes_))
            return fail(Code::overflow, "a file has more decoded bytes than 64 bits can count");
        pieces.push_back(piece);
        return add_chunk(std::ssize(made_.files) - 1, std::move(box), *begin);
    }

    Result<void> add_chunk(Index file, Box box, Index offset) {
        if (count(box) > 0) made_.tensors[0].boxes.push_back({std::move(box), file, offset, strides_});
        return {};
    }

    Result<void> add_shard(const std::string& path, Index number, const std::vector<Index>& begin, Index bytes) {
        std::vector<Index> counts;
        Index all = 1;
        for (std::size_t k = 0; k < array_.files.size(); ++k) {
            counts.push_back(array_.files[k] / array_.chunks[k]);
            all = saturating_multiply(all, counts.back());
        }
        if (all > zarr_chunks_max) return fail(Code::unsupported, fmt::format("more than {} chunks", zarr_chunks_max));
        const Index index_bytes = zarr_index_bytes(all);
        const auto lies = [&](std::string_view what) { return fail(Code::io, fmt::format("'{}' {}", path, what)); };
        if (bytes < index_bytes) return lies("is shorter than its index");
        RESHARD_TRY(const auto& file, File::open_to_read(path));
        std::string index(static_cast<std::size_t>(index_bytes), '\0');
        RESHARD_CHECK(
            file.read(std::as_writable_bytes(std::span(index)), array_.index_first ? 0 : bytes - index_bytes));
        std::string summed = index.substr(0, index.size() - 4);
        append_sum(summed);
        if (summed != index) return lies("has an index with another crc32c");
        Index entry = 0;
        return for_each_place(counts, [&](const std::vector<Index>& place) -> Result<void> {
            const Index offset = read_number(index, entry);
            const Index size = read_number(index, entry + 8);
            entry += 16;
            if (offset == -1 && size == -1) return {};  // a missing chunk
            if (!compressed() && size != chunk_bytes_)
                return lies(fmt::format("has a chunk of {} bytes, and one has {}", size, chunk_bytes_));
            if (size < 0) return lies(fmt::format("has a chunk of {} bytes", size));
            if (offset < 0 || offset > bytes - size) return lies("has a chunk that ends behind the file");
            if (compressed()) return add_piece(box_at(begin, place, array_.chunks, array_.shape), {offset, size});
            return add_chunk(number, box_at(begin, place, array_.chunks, array_.shape), offset);
        });
    }

    std::string folder_;
    ZarrArray array_;
    Checkpoint made_;
    std::vector<Index> strides_;
    Index chunk_bytes_ = 0;
};

}  // namespace

Result<Checkpoint> open_zarr2(const std::string& folder) {
    RESHARD_TRY(const auto& text, json_of(folder + "/.zarray"));
    RESHARD_TRY(const auto& names, names_in(folder));
    std::string attributes;
    if (std::ranges::find(names, ".zattrs") != names.end()) {
        RESHARD_ASSIGN(attributes, json_of(folder + "/.zattrs"));
    }
    auto array = parse_zarr2(text, attributes);
    if (!array) return in_file(folder, array.error());
    return ZarrReader(folder, *std::move(array)).read();
}

Result<Checkpoint> open_zarr(const std::string& folder) {
    const std::string path = folder + "/zarr.json";
    RESHARD_TRY(const auto& text, json_of(path));
    auto array = parse_zarr(text);
    if (!array) return in_file(folder, array.error());
    return ZarrReader(folder, *std::move(array)).read();
}

}  // namespace reshard::files
