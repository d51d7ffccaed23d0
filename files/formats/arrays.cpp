#include "files/formats/arrays.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "files/base/file.hpp"
#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/npy.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/zarr.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/name_pattern.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {

namespace {

std::string stem_of(const std::string& path) {
    std::string trimmed = path;
    while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
    return std::filesystem::path(trimmed).stem().string();
}

Index read_number(const std::string& bytes, Index at) {
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(at) + i]);
    return static_cast<Index>(value);
}

void append_number(std::string& bytes, Index number) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xffU);
}

void append_sum(std::string& bytes) {
    const auto all = std::as_bytes(std::span(bytes));
    const std::uint32_t sum = crc32c_of(crc32c_raw(all), std::ssize(bytes));
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>((sum >> (8 * i)) & 0xffU);
}

// The box of a grid's step at a place, clipped to the shape.
Box box_at(std::span<const Index> begin, std::span<const Index> place, std::span<const Index> step,
           std::span<const Index> shape) {
    Box box;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        const Index from = begin[k] + place[k] * step[k];
        box.push_back({std::min(from, shape[k]), std::min(from + step[k], shape[k])});
    }
    return box;
}

std::vector<Index> begin_of(std::span<const Index> place, std::span<const Index> step) {
    std::vector<Index> begin;
    for (std::size_t k = 0; k < place.size(); ++k) begin.push_back(place[k] * step[k]);
    return begin;
}

class ZarrReader {
public:
    ZarrReader(std::string folder, ZarrArray array) : folder_(std::move(folder)), array_(std::move(array)) {
        made_.format = array_.sharded ? "zarr v3 with shards" : "zarr v3";
        made_.rest = array_.rest;
        made_.tensors.push_back({stem_of(folder_), array_.dtype, array_.shape, {}, array_.fill});
        strides_ = dense_strides(array_.chunks, size_of(array_.dtype));
    }

    Result<Checkpoint> read() {
        RESHARD_TRY(const auto& grid, grid_of(array_.shape, array_.files));
        RESHARD_TRY(const auto& chunks, grid_of(array_.shape, array_.chunks));
        static_cast<void>(chunks);
        RESHARD_ASSIGN(chunk_bytes_, dense_bytes(array_.dtype, array_.chunks));
        RESHARD_TRY(auto& places, places_there(grid));
        std::ranges::sort(places);
        for (const std::vector<Index>& place : places) RESHARD_CHECK(add(place));
        return std::move(made_);
    }

private:
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
        if (status.st_size != chunk_bytes_)
            return fail(Code::io,
                        fmt::format("'{}' has {} bytes, and a chunk has {}", path, status.st_size, chunk_bytes_));
        return add_chunk(number, box_at(begin, std::vector<Index>(begin.size(), 0), array_.chunks, array_.shape), 0);
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
            if (size != chunk_bytes_)
                return lies(fmt::format("has a chunk of {} bytes, and one has {}", size, chunk_bytes_));
            if (offset < 0 || offset > bytes - size) return lies("has a chunk that ends behind the file");
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

Result<Checkpoint> open_zarr(const std::string& folder) {
    const std::string path = folder + "/zarr.json";
    RESHARD_TRY(const auto& text, json_of(path));
    auto array = parse_zarr(text);
    if (!array) return in_file(folder, array.error());
    return ZarrReader(folder, *std::move(array)).read();
}

Result<OpenedNpy> open_npy_header(const std::string& path) {
    RESHARD_TRY(const auto& file, File::open_to_read(path));
    RESHARD_TRY(const auto& bytes, file.size());
    RESHARD_TRY(const auto& start, file.start(npy_start_max));
    auto header = parse_npy(start, bytes);
    if (!header) return in_file(path, header.error());
    RESHARD_TRY(const auto& element, parse_descr(header->descr));
    return OpenedNpy{*std::move(header), element, bytes};
}

Result<Checkpoint> open_npy(const std::string& path) {
    RESHARD_TRY(const auto& npy, open_npy_header(path));
    const auto& [header, element, bytes] = npy;
    if (element.kind == 'V') return in_file(path, {Code::unsupported, "its elements are raw, of no known type"});
    if (element.big_endian && element.bytes > 1)
        return in_file(path, {Code::unsupported, "its elements are big-endian"});
    const auto dtype = dtype_of(element, std::nullopt);
    if (!dtype) return in_file(path, dtype.error());
    std::vector<Index> strides = dense_strides(header.shape, element.bytes);
    if (header.fortran_order) {
        Index stride = element.bytes;
        for (std::size_t k = 0; k < strides.size(); ++k) {
            strides[k] = stride;
            stride = saturating_multiply(stride, header.shape[k]);
        }
    }
    Checkpoint made{"npy", {{path, bytes}}, {{stem_of(path), *dtype, header.shape, {}, ""}}, 0, ""};
    if (bytes > header.data_offset)
        made.tensors[0].boxes.push_back({whole_box(header.shape), 0, header.data_offset, std::move(strides)});
    return made;
}

namespace {

// Returns the only tensor. Fails if there are several, or if it is cut.
Result<NewTensor> only_tensor(const NewContents& contents) {
    if (contents.tensors.size() != 1)
        return fail(Code::mismatch, fmt::format("{} holds one array, and there are {}", name(contents.options.form),
                                                contents.tensors.size()));
    RESHARD_CHECK(is_whole(contents.tensors[0], contents.options));
    return contents.tensors[0];
}

}  // namespace

Result<NewFiles> new_npy(const NewContents& contents) {
    RESHARD_TRY(const auto& tensor, only_tensor(contents));
    NewFiles made;
    if (tensor.shape.size() > 32) return fail(Code::unsupported, "an .npy file of more than 32 dimensions");
    const std::string head = npy_header(descr_of(tensor.dtype), false, tensor.shape);
    RESHARD_TRY(const auto& bytes, dense_bytes(tensor.dtype, tensor.shape));
    const auto all = checked_add(std::ssize(head), bytes);
    if (!all) return fail(Code::overflow, "a file would have more bytes than 64 bits can count");
    made.what.files.push_back({contents.file, *all});
    made.fixed.push_back({0, 0, head});
    made.summed.push_back({0, std::ssize(head), *all, tensor.name});
    made.what.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}, ""});
    if (bytes > 0)
        made.what.tensors[0].boxes.push_back(
            {whole_box(tensor.shape), 0, std::ssize(head), dense_strides(tensor.shape, size_of(tensor.dtype))});
    return made;
}

