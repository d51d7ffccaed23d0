"""Digests of moved bytes: the receiver of a move checks all that its senders have sent by one sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ._core import Digest, DigestKeyTable, Layout
from .errors import InputError


class DigestKeys:
    """The keys of digests, from a seed: DigestKeys(seed).of(array). Both ends of a move use the same seed.

    The digests of pieces add up to the digest of the whole; n replicas have n times the digest of one. Different bytes
    always have different digests if their numbers differ, or if they differ within one aligned word of 4 bytes. Any
    other difference is missed for at most one in 2^31 seeds. It is no protection against a person who knows the seed.
    Arrays are dense numpy arrays, or arrays on the host that speak DLPack. Nothing is copied, and the GIL is not held.
    """

    def __init__(self, seed: int = 0) -> None:
        if not 0 <= seed < 2**64:
            raise InputError(f"the seed is {seed}; it is below 2^64 and not negative")
        self._keys = DigestKeyTable(seed)

    def of(self, array: Any, position: int = 0, number: int = 0) -> Digest:
        """The digest of an array's bytes, at byte positions from `position` on of array `number`.

        Errors: InputError (an array that is not dense, a negative position or number).
        """
        return self._keys.of(array, position, number)

    def copy(self, source: Any, target: Any, position: int = 0, number: int = 0) -> Digest:
        """Copies the bytes of one array to another, and returns their digest. One pass over memory.

        Errors: as of; InputError (arrays of other sizes, or that share memory).
        """
        return self._keys.copy(source, target, position, number)

    def of_rows(self, rows: numpy.ndarray, tiles: Sequence[Any], side: str = "send") -> Digest:
        """The digest of the bytes of rows, as RowSchedule.rows returns them, or of some of them.

        tiles[a] is this rank's source tile of array a, with side="receive" its target tile. Positions are offsets in the
        target tile of the receiver, so both ends of a row have the same digest. The digests of all rows that a rank
        receives add up to the sum of of(tiles[a], 0, a). Errors: InputError (a row past the end of its tile).
        """
        if side not in ("send", "receive"):
            raise InputError(f"a side is 'send' or 'receive', not '{side}'")
        numbers = numpy.ascontiguousarray(rows).view(numpy.int64).reshape(-1, 8)
        return self._keys.rows(numbers, list(tiles), side == "send")

    def of_tile(self, layout: Layout, rank: int, tile: Any, number: int = 0) -> Digest:
        """The digest of the tile that a rank holds. Positions are the bytes' places in the whole array, row-major.

        So the sum over all tiles of an array is the same in every layout, if replicas are counted.
        Errors: InputError (the bytes of the tile), UnsupportedError (unreduced axes).
        """
        return self._keys.tile(layout, rank, tile, number)
