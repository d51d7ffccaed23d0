#include "reshard/c/digest.h"

#include "bindings/c/answer.hpp"
#include "reshard/model/digest.hpp"

struct reshard_digest_keys final : reshard::c::Handle {
    static constexpr const char* name = "digest keys";
    explicit reshard_digest_keys(std::uint64_t seed) : keys(seed) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::DigestKeys keys;
};

namespace reshard::c {
namespace {

Digest digest_in(const reshard_digest& given) { return {given.sum, given.bytes}; }
reshard_digest digest_out(const Digest& made) { return {made.sum, made.bytes}; }

// The body of a call that makes a digest. `body` gets the keys.
template <class Body>
int digest_answer(const reshard_digest_keys* keys, reshard_digest* place, reshard_error** error, Body&& body) noexcept {
    if (place != nullptr) *place = {};
    return answer(error, [&]() -> Result<void> {
        if (place == nullptr) return fail(Code::usage, "there is no place for a digest: NULL");
        RESHARD_TRY(const auto* const given, need(keys));
        RESHARD_TRY(const auto& made, body(given->keys));
        *place = digest_out(made);
        return {};
    });
}

Result<void> need_position(std::int64_t position, std::int64_t bytes, std::int64_t array) {
    RESHARD_CHECK(need_count(position, 0, "position"));
    RESHARD_CHECK(need_count(array, 0, "array"));
    if (checked_add(position, bytes)) return {};
    return fail(Code::usage, "`position` + `bytes` does not fit 64 bits");
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

reshard_digest reshard_digest_add(reshard_digest a, reshard_digest b) {
    return digest_out(digest_in(a) + digest_in(b));
}

reshard_digest reshard_digest_times(int64_t copies, reshard_digest one) { return digest_out(copies * digest_in(one)); }

int reshard_digest_keys_make(uint64_t seed, reshard_digest_keys** keys, reshard_error** error) {
    return make(keys, error, [&]() -> Result<std::unique_ptr<reshard_digest_keys>> {
        return std::make_unique<reshard_digest_keys>(seed);
    });
}

int reshard_digest_of(const reshard_digest_keys* keys, const void* data, int64_t bytes, int64_t position, int64_t array,
                      reshard_digest* digest, reshard_error** error) {
    return digest_answer(keys, digest, error, [&](const DigestKeys& known) -> Result<Digest> {
        RESHARD_TRY(const auto& memory, need_bytes(data, bytes, "data"));
        RESHARD_CHECK(need_position(position, bytes, array));
        return known.of(memory, position, array);
    });
}

int reshard_digest_copy(const reshard_digest_keys* keys, const void* source, void* target, int64_t bytes,
                        int64_t position, int64_t array, reshard_digest* digest, reshard_error** error) {
    return digest_answer(keys, digest, error, [&](const DigestKeys& known) -> Result<Digest> {
        RESHARD_TRY(const auto& from, need_bytes(source, bytes, "source"));
        RESHARD_TRY(const auto& to, need_bytes(target, bytes, "target"));
        RESHARD_CHECK(need_position(position, bytes, array));
        return known.copy(from, to.data(), position, array);
    });
}

int reshard_digest_rows(const reshard_digest_keys* keys, const reshard_row* rows, int64_t count,
                        const void* const* tiles, const int64_t* tile_bytes, int64_t arrays, int side,
                        reshard_digest* digest, reshard_error** error) {
    static_assert(sizeof(reshard_row) == sizeof(Row));
    return digest_answer(keys, digest, error, [&](const DigestKeys& known) -> Result<Digest> {
        if (side != RESHARD_SEND && side != RESHARD_RECEIVE)
            return fail(Code::usage, "`side` is " + std::to_string(side) + ", it is RESHARD_SEND or RESHARD_RECEIVE");
        RESHARD_TRY(const auto& rows_count, need_count(count, 0, "count"));
        RESHARD_TRY(const auto& tiles_count, need_count(arrays, 0, "arrays"));
        if ((rows == nullptr && rows_count > 0) || ((tiles == nullptr || tile_bytes == nullptr) && tiles_count > 0))
            return fail(Code::usage, "rows, tiles and their sizes are needed, NULL was given");
        std::vector<std::span<const std::byte>> memory;
        for (std::size_t i = 0; i < tiles_count; ++i) {
            RESHARD_TRY(const auto& tile, need_bytes(tiles[i], tile_bytes[i], "tiles"));
            memory.push_back(tile);
        }
        std::vector<Row> known_rows;
        for (std::size_t i = 0; i < rows_count; ++i)
            known_rows.push_back({rows[i].array, rows[i].peer, rows[i].source_offset, rows[i].target_offset,
                                  rows[i].run_bytes, rows[i].runs, rows[i].source_stride, rows[i].target_stride});
        return digest_rows(known, known_rows, memory, static_cast<RowSide>(side));
    });
}

int reshard_digest_tile(const reshard_digest_keys* keys, const reshard_layout* layout, int64_t rank, const void* tile,
                        int64_t bytes, int64_t array, reshard_digest* digest, reshard_error** error) {
    return digest_answer(keys, digest, error, [&](const DigestKeys& known) -> Result<Digest> {
        RESHARD_TRY(const auto* const of, need(layout));
        RESHARD_CHECK(need_count(rank, 0, "rank"));
        RESHARD_CHECK(need_position(0, bytes, array));
        RESHARD_TRY(const auto& memory, need_bytes(tile, bytes, "tile"));
        return digest_tile(known, of->layout, rank, memory, array);
    });
}

}  // extern "C"
