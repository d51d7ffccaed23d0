// The .zarray and the .zattrs of zarr v2.
#include <algorithm>

#include "files/formats/safetensors.hpp"
#include "files/formats/zarr.hpp"
#include "files/formats/zarr_codecs.hpp"
#include "files/formats/zarr_elements.hpp"
#include "files/formats/zarr_json.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

Result<void> read_order(const Json& order, ZarrArray& array) {
    if (order == "C") return {};
    if (order != "F") return zarr_wrong("no order of C or F");
    for (std::size_t k = array.shape.size(); k-- > 0;) array.order.push_back(k);
    return {};
}

Result<void> read_grid(const Json& json, ZarrArray& array) {
    auto shape = whole_numbers(member(json, "shape"));
    if (!shape) return zarr_wrong("no shape of numbers from 0 to 2^63 - 1");
    if (std::ssize(*shape) > dims_max)
        return zarr_unknown(fmt::format("{} dimensions, and at most {} are read", shape->size(), dims_max));
    array.shape = *std::move(shape);
    auto chunks = whole_numbers(member(json, "chunks"));
    const bool fit = chunks && chunks->size() == array.shape.size() && std::ranges::find(*chunks, 0) == chunks->end();
    if (!fit) return zarr_wrong(fmt::format("chunks are no list of {} numbers from 1", array.shape.size()));
    array.files = array.chunks = *std::move(chunks);
    array.keys_of_v2 = true;
    array.separator = '.';
    const Json& separator = member(json, "dimension_separator");
    if (separator == "/") array.separator = '/';
    return separator.is_null() || separator == "/" || separator == "." ? Result<void>()
                                                                       : zarr_wrong("a separator that is not / or .");
}

}  // namespace

Result<ZarrArray> parse_zarr2(std::string_view text, std::string_view attributes) {
    RESHARD_TRY(const auto& json, parse_object(text, ".zarray"));
    if (member(json, "zarr_format") != 2) return zarr_unknown("zarr_format is not 2");
    ZarrArray array;
    array.v2 = true;
    RESHARD_CHECK(read_grid(json, array));
    RESHARD_CHECK(read_order(member(json, "order"), array));
    const Json& type = member(json, "dtype");
    if (!type.is_string()) return zarr_unknown("records are not read");
    RESHARD_TRY(const auto& elements, elements_of(type.get<std::string>()));
    array.dtype = elements.dtype;
    array.type = elements.type;
    array.swapped = elements.swapped;
    const Json& filters = member(json, "filters");
    if (!filters.is_null() && (!filters.is_array() || !filters.empty())) {
        const Json& id = member(filters.is_array() ? filters[0] : filters, "id");
        return zarr_unknown(
            fmt::format("the filter {} is not read", in_quotes(id.is_string() ? id.get<std::string>() : "")));
    }
    RESHARD_ASSIGN(array.codecs, parse_compressor(member(json, "compressor"), size_of(array.dtype)));
    const Json& fill = member(json, "fill_value");
    const auto bytes = fill.is_null() ? fill_bytes(elements, zero_fill(array.dtype)) : fill_bytes(elements, fill);
    if (!bytes) return zarr_wrong("a fill_value that is none of its type");
    array.fill = *bytes;
    RESHARD_CHECK(dense_bytes(array.dtype, array.files));
    RESHARD_CHECK(dense_bytes(array.dtype, array.shape));
    Json rest = Json::object();
    if (!fill.is_null()) rest["fill_value"] = fill;
    if (!attributes.empty()) {
        RESHARD_ASSIGN(rest["attributes"], parse_object(attributes, ".zattrs"));
    }
    array.rest = rest.dump(-1, ' ', false, Json::error_handler_t::replace);
    return array;
}

std::string write_zarr2(const ZarrArray& array) {
    Json json = {{"zarr_format", 2},
                 {"shape", array.shape},
                 {"chunks", array.chunks},
                 {"dtype", descr_of(array.dtype, array.type)},
                 {"compressor", zarr_compressor(array.codecs)},
                 {"fill_value", zero_fill(array.dtype)},
                 {"order", "C"},
                 {"filters", nullptr}};
    if (array.separator == '/') json["dimension_separator"] = "/";
    const Json rest = parse_object(array.rest, "rest").value_or(Json::object());
    const Json& fill = member(rest, "fill_value");
    if (fill_bytes({array.dtype, array.type, false}, fill)) json["fill_value"] = fill;
    return zarr_text(json);
}

std::string write_attributes2(const ZarrArray& array) {
    const Json rest = parse_object(array.rest, "rest").value_or(Json::object());
    const Json& attributes = member(rest, "attributes");
    return zarr_text(attributes.is_object() ? attributes : Json::object());
}

}  // namespace reshard::files
