"""Ranks in this process: for tests, for trying plans out, and as the oracle of the other backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ._core import Layout, LocalRanks
from .tiles import empty_tile

class Local:
    """So many ranks of this process. local(ranks) makes them."""

    def __init__(self, ranks: int, timeout: float = 60.0) -> None:
        self._ranks = LocalRanks(ranks, timeout)

    @property
    def size(self) -> int:
        """Ranks."""
        return self._ranks.size

    def redistribute(self, tiles: Sequence[Any], source: Layout, target: Layout,
                     out: Sequence[Any] | None = None) -> list[Any]:
        """Moves an array from one layout to another; returns the target's tiles, one per rank.

        tiles: one array per rank, of numpy or of whoever speaks DLPack on the host, shaped source.tile_shape(rank).
        out: where the target's tiles go, shaped target.tile_shape(rank); made here when None. Any order and any strides.
        What a pair of layouts needs is prepared by its first call and kept, for the 64 pairs that were used last.
        The GIL is not held while bytes move; threads that call one Local take turns.
        Errors: InputError (dtype, shape, number of tiles or ranks, memory that overlaps), whatever synthesize raises.
        """
        if out is None:
            out = [empty_tile(target, rank) for rank in range(self.size)]
        self._ranks.move(list(tiles), source, target, list(out))
        return list(out)

    def __repr__(self) -> str:
        return f"local({self.size})"

def local(ranks: int, timeout: float = 60.0) -> Local:
    """Ranks of this process, at most 65536, moved by redistribute. timeout: seconds after which a wait fails. Errors:
    InputError."""
    return Local(ranks, timeout)

__all__ = ["Local", "local"]
