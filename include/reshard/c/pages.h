/// \file
/// KV caches in pages: a move is planned once for two caches, and bound to the page tables of each request.
#ifndef RESHARD_C_PAGES_H
#define RESHARD_C_PAGES_H

#include "reshard/c/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One end of a move. A rank stores its tokens of a request one after another, `block` a page. The structure never
/// grows.
typedef struct reshard_paged_cache {
    const reshard_layout* layout;  ///< of the cache of one request; the extent of the tokens is the longest request
    int64_t block;                 ///< tokens of a page, at least 1
    int64_t pages;                 ///< pages in the memory of each rank, numbered from 0; at least 1
    const char* storage;           ///< of a page, `order 0,2,1,3` or `strides ...`; NULL: dense and row-major
    int64_t page_stride;           ///< elements from one page to the next; 0: the number of elements of a page
} reshard_paged_cache;

/// The rows of one rank between two paged caches, without the pages. Threads may share it. reshard_release frees it.
typedef struct reshard_page_template reshard_page_template;
/// Plans the rows that `rank` sends or receives. `tokens` is the dimension of tokens. Each index of dimension `layers`
/// has an address of its own; -1: each rank has one address. Errors: as reshard_row_schedule_make; mismatch (a
/// dimension that is not there, a storage that does not fit); usage (a block or a number of pages below 1).
int reshard_page_template_make(const reshard_paged_cache* source, const reshard_paged_cache* target, int64_t tokens,
                               int64_t layers, int64_t rank, int side, reshard_page_template** made,
                               reshard_error** error);
/// The tokens after which pages repeat in the same way; -1 for NULL.
int64_t reshard_page_template_period(const reshard_page_template* pages);

/// The pages of one request. One table serves all ranks of an end: entry i is the page of the i-th block of each rank's
/// tokens. Tokens from `first_token` to one before `end_token` move. The structure never grows.
typedef struct reshard_page_request {
    const int64_t* source_pages;  ///< the page table at the source
    int64_t source_count;         ///< its entries
    const int64_t* target_pages;  ///< the page table at the target
    int64_t target_count;         ///< its entries
    int64_t first_token;          ///< the first token that moves
    int64_t end_token;            ///< one past the last
} reshard_page_request;

/// The rows of one peer: [begin, end) in the memory of a request. The structure never grows.
typedef struct reshard_peer_rows {
    int64_t peer;   ///< the rank at the other end; this rank for local copies
    int64_t begin;  ///< its first row
    int64_t end;    ///< one past its last row
} reshard_peer_rows;

/// The memory that moves for one request, by peer. reshard_release frees it.
typedef struct reshard_page_rows reshard_page_rows;
/// Binds a request. Addresses are given as to reshard_rows_address: `arrays` is the number of separate layers of a
/// rank, or 1. Errors: mismatch (tokens outside the cache, a table that is too short, a page that the cache does not
/// have, a page twice in the target's table, a missing address); overflow; usage.
int reshard_page_template_bind(const reshard_page_template* pages, const reshard_page_request* request,
                               const uint64_t* own, uint64_t own_device, const uint64_t* peers,
                               const uint64_t* peer_devices, int64_t arrays, int64_t ranks, reshard_page_rows** rows,
                               reshard_error** error);
const reshard_strided_memory* reshard_page_rows_local(const reshard_page_rows* rows);   ///< here; NULL for NULL
const reshard_strided_memory* reshard_page_rows_remote(const reshard_page_rows* rows);  ///< at the peers; NULL for NULL
int64_t reshard_page_rows_count(const reshard_page_rows* rows);                         ///< rows; -1 for NULL
const reshard_peer_rows* reshard_page_rows_peers(const reshard_page_rows* rows);        ///< ascending; NULL for NULL
int64_t reshard_page_rows_peer_count(const reshard_page_rows* rows);                    ///< peers; -1 for NULL

#ifdef __cplusplus
}
#endif

#endif
