#include "live/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::live {
namespace {

constexpr Index alignment = 64;

bool is_word(std::string_view name) {
    return !name.empty() && std::ranges::none_of(name, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte <= ' ' || byte == 0x7f || c == '|';
    });
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) { return (static_cast<Index>(a) * Digest{b, 0}).sum; }

}  // namespace

Result<void> check_tensors(std::span<const NamedTensor> tensors, Index ranks) {
    if (tensors.empty()) return fail(Code::usage, "no tensors; wanted at least one");
    std::set<std::string_view> names;
    for (const auto& [name, layout] : tensors) {
        if (!is_word(name))
            return fail(Code::usage, fmt::format("the name {} has blanks, control characters or a |, or is empty; "
                                                 "wanted a word",
                                                 in_quotes(name)));
        if (!names.insert(name).second) return fail(Code::mismatch, fmt::format("tensor {} is named twice", name));
        if (auto valid = validate(layout); !valid)
            return fail(valid.error().code, fmt::format("tensor {}: {}", name, valid.error().message));
        if (!layout.unreduced.empty())
            return fail(Code::unsupported, fmt::format("tensor {} has unreduced axes; reduce it first", name));
        if (world_size(layout.mesh) > ranks)
            return fail(Code::mismatch, fmt::format("tensor {} is on {} devices; this job has {} ranks", name,
                                                    world_size(layout.mesh), ranks));
    }
    return {};
}

Index tile_bytes_of(const Layout& layout, Index rank) {
    return static_cast<Index>(tile_count(layout, rank)) * size_of(layout.dtype);
}

std::vector<Index> tile_offsets(std::span<const NamedTensor> tensors, Index rank) {
    std::vector<Index> offsets{0};
    for (const NamedTensor& tensor : tensors) {
        const Index end = offsets.back() + tile_bytes_of(tensor.layout, rank);
        offsets.push_back(ceil_divide(end, alignment) * alignment);
    }
    return offsets;
}

std::string text_of(std::span<const NamedTensor> tensors) {
    std::string text;
    for (const auto& [name, layout] : tensors)
        text += fmt::format("{}|{}|{}\n", name, format(layout.mesh), format(layout));
    return text;
}

Result<std::vector<NamedTensor>> tensors_of(std::string_view text) {
    std::vector<NamedTensor> tensors;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const auto first = line.find('|');
        const auto second = first == std::string_view::npos ? first : line.find('|', first + 1);
        if (second == std::string_view::npos)
            return fail(Code::syntax, fmt::format("the line {} of the publisher is no tensor", in_quotes(line)));
        RESHARD_TRY(const Mesh& mesh, parse_mesh(line.substr(first + 1, second - first - 1)));
        RESHARD_TRY(Layout & layout, parse_layout(mesh, line.substr(second + 1)));
        tensors.push_back({std::string(line.substr(0, first)), std::move(layout)});
    }
    return tensors;
}

std::uint64_t digest_of(std::string_view text) {
    Hash hash;
    hash.add(text);
    return hash.value();
}

Index copies_of(const Layout& layout) {
    Index shards = 1;
    for (const Dim& dim : layout.dims) shards *= shard_count(dim);
    return device_count(layout) / shards;
}

// number^(prime - 2)
std::uint64_t inverse(std::uint64_t number) {
    std::uint64_t result = 1;
    for (std::uint64_t left = Digest::prime - 2; left != 0; left >>= 1) {
        if ((left & 1U) != 0) result = times(result, number);
        number = times(number, number);
    }
    return result;
}

std::uint64_t weighted(const Digest& digest, std::uint64_t weight) { return times(weight, digest.sum); }

Result<std::uint64_t> digest_part(const DigestKeys& keys, const Layout& layout, Index rank,
                                  std::span<const std::byte> tile, Index array) {
    RESHARD_TRY(const Digest& digest, digest_tile(keys, layout, rank, tile, array));
    return weighted(digest, inverse(static_cast<std::uint64_t>(copies_of(layout))));
}

std::uint64_t added(std::uint64_t a, std::uint64_t b) { return (Digest{a, 0} + Digest{b, 0}).sum; }

}  // namespace reshard::live
