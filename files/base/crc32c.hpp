// CRC-32C (Castagnoli), by the processor's instruction where it exists. Sums are raw, that is without the inversions
// at both ends, so that those of parts add up to that of the whole in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/planner/integer.hpp"

namespace reshard::files {

/// The raw sum of the bytes after those of `before`.
[[nodiscard]] std::uint32_t crc32c_raw(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The raw sum once `zeros` bytes of 0 have followed. The whole's is the exclusive or of the shifted sums of its parts.
[[nodiscard]] std::uint32_t crc32c_shifted(std::uint32_t raw, Index zeros);

/// What others print for `bytes` bytes whose raw sum this is.
[[nodiscard]] std::uint32_t crc32c_of(std::uint32_t raw, Index bytes);

}  // namespace reshard::files
