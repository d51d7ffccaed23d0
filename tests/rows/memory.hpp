// Tiles as bytes, and a loop that carries out rows on them without knowing layouts.
#pragma once

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/array.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::test {

using Memory = std::vector<std::vector<std::byte>>;  ///< a buffer for each rank

/// Carries out the rows that every rank sends. Also counts how often each target byte is written.
inline void carry_out(const std::vector<std::vector<Row>>& sends, const Memory& sources, Memory& targets,
                      std::vector<std::vector<int>>& written) {
    for (std::size_t rank = 0; rank < sends.size(); ++rank)
        for (const Row& row : sends[rank])
            for (Index i = 0; i < row.runs; ++i) {
                const auto peer = static_cast<std::size_t>(row.peer);
                const auto from = static_cast<std::size_t>(row.source_offset + i * row.source_stride);
                const auto to = static_cast<std::size_t>(row.target_offset + i * row.target_stride);
                const auto bytes = static_cast<std::size_t>(row.run_bytes);
                if (from + bytes > sources[rank].size() || to + bytes > targets[peer].size())
                    throw std::out_of_range(fmt::format("a row of rank {} leaves its tile", rank));
                std::memcpy(targets[peer].data() + to, sources[rank].data() + from, bytes);
                for (std::size_t byte = to; byte < to + bytes; ++byte) ++written[peer][byte];
            }
}

/// The rows of all ranks.
inline std::vector<std::vector<Row>> all_rows(const RowSchedule& schedule, Index ranks, RowSide side) {
    std::vector<std::vector<Row>> rows;
    for (Index rank = 0; rank < ranks; ++rank) rows.push_back(schedule.rows(rank, side));
    return rows;
}

/// Empty if the k-th row to a peer is the k-th row that the peer receives, and arrays and peers ascend.
inline std::string mirror_fault(const std::vector<std::vector<Row>>& sends,
                                const std::vector<std::vector<Row>>& receives) {
    std::vector<std::vector<std::vector<Row>>> of_pair(sends.size(), std::vector<std::vector<Row>>(sends.size()));
    for (std::size_t rank = 0; rank < sends.size(); ++rank)
        for (Row row : sends[rank]) of_pair[rank][static_cast<std::size_t>(row.peer)].push_back(row);
    std::vector<std::vector<std::size_t>> met(sends.size(), std::vector<std::size_t>(sends.size(), 0));
    for (std::size_t rank = 0; rank < receives.size(); ++rank)
        for (Row row : receives[rank]) {
            const auto peer = static_cast<std::size_t>(row.peer);
            const std::size_t k = met[peer][rank]++;
            row.peer = static_cast<Index>(rank);
            if (k >= of_pair[peer][rank].size() || of_pair[peer][rank][k] != row)
                return fmt::format("row {} from rank {} to rank {} is not the same at both ends", k, peer, rank);
        }
    for (std::size_t rank = 0; rank < sends.size(); ++rank) {
        for (std::size_t peer = 0; peer < sends.size(); ++peer)
            if (met[rank][peer] != of_pair[rank][peer].size())
                return fmt::format("rank {} does not receive all that rank {} sends", peer, rank);
        for (const auto* rows : {&sends[rank], &receives[rank]})
            for (std::size_t i = 1; i < rows->size(); ++i)
                if (std::pair((*rows)[i - 1].array, (*rows)[i - 1].peer) > std::pair((*rows)[i].array, (*rows)[i].peer))
                    return fmt::format("the rows of rank {} are out of order", rank);
    }
    return "";
}

/// Calls visit(number in the tile, number in the array), both row-major, for each element of the device.
inline void for_each_element(const Layout& layout, Index device, const std::function<void(Index, Index)>& visit) {
    const auto held = conformance::tile_by_arithmetic(layout, device);
    if (!held) return;
    Index count = 1;
    for (const auto& indices : *held) count *= static_cast<Index>(indices.size());
    for (Index own = 0; own < count; ++own) {
        Index rest = own;
        Index global = 0;
        Index stride = 1;
        for (std::size_t k = held->size(); k-- > 0;) {
            const auto size = static_cast<Index>((*held)[k].size());
            global += (*held)[k][static_cast<std::size_t>(rest % size)] * stride;
            stride *= layout.dims[k].extent;
            rest /= size;
        }
        visit(own, global);
    }
}

/// The value of byte `byte` of element `element`. No two elements of a small array are equal.
inline std::byte value_of_byte(Index element, Index byte) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(element + 1) * 0x9e3779b97f4a7c15U >>
                                  (8 * (byte % 5) + 16));
}

/// The bytes of every rank's tile, from value(element, byte), with the element's number in the array.
inline Memory tiles_of(const Layout& layout, Index ranks, const std::function<std::byte(Index, Index)>& value) {
    const Index size = size_of(layout.dtype);
    Memory tiles;
    for (Index rank = 0; rank < ranks; ++rank) {
        std::vector<std::byte>& bytes = tiles.emplace_back(tile_count(layout, rank) * static_cast<std::size_t>(size));
        for_each_element(layout, rank, [&](Index own, Index global) {
            for (Index i = 0; i < size; ++i) bytes[static_cast<std::size_t>(own * size + i)] = value(global, i);
        });
    }
    return tiles;
}

/// Buffers of the same lengths, with nothing written.
inline Memory blank_of(const Memory& memory) {
    Memory blank;
    for (const auto& bytes : memory) blank.emplace_back(bytes.size(), std::byte{0xee});
    return blank;
}

inline std::vector<std::vector<int>> counters_of(const Memory& targets) {
    std::vector<std::vector<int>> counters;
    for (const auto& target : targets) counters.emplace_back(target.size(), 0);
    return counters;
}

/// The indices of a device in each dimension; empty if it has nothing.
inline conformance::Indices indices_of(const Layout& layout, Index device) {
    return conformance::tile_by_arithmetic(layout, device).value_or(conformance::Indices(layout.dims.size()));
}

}  // namespace reshard::test
