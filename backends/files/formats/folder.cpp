#include "backends/files/formats/folder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "backends/files/base/file.hpp"
#include "backends/files/formats/json_text.hpp"
#include "src/base/try.hpp"

namespace reshard::files {
namespace {

constexpr std::string_view ending = ".safetensors";
constexpr const char* dcp_key = "DCP_SHARDING_INFO";

// A decimal number without sign at the start of the text, which is taken off.
std::optional<Index> take_number(std::string_view& text) {
    Index number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || text.empty() || text.front() == '-') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

}  // namespace

Result<std::vector<std::string>> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(folder, error);
         !error && entry != std::filesystem::end(entry); entry.increment(error)) {
        std::string name = entry->path().filename().string();
        if (is_plain_name(name)) names.push_back(std::move(name));
    }
    if (error) return fail(Code::io, fmt::format("cannot read '{}': {}", folder, error.message()));
    std::ranges::sort(names);
    return names;
}

Result<OpenedSafetensors> open_safetensors(const std::string& path) {
    RESHARD_TRY(const auto& file, File::open_to_read(path));
    RESHARD_TRY(const auto& bytes, file.size());
    std::string text(static_cast<std::size_t>(std::min<Index>(bytes, 8)), '\0');
    RESHARD_CHECK(file.read(std::as_writable_bytes(std::span(text)), 0));
    const auto named = [&](Error error) {
        error.message = fmt::format("'{}': {}", path, error.message);
        return tl::unexpected(std::move(error));
    };
    const auto length = safetensors_header_bytes(text, bytes);
    if (!length) return named(length.error());
    text.resize(static_cast<std::size_t>(*length));
    RESHARD_CHECK(file.read(std::as_writable_bytes(std::span(text)), 8));
    auto header = parse_safetensors(text, bytes);
    if (!header) return named(header.error());
    return OpenedSafetensors{*std::move(header), bytes};
}

std::optional<Index> rank_in(std::string_view name) {
    constexpr std::string_view before = "model-rank-";
    constexpr std::string_view between = "-part-";
    if (!name.starts_with(before)) return std::nullopt;
    name.remove_prefix(before.size());
    const auto rank = take_number(name);
    if (!rank || !name.starts_with(between)) return std::nullopt;
    name.remove_prefix(between.size());
    return take_number(name) && name == ending ? rank : std::nullopt;
}

Result<std::optional<SavedOffsets>> saved_offsets(const SafetensorsHeader& header) {
    const auto found = header.metadata.find(dcp_key);
    if (found == header.metadata.end()) return std::optional<SavedOffsets>();
    RESHARD_TRY(const auto& json, parse_object(found->second, dcp_key));
    SavedOffsets offsets;
    for (const SafetensorsEntry& entry : header.tensors) {
        const auto wrong = [&] {
            return fail(Code::io,
                        fmt::format("{} does not say with numbers where {} begins", dcp_key, in_quotes(entry.name)));
        };
        if (!json.contains(entry.name) || !json[entry.name].is_object()) return wrong();
        const Json& said = json[entry.name];
        if (!said.contains("saved_offsets")) return wrong();
        auto numbers = whole_numbers(said["saved_offsets"]);
        if (!numbers || numbers->size() != entry.shape.size()) return wrong();
        for (std::size_t k = 0; k < numbers->size(); ++k)
            if (!checked_add((*numbers)[k], entry.shape[k])) return wrong();
        offsets.emplace(entry.name, std::move(*numbers));
    }
    return std::optional(std::move(offsets));
}

std::map<std::string, std::string> dcp_metadata(const SavedOffsets& offsets) {
    Json json = Json::object();
    for (const auto& [name, begin] : offsets) json[name] = {{"saved_offsets", begin}};
    return {
        {dcp_key, json.dump(-1, ' ', false, Json::error_handler_t::replace)}, {"DCP_VERSION", "1.0"}, {"format", "pt"}};
}

Result<std::map<std::string, std::string>> parse_index(std::string_view text) {
    RESHARD_TRY(const auto& json, parse_object(text, "the index"));
    if (!json.contains("weight_map") || !json["weight_map"].is_object())
        return fail(Code::io, "the index has no weight_map");
    std::map<std::string, std::string> files;
    for (const auto& [name, file] : json["weight_map"].items()) {
        const std::string path = file.is_string() ? file.get<std::string>() : "";
        if (!is_plain_name(path) || !path.ends_with(ending))
            return fail(Code::io, fmt::format("the index says that {} is in {}, which names no .safetensors file of "
                                              "its folder",
                                              in_quotes(name), in_quotes(path)));
        files.emplace(name, path);
    }
    return files;
}

}  // namespace reshard::files
