#include "files/base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace reshard::files {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78U;  // reflected

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// Table k has the effect of a byte on the sum if k bytes follow it.
constexpr Table make_table() {
    Table table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t sum = byte;
        for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1U) != 0 ? polynomial : 0U);
        table[0][byte] = sum;
    }
    for (std::size_t k = 1; k < table.size(); ++k)
        for (std::size_t byte = 0; byte < 256; ++byte)
            table[k][byte] = (table[k - 1][byte] >> 8) ^ table[0][table[k - 1][byte] & 0xffU];
    return table;
}

constexpr Table table = make_table();

std::uint32_t by_table(const std::byte* at, std::size_t size, std::uint32_t sum) {
    for (; size >= 8; size -= 8, at += 8) {
        std::uint64_t word = sum;
        for (std::size_t k = 0; k < 8; ++k) word ^= static_cast<std::uint64_t>(at[k]) << (8 * k);
        sum = 0;
        for (std::size_t k = 0; k < 8; ++k) sum ^= table[7 - k][(word >> (8 * k)) & 0xffU];
    }
    for (; size > 0; --size, ++at) sum = (sum >> 8) ^ table[0][(sum ^ static_cast<std::uint32_t>(*at)) & 0xffU];
    return sum;
}

// The product of two polynomials modulo the polynomial, both reflected.
constexpr std::uint32_t times(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 0x80000000U; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) product ^= b;
        b = (b >> 1) ^ ((b & 1U) != 0 ? polynomial : 0U);
    }
    return product;
}

// x^(8 * 2^k), for each bit of a number of bytes.
constexpr std::array<std::uint32_t, 63> make_powers() {
    std::array<std::uint32_t, 63> powers{};
    powers[0] = 0x00800000U;  // x^8
    for (std::size_t k = 1; k < powers.size(); ++k) powers[k] = times(powers[k - 1], powers[k - 1]);
    return powers;
}

constexpr auto powers = make_powers();

#if defined(__x86_64__)
// The instruction takes three cycles and may begin each cycle, so three parts are summed side by side.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* at, std::size_t size,
                                                               std::uint32_t sum) {
    const auto word = [](const std::byte* from) {
        std::uint64_t value = 0;
        std::memcpy(&value, from, sizeof value);
        return value;
    };
    constexpr std::size_t part = 8192;
    for (; size >= 3 * part; size -= 3 * part, at += 3 * part) {
        std::uint64_t first = sum;
        std::uint64_t second = 0;
        std::uint64_t third = 0;
        for (std::size_t i = 0; i < part; i += 8) {
            first = _mm_crc32_u64(first, word(at + i));
            second = _mm_crc32_u64(second, word(at + part + i));
            third = _mm_crc32_u64(third, word(at + 2 * part + i));
        }
        sum = crc32c_shifted(static_cast<std::uint32_t>(first), 2 * static_cast<Index>(part)) ^
              crc32c_shifted(static_cast<std::uint32_t>(second), static_cast<Index>(part)) ^
              static_cast<std::uint32_t>(third);
    }
    std::uint64_t wide = sum;
    for (; size >= 8; size -= 8, at += 8) wide = _mm_crc32_u64(wide, word(at));
    sum = static_cast<std::uint32_t>(wide);
    for (; size > 0; --size, ++at) sum = _mm_crc32_u8(sum, static_cast<unsigned char>(*at));
    return sum;
}
#endif

}  // namespace

std::uint32_t crc32c_raw(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return by_instruction(bytes.data(), bytes.size(), before);
#endif
    return by_table(bytes.data(), bytes.size(), before);
}

std::uint32_t crc32c_shifted(std::uint32_t raw, Index zeros) {
    for (std::size_t k = 0; zeros != 0; ++k, zeros >>= 1)
        if ((zeros & 1) != 0) raw = times(powers[k], raw);
    return raw;
}

std::uint32_t crc32c_of(std::uint32_t raw, Index bytes) { return ~(raw ^ crc32c_shifted(0xffffffffU, bytes)); }

}  // namespace reshard::files
