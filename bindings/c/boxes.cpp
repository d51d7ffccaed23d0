// Boxes that ranks name, and rebuilds from the replicas that are left.
#include "reshard/c/boxes.h"

#include "bindings/c/answer.hpp"
#include "bindings/c/boxes_handles.hpp"

namespace reshard::c {
namespace {

// `count` numbers of the caller's, by their name.
Result<std::span<const Index>> need_numbers(const int64_t* numbers, int64_t count, const char* name) {
    RESHARD_TRY(const std::size_t length, need_count(count, 0, name));
    if (numbers == nullptr && length > 0)
        return fail(Code::usage, std::string("`") + name + "` is NULL, " + std::to_string(count) + " were promised");
    return std::span(numbers, length);
}

Result<std::vector<Box>> boxes_of(const int64_t* numbers, int64_t count, std::size_t dims, const char* name) {
    RESHARD_TRY(const auto first, need_numbers(numbers, count, name));
    std::vector<Box> boxes(first.size(), Box(dims));
    for (Box& box : boxes)
        for (Interval& side : box) {
            side = {numbers[0], numbers[1]};
            numbers += 2;
        }
    return boxes;
}

Result<RankBoxes> boxes_of(const reshard_rank_boxes* given, std::size_t dims) {
    if (given == nullptr) return fail(Code::usage, "struct reshard_rank_boxes is needed, NULL was given");
    RESHARD_CHECK(known_size<reshard_rank_boxes>(given->size, "reshard_rank_boxes"));
    RankBoxes boxes;
    RESHARD_ASSIGN(boxes.have, boxes_of(given->have, given->have_count, dims, "have"));
    RESHARD_ASSIGN(boxes.want, boxes_of(given->want, given->want_count, dims, "want"));
    return boxes;
}

Result<std::vector<Storage>> places_of(const reshard_storage* given, std::size_t boxes, std::size_t dims) {
    std::vector<Storage> places;
    for (std::size_t i = 0; given != nullptr && i < boxes; ++i) {
        RESHARD_TRY(auto& place, storage_of(given + i, dims));
        places.push_back(*place);
    }
    return places;
}

// The boxes of an array, as a rank gives them.
struct Asked {
    BoxTable table;
    BoxStorages places;
};

Result<Asked> asked_of(const Result<void>& placed, Index rank, const char* dtype, const int64_t* shape, int64_t dims,
                       const reshard_rank_boxes* given, int64_t ranks, bool known) {
    RESHARD_CHECK(placed);
    Asked asked;
    RESHARD_TRY(const auto word, need_text(dtype, "dtype"));
    RESHARD_ASSIGN(asked.table.dtype, parse_dtype(word));
    RESHARD_TRY(const auto extents, need_numbers(shape, dims, "shape"));
    asked.table.shape.assign(extents.begin(), extents.end());
    RESHARD_TRY(const std::size_t count, need_count(ranks, 0, "ranks"));
    for (std::size_t i = 0; i < count; ++i) {
        RESHARD_TRY(auto& boxes, boxes_of(given == nullptr ? nullptr : given + i, extents.size()));
        if (!known || static_cast<Index>(i) == rank) {
            RESHARD_ASSIGN(asked.places.have, places_of(given[i].have_places, boxes.have.size(), extents.size()));
            RESHARD_ASSIGN(asked.places.want, places_of(given[i].want_places, boxes.want.size(), extents.size()));
        }
        asked.table.ranks.push_back(std::move(boxes));
    }
    return asked;
}

Result<std::unique_ptr<reshard_boxes>> exchange_of(const Result<void>& placed, reshard_backend* backend,
                                                   const char* dtype, const int64_t* shape, int64_t dims,
                                                   const reshard_rank_boxes* given, int64_t ranks, bool known) {
    RESHARD_TRY(auto* const own, need(backend));
    Backend& rank = own->backend;
    RESHARD_TRY(auto& asked, or_tell(rank, asked_of(placed, rank.rank(), dtype, shape, dims, given, ranks, known)));
    const DType type = asked.table.dtype;
    RESHARD_TRY(auto& made,
                known ? BoxExchange::prepare(asked.table, rank, asked.places)
                      : BoxExchange::prepare(type, asked.table.shape, asked.table.ranks.front(), rank, asked.places));
    return std::make_unique<reshard_boxes>(own, type, std::move(made));
}

Result<std::vector<Buffers>> buffers_of(const void* have, int64_t have_bytes, void* want, int64_t want_bytes) {
    RESHARD_TRY(const auto read, need_bytes(have, have_bytes, "have"));
    RESHARD_TRY(const auto written, need_bytes(want, want_bytes, "want"));
    return std::vector<Buffers>{{read, written, {}}};
}

Result<std::vector<Buffers>> buffers_of(const reshard_buffers* given, int64_t count) {
    RESHARD_TRY(const std::size_t arrays, need_count(count, 0, "count"));
    if (given == nullptr && arrays > 0) return fail(Code::usage, "struct reshard_buffers is needed, NULL was given");
    std::vector<Buffers> buffers(arrays);
    for (std::size_t i = 0; i < arrays; ++i) {
        RESHARD_CHECK(known_size<reshard_buffers>(given[i].size, "reshard_buffers"));
        if (given[i].donated != nullptr) return fail(Code::usage, "a rebuild takes no donated source");
        RESHARD_ASSIGN(buffers[i].source, need_bytes(given[i].source, given[i].source_bytes, "source"));
        RESHARD_ASSIGN(buffers[i].target, need_bytes(given[i].target, given[i].target_bytes, "target"));
    }
    return buffers;
}

Result<void> write_traffic(const reshard_layout* source, const reshard_layout* target, const int64_t* lost,
                           int64_t lost_count, int64_t* received_bytes, int64_t devices) {
    RESHARD_TRY(const auto* const before, need(source));
    RESHARD_TRY(const auto* const after, need(target));
    RESHARD_TRY(const auto gone, need_numbers(lost, lost_count, "lost"));
    RESHARD_TRY(const std::size_t count, need_count(devices, 0, "devices"));
    RESHARD_TRY(const auto& traffic, rebuild_traffic({before->layout, after->layout}, gone));
    for (std::size_t i = 0; received_bytes != nullptr && i < count; ++i)
        received_bytes[i] = i < traffic.size() ? traffic[i].received_bytes : 0;
    return {};
}

// The arguments of a rebuild.
struct Rebuilt {
    std::vector<RebuildMove> moves;
    std::span<const Index> lost;
    std::span<const Index> devices;
};

Result<Rebuilt> rebuilt_of(const Result<void>& placed, Index ranks, const reshard_layout* const* sources,
                           const reshard_layout* const* targets, int64_t count, const int64_t* lost, int64_t lost_count,
                           const int64_t* devices) {
    RESHARD_CHECK(placed);
    Rebuilt rebuilt;
    RESHARD_TRY(auto& pairs, problems_of(sources, targets, count));
    for (Problem& pair : pairs) rebuilt.moves.push_back({std::move(pair.source), std::move(pair.target)});
    RESHARD_ASSIGN(rebuilt.lost, need_numbers(lost, lost_count, "lost"));
    if (devices != nullptr) rebuilt.devices = std::span(devices, static_cast<std::size_t>(ranks));
    return rebuilt;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_boxes_make(reshard_backend* backend, const char* dtype, const int64_t* shape, int64_t dims,
                       const reshard_rank_boxes* own, reshard_boxes** boxes, reshard_error** error) {
    return make_together(boxes, error, [&](const Result<void>& placed) {
        return exchange_of(placed, backend, dtype, shape, dims, own, 1, false);
    });
}

int reshard_boxes_make_known(reshard_backend* backend, const char* dtype, const int64_t* shape, int64_t dims,
                             const reshard_rank_boxes* all, int64_t ranks, reshard_boxes** boxes,
                             reshard_error** error) {
    return make_together(boxes, error, [&](const Result<void>& placed) {
        return exchange_of(placed, backend, dtype, shape, dims, all, ranks, true);
    });
}

const char* reshard_boxes_dtype(const reshard_boxes* boxes) {
    const auto ready = need(boxes);
    return ready ? name((*ready)->dtype).data() : nullptr;  // ends in 0: it is a literal of a table
}

int64_t reshard_boxes_have_bytes(const reshard_boxes* boxes) {
    const auto ready = need(boxes);
    return ready ? (*ready)->exchange.have_bytes() : -1;
}

int64_t reshard_boxes_want_bytes(const reshard_boxes* boxes) {
    const auto ready = need(boxes);
    return ready ? (*ready)->exchange.want_bytes() : -1;
}

int64_t reshard_boxes_received_bytes(const reshard_boxes* boxes) {
    const auto ready = need(boxes);
    return ready ? (*ready)->exchange.traffic().received_bytes : -1;
}

int reshard_boxes_run(reshard_boxes* boxes, const void* have, int64_t have_bytes, void* want, int64_t want_bytes,
                      reshard_error** error) {
    return answer(boxes, error, [&](auto& ready) {
        return done(started(ready.exchange, buffers_of(have, have_bytes, want, want_bytes)));
    });
}

int reshard_boxes_start(reshard_boxes* boxes, const void* have, int64_t have_bytes, void* want, int64_t want_bytes,
                        reshard_ticket** ticket, reshard_error** error) {
    return make_together(ticket, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_ticket>> {
        RESHARD_TRY(auto* const ready, need(boxes));
        return ticket_of(
            *ready,
            started(ready->exchange, placed.and_then([&] { return buffers_of(have, have_bytes, want, want_bytes); })));
    });
}

int reshard_rebuild_traffic(const reshard_layout* source, const reshard_layout* target, const int64_t* lost,
                            int64_t lost_count, int64_t* received_bytes, int64_t devices, reshard_error** error) {
    return answer(error, [&] { return write_traffic(source, target, lost, lost_count, received_bytes, devices); });
}

int reshard_rebuild_make(reshard_backend* backend, const reshard_layout* const* sources,
                         const reshard_layout* const* targets, int64_t count, const int64_t* lost, int64_t lost_count,
                         const int64_t* devices, reshard_rebuild** rebuild, reshard_error** error) {
    return make_together(rebuild, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_rebuild>> {
        RESHARD_TRY(auto* const own, need(backend));
        Backend& rank = own->backend;
        RESHARD_TRY(const auto& asked,
                    or_tell(rank, rebuilt_of(placed, rank.size(), sources, targets, count, lost, lost_count, devices)));
        RESHARD_TRY(auto& made, Rebuild::prepare(asked.moves, asked.lost, rank, asked.devices));
        std::vector<DType> dtypes;
        for (const RebuildMove& move : asked.moves) dtypes.push_back(move.source.dtype);
        return std::make_unique<reshard_rebuild>(own, std::move(dtypes), std::move(made));
    });
}

const char* reshard_rebuild_dtype(const reshard_rebuild* rebuild, int64_t array) {
    const auto ready = need(rebuild);
    if (!ready || array < 0 || array >= std::ssize((*ready)->dtypes)) return nullptr;
    return name((*ready)->dtypes[static_cast<std::size_t>(array)]).data();  // ends in 0: it is a literal of a table
}

int64_t reshard_rebuild_received_bytes(const reshard_rebuild* rebuild) {
    const auto ready = need(rebuild);
    return ready ? (*ready)->rebuild.traffic().received_bytes : -1;
}

int reshard_rebuild_run(reshard_rebuild* rebuild, const reshard_buffers* buffers, int64_t count,
                        reshard_error** error) {
    return answer(rebuild, error,
                  [&](auto& ready) { return done(started(ready.rebuild, buffers_of(buffers, count))); });
}

int reshard_rebuild_start(reshard_rebuild* rebuild, const reshard_buffers* buffers, int64_t count,
                          reshard_ticket** ticket, reshard_error** error) {
    return make_together(ticket, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_ticket>> {
        RESHARD_TRY(auto* const ready, need(rebuild));
        return ticket_of(*ready, started(ready->rebuild, placed.and_then([&] { return buffers_of(buffers, count); })));
    });
}

}  // extern "C"
