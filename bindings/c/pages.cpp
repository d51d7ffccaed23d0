#include "reshard/c/pages.h"

#include "bindings/c/row_memory.hpp"
#include "reshard/model/pages.hpp"

struct reshard_page_template final : reshard::c::HandleOf<reshard_page_template> {
    static constexpr const char* name = "a page template";
    explicit reshard_page_template(reshard::PageTemplate of) : pages(std::move(of)) {}
    const reshard::PageTemplate pages;
};

struct reshard_page_rows final : reshard::c::HandleOf<reshard_page_rows> {
    static constexpr const char* name = "the rows of pages";
    explicit reshard_page_rows(const reshard::PageRows& rows)
        : local(reshard::c::shown<reshard_strided_memory>(rows.memory.local)),
          remote(reshard::c::shown<reshard_strided_memory>(rows.memory.remote)) {
        for (const reshard::PeerRows& peer : rows.peers)
            peers.push_back({peer.peer, static_cast<int64_t>(peer.begin), static_cast<int64_t>(peer.end)});
    }
    const std::vector<reshard_strided_memory> local;
    const std::vector<reshard_strided_memory> remote;
    std::vector<reshard_peer_rows> peers;
};

namespace reshard::c {
namespace {

// A dimension of a cache.
Result<std::size_t> dimension_of(const Layout& layout, int64_t number, const char* name) {
    if (number >= 0 && number < std::ssize(layout.dims)) return static_cast<std::size_t>(number);
    return fail(Code::mismatch, std::string("`") + name + "` is dimension " + std::to_string(number) +
                                    "; the cache has " + std::to_string(layout.dims.size()) + " dimensions");
}

Result<PagedCache> cache_of(const reshard_paged_cache* given, int64_t tokens, int64_t layers, PageDims& dims) {
    if (given == nullptr) return fail(Code::usage, "struct reshard_paged_cache is needed, NULL was given");
    RESHARD_TRY(const auto* const layout, need(given->layout));
    RESHARD_ASSIGN(dims.tokens, dimension_of(layout->layout, tokens, "tokens"));
    if (layers != -1) {
        RESHARD_ASSIGN(dims.layers, dimension_of(layout->layout, layers, "layers"));
    }
    RESHARD_CHECK(need_count(given->block, 1, "block"));
    PagedCache cache{layout->layout, given->block, given->pages, {}, given->page_stride};
    if (given->storage != nullptr) {
        RESHARD_ASSIGN(cache.storages, parse_storages(page_layout(cache, dims), given->storage));
    }
    return cache;
}

Result<PageRequest> request_of(const reshard_page_request* given) {
    if (given == nullptr) return fail(Code::usage, "struct reshard_page_request is needed, NULL was given");
    RESHARD_TRY(const auto source, need_array(given->source_pages, given->source_count, "source_pages"));
    RESHARD_TRY(const auto target, need_array(given->target_pages, given->target_count, "target_pages"));
    return PageRequest{source, target, {given->first_token, given->end_token}};
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_page_template_make(const reshard_paged_cache* source, const reshard_paged_cache* target, int64_t tokens,
                               int64_t layers, int64_t rank, int side, reshard_page_template** made,
                               reshard_error** error) {
    return make(made, error, [&]() -> Result<PageTemplate> {
        PageDims dims;
        RESHARD_TRY(const auto& from, cache_of(source, tokens, layers, dims));
        RESHARD_TRY(const auto& to, cache_of(target, tokens, layers, dims));
        RESHARD_TRY(const auto asked, side_of(side));
        return PageTemplate::make(from, to, dims, rank, asked);
    });
}

int64_t reshard_page_template_period(const reshard_page_template* pages) {
    return pages == nullptr ? -1 : pages->pages.period();
}

int reshard_page_template_bind(const reshard_page_template* pages, const reshard_page_request* request,
                               const uint64_t* own, uint64_t own_device, const uint64_t* peers,
                               const uint64_t* peer_devices, int64_t arrays, int64_t ranks, reshard_page_rows** rows,
                               reshard_error** error) {
    return make(rows, pages, error, [&](auto& given) -> Result<PageRows> {
        RESHARD_TRY(const auto& asked, request_of(request));
        RESHARD_TRY(const auto bases, need_array(own, arrays, "own"));
        RESHARD_TRY(const auto& tiles, peer_tiles_of(peers, peer_devices, arrays, ranks));
        return given.pages.bind(asked, {bases, own_device}, tiles);
    });
}

const reshard_strided_memory* reshard_page_rows_local(const reshard_page_rows* rows) {
    return rows == nullptr ? nullptr : rows->local.data();
}

const reshard_strided_memory* reshard_page_rows_remote(const reshard_page_rows* rows) {
    return rows == nullptr ? nullptr : rows->remote.data();
}

int64_t reshard_page_rows_count(const reshard_page_rows* rows) {
    return rows == nullptr ? -1 : std::ssize(rows->local);
}

const reshard_peer_rows* reshard_page_rows_peers(const reshard_page_rows* rows) {
    return rows == nullptr ? nullptr : rows->peers.data();
}

int64_t reshard_page_rows_peer_count(const reshard_page_rows* rows) {
    return rows == nullptr ? -1 : std::ssize(rows->peers);
}

}  // extern "C"
