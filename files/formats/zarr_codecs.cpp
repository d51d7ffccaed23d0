#include "files/formats/zarr_codecs.hpp"

#include <algorithm>

#include "files/formats/zarr_json.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

using Kind = Codec::Kind;
using Shuffle = Codec::Shuffle;

// The shuffle of blosc: a word in v3, a number in v2.
std::string_view shuffle_of(const Json& said, Index element_bytes) {
    if (said.is_string()) return said.get_ref<const std::string&>();
    const int number = said.is_number_integer() ? said.get<int>() : 1;
    if (number == 0) return "noshuffle";
    if (number == -1) return element_bytes == 1 ? "bitshuffle" : "shuffle";  // numcodecs chooses so
    return number == 1 ? "shuffle" : number == 2 ? "bitshuffle" : "?";
}

// Reads a codec that compresses: its name, and its configuration in the words that v2 and v3 share.
Result<Codec> read_codec(std::string name, const Json& said, Index element_bytes) {
    constexpr std::string_view prefix = "numcodecs.";
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
    const bool known = name == "zstd" || name == "gzip" || name == "zlib" || name == "blosc" || name == "crc32c";
    if (!known)
        return zarr_unknown(
            fmt::format("the codec {} is not read; zstd, gzip, zlib, blosc, crc32c, transpose, bytes and "
                        "sharding_indexed are",
                        in_quotes(name)));
    std::string text = name;
    if (name == "blosc") {
        const Json& compressor = member(said, "cname");
        if (!compressor.is_string()) return zarr_wrong("the codec blosc without a cname");
        text = fmt::format("blosc:{}:{}:{}", compressor.get<std::string>(), number_of(said, "clevel", 5),
                           shuffle_of(member(said, "shuffle"), element_bytes));
    } else if (name != "crc32c") {
        text = fmt::format("{}:{}", name, number_of(said, "level", name == "zstd" ? 0 : name == "gzip" ? 5 : 1));
    }
    if (name == "zstd" && member(said, "checksum") == true) text += ":checksum";
    auto codecs = parse_codecs(text);
    if (!codecs || codecs->size() != 1) return zarr_wrong(codecs ? "a codec" : codecs.error().message);
    return std::move(codecs->front());
}

Result<std::vector<std::size_t>> read_order(const Json& said, std::size_t dims) {
    std::vector<std::size_t> order;
    if (said == "C" || said == "F") {
        for (std::size_t k = 0; k < dims; ++k) order.push_back(said == "C" ? k : dims - 1 - k);
        return order;
    }
    const auto numbers = whole_numbers(said);
    if (numbers)
        for (const Index number : *numbers) order.push_back(static_cast<std::size_t>(number));
    std::vector<std::size_t> sorted = order;
    std::ranges::sort(sorted);
    bool whole = numbers && sorted.size() == dims;
    for (std::size_t k = 0; whole && k < dims; ++k) whole = sorted[k] == k;
    if (!whole) return zarr_wrong(fmt::format("the order of a transpose is no order of {} dimensions", dims));
    return order;
}

Result<bool> is_swapped(const Json& configuration, Index element_bytes) {
    const Json& endian = member(configuration, "endian");
    if (endian == "little" || (endian.is_null() && element_bytes == 1)) return false;
    if (endian == "big") return element_bytes > 1;
    return zarr_wrong("the codec bytes without an endian of little or big");
}

}  // namespace

Result<ZarrCodecs> parse_zarr_codecs(const Json& json, std::size_t dims, Index element_bytes) {
    if (!json.is_array() || json.empty()) return zarr_wrong("no list of codecs");
    ZarrCodecs made;
    bool bytes = false;  // the codec that turns the array into bytes has come
    for (const Json& codec : json) {
        const std::string name = name_of(codec);
        const Json& configuration = member(codec, "configuration");
        if (name == "bytes" && !bytes) {
            RESHARD_ASSIGN(made.swapped, is_swapped(configuration, element_bytes));
            bytes = true;
        } else if (name == "transpose" && !bytes && made.order.empty()) {
            RESHARD_ASSIGN(made.order, read_order(member(configuration, "order"), dims));
        } else if (name == "sharding_indexed") {
            return zarr_unknown("shards that are compressed, transposed or in shards are not read");
        } else if (!bytes && (name == "bytes" || name == "transpose")) {
            return zarr_unknown("two transposes are not read");
        } else {
            RESHARD_TRY(auto& read, read_codec(name, configuration, element_bytes));
            if (!bytes) return zarr_wrong(fmt::format("the codec {} comes before bytes", in_quotes(name)));
            made.codecs.push_back(std::move(read));
        }
    }
    if (!bytes) return zarr_wrong("no codec bytes");
    RESHARD_CHECK(available(made.codecs));
    return made;
}

namespace {

// The configuration of a codec, as v3 writes it.
Json configuration_of(const Codec& codec, Index element_bytes) {
    if (codec.kind == Kind::zstd) return {{"level", codec.level}, {"checksum", codec.checksum}};
    if (codec.kind != Kind::blosc) return {{"level", codec.level}};
    Json made = {{"cname", codec.compressor}, {"clevel", codec.level}};
    made["shuffle"] = codec.shuffle == Shuffle::none    ? "noshuffle"
                      : codec.shuffle == Shuffle::bytes ? "shuffle"
                                                        : "bitshuffle";
    made["typesize"] = element_bytes;
    made["blocksize"] = 0;
    return made;
}

std::string kind_of(const Codec& codec) {
    const std::string text = format(Codecs{codec});
    return text.substr(0, text.find(':'));
}

}  // namespace

Json zarr_codecs(const Codecs& codecs, Index element_bytes) {
    Json made = Json::array({Json{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}});
    for (const Codec& codec : codecs) {
        Json one = {{"name", (codec.kind == Kind::zlib ? "numcodecs." : "") + kind_of(codec)}};
        if (codec.kind != Kind::crc32c) one["configuration"] = configuration_of(codec, element_bytes);
        made.push_back(std::move(one));
    }
    return made;
}

Result<Codecs> parse_compressor(const Json& json, Index element_bytes) {
    if (json.is_null()) return Codecs();
    const Json& id = member(json, "id");
    RESHARD_TRY(auto& codec, read_codec(id.is_string() ? id.get<std::string>() : "", json, element_bytes));
    Codecs codecs{std::move(codec)};
    RESHARD_CHECK(available(codecs));
    return codecs;
}

Json zarr_compressor(const Codecs& codecs) {
    if (codecs.empty()) return {};
    const Codec& codec = codecs.front();
    Json made = {{"id", kind_of(codec)}};
    if (codec.kind == Kind::blosc) {
        made.update(Json{{"cname", codec.compressor},
                         {"clevel", codec.level},
                         {"shuffle", static_cast<int>(codec.shuffle)},
                         {"blocksize", 0}});
    } else {
        made["level"] = codec.level;
    }
    if (codec.checksum) made["checksum"] = true;
    return made;
}

}  // namespace reshard::files
