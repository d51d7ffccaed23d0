#include "reshard/c/digest.h"

#include "bindings/c/row_memory.hpp"
#include "reshard/model/digest.hpp"

struct reshard_digest_keys final : reshard::c::HandleOf<reshard_digest_keys> {
    static constexpr const char* name = "digest keys";
    explicit reshard_digest_keys(std::uint64_t seed) : keys(seed) {}
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
    return make(keys, error, [&] { return seed; });
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
    return digest_answer(keys, digest, error, [&](const DigestKeys& known) -> Result<Digest> {
        RESHARD_TRY(const auto asked, side_of(side));
        RESHARD_TRY(const auto& given, read_rows(rows, count));
        RESHARD_TRY(const auto& memory, read_tiles<const std::byte>(tiles, tile_bytes, arrays));
        return digest_rows(known, given, memory, asked);
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
