// Page templates from C: two ranks with blocks of 4 tokens send to one rank with blocks of 8 and another order.
#include "expect.h"

enum { tokens = 10, heads = 2, size = 3, layers = 2, ranks = 3, pages = 5 };

static unsigned char value_of(int layer, int token, int head, int i) {
    return (unsigned char)(1 + ((layer * tokens + token) * heads + head) * size + i);
}

int main(void) {
    reshard_layout* source = layout_of("tp=2", "u8[2,64,2@tp,3]");
    reshard_layout* target = layout_of("tp=1[2]", "u8[2,64,2@tp,3]");
    const reshard_paged_cache from = {source, 4, pages, NULL, 0};
    const reshard_paged_cache to = {target, 8, pages, "order 0,2,1,3", 0};
    static unsigned char sources[2][layers][pages][4][1][size], targets[layers][pages][heads][8][size];
    static unsigned char wanted[layers][pages][heads][8][size];
    const int64_t source_pages[] = {3, 0, 4}, target_pages[] = {2, 1};
    for (int layer = 0; layer < layers; ++layer)
        for (int token = 0; token < tokens; ++token)
            for (int head = 0; head < heads; ++head)
                for (int i = 0; i < size; ++i) {
                    const unsigned char value = value_of(layer, token, head, i);
                    sources[head][layer][source_pages[token / 4]][token % 4][0][i] = value;
                    wanted[layer][target_pages[token / 8]][head][token % 8][i] = value;
                }
    uint64_t bases[ranks * layers] = {0};
    for (int layer = 0; layer < layers; ++layer) {
        for (int rank = 0; rank < 2; ++rank) bases[rank * layers + layer] = (uint64_t)(uintptr_t)sources[rank][layer];
        bases[2 * layers + layer] = (uint64_t)(uintptr_t)targets[layer];
    }
    const uint64_t devices[ranks] = {7, 8, 9};
    reshard_page_request request = {source_pages, 3, target_pages, 2, 0, tokens};
    reshard_page_rows* rows = NULL;
    for (int rank = 0; rank < 2; ++rank) {
        reshard_page_template* template = NULL;
        SUCCEEDS(reshard_page_template_make(&from, &to, 1, 0, rank, RESHARD_SEND, &template, &error));
        EXPECT(reshard_page_template_period(template) == 8);
        SUCCEEDS(reshard_page_template_bind(template, &request, bases + rank * layers, 5, bases, devices, layers, ranks,
                                            &rows, &error));
        const reshard_peer_rows* peers = reshard_page_rows_peers(rows);
        EXPECT(reshard_page_rows_peer_count(rows) == 1);
        EXPECT(peers[0].peer == 2 && peers[0].begin == 0 && peers[0].end == reshard_page_rows_count(rows));
        EXPECT(reshard_page_rows_count(rows) == 6);  // three pages in two layers
        for (int64_t k = 0; k < reshard_page_rows_count(rows); ++k) {
            const reshard_strided_memory here = reshard_page_rows_local(rows)[k];
            const reshard_strided_memory there = reshard_page_rows_remote(rows)[k];
            EXPECT(here.device == 5 && there.device == 9 && here.bytes == there.bytes && here.count == there.count);
            for (uint64_t run = 0; run < here.count; ++run)
                memcpy((void*)(uintptr_t)(there.address + run * there.stride),
                       (const void*)(uintptr_t)(here.address + run * here.stride), (size_t)here.bytes);
        }
        reshard_release(rows), reshard_release(template);
    }
    EXPECT(memcmp(targets, wanted, sizeof wanted) == 0);

    reshard_page_template* template = NULL;
    SUCCEEDS(reshard_page_template_make(&from, &to, 1, 0, 2, RESHARD_RECEIVE, &template, &error));
    SUCCEEDS(reshard_page_template_bind(template, &request, bases + 2 * layers, 9, bases, NULL, layers, ranks, &rows,
                                        &error));
    EXPECT(reshard_page_rows_peer_count(rows) == 2 && reshard_page_rows_count(rows) == 12);
    reshard_release(rows);
    request.end_token = 65;
    FAILS(RESHARD_MISMATCH, "tokens 0:65; the cache has 0:64",
          reshard_page_template_bind(template, &request, bases, 0, bases, NULL, layers, ranks, &rows, &error));
    request.end_token = tokens;
    request.source_count = 2;
    FAILS(RESHARD_MISMATCH, "the table of the source has 2 pages; tokens 0:10 need 3",
          reshard_page_template_bind(template, &request, bases, 0, bases, NULL, layers, ranks, &rows, &error));
    request.source_pages = NULL;
    FAILS(RESHARD_USAGE, "`source_pages` is needed",
          reshard_page_template_bind(template, &request, bases, 0, bases, NULL, layers, ranks, &rows, &error));
    FAILS(RESHARD_USAGE, "NULL was given",
          reshard_page_template_bind(NULL, &request, bases, 0, bases, NULL, layers, ranks, &rows, &error));
    reshard_release(template);
    FAILS(RESHARD_MISMATCH, "`tokens` is dimension 4; the cache has 4 dimensions",
          reshard_page_template_make(&from, &to, 4, -1, 0, RESHARD_SEND, &template, &error));
    FAILS(RESHARD_MISMATCH, "tokens are dimension 1 and layers dimension 1",
          reshard_page_template_make(&from, &to, 1, 1, 0, RESHARD_SEND, &template, &error));
    FAILS(RESHARD_USAGE, "`side` is 2", reshard_page_template_make(&from, &to, 1, -1, 0, 2, &template, &error));
    const reshard_paged_cache wrong = {target, 0, pages, NULL, 0};
    FAILS(RESHARD_USAGE, "`block`",
          reshard_page_template_make(&from, &wrong, 1, 0, 0, RESHARD_SEND, &template, &error));
    FAILS(RESHARD_USAGE, "NULL was given",
          reshard_page_template_make(NULL, &to, 1, 0, 0, RESHARD_SEND, &template, &error));
    EXPECT(reshard_page_rows_count(NULL) == -1 && reshard_page_rows_peers(NULL) == NULL);
    reshard_release(source), reshard_release(target);
    return failures != 0;
}
