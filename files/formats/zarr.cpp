#include "files/formats/zarr.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "files/base/crc32c.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/zarr_codecs.hpp"
#include "files/formats/zarr_elements.hpp"
#include "files/formats/zarr_json.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

Result<std::vector<Index>> sides_of(const Json& json, std::size_t rank, const char* what) {
    auto sides = whole_numbers(json);
    if (!sides || sides->size() != rank) return zarr_wrong(fmt::format("{} is no list of {} numbers", what, rank));
    for (const Index side : *sides)
        if (side < 1) return zarr_wrong(fmt::format("{} has a side of 0", what));
    return *std::move(sides);
}

Result<void> read_codecs(const Json& json, ZarrArray& array) {
    RESHARD_TRY(auto& read, parse_zarr_codecs(json, array.shape.size(), size_of(array.dtype)));
    array.order = std::move(read.order);
    array.swapped = read.swapped;
    array.codecs = std::move(read.codecs);
    return {};
}

Result<void> read_sharding(const Json& configuration, ZarrArray& array) {
    array.sharded = true;
    RESHARD_ASSIGN(array.chunks, sides_of(member(configuration, "chunk_shape"), array.shape.size(), "chunk_shape"));
    for (std::size_t k = 0; k < array.shape.size(); ++k)
        if (array.files[k] % array.chunks[k] != 0) return zarr_wrong("a shard is no multiple of its chunks");
    RESHARD_CHECK(read_codecs(member(configuration, "codecs"), array));
    const Json& index = member(configuration, "index_codecs");
    const bool summed = index.is_array() && index.size() == 2 && name_of(index[1]) == "crc32c" &&
                        name_of(index[0]) == "bytes" && member(member(index[0], "configuration"), "endian") == "little";
    if (!summed) return zarr_unknown("an index of shards that is not little-endian bytes with a crc32c");
    const Json& location = member(configuration, "index_location");
    if (!location.is_null() && location != "end" && location != "start") return zarr_wrong("no such index_location");
    array.index_first = location == "start";
    return {};
}

Result<void> read_keys(const Json& encoding, ZarrArray& array) {
    const std::string name = name_of(encoding);
    if (name != "default" && name != "v2") return zarr_unknown("a chunk_key_encoding that is not default or v2");
    array.keys_of_v2 = name == "v2";
    array.separator = array.keys_of_v2 ? '.' : '/';
    const Json& separator = member(member(encoding, "configuration"), "separator");
    if (separator.is_null()) return {};
    if (separator != "/" && separator != ".") return zarr_wrong("a separator that is not / or .");
    array.separator = separator.get<std::string>()[0];
    return {};
}

}  // namespace

Result<ZarrArray> parse_zarr(std::string_view text) {
    RESHARD_TRY(const auto& json, parse_object(text, "zarr.json"));
    if (member(json, "zarr_format") != 3) return zarr_unknown("zarr_format is not 3");
    if (member(json, "node_type") != "array")
        return zarr_unknown("no array is here but a group: name one of its arrays");
    ZarrArray array;
    auto shape = whole_numbers(member(json, "shape"));
    if (!shape) return zarr_wrong("no shape of numbers from 0 to 2^63 - 1");
    if (std::ssize(*shape) > dims_max)
        return zarr_unknown(fmt::format("{} dimensions, and at most {} are read", shape->size(), dims_max));
    array.shape = *std::move(shape);
    RESHARD_TRY(const auto& elements, parse_zarr_type(member(json, "data_type")));
    array.dtype = elements.dtype;
    array.type = elements.type;
    const Json& grid = member(json, "chunk_grid");
    if (name_of(grid) != "regular") return zarr_unknown("a chunk_grid that is not regular");
    RESHARD_ASSIGN(array.files,
                   sides_of(member(member(grid, "configuration"), "chunk_shape"), array.shape.size(), "chunk_shape"));
    array.chunks = array.files;
    RESHARD_CHECK(read_keys(member(json, "chunk_key_encoding"), array));
    const Json& codecs = member(json, "codecs");
    if (codecs.is_array() && codecs.size() == 1 && name_of(codecs[0]) == "sharding_indexed") {
        RESHARD_CHECK(read_sharding(member(codecs[0], "configuration"), array));
    } else {
        RESHARD_CHECK(read_codecs(codecs, array));
    }
    const Json& transformers = member(json, "storage_transformers");
    if (!transformers.is_null() && (!transformers.is_array() || !transformers.empty()))
        return zarr_unknown("storage_transformers");
    const auto fill = fill_bytes(elements, member(json, "fill_value"));
    if (!fill) return zarr_wrong("a fill_value that is none of its type");
    array.fill = *fill;
    RESHARD_CHECK(dense_bytes(array.dtype, array.files));
    RESHARD_CHECK(dense_bytes(array.dtype, array.shape));
    Json rest = Json::object();
    for (const char* const key : {"fill_value", "attributes", "dimension_names"})
        if (json.contains(key)) rest[key] = json[key];
    array.rest = rest.dump(-1, ' ', false, Json::error_handler_t::replace);
    return array;
}

std::string write_zarr(const ZarrArray& array) {
    const Json bytes = {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
    Json codecs = zarr_codecs(array.codecs, size_of(array.dtype));
    if (array.sharded) {
        const Json index = Json::array({bytes, Json{{"name", "crc32c"}}});
        const Json configuration = {
            {"chunk_shape", array.chunks}, {"codecs", codecs}, {"index_codecs", index}, {"index_location", "end"}};
        codecs = Json::array({Json{{"name", "sharding_indexed"}, {"configuration", configuration}}});
    }
    Json json = {{"zarr_format", 3},
                 {"node_type", "array"},
                 {"shape", array.shape},
                 {"data_type", zarr_type(array.dtype, array.type)},
                 {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", array.files}}}}},
                 {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
                 {"fill_value", zero_fill(array.dtype)},
                 {"codecs", codecs},
                 {"attributes", Json::object()},
                 {"storage_transformers", Json::array()}};
    const Json rest = parse_object(array.rest, "rest").value_or(Json::object());
    for (const auto& [key, value] : rest.items())
        if (key != "fill_value" || fill_bytes({array.dtype, array.type, false}, value)) json[key] = value;
    return zarr_text(json);
}

std::string zarr_key(const ZarrArray& array, std::span<const Index> place) {
    const std::string numbers = fmt::format("{}", fmt::join(place, std::string(1, array.separator)));
    if (array.keys_of_v2) return place.empty() ? "0" : numbers;
    return place.empty() ? "c" : fmt::format("c{}{}", array.separator, numbers);
}

Result<std::vector<Index>> grid_of(std::span<const Index> shape, std::span<const Index> step) {
    std::vector<Index> counts;
    Index all = 1;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        counts.push_back(ceil_divide(shape[k], step[k]));
        all = saturating_multiply(all, std::max<Index>(counts.back(), 1));
    }
    if (all > zarr_chunks_max) return fail(Code::unsupported, fmt::format("more than {} chunks", zarr_chunks_max));
    return counts;
}

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

void append_number(std::string& bytes, Index number) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xffU);
}

void append_sum(std::string& bytes) {
    const auto all = std::as_bytes(std::span(bytes));
    const std::uint32_t sum = crc32c_of(crc32c_raw(all), std::ssize(bytes));
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>((sum >> (8 * i)) & 0xffU);
}

}  // namespace reshard::files