namespace {

Result<ZarrArray> wanted_array(const NewTensor& tensor, const ConvertOptions& options, const std::string& rest) {
    ZarrArray array;
    array.dtype = tensor.dtype;
    array.shape = tensor.shape;
    array.rest = rest;
    array.chunks = options.chunks;
    if (array.chunks.empty())
        for (const Index extent : tensor.shape) array.chunks.push_back(std::max<Index>(extent, 1));
    array.sharded = !options.shards.empty();
    array.files = array.sharded ? options.shards : array.chunks;
    const auto fits = [&](const std::vector<Index>& sides) {
        return sides.size() == tensor.shape.size() && std::ranges::all_of(sides, [](Index side) { return side > 0; });
    };
    if (!fits(array.chunks) || !fits(array.files))
        return fail(Code::usage, fmt::format("{} has {} dimensions, and so have its chunks, of at least 1",
                                             in_quotes(tensor.name), tensor.shape.size()));
    for (std::size_t k = 0; k < array.files.size(); ++k)
        if (array.files[k] % array.chunks[k] != 0) return fail(Code::usage, "a shard is no multiple of its chunks");
    if (tables::row(tensor.dtype).zarr.empty())
        return fail(Code::unsupported, fmt::format("zarr has no elements of type {}", name(tensor.dtype)));
    return array;
}

// Fails if the indices of all shards have too many entries, or if all files have too many bytes. A shard has an entry
// for each chunk, even if the chunk is outside the array.
Result<void> countable(const ZarrArray& array, const std::vector<Index>& grid) {
    RESHARD_TRY(const auto& bytes, dense_bytes(array.dtype, array.files));
    Index files = 1;
    Index each = 1;
    for (std::size_t k = 0; k < grid.size(); ++k) {
        files = saturating_multiply(files, grid[k]);
        each = saturating_multiply(each, array.files[k] / array.chunks[k]);
    }
    if (saturating_multiply(files, each) > zarr_chunks_max)
        return fail(
            Code::unsupported,
            fmt::format("the files have {} chunks each, and there are {} files; at most {} chunks are written in all",
                        each, files, zarr_chunks_max));
    if (saturating_multiply(files, saturating_add(bytes, zarr_index_bytes(each))) == index_max)
        return fail(
            Code::overflow,
            fmt::format("the files have {} bytes each, and all {} of them more than 64 bits can count", bytes, files));
    return {};
}

}  // namespace

Result<NewFiles> new_zarr(const NewContents& contents) {
    RESHARD_TRY(const auto& tensor, only_tensor(contents));
    RESHARD_TRY(const auto& array, wanted_array(tensor, contents.options, contents.rest));
    RESHARD_TRY(const auto& grid, grid_of(array.shape, array.files));
    RESHARD_CHECK(grid_of(array.shape, array.chunks));
    RESHARD_TRY(const auto& chunk_bytes, dense_bytes(array.dtype, array.chunks));
    RESHARD_CHECK(countable(array, grid));
    const std::vector<Index> strides = dense_strides(array.chunks, size_of(array.dtype));
    std::vector<Index> inner;
    for (std::size_t k = 0; k < array.files.size(); ++k) inner.push_back(array.files[k] / array.chunks[k]);
    NewFiles made;
    made.what.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}, ""});
    made.grain = array.files;
    const auto placed = for_each_place(grid, [&](const std::vector<Index>& place) -> Result<void> {
        const auto number = static_cast<Index>(made.what.files.size());
        const std::vector<Index> begin = begin_of(place, array.files);
        std::string index;
        Index end = 0;
        RESHARD_CHECK(for_each_place(inner, [&](const std::vector<Index>& at) -> Result<void> {
            Box box = box_at(begin, at, array.chunks, array.shape);
            const bool there = count(box) > 0;
            append_number(index, there ? end : -1);
            append_number(index, there ? chunk_bytes : -1);
            if (!there) return {};
            made.what.tensors[0].boxes.push_back({std::move(box), number, end, strides});
            end += chunk_bytes;
            return {};
        }));
        made.summed.push_back({number, 0, end, tensor.name});
        if (array.sharded) {
            append_sum(index);
            made.fixed.push_back({number, end, index});
            end += std::ssize(index);
        }
        made.what.files.push_back({zarr_key(array, place), end});
        return {};
    });
    if (!placed) return tl::unexpected(placed.error());
    made.texts.emplace_back("zarr.json", write_zarr(array));
    return made;
}

}  // namespace reshard::files
