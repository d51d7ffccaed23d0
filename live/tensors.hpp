// The tensors of one end of a session: where their tiles lie in memory, their text, their digests.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reshard/layout.hpp"
#include "reshard/model/digest.hpp"

namespace reshard::live {

struct NamedTensor {
    std::string name;
    Layout layout;
};

/// Fails unless names are different words, layouts are valid without unreduced axes, and devices are ranks below
/// `ranks`. Errors: usage, mismatch, unsupported; as validate. The tensor is named.
[[nodiscard]] Result<void> check_tensors(std::span<const NamedTensor> tensors, Index ranks);

/// The offset of each tile of a rank in one block of memory, and at the end the bytes of the block. Tiles begin at
/// multiples of 64 bytes.
[[nodiscard]] std::vector<Index> tile_offsets(std::span<const NamedTensor> tensors, Index rank);
[[nodiscard]] Index tile_bytes_of(const Layout& layout, Index rank);  ///< bytes of the tile of a rank

/// One line `name|mesh|layout` for each tensor.
[[nodiscard]] std::string text_of(std::span<const NamedTensor> tensors);
[[nodiscard]] Result<std::vector<NamedTensor>> tensors_of(std::string_view text);  ///< errors: as parse_layout; syntax
[[nodiscard]] std::uint64_t digest_of(std::string_view text);

/// This rank's part of the digest of an array that counts each element once. The parts of all ranks add up, modulo
/// Digest::prime, to the same number in every layout: each of c copies counts as 1/c. Errors: as digest_tile.
[[nodiscard]] Result<std::uint64_t> digest_part(const DigestKeys& keys, const Layout& layout, Index rank,
                                                std::span<const std::byte> tile, Index array);
[[nodiscard]] Index copies_of(const Layout& layout);                               ///< of each element
[[nodiscard]] std::uint64_t inverse(std::uint64_t number);                         ///< 1 / number, modulo Digest::prime
[[nodiscard]] std::uint64_t weighted(const Digest& digest, std::uint64_t weight);  ///< modulo Digest::prime
[[nodiscard]] std::uint64_t added(std::uint64_t a, std::uint64_t b);               ///< modulo Digest::prime

}  // namespace reshard::live
