#include "src/model/page_ends.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rows.hpp"

namespace reshard {

Layout page_layout(const PagedCache& cache, const PageDims& dims) {
    Layout layout = cache.layout;
    layout.dims[dims.tokens] = Dim(cache.block);
    if (dims.layers) layout.dims[*dims.layers] = Dim(1);
    return layout;
}

namespace {

std::optional<Index> common_multiple(Index a, Index b) { return checked_multiply(a / std::gcd(a, b), b); }

// The indices that a shard takes in its turn; nullopt if the shards do not take turns.
std::optional<Index> interleave_of(const Dim& dim) {
    if (shard_count(dim) == 1) return 1;
    if (dim.pieces.empty()) return std::nullopt;
    const Index interleave = dim.pieces.front().end;
    if (block_cyclic(dim.extent, dim.atoms, interleave).pieces != dim.pieces) return std::nullopt;
    return interleave;
}

// The tokens after which the pages of an end repeat; nullopt if they do not.
std::optional<Index> cycle_of(const PagedCache& cache, const Dim& tokens) {
    const auto interleave = interleave_of(tokens);
    const auto own = interleave ? common_multiple(*interleave, cache.block) : std::nullopt;
    return own ? checked_multiply(*own, shard_count(tokens)) : std::nullopt;
}

// The tokens of one period, cut as in the whole cache.
Dim period_of(const Dim& tokens, Index period) {
    if (period == tokens.extent) return tokens;
    if (shard_count(tokens) == 1) return {period, tokens.atoms};
    return block_cyclic(period, tokens.atoms, tokens.pieces.front().end);
}

Result<void> check_end(const PagedCache& cache, const PageDims& dims, std::string_view end) {
    RESHARD_CHECK(copies_only(cache.layout));
    const std::size_t rank = cache.layout.dims.size();
    if (dims.tokens >= rank || (dims.layers && (*dims.layers >= rank || *dims.layers == dims.tokens)))
        return fail(Code::mismatch,
                    fmt::format("tokens are dimension {}{}; the cache has {} dimensions", dims.tokens,
                                dims.layers ? fmt::format(" and layers dimension {}", *dims.layers) : "", rank));
    if (cache.block < 1 || cache.pages < 1 || cache.page_stride < 0)
        return fail(Code::usage,
                    fmt::format("the {} has {} pages of {} tokens, {} elements apart; pages and tokens are at least 1, "
                                "the distance at least 0",
                                end, cache.pages, cache.block, cache.page_stride));
    if (!cache.storages.empty() && std::ssize(cache.storages) < world_size(cache.layout.mesh))
        return fail(Code::mismatch, fmt::format("storages of {} ranks for the {} of {}", cache.storages.size(), end,
                                                world_size(cache.layout.mesh)));
    return {};
}

// Sets the place of the pages in the memory of one rank.
Result<void> set_pages(PageHolder& holder, const PagedCache& cache, const PageDims& dims, Index rank) {
    Tile page = holder.tile;
    page[dims.tokens] = {{{0, cache.block}}};
    if (dims.layers) page[*dims.layers] = {{{0, 1}}};
    holder.storage = cache.storages.empty() ? row_major(page) : cache.storages[static_cast<std::size_t>(rank)];
    RESHARD_TRY(const Index extent, extent_of(holder.storage, page));
    Index elements = 1;
    for (const Side& side : page) elements = saturating_multiply(elements, side.size());
    const Index stride = cache.page_stride > 0 ? cache.page_stride : elements;
    const auto pages = checked_multiply(stride, cache.pages - 1);
    const auto reach = pages ? checked_add(*pages, extent) : std::nullopt;
    const auto bytes = reach ? checked_multiply(*reach, size_of(cache.layout.dtype)) : std::nullopt;
    const auto stride_bytes = checked_multiply(stride, size_of(cache.layout.dtype));
    if (!bytes || !stride_bytes) return fail(Code::overflow, "the pages reach past 64 bits");
    holder.reach_bytes = *bytes;
    holder.stride_bytes = *stride_bytes;
    return {};
}

void number_replicas(std::vector<PageHolder>& ranks) {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (count(ranks[rank].tile) == 0) continue;
        const auto same = std::ranges::find_if(
            groups, [&](const auto& group) { return ranks[group.front()].tile == ranks[rank].tile; });
        if (same == groups.end())
            groups.push_back({rank});
        else
            same->push_back(rank);
    }
    for (const auto& group : groups)
        for (std::size_t i = 0; i < group.size(); ++i) {
            ranks[group[i]].replica = static_cast<Index>(i);
            ranks[group[i]].replicas = std::ssize(group);
        }
}

Result<PageEnd> end_of(const PagedCache& cache, const PageDims& dims, Index period, std::string_view name) {
    Layout layout = cache.layout;
    layout.dims[dims.tokens] = period_of(layout.dims[dims.tokens], period);
    PageEnd end;
    end.page_count = cache.pages;
    for (Index rank = 0; rank < world_size(layout.mesh); ++rank) {
        PageHolder holder;
        holder.tile = tile(layout, rank);
        if (count(holder.tile) > 0) {
            if (const auto placed = set_pages(holder, cache, dims, rank); !placed)
                return fail(placed.error().code,
                            fmt::format("the {} of rank {}: {}", name, rank, placed.error().message));
        }
        end.ranks.push_back(std::move(holder));
    }
    number_replicas(end.ranks);
    return end;
}

// Divides the tokens of each rank into pages.
void divide_into_pages(PageEnd& end, Index block, std::size_t dim) {
    for (PageHolder& holder : end.ranks) {
        if (holder.replicas == 0) continue;
        const Side& side = holder.tile[dim];
        PageTokens tokens;
        for (Index own = 0; own < side.size(); own += block) {
            holder.pages.push_back(part_of(side, {own, std::min(own + block, side.size())}));
            tokens.firsts.push_back(holder.pages.back().intervals.front().begin);
            tokens.lasts.push_back(holder.pages.back().intervals.back().end - 1);
        }
        if (std::ranges::find(end.tokens, tokens) == end.tokens.end()) end.tokens.push_back(std::move(tokens));
    }
}

Index most_replicas(const PageEnd& end) {
    Index most = 1;
    for (const PageHolder& holder : end.ranks) most = std::max(most, holder.replicas);
    return most;
}

// Returns a multiple of the period in which all holders send a target equally many pages.
Index dealt_period(const PageEnds& ends, Index cycle) {
    const Index holders = most_replicas(ends.source);
    const Index takers = most_replicas(ends.target);
    const Index least = std::max<Index>(1, holders / takers);
    const auto turns = holders > takers && holders % takers != 0 ? common_multiple(least, least + 1) : least;
    const auto whole = turns ? checked_multiply(cycle, *turns) : std::nullopt;
    return (whole ? common_multiple(*whole, ends.period) : std::nullopt).value_or(index_max);
}

// A template keeps the pages of a period.
constexpr Index pages_max = Index{1} << 22;

Result<void> check_period(Index period, Index block, std::string_view end) {
    const Index pages = ceil_divide(period, block);
    if (pages <= pages_max) return {};
    return fail(Code::unsupported,
                fmt::format("the pages of the {} repeat after {} tokens, which are {} pages; at most "
                            "{} are supported",
                            end, period, pages, pages_max));
}

Result<void> set_ends(PageEnds& ends, const PagedCache& source, const PagedCache& target, const PageDims& dims) {
    RESHARD_ASSIGN(ends.source, end_of(source, dims, ends.period, "source"));
    RESHARD_ASSIGN(ends.target, end_of(target, dims, ends.period, "target"));
    return {};
}

}  // namespace

