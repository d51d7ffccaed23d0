// The rows of a page template: planned for one period of tokens, and repeated for the pages of a request.
#include "reshard/model/pages.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/fold.hpp"
#include "src/model/page_ends.hpp"
#include "src/model/rows.hpp"
#include "src/model/tile_address.hpp"

namespace reshard {

// A row between two pages. The addresses count from the starts of the pages.
struct PageRow {
    StridedMemory source;
    StridedMemory target;
};

// The rows between two pages of a period.
struct PagePair {
    Index source_page = 0;  // in the period
    Index target_page = 0;
    Interval tokens;        // from the first to one past the last that both have; there may be others between them
    std::size_t begin = 0;  // in the rows of the peer
    std::size_t end = 0;
};

// A layer that both ranks have, as the number of its address at each end.
struct LayerPair {
    Index source = 0;
    Index target = 0;
};

// All that this rank exchanges with one peer.
struct PagePeer {
    Index peer = 0;
    Index source = 0;  // the rank that sends
    Index target = 0;  // the rank that receives
    std::vector<LayerPair> layers;
    std::vector<PagePair> pairs;
    std::vector<PageRow> rows;
};

namespace {

StridedMemory memory_of(const Row& row, Index offset, Index stride) {
    const auto bytes = static_cast<std::uint64_t>(row.run_bytes);
    return {static_cast<std::uint64_t>(offset), bytes, 0, row.runs > 1 ? static_cast<std::uint64_t>(stride) : bytes,
            static_cast<std::uint64_t>(row.runs)};
}

}  // namespace

struct PageTemplate::Plan {
    PageEnds ends;
    PageDims dims;
    RowSide side = RowSide::send;
    Index element_bytes = 1;
    std::vector<PagePeer> peers;

