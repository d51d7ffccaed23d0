#include "files/formats/safetensors.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "files/formats/json_text.hpp"
#include "files/formats/npy.hpp"
#include "src/base/try.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::files {
namespace {

using namespace std::string_view_literals;

tl::unexpected<Error> lies(const std::string& name, std::string_view what) {
    return fail(Code::io, fmt::format("{} {}", in_quotes(name), what));
}

constexpr std::array known_types = {std::pair{"F4"sv, 4},          std::pair{"F6_E2M3"sv, 6},
                                    std::pair{"F6_E3M2"sv, 6},     std::pair{"F8_E8M0"sv, 8},
                                    std::pair{"F8_E4M3FNUZ"sv, 8}, std::pair{"F8_E5M2FNUZ"sv, 8}};

// An element type that is only copied. The bytes between the offsets say how wide an unknown one is.
Result<void> read_other_type(const std::string& type, SafetensorsEntry& entry) {
    Index count = 1;
    for (const Index extent : entry.shape) count = saturating_multiply(count, extent);
    const Index bytes = entry.end - entry.begin;
    const auto known = std::ranges::find(known_types, type, &std::pair<std::string_view, int>::first);
    Index bits = known != known_types.end() ? known->second : 8;
    if (known == known_types.end() && count > 0) {
        bits = saturating_multiply(bytes, 8) / count;
        constexpr Index bits_max = 1024;
        if (bits < 1 || bits > bits_max || saturating_multiply(bits, count) != saturating_multiply(bytes, 8))
            return fail(Code::unsupported,
                        fmt::format("{} has {} elements of type {} in {} bytes, so their width is not known",
                                    in_quotes(entry.name), count, in_quotes(type), bytes));
    }
    entry.type = {type, bits};
    auto made = carried(entry.type, std::move(entry.shape));
    if (!made) return fail(made.error().code, fmt::format("{} {}", in_quotes(entry.name), made.error().message));
    entry.dtype = made->dtype;
    entry.shape = std::move(made->shape);
    return {};
}

// Reads an entry of the JSON. Its begin and end count from the end of the header.
Result<SafetensorsEntry> read_entry(const std::string& name, const Json& json) {
    if (!json.is_object()) return lies(name, "is no object");
    for (const char* const key : {"dtype", "shape", "data_offsets"})
        if (!json.contains(key)) return lies(name, fmt::format("has no {}", key));
    if (json.size() != 3) return lies(name, "has another key than dtype, shape and data_offsets");
    SafetensorsEntry entry{name, DType::f32, {}};
    if (!json["dtype"].is_string()) return lies(name, "has a dtype that is no text");
    const auto dtype = json["dtype"].get<std::string>();
    const auto found = tables::find_dtype(&tables::DTypeRow::safetensors, dtype);
    auto shape = whole_numbers(json["shape"]);
    if (!shape) return lies(name, "has a shape that is no list of numbers from 0 to 2^63 - 1");
    if (std::ssize(*shape) > dims_max)
        return fail(Code::unsupported, fmt::format("{} has {} dimensions, and at most {} are read", in_quotes(name),
                                                   shape->size(), dims_max));
    entry.shape = std::move(*shape);
    const auto offsets = whole_numbers(json["data_offsets"]);
    if (!offsets || offsets->size() != 2)
        return lies(name, "has data_offsets that are not two numbers from 0 to 2^63 - 1");
    entry.begin = offsets->front();
    entry.end = offsets->back();
    if (entry.end < entry.begin) return lies(name, "ends before it begins");
    if (found) {
        entry.dtype = *found;
    } else {
        RESHARD_CHECK(read_other_type(dtype, entry));
    }
    const auto bytes = dense_bytes(entry.dtype, entry.shape);
    if (!bytes) return lies(name, "has more bytes than 64 bits can count");
    if (*bytes != entry.end - entry.begin)
        return lies(name, fmt::format("has {} bytes by its shape, {} by its offsets", *bytes, entry.end - entry.begin));
    return entry;
}

Result<void> read_metadata(const Json& json, SafetensorsHeader& header) {
    if (!json.is_object()) return fail(Code::io, "__metadata__ is no object");
    for (const auto& [key, said] : json.items()) {
        if (!said.is_string()) return fail(Code::io, fmt::format("{} in __metadata__ is no text", in_quotes(key)));
        header.metadata.emplace(key, said.get<std::string>());
    }
    return {};
}

}  // namespace

Result<Carried> carried(const FileType& type, std::vector<Index> shape) {
    for (const DType dtype : {DType::u8, DType::u16, DType::u32, DType::u64})
        if (8 * size_of(dtype) == type.bits) return Carried{dtype, std::move(shape)};
    if (shape.empty()) return fail(Code::unsupported, fmt::format("is one element of {} bits", type.bits));
    const auto bits = checked_multiply(shape.back(), type.bits);
    if (!bits) return fail(Code::io, "has more bytes than 64 bits can count");
    if (*bits % 8 != 0)
        return fail(Code::unsupported, fmt::format("has rows of {} elements of {} bits, which are no whole bytes",
                                                   shape.back(), type.bits));
    shape.back() = *bits / 8;
    return Carried{DType::u8, std::move(shape)};
}

