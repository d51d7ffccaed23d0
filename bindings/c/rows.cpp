#include "reshard/model/rows.hpp"

#include <algorithm>
#include <cstring>

#include "bindings/c/answer.hpp"
#include "reshard/model/address.hpp"
#include "reshard/model/pack.hpp"

static_assert(sizeof(reshard_row) == sizeof(reshard::Row) &&
              offsetof(reshard_row, target_stride) == offsetof(reshard::Row, target_stride));
static_assert(sizeof(reshard_nested_row) == sizeof(reshard::NestedRow) &&
              offsetof(reshard_nested_row, target_strides) == offsetof(reshard::NestedRow, target_strides));
static_assert(sizeof(reshard_strided_memory) == sizeof(reshard::StridedMemory) &&
              offsetof(reshard_strided_memory, count) == offsetof(reshard::StridedMemory, count));

struct reshard_row_schedule final : reshard::c::Handle {
    static constexpr const char* name = "a row schedule";
    explicit reshard_row_schedule(reshard::RowSchedule of) : schedule(std::move(of)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::RowSchedule schedule;
};

namespace {

// The same integers as a structure of C.
template <class Shown, class Element>
std::vector<Shown> shown(const std::vector<Element>& elements) {
    static_assert(sizeof(Shown) == sizeof(Element));
    std::vector<Shown> all(elements.size());
    if (!all.empty()) std::memcpy(all.data(), elements.data(), all.size() * sizeof(Shown));
    return all;
}

}  // namespace

struct reshard_rows final : reshard::c::Handle {
    static constexpr const char* name = "rows";
    explicit reshard_rows(const std::vector<reshard::Row>& of) : rows(shown<reshard_row>(of)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const std::vector<reshard_row> rows;
};

struct reshard_nested_rows final : reshard::c::Handle {
    static constexpr const char* name = "nested rows";
    explicit reshard_nested_rows(const std::vector<reshard::NestedRow>& of) : rows(shown<reshard_nested_row>(of)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const std::vector<reshard_nested_row> rows;
};

namespace reshard::c {
namespace {

Result<RowSide> side_of(int side) {
    if (side == RESHARD_SEND || side == RESHARD_RECEIVE) return static_cast<RowSide>(side);
    return fail(Code::usage, "`side` is " + std::to_string(side) + ", it is RESHARD_SEND or RESHARD_RECEIVE");
}

Result<std::unique_ptr<reshard_rows>> rows_of(const RowSchedule& schedule, int64_t rank, int side) {
    RESHARD_CHECK(need_count(rank, 0, "rank"));
    RESHARD_TRY(const auto asked, side_of(side));
    return std::make_unique<reshard_rows>(schedule.rows(rank, asked));
}

Result<std::vector<Storage>> storages_at(const Layout& layout, const char* const* texts, std::size_t array) {
    if (texts == nullptr || texts[array] == nullptr) return std::vector<Storage>();
    return parse_storages(layout, texts[array]);
}

// `count` elements of the caller's.
template <class T>
Result<std::span<T>> need_array(T* elements, int64_t count, const char* name) {
    RESHARD_TRY(const std::size_t size, need_count(count, 0, name));
    if (elements == nullptr && size > 0)
        return fail(Code::usage, std::string("`") + name + "` is needed, NULL was given");
    return std::span<T>(elements, size);
}

Result<std::vector<Row>> read_rows(const reshard_row* rows, int64_t count) {
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

Result<void> write_addresses(const AddressedRows& memory, std::span<reshard_strided_memory> local,
                             std::span<reshard_strided_memory> remote) {
    std::ranges::copy(shown<reshard_strided_memory>(memory.local), local.begin());
    std::ranges::copy(shown<reshard_strided_memory>(memory.remote), remote.begin());
    return {};
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_row_schedule_make(const reshard_layout* const* sources, const reshard_layout* const* targets, int64_t count,
                              reshard_row_schedule** schedule, reshard_error** error) {
    return make(schedule, error, [&]() -> Result<std::unique_ptr<reshard_row_schedule>> {
        RESHARD_TRY(const auto& problems, problems_of(sources, targets, count));
        RESHARD_TRY(auto& made, RowSchedule::make(problems));
        return std::make_unique<reshard_row_schedule>(std::move(made));
    });
}

int64_t reshard_row_schedule_ranks(const reshard_row_schedule* schedule) {
    return schedule == nullptr ? -1 : schedule->schedule.rank_count();
}

int64_t reshard_row_schedule_arrays(const reshard_row_schedule* schedule) {
    return schedule == nullptr ? -1 : static_cast<int64_t>(schedule->schedule.array_count());
}

int reshard_row_schedule_rows(const reshard_row_schedule* schedule, int64_t rank, int side, reshard_rows** rows,
                              reshard_error** error) {
    return make(rows, error, [&]() -> Result<std::unique_ptr<reshard_rows>> {
        RESHARD_TRY(const auto* const given, need(schedule));
        return rows_of(given->schedule, rank, side);
    });
}

int reshard_schedule_rows(const reshard_layout* source, const reshard_layout* target, int64_t rank, int side,
                          reshard_rows** rows, reshard_error** error) {
    return make(rows, error, [&]() -> Result<std::unique_ptr<reshard_rows>> {
        RESHARD_TRY(const auto& problems, problems_of(&source, &target, 1));
        RESHARD_TRY(const auto& made, RowSchedule::make(problems));
        return rows_of(made, rank, side);
    });
}

int reshard_row_schedule_make_stored(const reshard_layout* const* sources, const reshard_layout* const* targets,
                                     const char* const* source_storages, const char* const* target_storages,
                                     int64_t count, reshard_row_schedule** schedule, reshard_error** error) {
    return make(schedule, error, [&]() -> Result<std::unique_ptr<reshard_row_schedule>> {
        RESHARD_TRY(const auto& problems, problems_of(sources, targets, count));
        std::vector<RankStorages> storages(problems.size());
        for (std::size_t i = 0; i < problems.size(); ++i) {
            RESHARD_ASSIGN(storages[i].source, storages_at(problems[i].source, source_storages, i));
            RESHARD_ASSIGN(storages[i].target, storages_at(problems[i].target, target_storages, i));
        }
        RESHARD_TRY(auto& made, RowSchedule::make(problems, storages));
        return std::make_unique<reshard_row_schedule>(std::move(made));
    });
}

int reshard_row_schedule_nested_rows(const reshard_row_schedule* schedule, int64_t rank, int side,
                                     reshard_nested_rows** rows, reshard_error** error) {
    return make(rows, error, [&]() -> Result<std::unique_ptr<reshard_nested_rows>> {
        RESHARD_TRY(const auto* const given, need(schedule));
        RESHARD_CHECK(need_count(rank, 0, "rank"));
        RESHARD_TRY(const auto asked, side_of(side));
        return std::make_unique<reshard_nested_rows>(given->schedule.nested_rows(rank, asked));
    });
}

const reshard_nested_row* reshard_nested_rows_data(const reshard_nested_rows* rows) {
    return rows == nullptr ? nullptr : rows->rows.data();
}

int64_t reshard_nested_rows_count(const reshard_nested_rows* rows) {
    return rows == nullptr ? -1 : std::ssize(rows->rows);
}

int reshard_rows_address(const reshard_row* rows, int64_t count, int side, const uint64_t* own, uint64_t own_device,
                         const uint64_t* peers, const uint64_t* peer_devices, int64_t arrays, int64_t ranks,
                         reshard_strided_memory* local, reshard_strided_memory* remote, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_TRY(const auto& given, read_rows(rows, count));
        RESHARD_TRY(const auto asked, side_of(side));
        RESHARD_TRY(const auto bases, need_array(own, arrays, "own"));
        RESHARD_CHECK(need_count(ranks, 0, "ranks"));
        const auto entries = checked_multiply(ranks, arrays);
        if (!entries) return fail(Code::overflow, "`ranks` times `arrays` does not fit 64 bits");
        RESHARD_TRY(const auto table, need_array(peers, *entries, "peers"));
        RESHARD_TRY(const auto near, need_array(local, count, "local"));
        RESHARD_TRY(const auto far, need_array(remote, count, "remote"));
        PeerTiles tiles{table, arrays, {}};
        if (peer_devices != nullptr) tiles.devices = {peer_devices, static_cast<std::size_t>(ranks)};
        RESHARD_TRY(const auto& memory, addressed(given, asked, {bases, own_device}, tiles));
        return write_addresses(memory, near, far);
    });
}

int reshard_rows_bytes(const reshard_row* rows, int64_t count, int64_t* bytes, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        if (bytes == nullptr) return fail(Code::usage, "`bytes` is needed, NULL was given");
        RESHARD_TRY(const auto& given, read_rows(rows, count));
        RESHARD_ASSIGN(*bytes, packed_bytes(given));
        return {};
    });
}

int reshard_rows_pack(const reshard_row* rows, int64_t count, const void* const* tiles, const int64_t* tile_bytes,
                      int64_t arrays, void* packed, int64_t packed_bytes, int threads, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_TRY(const auto& given, read_rows(rows, count));
        RESHARD_TRY(const auto& sources, read_tiles<const std::byte>(tiles, tile_bytes, arrays));
        RESHARD_TRY(const auto out, need_bytes(packed, packed_bytes, "packed"));
        return pack(given, sources, out, threads);
    });
}

int reshard_rows_unpack(const reshard_row* rows, int64_t count, const void* packed, int64_t packed_bytes,
                        void* const* tiles, const int64_t* tile_bytes, int64_t arrays, int threads,
                        reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_TRY(const auto& given, read_rows(rows, count));
        RESHARD_TRY(const auto& targets, read_tiles<std::byte>(tiles, tile_bytes, arrays));
        RESHARD_TRY(const auto in, need_bytes(packed, packed_bytes, "packed"));
        return unpack(given, in, targets, threads);
    });
}

const reshard_row* reshard_rows_data(const reshard_rows* rows) { return rows == nullptr ? nullptr : rows->rows.data(); }

int64_t reshard_rows_count(const reshard_rows* rows) { return rows == nullptr ? -1 : std::ssize(rows->rows); }

}  // extern "C"
