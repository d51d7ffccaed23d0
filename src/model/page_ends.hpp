// The two ends of a page template, over one period of tokens.
#pragma once

#include "reshard/model/pages.hpp"

namespace reshard {

/// The part of a period that one rank holds.
struct PageHolder {
    Tile tile;                ///< its tokens are places in the period; a separate layer dimension is as in the layout
    Storage storage;          ///< of one page
    Index stride_bytes = 0;   ///< from page to page
    Index reach_bytes = 0;    ///< from the rank's address to the end of its last page
    Index replica = 0;        ///< its number among the ranks that hold the same
    Index replicas = 0;       ///< ranks that hold the same; 0: the rank holds nothing
    std::vector<Side> pages;  ///< the tokens of each page of the period
};

/// The tokens of the pages of ranks whose tokens are the same.
struct PageTokens {
    std::vector<Index> firsts;  ///< the first token of each page of a period
    std::vector<Index> lasts;   ///< the last token
    friend bool operator==(const PageTokens&, const PageTokens&) = default;
};

/// One end of a template.
struct PageEnd {
    std::vector<PageHolder> ranks;   ///< by rank
    std::vector<PageTokens> tokens;  ///< each different one
    Index page_count = 0;            ///< pages in the memory of each rank
};

/// Both ends.
struct PageEnds {
    PageEnd source;
    PageEnd target;
    Index period = 0;   ///< tokens
    Index longest = 0;  ///< tokens of the longest request
};

/// Checks both caches, finds the period and divides it into pages. Errors: as PageTemplate::make.
[[nodiscard]] Result<PageEnds> page_ends(const PagedCache& source, const PagedCache& target, const PageDims& dims);

/// The pages of a holder that one target rank gets from it: every page whose number is `first` modulo `of`.
struct DealtPages {
    Index first = 0;
    Index of = 1;
};

/// The source pages of rank `from` that go to rank `to`; nullopt: none. pre: both ranks hold something.
[[nodiscard]] std::optional<DealtPages> dealt_pages(const PageEnds& ends, Index from, Index to);

/// The entries of a page table that the tokens need, at any rank of the end. pre: tokens.begin < tokens.end.
[[nodiscard]] Interval entries_of(const PageEnd& end, Index period, Interval tokens);

}  // namespace reshard
