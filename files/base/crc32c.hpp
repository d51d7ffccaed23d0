// CRC-32C (Castagnoli), by the processor's instruction where it exists. Sums are raw: they lack the inversions at both
// ends. The sums of parts therefore add up to the sum of the whole, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/planner/integer.hpp"

namespace reshard::files {

/// Returns the raw sum of bytes that follow bytes with the raw sum `before`.
[[nodiscard]] std::uint32_t crc32c_raw(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// Returns the raw sum after `zeros` more bytes of 0. The sum of a whole is the exclusive or of the shifted sums of its
/// parts.
[[nodiscard]] std::uint32_t crc32c_shifted(std::uint32_t raw, Index zeros);

/// Returns the CRC-32C, as other programs print it, of `bytes` bytes with this raw sum.
[[nodiscard]] std::uint32_t crc32c_of(std::uint32_t raw, Index bytes);

}  // namespace reshard::files