    void add_peer(Index from, Index to);
    void add_pairs(PagePeer& peer, const DealtPages& dealt) const;
    [[nodiscard]] std::vector<LayerPair> layers_of(Index from, Index to) const;
    // The rows of the tokens that two pages of a period share.
    [[nodiscard]] std::vector<PageRow> rows_of(const PagePeer& peer, const PagePair& pair) const;
    [[nodiscard]] const PageHolder& source(const PagePeer& peer) const {
        return ends.source.ranks[static_cast<std::size_t>(peer.source)];
    }
    [[nodiscard]] const PageHolder& target(const PagePeer& peer) const {
        return ends.target.ranks[static_cast<std::size_t>(peer.target)];
    }
};

std::vector<LayerPair> PageTemplate::Plan::layers_of(Index from, Index to) const {
    if (!dims.layers) return {{0, 0}};
    const Side& have = ends.source.ranks[static_cast<std::size_t>(from)].tile[*dims.layers];
    const Side& want = ends.target.ranks[static_cast<std::size_t>(to)].tile[*dims.layers];
    std::vector<LayerPair> layers;
    for (const Segment& segment : segments_of(intersect(have, want), have, want))
        for (Index i = 0; i < segment.length; ++i) layers.push_back({segment.source + i, segment.target + i});
    return layers;
}

std::vector<PageRow> PageTemplate::Plan::rows_of(const PagePeer& peer, const PagePair& pair) const {
    Slot from{BufferId::source, 0, source(peer).tile, source(peer).storage};
    Slot to{BufferId::target, 0, target(peer).tile, target(peer).storage};
    from.tile[dims.tokens] = source(peer).pages[static_cast<std::size_t>(pair.source_page)];
    to.tile[dims.tokens] = target(peer).pages[static_cast<std::size_t>(pair.target_page)];
    if (dims.layers) from.tile[*dims.layers] = to.tile[*dims.layers] = {{{0, 1}}};
    Tile part = intersect(from.tile, to.tile);
    part[dims.tokens] = intersect(part[dims.tokens], {{pair.tokens}});
    std::vector<Row> rows;
    append_rows(Row{}, {&part, 1}, from, to, element_bytes, rows);
    std::vector<PageRow> all;
    for (const Row& row : rows)
        all.push_back({memory_of(row, row.source_offset, row.source_stride),
                       memory_of(row, row.target_offset, row.target_stride)});
    return all;
}

// Pages ascend in tokens at both ends, so two places walk along them.
void PageTemplate::Plan::add_pairs(PagePeer& peer, const DealtPages& dealt) const {
    const std::vector<Side>& have = source(peer).pages;
    const std::vector<Side>& want = target(peer).pages;
    for (std::size_t i = 0, j = 0; i < have.size() && j < want.size();) {
        const Side common = intersect(have[i], want[j]);
        PagePair pair{static_cast<Index>(i), static_cast<Index>(j), {}};
        have[i].intervals.back().end <= want[j].intervals.back().end ? ++i : ++j;
        if (common.intervals.empty() || pair.source_page % dealt.of != dealt.first) continue;
        pair.tokens = {common.intervals.front().begin, common.intervals.back().end};
        pair.begin = peer.rows.size();
        const std::vector<PageRow> rows = rows_of(peer, pair);
        peer.rows.insert(peer.rows.end(), rows.begin(), rows.end());
        pair.end = peer.rows.size();
        peer.pairs.push_back(pair);
    }
}

void PageTemplate::Plan::add_peer(Index from, Index to) {
    const auto& sources = ends.source.ranks;
    const auto& targets = ends.target.ranks;
    if (from >= std::ssize(sources) || to >= std::ssize(targets)) return;
    const PageHolder& holder = sources[static_cast<std::size_t>(from)];
    const PageHolder& taker = targets[static_cast<std::size_t>(to)];
    if (holder.replicas == 0 || taker.replicas == 0 || count(intersect(holder.tile, taker.tile)) == 0) return;
    const auto dealt = dealt_pages(ends, from, to);
    if (!dealt) return;
    PagePeer peer{side == RowSide::send ? to : from, from, to, layers_of(from, to), {}, {}};
    add_pairs(peer, *dealt);
    if (!peer.pairs.empty()) peers.push_back(std::move(peer));
}

Result<PageTemplate> PageTemplate::make(const PagedCache& source, const PagedCache& target, const PageDims& dims,
                                        Index rank, RowSide side) {
    auto plan = std::make_shared<Plan>();
    RESHARD_ASSIGN(plan->ends, page_ends(source, target, dims));
    plan->dims = dims;
    plan->side = side;
    plan->element_bytes = size_of(source.layout.dtype);
    if (rank < 0) return fail(Code::mismatch, fmt::format("there is no rank {}", rank));
    const auto& others = side == RowSide::send ? plan->ends.target.ranks : plan->ends.source.ranks;
    for (Index other = 0; other < std::ssize(others); ++other)
        side == RowSide::send ? plan->add_peer(rank, other) : plan->add_peer(other, rank);
    return PageTemplate(std::move(plan));
}

Index PageTemplate::period() const { return plan_->ends.period; }

namespace {

// Checks the entries of a table that a request needs.
Result<void> check_table(std::span<const Index> table, const Interval& entries, Index pages, std::string_view end,
                         const Interval& tokens) {
    if (entries.end >= UINT32_MAX) return fail(Code::unsupported, "a request of more than 2^32 pages");
    if (entries.end > std::ssize(table))
        return fail(Code::mismatch, fmt::format("the table of the {} has {} pages; tokens {}:{} need {}", end,
                                                table.size(), tokens.begin, tokens.end, entries.end));
    for (Index i = entries.begin; i < entries.end; ++i) {
        const Index page = table[static_cast<std::size_t>(i)];
        if (page < 0 || page >= pages)
            return fail(Code::mismatch, fmt::format("entry {} of the table of the {} is page {}; the cache has pages 0 "
                                                    "to {}",
                                                    i, end, page, pages - 1));
    }
    return {};
}

// Checks that no page is in the table twice. A table of places, at most half full, finds each page in a step or two.
Result<void> check_distinct(std::span<const Index> table, const Interval& entries) {
    const auto room = std::bit_ceil(static_cast<std::uint64_t>(2 * entries.size()));
    std::vector<std::uint32_t> places(room, 0);  // entries of the table, counted from 1
    const int shift = 64 - std::bit_width(room - 1);
    for (Index i = entries.begin; i < entries.end; ++i) {
        const Index page = table[static_cast<std::size_t>(i)];
        std::uint64_t at = static_cast<std::uint64_t>(page) * 0x9e3779b97f4a7c15U >> shift;
        for (; places[at] != 0; at = (at + 1) & (room - 1))
            if (table[places[at] - 1] == page)
                return fail(Code::mismatch,
                            fmt::format("page {} is twice in the table of the target, as entries {} and {}", page,
                                        places[at] - 1, i));
        places[at] = static_cast<std::uint32_t>(i + 1);
    }
    return {};
}

// The addresses of one layer of one peer.
struct Bases {
    std::uint64_t source = 0;
    std::uint64_t target = 0;
    std::uint64_t source_device = 0;
    std::uint64_t target_device = 0;
};

// Rows between two pages of a request. The pages count from the addresses of a layer.
struct PagePiece {
    std::uint64_t source = 0;
    std::uint64_t target = 0;
    const PageRow* begin = nullptr;
    const PageRow* end = nullptr;
};

// The pages that one peer exchanges for a request. They are the same in all layers.
class PeerPages {
public:
    PeerPages(const PageTemplate::Plan& plan, const PagePeer& peer, const PageRequest& request)
        : plan_(plan), peer_(peer), request_(request), source_(plan.source(peer)), target_(plan.target(peer)) {
        const Index period = plan.ends.period;
        const Interval& tokens = request.tokens;
        cut_.reserve(2);  // pairs ascend in tokens, so the ends of the request cut at most two
        pieces_.reserve(static_cast<std::size_t>(ceil_divide(tokens.end, period) - tokens.begin / period) *
                        peer.pairs.size());
        for (Index number = tokens.begin / period; number * period < tokens.end; ++number) {
            const Interval wanted{tokens.begin - number * period, tokens.end - number * period};
            for (const PagePair& pair : peer.pairs) add(pair, number, wanted);
        }
    }

