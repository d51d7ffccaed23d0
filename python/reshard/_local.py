"""Ranks in this process, for tests and for trying out plans. They are the oracle of the other backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ._core import Layout, LocalRanks
from .tiles import empty_tile, fill_bytes

class Local:
    """Ranks of this process. local(ranks) makes them."""

    def __init__(self, ranks: int, timeout: float = 60.0) -> None:
        self._ranks = LocalRanks(ranks, timeout)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._ranks.size

    def redistribute(self, tiles: Sequence[Any], source: Layout, target: Layout,
                     out: Sequence[Any] | None = None, *, cast: bool = False,
                     permute: Sequence[int] | None = None, fill: Any = None) -> list[Any]:
        """Moves an array from one layout to another. Returns the tiles of the target, one per rank.

        tiles: one array per rank, of numpy or of any DLPack library on the host, shaped source.tile_shape(rank).
        out: receives the tiles of the target, shaped target.tile_shape(rank), in any order and strides. None: new
        arrays. The first call prepares a pair of layouts and keeps it, for the 64 pairs that were used last. The GIL is
        not held while bytes move. Threads that call one Local run one after another.
        cast: the target may have another dtype. Floats become floats, rounded once to nearest even. Integers become a
        type that holds all of their values. Sums are reduced in the wider type.
        permute: transposes, as numpy does: dimension i of the target is dimension permute[i] of the source.
        fill: a number of the target's dtype. Then the extents of the arrays may differ: elements beyond the source's
        get this value, and elements beyond the target's are dropped. cast, permute and fill work together.
        Errors: InputError (dtype, shape, number of tiles or ranks, memory that overlaps, an order of dimensions that
        does not name each once), UnsupportedError (padding for a target with summands), and all errors of synthesize.
        """
        if out is None:
            out = [empty_tile(target, rank) for rank in range(self.size)]
        self._ranks.move(list(tiles), source, target, list(out), bool(cast), list(permute or ()), fill_bytes(target, fill))
        return list(out)

    def __repr__(self) -> str:
        return f"local({self.size})"

def local(ranks: int, timeout: float = 60.0) -> Local:
    """Ranks of this process, moved by redistribute. timeout: seconds after which a wait fails.
    Errors: InputError (fewer than 1 rank, more than 65536, a timeout below 0)."""
    return Local(ranks, timeout)

__all__ = ["Local", "local"]
