#include "reshard/c/pages.h"

#include <cstddef>

#include "bindings/c/answer.hpp"
#include "reshard/model/pages.hpp"

static_assert(sizeof(reshard_strided_memory) == sizeof(reshard::StridedMemory));

struct reshard_page_template final : reshard::c::Handle {
    static constexpr const char* name = "a page template";
    explicit reshard_page_template(reshard::PageTemplate of) : pages(std::move(of)) {}
    [[nodiscard]] const char* kind() const override { return name; }
    const reshard::PageTemplate pages;
};

struct reshard_page_rows final : reshard::c::Handle {
    static constexpr const char* name = "the rows of pages";
    explicit reshard_page_rows(const reshard::PageRows& rows)
        : local(shown(rows.memory.local)), remote(shown(rows.memory.remote)) {
        for (const reshard::PeerRows& peer : rows.peers)
            peers.push_back({peer.peer, static_cast<int64_t>(peer.begin), static_cast<int64_t>(peer.end)});
    }
    [[nodiscard]] const char* kind() const override { return name; }
    const std::vector<reshard_strided_memory> local;
    const std::vector<reshard_strided_memory> remote;
    std::vector<reshard_peer_rows> peers;

private:
    static std::vector<reshard_strided_memory> shown(const std::vector<reshard::StridedMemory>& memory) {
        std::vector<reshard_strided_memory> all(memory.size());
        if (!all.empty()) std::memcpy(all.data(), memory.data(), all.size() * sizeof all[0]);
        return all;
    }
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

// `count` numbers of the caller's.
template <class Number>
Result<std::span<const Number>> numbers_of(const Number* numbers, int64_t count, const char* name) {
    RESHARD_TRY(const std::size_t size, need_count(count, 0, name));
    if (numbers == nullptr && size > 0)
        return fail(Code::usage, std::string("`") + name + "` is needed, NULL was given");
    return std::span(numbers, size);
}

Result<PageRequest> request_of(const reshard_page_request* given) {
    if (given == nullptr) return fail(Code::usage, "struct reshard_page_request is needed, NULL was given");
    RESHARD_TRY(const auto source, numbers_of(given->source_pages, given->source_count, "source_pages"));
    RESHARD_TRY(const auto target, numbers_of(given->target_pages, given->target_count, "target_pages"));
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
    return make(made, error, [&]() -> Result<std::unique_ptr<reshard_page_template>> {
        PageDims dims;
        RESHARD_TRY(const auto& from, cache_of(source, tokens, layers, dims));
        RESHARD_TRY(const auto& to, cache_of(target, tokens, layers, dims));
        if (side != RESHARD_SEND && side != RESHARD_RECEIVE)
            return fail(Code::usage, "`side` is " + std::to_string(side) + ", it is RESHARD_SEND or RESHARD_RECEIVE");
        RESHARD_TRY(auto& pages, PageTemplate::make(from, to, dims, rank, static_cast<RowSide>(side)));
        return std::make_unique<reshard_page_template>(std::move(pages));
    });
}

int64_t reshard_page_template_period(const reshard_page_template* pages) {
    return pages == nullptr ? -1 : pages->pages.period();
}

int reshard_page_template_bind(const reshard_page_template* pages, const reshard_page_request* request,
                               const uint64_t* own, uint64_t own_device, const uint64_t* peers,
                               const uint64_t* peer_devices, int64_t arrays, int64_t ranks, reshard_page_rows** rows,
                               reshard_error** error) {
    return make(rows, error, [&]() -> Result<std::unique_ptr<reshard_page_rows>> {
        RESHARD_TRY(const auto* const given, need(pages));
        RESHARD_TRY(const auto& asked, request_of(request));
        RESHARD_TRY(const auto bases, numbers_of(own, arrays, "own"));
        RESHARD_CHECK(need_count(ranks, 0, "ranks"));
        const auto entries = checked_multiply(ranks, arrays);
        if (!entries) return fail(Code::overflow, "`ranks` times `arrays` does not fit 64 bits");
        RESHARD_TRY(const auto table, numbers_of(peers, *entries, "peers"));
        PeerTiles tiles{table, arrays, {}};
        if (peer_devices != nullptr) tiles.devices = {peer_devices, static_cast<std::size_t>(ranks)};
        RESHARD_TRY(const auto& bound, given->pages.bind(asked, {bases, own_device}, tiles));
        return std::make_unique<reshard_page_rows>(bound);
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