    [[nodiscard]] std::size_t row_count() const { return rows_; }

    // Writes the rows of one layer. Returns the place after the last row.
    StridedMemory* write_sources(const Bases& bases, StridedMemory* to) const {
        for (const PagePiece& piece : pieces_)
            for (const PageRow* row = piece.begin; row != piece.end; ++row)
                *to++ = at(row->source, bases.source + piece.source, bases.source_device);
        return to;
    }
    StridedMemory* write_targets(const Bases& bases, StridedMemory* to) const {
        for (const PagePiece& piece : pieces_)
            for (const PageRow* row = piece.begin; row != piece.end; ++row)
                *to++ = at(row->target, bases.target + piece.target, bases.target_device);
        return to;
    }

private:
    static StridedMemory at(const StridedMemory& row, std::uint64_t base, std::uint64_t device) {
        return {row.address + base, row.bytes, device, row.stride, row.count};
    }

    // `wanted` are tokens, counted from the start of the period.
    void add(const PagePair& pair, Index number, const Interval& wanted) {
        const Interval common{std::max(wanted.begin, pair.tokens.begin), std::min(wanted.end, pair.tokens.end)};
        if (common.begin >= common.end) return;
        PagePiece piece{start(request_.source_pages, number, source_, pair.source_page),
                        start(request_.target_pages, number, target_, pair.target_page), peer_.rows.data() + pair.begin,
                        peer_.rows.data() + pair.end};
        if (common != pair.tokens) {
            PagePair cut = pair;
            cut.tokens = common;
            cut_.push_back(plan_.rows_of(peer_, cut));
            piece.begin = cut_.back().data();
            piece.end = piece.begin + cut_.back().size();
        }
        rows_ += static_cast<std::size_t>(piece.end - piece.begin);
        pieces_.push_back(piece);
    }

    static std::uint64_t start(std::span<const Index> table, Index number, const PageHolder& holder, Index page) {
        const Index entry = number * std::ssize(holder.pages) + page;
        return static_cast<std::uint64_t>(table[static_cast<std::size_t>(entry)] * holder.stride_bytes);
    }

