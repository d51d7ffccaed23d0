#include "reshard/model/rows.hpp"

#include <algorithm>

#include "bindings/c/row_memory.hpp"
#include "reshard/model/pack.hpp"

static_assert(sizeof(reshard_row) == sizeof(reshard::Row) &&
              offsetof(reshard_row, target_stride) == offsetof(reshard::Row, target_stride));
static_assert(sizeof(reshard_nested_row) == sizeof(reshard::NestedRow) &&
              offsetof(reshard_nested_row, target_strides) == offsetof(reshard::NestedRow, target_strides));
static_assert(sizeof(reshard_strided_memory) == sizeof(reshard::StridedMemory) &&
              offsetof(reshard_strided_memory, count) == offsetof(reshard::StridedMemory, count));

struct reshard_row_schedule final : reshard::c::HandleOf<reshard_row_schedule> {
    static constexpr const char* name = "a row schedule";
    explicit reshard_row_schedule(reshard::RowSchedule of) : schedule(std::move(of)) {}
    const reshard::RowSchedule schedule;
};

struct reshard_rows final : reshard::c::HandleOf<reshard_rows> {
    static constexpr const char* name = "rows";
    explicit reshard_rows(const std::vector<reshard::Row>& of) : rows(reshard::c::shown<reshard_row>(of)) {}
    const std::vector<reshard_row> rows;
};

struct reshard_nested_rows final : reshard::c::HandleOf<reshard_nested_rows> {
    static constexpr const char* name = "nested rows";
    explicit reshard_nested_rows(const std::vector<reshard::NestedRow>& of)
        : rows(reshard::c::shown<reshard_nested_row>(of)) {}
    const std::vector<reshard_nested_row> rows;
};

namespace reshard::c {
namespace {

Result<std::vector<Row>> rows_of(const RowSchedule& schedule, int64_t rank, int side) {
    RESHARD_CHECK(need_count(rank, 0, "rank"));
    RESHARD_TRY(const auto asked, side_of(side));
    return schedule.rows(rank, asked);
}

Result<std::vector<Storage>> storages_at(const Layout& layout, const char* const* texts, std::size_t array) {
    if (texts == nullptr || texts[array] == nullptr) return std::vector<Storage>();
    return parse_storages(layout, texts[array]);
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
    return make(schedule, error, [&]() -> Result<RowSchedule> {
        RESHARD_TRY(const auto& problems, problems_of(sources, targets, count));
        return RowSchedule::make(problems);
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
    return make(rows, schedule, error, [&](auto& given) { return rows_of(given.schedule, rank, side); });
}

int reshard_schedule_rows(const reshard_layout* source, const reshard_layout* target, int64_t rank, int side,
                          reshard_rows** rows, reshard_error** error) {
    return make(rows, error, [&]() -> Result<std::vector<Row>> {
        RESHARD_TRY(const auto& problems, problems_of(&source, &target, 1));
        RESHARD_TRY(const auto& made, RowSchedule::make(problems));
        return rows_of(made, rank, side);
    });
}

int reshard_row_schedule_make_stored(const reshard_layout* const* sources, const reshard_layout* const* targets,
                                     const char* const* source_storages, const char* const* target_storages,
                                     int64_t count, reshard_row_schedule** schedule, reshard_error** error) {
    return make(schedule, error, [&]() -> Result<RowSchedule> {
        RESHARD_TRY(const auto& problems, problems_of(sources, targets, count));
        std::vector<RankStorages> storages(problems.size());
        for (std::size_t i = 0; i < problems.size(); ++i) {
            RESHARD_ASSIGN(storages[i].source, storages_at(problems[i].source, source_storages, i));
            RESHARD_ASSIGN(storages[i].target, storages_at(problems[i].target, target_storages, i));
        }
        return RowSchedule::make(problems, storages);
    });
}

int reshard_row_schedule_nested_rows(const reshard_row_schedule* schedule, int64_t rank, int side,
                                     reshard_nested_rows** rows, reshard_error** error) {
    return make(rows, schedule, error, [&](auto& given) -> Result<std::vector<NestedRow>> {
        RESHARD_CHECK(need_count(rank, 0, "rank"));
        RESHARD_TRY(const auto asked, side_of(side));
        return given.schedule.nested_rows(rank, asked);
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
        RESHARD_TRY(const auto& tiles, peer_tiles_of(peers, peer_devices, arrays, ranks));
        RESHARD_TRY(const auto near, need_array(local, count, "local"));
        RESHARD_TRY(const auto far, need_array(remote, count, "remote"));
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