Result<PageEnds> page_ends(const PagedCache& source, const PagedCache& target, const PageDims& dims) {
    RESHARD_CHECK(check_end(source, dims, "source"));
    RESHARD_CHECK(check_end(target, dims, "target"));
    RESHARD_CHECK(same_array(source.layout, target.layout));
    PageEnds ends;
    ends.longest = source.layout.dims[dims.tokens].extent;
    const auto from = cycle_of(source, source.layout.dims[dims.tokens]);
    const auto to = cycle_of(target, target.layout.dims[dims.tokens]);
    const auto both = from && to ? common_multiple(*from, *to) : std::nullopt;
    ends.period = std::min(both.value_or(index_max), ends.longest);
    RESHARD_CHECK(check_period(ends.period, source.block, "source"));
    RESHARD_CHECK(check_period(ends.period, target.block, "target"));
    RESHARD_CHECK(set_ends(ends, source, target, dims));
    if (const Index dealt = both ? dealt_period(ends, *from) : 0; dealt > ends.period && dealt < ends.longest) {
        ends.period = dealt;
        RESHARD_CHECK(set_ends(ends, source, target, dims));
    }
    divide_into_pages(ends.source, source.block, dims.tokens);
    divide_into_pages(ends.target, target.block, dims.tokens);
    return ends;
}

std::optional<DealtPages> dealt_pages(const PageEnds& ends, Index from, Index to) {
    if (from == to) return DealtPages{};
    const auto& sources = ends.source.ranks;
    const PageHolder& holder = sources[static_cast<std::size_t>(from)];
    const PageHolder& taker = ends.target.ranks[static_cast<std::size_t>(to)];
    const bool has_it = to < std::ssize(sources) && sources[static_cast<std::size_t>(to)].tile == holder.tile;
    if (has_it) return std::nullopt;
    if (holder.replicas <= taker.replicas) {
        if (taker.replica % holder.replicas != holder.replica) return std::nullopt;
        return DealtPages{};
    }
    if (holder.replica % taker.replicas != taker.replica) return std::nullopt;
    return DealtPages{holder.replica / taker.replicas, ceil_divide(holder.replicas - taker.replica, taker.replicas)};
}

Interval entries_of(const PageEnd& end, Index period, Interval tokens) {
    const auto counted = [](const std::vector<Index>& ascending, Index bound) {
        return std::ranges::lower_bound(ascending, bound) - ascending.begin();
    };
    const Index first_period = tokens.begin / period;
    const Index last_period = (tokens.end - 1) / period;
    Interval entries{index_max, 0};
    for (const PageTokens& pages : end.tokens) {
        const Index count = std::ssize(pages.firsts);
        const Interval one{first_period * count + counted(pages.lasts, tokens.begin - first_period * period),
                           last_period * count + counted(pages.firsts, tokens.end - last_period * period)};
        if (one.begin >= one.end) continue;
        entries = {std::min(entries.begin, one.begin), std::max(entries.end, one.end)};
    }
    return entries.begin < entries.end ? entries : Interval{};
}

}  // namespace reshard
