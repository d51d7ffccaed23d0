#include "tool/data/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "src/base/try.hpp"
#include "src/copy/copy.hpp"
#include "src/schedule/box_cut.hpp"
#include "tool/data/exact_values.hpp"

namespace reshard::cli {
namespace {

constexpr Index piece_elements = Index{1} << 18;

Index differences(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t element_bytes) {
    if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return 0;
    Index different = 0;
    for (std::size_t at = 0; at < a.size(); at += element_bytes) {
        different += std::memcmp(&a[at], &b[at], element_bytes) != 0;
    }
    return different;
}

// Compares pieces of a tile with their expected elements.
using Compare = std::function<void(const Box& piece, std::span<const std::byte> have, std::span<const std::byte> want)>;

Result<void> beside(Values& values, const Layout& target, const Tile& held, std::span<const std::byte> tile,
                    Progress& progress, const Compare& compare) {
    const Index size = size_of(target.dtype);
    const Index all = count(held);
    std::vector<std::byte> wanted;
    return for_each_piece(held, piece_elements, [&](const Box& piece, Index first) -> Result<void> {
        const std::size_t bytes = unsigned_of(count(piece) * size);
        wanted.resize(bytes);
        RESHARD_CHECK(values.total(piece, wanted));
        compare(piece, tile.subspan(unsigned_of(first * size), bytes), wanted);
        progress.at("verifying", first, all);
        return {};
    });
}

// Returns the sum of weight x value over a piece, modulo 2^64. It is linear, so the sums of a group's devices add up
// without moving their tiles. A wrong element goes unseen at most once in 2^60.
std::uint64_t weighted(const Box& whole, const Box& piece, std::span<const std::byte> elements, DType dtype) {
    const std::size_t size = unsigned_of(size_of(dtype));
    std::uint64_t sum = 0;
    (void)for_each_run(whole, piece, [&](Index number, Index at, Index count_of_run) -> Result<void> {
        for (Index i = 0; i < count_of_run; ++i) {
            const auto element = elements.subspan(unsigned_of(at + i) * size, size);
            const auto weight = mixed(static_cast<std::uint64_t>(number + i)) | 1U;
            sum += weight * static_cast<std::uint64_t>(decode(dtype, element));
        }
        return {};
    });
    return sum;
}

struct Sums {
    std::uint64_t have = 0;
    std::uint64_t want = 0;
};

// Devices that differ only on unreduced atoms share a key; -1 for ranks beyond the mesh.
Index key_of(const Layout& target, Index rank) {
    const auto position = position_of(target.mesh, rank);
    return position ? value_of(complement(target.unreduced, device_count(target)), *position) : -1;
}

Result<Verified> verify_sums(Rank& rank, const Layout& target, Index elements, const Sums& mine) {
    const Index key = key_of(target, rank.index());
    const std::vector<std::string> all = rank.share(fmt::format("{} {} {}", key, mine.have, mine.want));
    std::map<Index, Sums> groups;
    for (const std::string& theirs : all) {
        const std::size_t first = theirs.find(' ');
        const std::size_t second = theirs.find(' ', first + 1);
        Sums& group = groups[std::stoll(theirs.substr(0, first))];
        group.have += std::stoull(theirs.substr(first + 1));
        group.want = std::stoull(theirs.substr(second + 1));
    }
    const auto times = static_cast<std::uint64_t>(divisor(target));  // the sum is the array times this
    const bool right = key < 0 || groups[key].have == times * groups[key].want;
    const std::vector<Index> totals = sum(rank, {right ? 0 : elements, elements});
    return Verified{totals[0], totals[1]};
}

// Combines the bytes of one piece over the devices that differ from this one only on unreduced atoms.
std::vector<std::byte> combined_piece(const Layout& target, Index rank, const std::vector<std::string>& all) {
    std::vector<std::byte> combined;
    for (std::size_t other = 0; other < all.size(); ++other) {
        if (key_of(target, static_cast<Index>(other)) != key_of(target, rank)) continue;
        const auto* bytes = reinterpret_cast<const std::byte*>(all[other].data());
        if (combined.empty()) {
            combined.assign(bytes, bytes + all[other].size());
        } else if (combined.size() == all[other].size()) {
            combine_dense(target.dtype, combine_of(target.reduction), bytes, combined.data(),
                          static_cast<Index>(combined.size()) / size_of(target.dtype));
        }
    }
    return combined;
}

// Verifies reductions that no weights can check. Every group brings its tiles together, piece by piece.
Result<Verified> verify_combined(Rank& rank, Values& values, const Layout& target, const Tile& held,
                                 std::span<const std::byte> tile) {
    const Index size = size_of(target.dtype);
    std::vector<std::pair<Box, Index>> pieces;
    (void)for_each_piece(held, piece_elements, [&](const Box& piece, Index first) -> Result<void> {
        pieces.emplace_back(piece, first);
        return {};
    });
    Verified mine;
    Result<void> looked;
    const Index rounds = largest(rank, std::vector<Index>{static_cast<Index>(pieces.size())})[0];
    for (std::size_t round = 0; round < unsigned_of(rounds); ++round) {
        if (round >= pieces.size()) {
            static_cast<void>(rank.share({}));
            continue;
        }
        const auto& [piece, first] = pieces[round];
        const auto part = tile.subspan(unsigned_of(first * size), unsigned_of(count(piece) * size));
        const auto all = rank.share(std::string(reinterpret_cast<const char*>(part.data()), part.size()));
        const std::vector<std::byte> have = combined_piece(target, rank.index(), all);
        std::vector<std::byte> want(part.size());
        if (auto read = values.total(piece, want); !read && looked) looked = read;
        mine.wrong += differences(have, want, unsigned_of(size));
        mine.of += count(piece);
    }
    RESHARD_CHECK(agree(rank, looked));
    const std::vector<Index> totals = sum(rank, {mine.wrong, mine.of});
    return Verified{totals[0], totals[1]};
}

}  // namespace

Tile storage_tile(const Layout& layout, Index rank, bool fortran_order) {
    Tile held = tile(layout, rank);
    if (fortran_order) std::reverse(held.begin(), held.end());
    return held;
}

Result<void> fill(Values& values, const Layout& source, Index rank, bool fortran_order, std::span<std::byte> tile,
                  Progress& progress) {
    const Tile held = storage_tile(source, rank, fortran_order);
    const Index size = size_of(source.dtype);
    const Index all = count(held);
    return for_each_piece(held, piece_elements, [&](const Box& piece, Index first) -> Result<void> {
        const auto part = tile.subspan(unsigned_of(first * size), unsigned_of(count(piece) * size));
        progress.at("filling the source", first, all);
        return values.part(piece, summand(source, rank), part);
    });
}

Result<Verified> verify(Rank& rank, Values& values, const Layout& target, bool fortran_order,
                        std::span<const std::byte> tile, Progress& progress) {
    const bool inside = position_of(target.mesh, rank.index()).has_value();
    const Tile held = storage_tile(target, rank.index(), fortran_order);
    Box ordered = files::whole_box(shape(target));
    if (fortran_order) std::reverse(ordered.begin(), ordered.end());
    const bool sums = summand_count(target) > 1;
    if (sums && combine_of(target.reduction) != Combine::sum) return verify_combined(rank, values, target, held, tile);
    Verified mine{0, inside ? count(held) : 0};
    Sums weights;
    Result<void> looked;
    if (inside) {
        looked = beside(values, target, held, tile, progress, [&](const Box& piece, auto have, auto want) {
            if (sums) {
                weights.have += weighted(ordered, piece, have, target.dtype);
                weights.want += weighted(ordered, piece, want, target.dtype);
            } else {
                mine.wrong += differences(have, want, unsigned_of(size_of(target.dtype)));
            }
        });
    }
    RESHARD_CHECK(agree(rank, looked));
    if (sums) return verify_sums(rank, target, mine.of, weights);
    const std::vector<Index> totals = sum(rank, {mine.wrong, mine.of});
    return Verified{totals[0], totals[1]};
}

}  // namespace reshard::cli
