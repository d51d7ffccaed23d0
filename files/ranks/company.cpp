#include "files/ranks/company.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::files {

namespace {

constexpr std::size_t said_max = 512;  // bytes: 1 of success or the code, and a sentence

using Said = std::array<std::byte, said_max>;

Said said(const Result<void>& own) {
    Said bytes{};
    if (own) return bytes;
    bytes[0] = static_cast<std::byte>(static_cast<int>(own.error().code) + 1);
    const std::string& text = own.error().message;
    std::memcpy(bytes.data() + 1, text.data(), std::min(text.size(), said_max - 1));
    return bytes;
}

}  // namespace

Result<std::vector<std::byte>> Company::gathered(std::span<const std::byte> own) {
    const Mesh mesh{{"ranks", backend_->size()}};
    RESHARD_TRY(const auto& all, checked_multiply(backend_->size(), std::ssize(own)).has_value()
                                     ? Result<Index>(backend_->size() * std::ssize(own))
                                     : fail(Code::overflow, "what all ranks bring leaves 64 bits"));
    RESHARD_TRY(const auto& apart, make_layout(mesh, DType::u8, {all}, {"ranks"}));
    RESHARD_TRY(const auto& together, make_layout(mesh, DType::u8, {all}, {}));
    std::vector<std::byte> brought(static_cast<std::size_t>(all));
    RESHARD_CHECK(talk_.redistribute(apart, together, own, brought));
    return brought;
}

Result<void> Company::all_well(const Result<void>& own) {
    auto brought = gathered(said(own));
    if (!own) return own;
    if (!brought) return tl::unexpected(std::move(brought.error()));
    for (Index rank = 0; rank < backend_->size(); ++rank) {
        const std::byte* const bytes = brought->data() + static_cast<std::size_t>(rank) * said_max;
        if (bytes[0] == std::byte{0}) continue;
        const auto* const text = reinterpret_cast<const char*>(bytes + 1);
        const std::string sentence(text, ::strnlen(text, said_max - 1));
        return fail(static_cast<Code>(static_cast<int>(bytes[0]) - 1), fmt::format("rank {}: {}", rank, sentence));
    }
    return {};
}

Result<std::vector<std::uint64_t>> Company::numbers(std::uint64_t own) {
    RESHARD_TRY(const auto& brought, gathered(std::as_bytes(std::span(&own, 1))));
    std::vector<std::uint64_t> all(static_cast<std::size_t>(backend_->size()));
    std::memcpy(all.data(), brought.data(), brought.size());
    return all;
}

Result<void> Company::agree(std::uint64_t number, std::string_view what) {
    RESHARD_TRY(const auto& all, numbers(number));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank] != all[0])
            return fail(Code::mismatch, fmt::format("{} on rank {} differ from those on rank 0", what, rank));
    return {};
}

Result<std::vector<std::uint32_t>> Company::combined(std::span<const std::uint32_t> numbers) {
    if (numbers.empty()) return std::vector<std::uint32_t>();
    RESHARD_TRY(const auto& brought, gathered(std::as_bytes(numbers)));
    std::vector<std::uint32_t> all(numbers.size(), 0);
    for (std::size_t at = 0; at < brought.size(); at += sizeof(std::uint32_t)) {
        std::uint32_t one = 0;
        std::memcpy(&one, brought.data() + at, sizeof one);
        all[at / sizeof one % all.size()] ^= one;
    }
    return all;
}

}  // namespace reshard::files
