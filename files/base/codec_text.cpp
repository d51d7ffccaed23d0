#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "files/base/codecs.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

using Kind = Codec::Kind;
using Shuffle = Codec::Shuffle;

struct Known {
    Kind kind;
    std::string_view name;
    int level_min;
    int level_max;
    int level;  // if none is given
};

constexpr std::array known = {Known{Kind::zstd, "zstd", -131072, 22, 3}, Known{Kind::gzip, "gzip", -1, 9, 5},
                              Known{Kind::zlib, "zlib", -1, 9, 1}, Known{Kind::blosc, "blosc", 0, 9, 5},
                              Known{Kind::crc32c, "crc32c", 0, 0, 0}};
constexpr std::array<std::string_view, 5> compressors = {"blosclz", "lz4", "lz4hc", "zlib", "zstd"};
constexpr std::array<std::string_view, 3> shuffles = {"noshuffle", "shuffle", "bitshuffle"};

const Known& row(Kind kind) { return *std::ranges::find(known, kind, &Known::kind); }

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = std::min(text.find(at), text.size());
        parts.push_back(text.substr(0, end));
        if (end == text.size()) return parts;
        text.remove_prefix(end + 1);
    }
}

tl::unexpected<Error> no_codec(std::string_view text) {
    return fail(Code::usage,
                fmt::format("{} is no codec; zstd:3, gzip:5, zlib:1, blosc:lz4:5:shuffle, crc32c, none, and "
                            "several with commas between are known",
                            in_quotes(text)));
}

Result<int> level_of(const Known& codec, std::string_view text) {
    int level = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
    const bool number = error == std::errc() && end == text.data() + text.size();
    if (number && level >= codec.level_min && level <= codec.level_max) return level;
    return fail(Code::usage, fmt::format("{} is no level of {}, which has {} to {}", in_quotes(text), codec.name,
                                         codec.level_min, codec.level_max));
}

Result<Codec> parse_codec(std::string_view text) {
    std::vector<std::string_view> parts = split(text, ':');
    const auto found = std::ranges::find(known, parts[0], &Known::name);
    if (found == known.end()) return no_codec(text);
    Codec codec{found->kind, found->level};
    std::size_t next = 1;
    if (codec.kind == Kind::blosc) {
        codec.compressor = next < parts.size() ? parts[next++] : "lz4";
        codec.shuffle = Shuffle::bytes;
        if (std::ranges::find(compressors, codec.compressor) == compressors.end())
            return fail(Code::usage, fmt::format("{} is no compressor of blosc; {} are", in_quotes(codec.compressor),
                                                 fmt::join(compressors, ", ")));
    }
    if (next < parts.size() && codec.kind != Kind::crc32c) {
        RESHARD_ASSIGN(codec.level, level_of(*found, parts[next++]));
    }
    if (next < parts.size() && codec.kind == Kind::blosc) {
        const auto shuffle = std::ranges::find(shuffles, parts[next++]);
        if (shuffle == shuffles.end()) return no_codec(text);
        codec.shuffle = static_cast<Shuffle>(shuffle - shuffles.begin());
    }
    if (next < parts.size() && codec.kind == Kind::zstd) codec.checksum = parts[next++] == "checksum";
    const bool whole = next == parts.size() && (parts.size() < 3 || codec.kind != Kind::zstd || codec.checksum);
    if (!whole) return no_codec(text);
    return codec;
}

}  // namespace

Result<Codecs> parse_codecs(std::string_view text) {
    Codecs codecs;
    if (text.empty() || text == "none") return codecs;
    for (const std::string_view part : split(text, ',')) {
        RESHARD_TRY(auto& codec, parse_codec(part));
        codecs.push_back(std::move(codec));
    }
    return codecs;
}

std::string format(const Codecs& codecs) {
    std::string text;
    for (const Codec& codec : codecs) {
        text += fmt::format("{}{}", text.empty() ? "" : ",", row(codec.kind).name);
        if (codec.kind == Kind::blosc) text += fmt::format(":{}", codec.compressor);
        if (codec.kind != Kind::crc32c) text += fmt::format(":{}", codec.level);
        if (codec.kind == Kind::blosc) text += fmt::format(":{}", shuffles[static_cast<std::size_t>(codec.shuffle)]);
        if (codec.checksum) text += ":checksum";
    }
    return text;
}

}  // namespace reshard::files
