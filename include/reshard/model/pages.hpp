// KV caches in pages: a move is planned once for two caches, and bound to the page tables of each request.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reshard/model/address.hpp"

namespace reshard {

/// The dimensions of a cache that its pages treat in their own way. They are the same at both ends.
struct PageDims {
    std::size_t tokens = 0;                  ///< the dimension of tokens, which pages cut into blocks
    std::optional<std::size_t> layers = {};  ///< each index of it has an address of its own; empty: one address
    friend bool operator==(const PageDims&, const PageDims&) = default;
};

/// One end of a move: a cache in pages. A rank stores the tokens that it holds of a request one after another, `block`
/// tokens a page. Page p begins at the address + p * page_stride.
struct PagedCache {
    Layout layout;     ///< of the cache of one request. The extent of the tokens is the longest request
    Index block = 16;  ///< tokens of a page, at least 1
    Index pages = 0;   ///< pages in the memory of each rank, numbered from 0
    /// The storage of a page, by rank, as parse_storages(page_layout(cache, dims), text) returns it. If empty, the
    /// pages are dense and row-major.
    std::vector<Storage> storages = {};
    Index page_stride = 0;  ///< elements from one page to the next; 0: the number of elements that a page has
};

/// The layout of one page: the tokens are `block` and uncut, and a dimension of separate layers has one index.
/// pre: the dimensions are dimensions of the cache.
[[nodiscard]] Layout page_layout(const PagedCache& cache, const PageDims& dims);

/// The pages of one request. One table serves all ranks of an end: entry i is the page of the i-th block of each rank's
/// tokens.
struct PageRequest {
    std::span<const Index> source_pages;  ///< the page table at the source
    std::span<const Index> target_pages;  ///< the page table at the target
    Interval tokens;                      ///< the tokens that move; entries of other tokens are not read
};

/// The rows of one peer among the rows of a request.
struct PeerRows {
    Index peer = 0;         ///< the rank at the other end; this rank for local copies
    std::size_t begin = 0;  ///< its first row
    std::size_t end = 0;    ///< one past its last row
    friend bool operator==(const PeerRows&, const PeerRows&) = default;
};

/// The memory that moves for one request, in the order of peers.
struct PageRows {
    AddressedRows memory;         ///< at this rank and at the peers
    std::vector<PeerRows> peers;  ///< ascending; only peers with rows
};

/// The rows of one rank between two paged caches, without the pages. Two ends that make it from the same caches get
/// rows that match: the k-th row that a rank sends to a peer is the k-th row that the peer receives.
///
/// A rank receives only what it does not hold; rows with peer == rank copy from a rank's source pages to its target
/// pages. If several ranks hold the same tokens and heads, each serves an equal part of the targets; if the targets are
/// fewer, the source's pages are dealt to them in turn. Rows are in the order of peers, layers and tokens.
/// Several threads may use one template.
class PageTemplate {
public:
    /// Plans the rows that `rank` sends or receives. Cost: linear in the pages of a period, see period().
    /// Errors: as validate; mismatch (the arrays differ, a dimension that is not there, storages that do not fit);
    /// usage (a block or a number of pages below 1, a negative stride); unsupported (unreduced axes, more than 2^22
    /// pages in a period); overflow.
    [[nodiscard]] static Result<PageTemplate> make(const PagedCache& source, const PagedCache& target,
                                                   const PageDims& dims, Index rank, RowSide side = RowSide::send);

    /// Returns the memory that moves for one request. `own` has the address of each layer that this rank holds, at its
    /// own end, and `peers` the same for all ranks of the other end. If layers are not separate, each rank has one
    /// address. Errors: mismatch (tokens outside the cache, a table that is too short, a page that the cache does not
    /// have, a page twice in the target's table, a missing address); overflow (an address past 64 bits).
    [[nodiscard]] Result<PageRows> bind(const PageRequest& request, const OwnTiles& own, const PeerTiles& peers) const;

    /// The same, into rows whose memory is used again. If it fails, `rows` is empty.
    [[nodiscard]] Result<void> bind(const PageRequest& request, const OwnTiles& own, const PeerTiles& peers,
                                    PageRows& rows) const;

    /// The tokens after which pages repeat in the same way: a common multiple of both ends' blocks and interleaves. It
    /// is the extent of the tokens if they do not repeat.
    [[nodiscard]] Index period() const;

    struct Plan;  ///< the rows of a period; private to the template

private:
    explicit PageTemplate(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
    std::shared_ptr<const Plan> plan_;
};

}  // namespace reshard
