// Arrays with halos: their layouts, fills and sums.
#include "reshard/c/halo.h"

#include <algorithm>

#include "bindings/c/answer.hpp"
#include "bindings/c/halo_handles.hpp"

namespace reshard::c {
namespace {

Result<void> describe_array(const reshard_halo_layout* layout, int64_t device, int64_t* extents, int64_t* begin,
                            int64_t* end, int64_t dims) {
    RESHARD_TRY(const auto* const given, need(layout));
    RESHARD_CHECK(need_count(device, 0, "device"));
    const std::vector<Index> shape = array_shape(given->layout, device);
    if (dims != std::ssize(shape))
        return fail(Code::mismatch, "the array has " + std::to_string(shape.size()) +
                                        " dimensions, room was given for " + std::to_string(dims));
    const Box core = core_of(given->layout, device);
    for (std::size_t k = 0; k < shape.size(); ++k) {
        if (extents != nullptr) extents[k] = shape[k];
        if (begin != nullptr) begin[k] = core[k].begin;
        if (end != nullptr) end[k] = core[k].end;
    }
    return {};
}

Result<std::unique_ptr<reshard_halo>> halo_of(const Result<void>& placed, reshard_backend* backend,
                                              const reshard_halo_layout* layout, const reshard_storage* array) {
    RESHARD_TRY(auto* const rank, need(backend));
    const auto asked = [&]() -> Result<std::optional<Storage>> {
        RESHARD_CHECK(placed);
        RESHARD_TRY(const auto* const given, need(layout));
        return storage_of(array, given->layout.halos.size());
    };
    RESHARD_TRY(auto& storage, or_tell(rank->backend, asked()));
    RESHARD_TRY(auto& fill, HaloExchange::prepare(layout->layout, rank->backend, storage));
    return std::make_unique<reshard_halo>(rank, layout->layout, std::move(storage), std::move(fill));
}

// The array of a fill or a sum.
Result<std::vector<Buffers>> buffers_of(void* array, int64_t bytes) {
    RESHARD_TRY(const auto memory, need_bytes(array, bytes, "array"));
    return std::vector<Buffers>{{{}, memory, {}}};
}

Result<std::unique_ptr<Ticket>> sum_started(reshard_halo& halo, void* array, int64_t bytes) {
    if (!halo.sum) {
        RESHARD_ASSIGN(halo.sum, HaloSum::prepare(halo.layout, halo.backend->backend, halo.storage));
    }
    return started(*halo.sum, buffers_of(array, bytes));
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_halo_layout_parse(const reshard_mesh* mesh, const char* text, reshard_halo_layout** layout,
                              reshard_error** error) {
    return make(layout, mesh, error, [&](auto& given) -> Result<HaloLayout> {
        RESHARD_TRY(const auto words, need_text(text, "text"));
        return parse_halo_layout(given.mesh, words);
    });
}

const char* reshard_halo_layout_text(const reshard_halo_layout* layout) {
    const auto given = need(layout);
    return given ? (*given)->text.c_str() : nullptr;
}

int reshard_halo_layout_array(const reshard_halo_layout* layout, int64_t device, int64_t* extents, int64_t* begin,
                              int64_t* end, int64_t dims, reshard_error** error) {
    return answer(error, [&] { return describe_array(layout, device, extents, begin, end, dims); });
}

int64_t reshard_halo_layout_bytes(const reshard_halo_layout* layout, int64_t device) {
    return number([&]() -> int64_t {
        const auto given = need(layout);
        if (!given || device < 0) return -1;
        Index bytes = size_of((*given)->layout.owned.dtype);
        for (const Index extent : array_shape((*given)->layout, device)) bytes *= extent;
        return bytes;
    });
}

int reshard_halo_make(reshard_backend* backend, const reshard_halo_layout* layout, const reshard_storage* array,
                      reshard_halo** halo, reshard_error** error) {
    return make_together(halo, error,
                         [&](const Result<void>& placed) { return halo_of(placed, backend, layout, array); });
}

const char* reshard_halo_dtype(const reshard_halo* halo) {
    const auto ready = need(halo);
    return ready ? name((*ready)->layout.owned.dtype).data() : nullptr;  // ends in 0: it is a literal of a table
}

int64_t reshard_halo_received_bytes(const reshard_halo* halo) {
    const auto ready = need(halo);
    return ready ? (*ready)->fill.received_bytes() : -1;
}

int reshard_halo_fill(reshard_halo* halo, void* array, int64_t bytes, reshard_error** error) {
    return answer(halo, error, [&](auto& given) -> Result<void> {
        RESHARD_TRY(const auto memory, or_excuse(given.fill, need_bytes(array, bytes, "array")));
        return given.fill.run(memory);
    });
}

int reshard_halo_fill_start(reshard_halo* halo, void* array, int64_t bytes, reshard_ticket** ticket,
                            reshard_error** error) {
    return make(ticket, halo, error,
                [&](auto& given) { return ticket_of(given, started(given.fill, buffers_of(array, bytes))); });
}

int reshard_halo_sum(reshard_halo* halo, void* array, int64_t bytes, reshard_error** error) {
    return answer(halo, error, [&](auto& given) { return done(sum_started(given, array, bytes)); });
}

int reshard_halo_sum_start(reshard_halo* halo, void* array, int64_t bytes, reshard_ticket** ticket,
                           reshard_error** error) {
    return make(ticket, halo, error, [&](auto& given) { return ticket_of(given, sum_started(given, array, bytes)); });
}

}  // extern "C"
