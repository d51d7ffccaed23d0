#include "files/formats/folder.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "files/base/file.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/other_formats.hpp"
#include "src/base/try.hpp"

namespace reshard::files {
namespace {

constexpr std::string_view ending = ".safetensors";
constexpr const char* dcp_key = "DCP_SHARDING_INFO";

// Takes a decimal number without sign off the start of the text.
std::optional<Index> take_number(std::string_view& text) {
    Index number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || text.empty() || text.front() == '-') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

}  // namespace

tl::unexpected<Error> in_file(const std::string& path, const Error& error) {
    return fail(error.code, fmt::format("'{}': {}", path, error.message));
}

Result<std::string> json_of(const std::string& path) {
    RESHARD_TRY(const auto& file, File::open_to_read(path));
    RESHARD_TRY(const auto& bytes, file.size());
    if (bytes > safetensors_header_max) return fail(Code::io, fmt::format("'{}' is longer than 100 MB", path));
    return file.start();
}

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
    RESHARD_TRY(auto& text, file.start(other_format_bytes));
    const auto length = safetensors_header_bytes(text, bytes);
    if (!length || *length == 0 || std::string_view("{ \t\r\n").find(text[8]) == std::string_view::npos)
        if (const auto other = other_format(text))
            return fail(Code::unsupported, fmt::format("{} is {}", in_quotes(path), *other));
    if (!length) return in_file(path, length.error());
    text.resize(static_cast<std::size_t>(*length));
    RESHARD_CHECK(file.read(std::as_writable_bytes(std::span(text)), 8));
    auto header = parse_safetensors(text, bytes);
    if (!header) return in_file(path, header.error());
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
    SavedOffsets said;
    RESHARD_CHECK(read_members(found->second, dcp_key, "", [&](const JsonMember& member) -> Result<void> {
        if (!member.value.is_object() || !member.value.contains("saved_offsets")) return {};
        if (auto numbers = whole_numbers(member.value["saved_offsets"])) said.emplace(member.name, *std::move(numbers));
        return {};
    }));
    SavedOffsets offsets;
    for (const SafetensorsEntry& entry : header.tensors) {
        const auto numbers = said.find(entry.name);
        bool fits = numbers != said.end() && numbers->second.size() == entry.shape.size();
        for (std::size_t k = 0; fits && k < entry.shape.size(); ++k)
            fits = checked_add(numbers->second[k], entry.shape[k]).has_value();
        if (!fits)
            return fail(Code::io,
                        fmt::format("{} does not say with numbers where {} begins", dcp_key, in_quotes(entry.name)));
        offsets.emplace(entry.name, numbers->second);
    }
    return std::optional(std::move(offsets));
}

std::map<std::string, std::string> dcp_metadata(const SavedOffsets& offsets) {
    Json json = Json::object();
    for (const auto& [name, begin] : offsets) append(json, name, {{"saved_offsets", begin}});
    return {
        {dcp_key, json.dump(-1, ' ', false, Json::error_handler_t::replace)}, {"DCP_VERSION", "1.0"}, {"format", "pt"}};
}

Result<std::map<std::string, std::string>> parse_index(std::string_view text) {
    constexpr std::string_view map = "weight_map";
    std::map<std::string, std::string> files;
    bool met = false;
    RESHARD_CHECK(read_members(text, "the index", map, [&](const JsonMember& member) -> Result<void> {
        if (member.within.empty()) {
            met = met || (member.name == map && member.value.is_object());
            return {};
        }
        std::string path = member.value.is_string() ? std::move(member.value.get_ref<std::string&>()) : "";
        if (!is_plain_name(path) || !path.ends_with(ending))
            return fail(Code::io, fmt::format("the index says that {} is in {}, which names no .safetensors file of "
                                              "its folder",
                                              in_quotes(member.name), in_quotes(path)));
        files.emplace_hint(files.end(), member.name, std::move(path));
        return {};
    }));
    if (!met) return fail(Code::io, "the index has no weight_map");
    return files;
}

}  // namespace reshard::files