Result<std::vector<Index>> shape_in_elements(const FileType& type, DType dtype, std::vector<Index> shape) {
    if (type.name.empty() || type.bits == 8 * size_of(dtype)) return shape;
    const auto bits = checked_multiply(shape.back(), 8);
    if (!bits || *bits % type.bits != 0)
        return fail(Code::unsupported, fmt::format("{} bytes are no whole elements of {}, which have {} bits",
                                                   shape.back(), in_quotes(type.name), type.bits));
    shape.back() = *bits / type.bits;
    return shape;
}

Result<Index> dense_bytes(DType dtype, std::span<const Index> shape) {
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    std::optional<Index> bytes = size_of(dtype);
    for (const Index extent : shape)
        if (bytes) bytes = checked_multiply(*bytes, extent);
    if (!bytes) return fail(Code::overflow, "a tensor has more bytes than 64 bits can count");
    return *bytes;
}

std::vector<Index> dense_strides(std::span<const Index> extents, Index element_bytes) {
    std::vector<Index> strides(extents.size());
    Index stride = element_bytes;
    for (std::size_t k = extents.size(); k-- > 0;) {
        strides[k] = stride;
        stride = saturating_multiply(stride, extents[k]);
    }
    return strides;
}

Box whole_box(std::span<const Index> shape) {
    Box box;
    for (const Index extent : shape) box.push_back({0, extent});
    return box;
}

Result<Index> safetensors_header_bytes(std::string_view start, Index file_bytes) {
    if (start.size() < 8) return fail(Code::io, "the file is shorter than the length of its header, 8 bytes");
    std::uint64_t length = 0;
    for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(start[i]);
    if (length > static_cast<std::uint64_t>(safetensors_header_max))
        return fail(Code::io,
                    fmt::format("this is no safetensors file: its header would have {} bytes, and {} are the most",
                                length, safetensors_header_max));
    if (static_cast<Index>(length) > file_bytes - 8)
        return fail(Code::io, fmt::format("the header has {} bytes, and the file ends before", length));
    return static_cast<Index>(length);
}

Result<SafetensorsHeader> parse_safetensors(std::string_view text, Index file_bytes) {
    SafetensorsHeader header;
    RESHARD_CHECK(read_members(text, "the header", "", [&](const JsonMember& member) -> Result<void> {
        if (member.name == "__metadata__") return read_metadata(member.value, header);
        RESHARD_TRY(auto& entry, read_entry(member.name, member.value));
        header.tensors.push_back(std::move(entry));
        return {};
    }));
    std::ranges::stable_sort(header.tensors, {},
                             [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
    const Index before = 8 + static_cast<Index>(text.size());
    Index end = 0;
    for (SafetensorsEntry& entry : header.tensors) {
        if (entry.begin < end) return lies(entry.name, fmt::format("begins at {}, within the one before", entry.begin));
        if (entry.begin > end)
            return lies(entry.name, fmt::format("begins at {}, and the one before ends at {}", entry.begin, end));
        end = entry.end;
        if (end > file_bytes - before)
            return lies(entry.name,
                        fmt::format("ends at {}, and the file has {} bytes of tensors", end, file_bytes - before));
        entry.begin += before;
        entry.end += before;
    }
    if (end != file_bytes - before)
        return fail(Code::io,
                    fmt::format("the tensors end at {}, and the file has {} bytes of them", end, file_bytes - before));
    return header;
}

Result<std::string> write_safetensors(std::vector<SafetensorsEntry>& tensors,
                                      const std::map<std::string, std::string>& metadata) {
    Json json = Json::object();
    if (!metadata.empty()) json["__metadata__"] = metadata;
    Index end = 0;
    for (SafetensorsEntry& entry : tensors) {
        const std::string_view type = entry.type.name.empty() ? tables::row(entry.dtype).safetensors : entry.type.name;
        if (type.empty() || is_time(entry.type))
            return fail(Code::unsupported, fmt::format("{}: safetensors have no elements of type {}",
                                                       in_quotes(entry.name), type.empty() ? name(entry.dtype) : type));
        const auto shape = shape_in_elements(entry.type, entry.dtype, entry.shape);
        if (!shape)
            return fail(shape.error().code, fmt::format("{}: {}", in_quotes(entry.name), shape.error().message));
        RESHARD_TRY(const auto& bytes, dense_bytes(entry.dtype, entry.shape));
        const auto next = checked_add(end, bytes);
        if (!next) return fail(Code::overflow, "a file would have more bytes than 64 bits can count");
        append(json, entry.name, {{"dtype", type}, {"shape", *shape}, {"data_offsets", {end, *next}}});
        entry.begin = end;
        entry.end = end = *next;
    }
    std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    text.append((8 - text.size() % 8) % 8, ' ');
    const auto length = static_cast<Index>(text.size());
    if (length > safetensors_header_max) return fail(Code::unsupported, "the header would be longer than 100 MB");
    if (!checked_add(end, 8 + length))
        return fail(Code::overflow, "a file would have more bytes than 64 bits can count");
    for (SafetensorsEntry& entry : tensors) {
        entry.begin += 8 + length;
        entry.end += 8 + length;
    }
    std::string head;
    for (int i = 0; i < 8; ++i) head += static_cast<char>((length >> (8 * i)) & 0xff);
    return head + text;
}

}  // namespace reshard::files
