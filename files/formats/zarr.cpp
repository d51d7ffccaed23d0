#include "files/formats/zarr.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "files/formats/json_text.hpp"
#include "files/formats/safetensors.hpp"
#include "src/base/try.hpp"
#include "src/copy/element_type.hpp"

namespace reshard::files {

namespace {

tl::unexpected<Error> wrong(std::string_view what) { return fail(Code::io, fmt::format("zarr.json: {}", what)); }

tl::unexpected<Error> unknown(std::string_view what) {
    return fail(Code::unsupported, fmt::format("zarr.json: {}", what));
}

template <class T>
std::string bytes_of(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

// Reads a float: a number, or NaN, Infinity or -Infinity in quotes.
std::optional<double> float_of(const Json& json) {
    if (json.is_number()) return json.get<double>();
    if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (json == "Infinity") return std::numeric_limits<double>::infinity();
    if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
}

template <class T>
std::optional<T> integer_of(const Json& json) {
    if (!json.is_number_integer()) return std::nullopt;
    if (json.is_number_unsigned()) {
        const auto value = json.get<std::uint64_t>();
        if (value > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return std::nullopt;
        return static_cast<T>(value);
    }
    const auto value = json.get<std::int64_t>();
    if (std::is_unsigned_v<T> || value < static_cast<std::int64_t>(std::numeric_limits<T>::min())) return std::nullopt;
    return static_cast<T>(value);
}

// The bytes of an element that JSON describes; nullopt if it describes no element of this type.
std::optional<std::string> fill_bytes(DType dtype, const Json& json) {
    return with_element_type(dtype, [&]<class E>(E) -> std::optional<std::string> {
        using Number = typename E::Number;
        if constexpr (std::is_same_v<E, Boolean>) {
            if (json.is_boolean()) return bytes_of(E::of(json.get<bool>() ? 1 : 0));
        } else if constexpr (std::is_integral_v<Number>) {
            if (const auto value = integer_of<Number>(json)) return bytes_of(E::of(*value));
        } else if constexpr (has_parts<E>) {
            if (!json.is_array() || json.size() != 2) return std::nullopt;
            const auto real = float_of(json[0]);
            const auto imaginary = float_of(json[1]);
            if (real && imaginary) return bytes_of(E{static_cast<Number>(*real), static_cast<Number>(*imaginary)});
        } else {
            if (const auto value = float_of(json)) return bytes_of(E::of(static_cast<Number>(*value)));
        }
        return std::nullopt;
    });
}

// What a member says; null where it is not there.
const Json& member(const Json& json, const char* key) {
    static const Json none;
    return json.is_object() && json.contains(key) ? json[key] : none;
}

std::string name_of(const Json& json) {
    const Json& name = json.is_string() ? json : member(json, "name");
    return name.is_string() ? name.get<std::string>() : "";
}

// [bytes], with little-endian elements.
Result<void> only_bytes(const Json& codecs, DType dtype) {
    if (!codecs.is_array() || codecs.empty()) return wrong("no list of codecs");
    for (const Json& codec : codecs)
        if (name_of(codec) != "bytes")
            return unknown(fmt::format("the codec {} is not read or written here, only bytes and sharding_indexed are",
                                       in_quotes(name_of(codec))));
    if (codecs.size() != 1) return wrong("the codec 'bytes' twice");
    const Json& endian = member(member(codecs[0], "configuration"), "endian");
    if (endian == "little" || (endian.is_null() && size_of(dtype) == 1)) return {};
    return unknown("elements that are not little-endian");
}

Result<std::vector<Index>> sides_of(const Json& json, std::size_t rank, const char* what) {
    auto sides = whole_numbers(json);
    if (!sides || sides->size() != rank) return wrong(fmt::format("{} is no list of {} numbers", what, rank));
    for (const Index side : *sides)
        if (side < 1) return wrong(fmt::format("{} has a side of 0", what));
    return *std::move(sides);
}

Result<void> read_sharding(const Json& configuration, ZarrArray& array) {
    array.sharded = true;
    RESHARD_ASSIGN(array.chunks, sides_of(member(configuration, "chunk_shape"), array.shape.size(), "chunk_shape"));
    for (std::size_t k = 0; k < array.shape.size(); ++k)
        if (array.files[k] % array.chunks[k] != 0) return wrong("a shard is no multiple of its chunks");
    RESHARD_CHECK(only_bytes(member(configuration, "codecs"), array.dtype));
    const Json& index = member(configuration, "index_codecs");
    const bool summed = index.is_array() && index.size() == 2 && name_of(index[1]) == "crc32c" &&
                        name_of(index[0]) == "bytes" && member(member(index[0], "configuration"), "endian") == "little";
    if (!summed) return unknown("an index of shards that is not little-endian bytes with a crc32c");
    const Json& location = member(configuration, "index_location");
    if (!location.is_null() && location != "end" && location != "start") return wrong("no such index_location");
    array.index_first = location == "start";
    return {};
}

Result<void> read_keys(const Json& encoding, ZarrArray& array) {
    const std::string name = name_of(encoding);
    if (name != "default" && name != "v2") return unknown("a chunk_key_encoding that is not default or v2");
    array.keys_of_v2 = name == "v2";
    array.separator = array.keys_of_v2 ? '.' : '/';
    const Json& separator = member(member(encoding, "configuration"), "separator");
    if (separator.is_null()) return {};
    if (separator != "/" && separator != ".") return wrong("a separator that is not / or .");
    array.separator = separator.get<std::string>()[0];
    return {};
}

}  // namespace

Result<ZarrArray> parse_zarr(std::string_view text) {
    RESHARD_TRY(const auto& json, parse_object(text, "zarr.json"));
    if (member(json, "zarr_format") != 3) return unknown("zarr_format is not 3");
    if (member(json, "node_type") != "array") return unknown("no array; of a group name one of its arrays");
    ZarrArray array;
    auto shape = whole_numbers(member(json, "shape"));
    if (!shape) return wrong("no shape of numbers from 0 to 2^63 - 1");
    if (std::ssize(*shape) > dims_max)
        return unknown(fmt::format("{} dimensions, and at most {} are read", shape->size(), dims_max));
    array.shape = *std::move(shape);
    const std::string type = name_of(member(json, "data_type"));
    const auto found = tables::find_dtype(&tables::DTypeRow::zarr, type);
    if (!found) return unknown(fmt::format("elements of type {}", in_quotes(type)));
    array.dtype = *found;
    const Json& grid = member(json, "chunk_grid");
    if (name_of(grid) != "regular") return unknown("a chunk_grid that is not regular");
    RESHARD_ASSIGN(array.files,
                   sides_of(member(member(grid, "configuration"), "chunk_shape"), array.shape.size(), "chunk_shape"));
    array.chunks = array.files;
    RESHARD_CHECK(read_keys(member(json, "chunk_key_encoding"), array));
    const Json& codecs = member(json, "codecs");
    if (codecs.is_array() && codecs.size() == 1 && name_of(codecs[0]) == "sharding_indexed") {
        RESHARD_CHECK(read_sharding(member(codecs[0], "configuration"), array));
    } else {
        RESHARD_CHECK(only_bytes(codecs, array.dtype));
    }
    const Json& transformers = member(json, "storage_transformers");
    if (!transformers.is_null() && (!transformers.is_array() || !transformers.empty()))
        return unknown("storage_transformers");
    const auto fill = fill_bytes(array.dtype, member(json, "fill_value"));
    if (!fill) return wrong("a fill_value that is none of its type");
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
    Json codecs = Json::array({bytes});
    if (array.sharded) {
        const Json index = Json::array({bytes, Json{{"name", "crc32c"}}});
        const Json configuration = {
            {"chunk_shape", array.chunks}, {"codecs", codecs}, {"index_codecs", index}, {"index_location", "end"}};
        codecs = Json::array({Json{{"name", "sharding_indexed"}, {"configuration", configuration}}});
    }
    Json json = {{"zarr_format", 3},
                 {"node_type", "array"},
                 {"shape", array.shape},
                 {"data_type", tables::row(array.dtype).zarr},
                 {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", array.files}}}}},
                 {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
                 {"fill_value", 0},
                 {"codecs", codecs},
                 {"attributes", Json::object()},
                 {"storage_transformers", Json::array()}};
    if (array.dtype == DType::boolean) json["fill_value"] = false;
    if (is_complex(array.dtype)) json["fill_value"] = {0.0, 0.0};
    const Json rest = parse_object(array.rest, "rest").value_or(Json::object());
    for (const auto& [key, value] : rest.items())
        if (key != "fill_value" || fill_bytes(array.dtype, value)) json[key] = value;
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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

}  // namespace reshard::files