    const PageTemplate::Plan& plan_;
    const PagePeer& peer_;
    const PageRequest& request_;
    const PageHolder& source_;
    const PageHolder& target_;
    std::vector<PagePiece> pieces_;
    std::vector<std::vector<PageRow>> cut_;
    std::size_t rows_ = 0;
};

Result<Bases> bases_of(const PageTemplate::Plan& plan, const PagePeer& peer, const LayerPair& layer,
                       const OwnTiles& own, const PeerTiles& peers) {
    const bool sends = plan.side == RowSide::send;
    RESHARD_TRY(const auto near, own_address(own, sends ? layer.source : layer.target));
    RESHARD_TRY(const auto far, peer_address(peers, sends ? layer.target : layer.source, peer.peer));
    const std::uint64_t far_device = peer_device(peers, peer.peer);
    const Bases bases = sends ? Bases{near, far, own.device, far_device} : Bases{far, near, far_device, own.device};
    const auto fits = [](std::uint64_t base, const PageHolder& holder) {
        return base <= UINT64_MAX - static_cast<std::uint64_t>(holder.reach_bytes);
    };
    if (!fits(bases.source, plan.source(peer)) || !fits(bases.target, plan.target(peer)))
        return fail(Code::overflow,
                    fmt::format("the pages from {:#x} or {:#x} on reach past 64 bits", bases.source, bases.target));
    return bases;
}

// Appends the rows of all layers of one peer.
Result<void> append_peer(const PageTemplate::Plan& plan, const PagePeer& peer, const PageRequest& request,
                         const OwnTiles& own, const PeerTiles& peers, PageRows& rows) {
    const PeerPages pages(plan, peer, request);
    if (pages.row_count() == 0) return {};
    const std::size_t begin = rows.memory.local.size();
    const std::size_t end = begin + pages.row_count() * peer.layers.size();
    rows.memory.local.resize(end);
    rows.memory.remote.resize(end);
    const bool sends = plan.side == RowSide::send;
    StridedMemory* source = (sends ? rows.memory.local : rows.memory.remote).data() + begin;
    StridedMemory* target = (sends ? rows.memory.remote : rows.memory.local).data() + begin;
    for (const LayerPair& layer : peer.layers) {
        RESHARD_TRY(const Bases bases, bases_of(plan, peer, layer, own, peers));
        source = pages.write_sources(bases, source);
        target = pages.write_targets(bases, target);
    }
    rows.peers.push_back({peer.peer, begin, end});
    return {};
}

Result<void> check_request(const PageEnds& ends, const PageRequest& request) {
    const Interval& tokens = request.tokens;
    if (tokens.begin < 0 || tokens.begin > tokens.end || tokens.end > ends.longest)
        return fail(Code::mismatch,
                    fmt::format("tokens {}:{}; the cache has 0:{}", tokens.begin, tokens.end, ends.longest));
    if (tokens.size() == 0) return {};
    const Interval from = entries_of(ends.source, ends.period, tokens);
    const Interval to = entries_of(ends.target, ends.period, tokens);
    RESHARD_CHECK(check_table(request.source_pages, from, ends.source.page_count, "source", tokens));
    RESHARD_CHECK(check_table(request.target_pages, to, ends.target.page_count, "target", tokens));
    return check_distinct(request.target_pages, to);
}

}  // namespace

Result<void> PageTemplate::bind(const PageRequest& request, const OwnTiles& own, const PeerTiles& peers,
                                PageRows& rows) const {
    rows.memory.local.clear();
    rows.memory.remote.clear();
    rows.peers.clear();
    RESHARD_CHECK(check_request(plan_->ends, request));
    if (request.tokens.size() == 0) return {};
    for (const PagePeer& peer : plan_->peers) {
        if (auto added = append_peer(*plan_, peer, request, own, peers, rows); !added) {
            rows = {};
            return added;
        }
    }
    return {};
}

Result<PageRows> PageTemplate::bind(const PageRequest& request, const OwnTiles& own, const PeerTiles& peers) const {
    PageRows rows;
    RESHARD_CHECK(bind(request, own, peers, rows));
    return rows;
}

}  // namespace reshard
