// A digest of bytes at positions that adds: the digests of the pieces of a tile add up to the digest of the tile. So
// the receiver of a move checks all that its senders have sent by one sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "reshard/model/rows.hpp"

namespace reshard {

/// The digest of a set of bytes. Digests of two sets add to the digest of both sets. A byte that is in both counts
/// twice, so n replicas of a tile have n times its digest.
struct Digest {
    /// The numbers `sum` are added modulo this prime, 2^61 - 1.
    static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

    std::uint64_t sum = 0;  ///< of the keyed bytes; below `prime`
    Index bytes = 0;        ///< how many bytes, replicas counted

    Digest& operator+=(const Digest& other);                               ///< adds a set of bytes
    Digest& operator-=(const Digest& other);                               ///< takes a set of bytes away again
    friend Digest operator+(Digest a, const Digest& b) { return a += b; }  ///< of both sets
    friend Digest operator-(Digest a, const Digest& b) { return a -= b; }  ///< of the set a without its part b
    friend Digest operator*(Index copies, const Digest& one);              ///< of so many replicas. pre: copies >= 0
    friend bool operator==(const Digest&, const Digest&) = default;
};

/// The keys of a digest, made from a seed. Two ends that compare digests use the same seed. Copies share one table; any
/// number of threads may use it.
///
/// A byte v at position p of array a is in block b = p / 4096 and word i = p mod 4096 / 4. It adds
///     R(a, b) * 256^(p mod 4) * (T(i) * v + S(i))   modulo 2^61 - 1.
/// T and S are not 0 and have 32 bits; R is from 1 to 2^61 - 2. All three are drawn by the seed.
///
/// A content is a set of bytes at positions. Compare the right content, which has each position once, with another one,
/// which has each position at most 255 times. Different contents have different digests
///   - always, if the numbers of bytes differ: a run is lost or doubled;
///   - always, if the values differ within one aligned word of 4 bytes only: a flipped bit, a wrong element;
///   - otherwise for all but one in 2^31 seeds, if the keys of a seed are as good as random: stale, swapped, shifted
///     and misplaced runs, and any mixture. The bound is 1 / (2^32 - 1) + 1 / (2^61 - 2).
/// The file proofs/Digest.v has the proofs. Two replicas with opposite faults have the right sum, so compare each one
/// by itself. A person who knows the seed can forge a digest.
class DigestKeys {
public:
    /// The keys of a seed. All ranks use the same seed.
    explicit DigestKeys(std::uint64_t seed = 0);

    /// The digest of bytes at positions from `position` on. The array's number separates equal positions of two arrays.
    /// pre: position >= 0; position + bytes.size() fits an Index.
    [[nodiscard]] Digest of(std::span<const std::byte> bytes, Index position = 0, Index array = 0) const;

    /// Copies the bytes to `target`, and returns their digest. One pass over memory; a target that is larger than the
    /// caches is written past them. It is fastest if position and address of the target agree modulo 64.
    /// pre: as of(); the target has room and does not overlap.
    [[nodiscard]] Digest copy(std::span<const std::byte> bytes, std::byte* target, Index position = 0,
                              Index array = 0) const;

private:
    friend class DigestSum;
    struct Tables;
    std::shared_ptr<const Tables> tables_;
};

/// The digest of the bytes of rows, read from this rank's tiles: element a of `tiles` is the source tile of array a for
/// RowSide::send, and the target tile for RowSide::receive. A byte's position is its offset in the *receiver's* target
/// tile, so both ends get the same digest for the same row. The digests of all rows that a rank receives add up to
/// keys.of(tile, 0, array) over its target tiles. Errors: mismatch (a row of an array without a tile, or past its end).
[[nodiscard]] Result<Digest> digest_rows(const DigestKeys& keys, std::span<const Row> rows,
                                         std::span<const std::span<const std::byte>> tiles, RowSide side);

/// The digest of the tile that `rank` holds, dense and row-major. A byte's position is its place in the whole array,
/// row-major. So the tiles of an array have the same sum in every layout, if replicas are counted: with s and t copies
/// of each element, t times the sum over all source tiles is s times the sum over all target tiles. Errors: as
/// validate; mismatch (the bytes of the tile); unsupported (unreduced axes: a summand is no part of the array).
[[nodiscard]] Result<Digest> digest_tile(const DigestKeys& keys, const Layout& layout, Index rank,
                                         std::span<const std::byte> tile, Index array = 0);

}  // namespace reshard
