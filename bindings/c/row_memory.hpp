// Rows and tiles of the caller's, as the calls on rows, pages and digests read them.
#pragma once

#include <cstring>

#include "bindings/c/answer.hpp"
#include "reshard/model/address.hpp"

namespace reshard::c {

/// The same integers as a structure of C.
template <class Shown, class Element>
std::vector<Shown> shown(const std::vector<Element>& elements) {
    static_assert(sizeof(Shown) == sizeof(Element));
    std::vector<Shown> all(elements.size());
    if (!all.empty()) std::memcpy(all.data(), elements.data(), all.size() * sizeof(Shown));
    return all;
}

inline Result<RowSide> side_of(int side) {
    if (side == RESHARD_SEND || side == RESHARD_RECEIVE) return static_cast<RowSide>(side);
    return fail(Code::usage, "`side` is " + std::to_string(side) + ", it is RESHARD_SEND or RESHARD_RECEIVE");
}

/// `count` elements of the caller's.
template <class T>
Result<std::span<T>> need_array(T* elements, int64_t count, const char* name) {
    RESHARD_TRY(const std::size_t size, need_count(count, 0, name));
    if (elements == nullptr && size > 0)
        return fail(Code::usage, std::string("`") + name + "` is needed, NULL was given");
    return std::span<T>(elements, size);
}

inline Result<std::vector<Row>> read_rows(const reshard_row* rows, int64_t count) {
    RESHARD_TRY(const auto given, need_array(rows, count, "rows"));
    std::vector<Row> all;
    all.reserve(given.size());
    for (const reshard_row& row : given)
        all.push_back({row.array, row.peer, row.source_offset, row.target_offset, row.run_bytes, row.runs,
                       row.source_stride, row.target_stride});
    return all;
}

template <class Byte, class Address>
Result<std::vector<std::span<Byte>>> read_tiles(Address const* tiles, const int64_t* tile_bytes, int64_t arrays) {
    RESHARD_TRY(const auto addresses, need_array(tiles, arrays, "tiles"));
    RESHARD_TRY(const auto sizes, need_array(tile_bytes, arrays, "tile_bytes"));
    std::vector<std::span<Byte>> all;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        RESHARD_TRY(const auto bytes, need_bytes(addresses[i], sizes[i], "tiles"));
        all.push_back(bytes);
    }
    return all;
}

/// The addresses of the tiles of all ranks. `devices` may be NULL.
inline Result<PeerTiles> peer_tiles_of(const uint64_t* addresses, const uint64_t* devices, int64_t arrays,
                                       int64_t ranks) {
    RESHARD_TRY(const std::size_t rank_count, need_count(ranks, 0, "ranks"));
    const auto entries = checked_multiply(ranks, arrays);
    if (!entries) return fail(Code::overflow, "`ranks` times `arrays` does not fit 64 bits");
    RESHARD_TRY(const auto table, need_array(addresses, *entries, "peers"));
    PeerTiles tiles{table, arrays, {}};
    if (devices != nullptr) tiles.devices = {devices, rank_count};
    return tiles;
}

}  // namespace reshard::c
