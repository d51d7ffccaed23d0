#include "reshard/model/rows.hpp"
#include "bindings/c/answer.hpp"

static_assert(sizeof(reshard_row) == sizeof(reshard::Row) &&
              offsetof(reshard_row, target_stride) == offsetof(reshard::Row, target_stride));

struct reshard_row_schedule final : reshard::c::Handle {
    static constexpr const char* name = "a row schedule";
    explicit reshard_row_schedule(reshard::RowSchedule of) : schedule(std::move(of)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::RowSchedule schedule;
};

struct reshard_rows final : reshard::c::Handle {
    static constexpr const char* name = "rows";
    explicit reshard_rows(const std::vector<reshard::Row>& of) {
        rows.reserve(of.size());
        for (const reshard::Row& row : of) {
            rows.push_back({row.array, row.peer, row.source_offset, row.target_offset, row.run_bytes, row.runs,
                            row.source_stride, row.target_stride});
        }
    }
    [[nodiscard]] const char* kind() const override { return name; }
    std::vector<reshard_row> rows;
};

namespace reshard::c {
namespace {

Result<std::unique_ptr<reshard_rows>> rows_of(const RowSchedule& schedule, int64_t rank, int side) {
    RESHARD_CHECK(need_count(rank, 0, "rank"));
    if (side != RESHARD_SEND && side != RESHARD_RECEIVE) {
        return fail(Code::usage, "`side` is " + std::to_string(side) + ", it is RESHARD_SEND or RESHARD_RECEIVE");
    }
    return std::make_unique<reshard_rows>(schedule.rows(rank, static_cast<RowSide>(side)));
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

const reshard_row* reshard_rows_data(const reshard_rows* rows) { return rows == nullptr ? nullptr : rows->rows.data(); }

int64_t reshard_rows_count(const reshard_rows* rows) { return rows == nullptr ? -1 : std::ssize(rows->rows); }

}  // extern "C"
