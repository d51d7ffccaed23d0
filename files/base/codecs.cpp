#include "files/base/codecs.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "files/base/compressors.hpp"
#include "files/base/crc32c.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

namespace {

using Kind = Codec::Kind;
constexpr Index sum_bytes = 4;

std::span<std::byte> first(std::span<std::byte> bytes, Index count) {
    return bytes.first(static_cast<std::size_t>(count));
}

// The checksum of the codec crc32c, little-endian.
void put_sum(std::span<const std::byte> bytes, std::byte* at) {
    const std::uint32_t sum = crc32c_of(crc32c_raw(bytes), std::ssize(bytes));
    for (int i = 0; i < sum_bytes; ++i) at[i] = static_cast<std::byte>((sum >> (8 * i)) & 0xffU);
}

Result<std::span<const std::byte>> without_sum(std::span<const std::byte> bytes) {
    if (std::ssize(bytes) < sum_bytes) return fail(Code::io, "is shorter than its crc32c");
    const auto body = bytes.first(bytes.size() - sum_bytes);
    std::array<std::byte, sum_bytes> sum{};
    put_sum(body, sum.data());
    if (std::memcmp(sum.data(), bytes.data() + body.size(), sum.size()) != 0)
        return fail(Code::io, "has another crc32c");
    return body;
}

// The bytes after codec `i` has encoded `bytes` bytes, at most.
Index bound_after(const Codec& codec, Index bytes) {
    return codec.kind == Kind::crc32c ? saturating_add(bytes, sum_bytes) : compressed_bound(codec, bytes);
}

bool compresses(const Codec& codec) { return codec.kind != Kind::crc32c; }

// The memory that codecs take for `bytes` bytes, if each takes `of_one`.
Index memory_of(const Codecs& codecs, Index bytes, Index (*of_one)(const Codec&, Index)) {
    Index memory = 0;
    for (const Codec& codec : codecs) {
        memory = saturating_add(memory, of_one(codec, bytes));
        bytes = bound_after(codec, bytes);
    }
    // A compressor behind another codec reads bytes between.
    if (!codecs.empty() && std::ranges::any_of(codecs.begin() + 1, codecs.end(), compresses))
        memory = saturating_add(memory, saturating_multiply(2, bytes));
    return memory;
}

}  // namespace

Coder::Coder(Codecs codecs, Index element_bytes)
    : codecs_(std::move(codecs)), element_bytes_(element_bytes), compressors_(std::make_unique<Compressors>()) {}
Coder::Coder(Coder&&) noexcept = default;
Coder& Coder::operator=(Coder&&) noexcept = default;
Coder::~Coder() = default;

Result<Coder> Coder::make(Codecs codecs, Index element_bytes) {
    RESHARD_CHECK(available(codecs));
    return Coder(std::move(codecs), element_bytes);
}

Index Coder::bound(Index bytes) const {
    for (const Codec& codec : codecs_) bytes = bound_after(codec, bytes);
    return bytes;
}

Index Coder::decode_memory(Index bytes) const { return memory_of(codecs_, bytes, decompress_memory); }

Index Coder::encode_memory(Index bytes) const { return memory_of(codecs_, bytes, compress_memory); }

Result<void> Coder::decode(std::span<const std::byte> encoded, std::span<std::byte> into) {
    std::vector<Index> bounds{std::ssize(into)};  // of the bytes before each codec
    for (const Codec& codec : codecs_) bounds.push_back(bound_after(codec, bounds.back()));
    bool there = false;  // in `into`
    for (std::size_t i = codecs_.size(); i-- > 0;) {
        if (!compresses(codecs_[i])) {
            RESHARD_ASSIGN(encoded, without_sum(encoded));
        } else if (i == 0) {
            RESHARD_TRY(const auto& bytes, compressors_->decompress(codecs_[i], encoded, into));
            encoded = first(into, bytes);
            there = true;
        } else {
            std::vector<std::byte> between(static_cast<std::size_t>(bounds[i]));
            RESHARD_TRY(const auto& bytes, compressors_->decompress(codecs_[i], encoded, between));
            between_ = std::move(between);
            encoded = first(between_, bytes);
        }
    }
    if (encoded.size() != into.size())
        return fail(Code::io, fmt::format("decodes to {} bytes, and a chunk has {}", encoded.size(), into.size()));
    if (!there) std::ranges::copy(encoded, into.begin());
    return {};
}

Result<Index> Coder::encode(std::span<const std::byte> bytes, std::span<std::byte> into) {
    Index length = std::ssize(bytes);
    bool there = false;
    for (const Codec& codec : codecs_) {
        if (!compresses(codec)) {
            if (!there) std::ranges::copy(bytes, into.begin());
            put_sum(first(into, length), into.data() + length);
            length += sum_bytes;
        } else {
            if (there) between_.assign(into.begin(), into.begin() + length);
            const auto from = there ? std::span<const std::byte>(between_) : bytes;
            RESHARD_ASSIGN(length, compressors_->compress(codec, element_bytes_, from, into));
        }
        there = true;
    }
    if (!there) std::ranges::copy(bytes, into.begin());
    return length;
}

}  // namespace reshard::files
