"""KV caches in pages: a move between two caches is planned once, and bound to the page tables of each request.

    prefill = PagedCache(reshard.parse_layout("tp=4", "bf16[32,131072,8@tp,128]"), block=16, pages=8192)
    decode = PagedCache(reshard.parse_layout("tp=2[4,5]", "bf16[32,131072,8@tp,128]"), block=64, pages=4096)
    template = PageTemplate(prefill, decode, rank=0, tokens=1, layers=0)
    local, remote, peers = template.bind(source_pages, target_pages, 1000, own, {4: ..., 5: ...})

docs/rows.md explains it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from ._core import Layout, Pages
from .errors import InputError
from .rows import _peer_table, _side_sends, _storage_text, Storage


class PagedCache(NamedTuple):
    """One end of a move: a cache in pages. A rank stores its tokens of a request one after another, `block` a page."""
    layout: Layout
    """The layout of the cache of one request. The extent of the tokens is the longest request."""
    block: int
    """Tokens of a page."""
    pages: int
    """Pages in the memory of each rank, numbered from 0."""
    storage: Storage = None
    """The place of one page's elements in memory, as for RowSchedule. "order 0,2,1,3" is HND if dimensions are layers, tokens,
    heads and numbers."""
    page_stride: int = 0
    """Elements from one page to the next; 0: the number of elements that a page has."""


class PageTemplate:
    """The rows of one rank between two paged caches: PageTemplate(source, target, rank, tokens=1, layers=0).

    tokens: the dimension of tokens. layers: a dimension whose indices have addresses of their own, such as layers in
    separate tensors; None: each rank has one address. side: "send" or "receive".
    The k-th row that a rank sends to a peer is the k-th row that the peer receives. Ranks that hold the same tokens
    and heads share the work. Several threads may use one template; the GIL is not held.
    Errors: InputError (different arrays, a storage that does not fit, a dimension that is not there),
    UnsupportedError (unreduced axes).
    """

    def __init__(self, source: PagedCache, target: PagedCache, rank: int, side: str = "send", tokens: int = 0,
                 layers: int | None = None) -> None:
        self._pages = Pages(*_numbers(source), *_numbers(target), rank, _side_sends(side), tokens, layers)

    @property
    def period(self) -> int:
        """The tokens after which pages repeat in the same way."""
        return self._pages.period

    def bind(self, source_pages: Any, target_pages: Any, tokens: int | tuple[int, int], own: Any, peers: Any,
             device: int = 0, peer_devices: Any = ()) -> tuple[numpy.ndarray, numpy.ndarray, dict[int, slice]]:
        """The memory that moves for one request: at this rank, at the peers, and the lines of each peer.

        source_pages, target_pages: the page tables, one for all ranks of an end. Entry i is the page of the i-th block
        of a rank's tokens. tokens: the number of tokens, or the first and one past the last.
        own, peers, device, peer_devices: as for reshard.rows.addressed, with an address for each separate layer that the
        rank holds. Returns two arrays of n x 5 uint64, as reshard.rows.addressed does, and a slice of them by peer.
        Errors: InputError (a table that is too short, a page that the cache does not have, a page twice in the
        target's table, a missing address).
        """
        begin, end = (0, tokens) if isinstance(tokens, (int, numpy.integer)) else tokens
        bases = numpy.ascontiguousarray(numpy.atleast_1d(own), numpy.uint64)
        table = _peer_table(peers, len(bases))
        return self._pages.bind(_table(source_pages), _table(target_pages), begin, end, bases, device, table.reshape(-1),
                                table.shape[1], numpy.ascontiguousarray(peer_devices, numpy.uint64))


def _numbers(cache: PagedCache) -> tuple[Layout, int, int, str, int]:
    if not isinstance(cache, PagedCache):
        raise TypeError(f"a cache is a PagedCache, not {type(cache).__name__}")
    return cache.layout, cache.block, cache.pages, _storage_text(cache.storage), cache.page_stride


def _table(pages: Any) -> numpy.ndarray:
    """A page table as integers of 64 bits."""
    table = numpy.asarray(pages)
    if table.ndim != 1 or (table.size and table.dtype.kind not in "iu"):
        raise InputError(f"a page table is one list of integers, not {table.dtype} of shape {table.shape}")
    return numpy.ascontiguousarray(table, numpy.int64)
