// Describes new arrays of zarr: the files of chunks and shards, and the indices of shards.
#include <algorithm>

#include <fmt/format.h>

#include "files/formats/arrays.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/zarr.hpp"
#include "files/formats/zarr_elements.hpp"
#include "files/formats/zarr_json.hpp"
#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {

namespace {

Result<void> fits_v2(const ZarrArray& array, const ConvertOptions& options) {
    if (!options.shards.empty()) return fail(Code::usage, "zarr v2 has no shards; leave them out, or write zarr v3");
    const bool one =
        array.codecs.size() < 2 && (array.codecs.empty() || array.codecs.front().kind != Codec::Kind::crc32c);
    if (one) return {};
    return fail(Code::unsupported,
                fmt::format("zarr v2 has one compressor, and {} is asked for", format(array.codecs)));
}

// The fill value, for the elements of chunks outside of the array.
std::string fill_of(const ZarrArray& array) {
    const Json rest = parse_object(array.rest, "rest").value_or(Json::object());
    const FileElements elements{array.dtype, array.type, false};
    auto fill = fill_bytes(elements, member(rest, "fill_value"));
    return fill ? *std::move(fill) : std::string(static_cast<std::size_t>(size_of(array.dtype)), '\0');
}

Result<ZarrArray> wanted_array(const NewTensor& tensor, const NewContents& contents) {
    const ConvertOptions& options = contents.options;
    ZarrArray array;
    array.v2 = options.form == Form::zarr2;
    array.keys_of_v2 = array.v2;
    if (array.v2) array.separator = '.';
    array.dtype = tensor.dtype;
    array.type = tensor.type;
    RESHARD_ASSIGN(array.codecs, parse_codecs(options.codec.empty() ? contents.codecs : options.codec));
    RESHARD_CHECK(available(array.codecs));
    if (array.v2) RESHARD_CHECK(fits_v2(array, options));
    array.shape = tensor.shape;
    array.rest = contents.rest;
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
    const bool known = array.v2 ? !descr_of(tensor.dtype, tensor.type).starts_with("|V")
                                : !zarr_type(tensor.dtype, tensor.type).is_null();
    if (!known)
        return fail(Code::unsupported,
                    fmt::format("{} has no elements of type {}", name(options.form),
                                tensor.type.name.empty() ? name(tensor.dtype) : std::string_view(tensor.type.name)));
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

Result<NewFiles> new_zarr2(const NewContents& contents) { return new_zarr(contents); }

Result<NewFiles> new_zarr(const NewContents& contents) {
    RESHARD_TRY(const auto& tensor, only_tensor(contents));
    RESHARD_TRY(const auto& array, wanted_array(tensor, contents));
    RESHARD_TRY(const auto& grid, grid_of(array.shape, array.files));
    RESHARD_CHECK(grid_of(array.shape, array.chunks));
    RESHARD_TRY(const auto& chunk_bytes, dense_bytes(array.dtype, array.chunks));
    RESHARD_CHECK(countable(array, grid));
    const std::vector<Index> strides = dense_strides(array.chunks, size_of(array.dtype));
    std::vector<Index> inner;
    for (std::size_t k = 0; k < array.files.size(); ++k) inner.push_back(array.files[k] / array.chunks[k]);
    NewFiles made;
    made.what.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {}, "", tensor.type});
    const bool compressed = !array.codecs.empty();
    made.grain = compressed ? array.chunks : array.files;
    if (compressed) {
        made.what.codecs = format(array.codecs);
        made.what.piece_bytes = chunk_bytes;
        made.fill = fill_of(array);
        made.indexed = array.sharded;
        for (const Index count : inner) made.pieces_each *= count;
    }
    const auto placed = for_each_place(grid, [&](const std::vector<Index>& place) -> Result<void> {
        const auto number = static_cast<Index>(made.what.files.size());
        const std::vector<Index> begin = begin_of(place, array.files);
        std::string index;
        Index end = 0;
        Index held = 0;  // chunks
        RESHARD_CHECK(for_each_place(inner, [&](const std::vector<Index>& at) -> Result<void> {
            Box box = box_at(begin, at, array.chunks, array.shape);
            const bool there = count(box) > 0;
            append_number(index, there ? end : -1);
            append_number(index, there ? chunk_bytes : -1);
            if (there) made.what.tensors[0].boxes.push_back({std::move(box), number, end, strides});
            held += there ? 1 : 0;
            if (there || compressed) end += chunk_bytes;  // every entry of an index has a place among decoded bytes
            return {};
        }));
        made.summed.push_back({number, 0, end, tensor.name});
        if (compressed) end = held * chunk_bytes;
        if (array.sharded && !compressed) {
            append_sum(index);
            made.fixed.push_back({number, end, index});
            end += std::ssize(index);
        }
        made.what.files.push_back({zarr_key(array, place), end});
        return {};
    });
    if (!placed) return tl::unexpected(placed.error());
    if (array.v2) {
        made.texts.emplace_back(".zarray", write_zarr2(array));
        made.texts.emplace_back(".zattrs", write_attributes2(array));
    } else {
        made.texts.emplace_back("zarr.json", write_zarr(array));
    }
    return made;
}

}  // namespace reshard::files
