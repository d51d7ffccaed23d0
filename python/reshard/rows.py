"""A move as data: which bytes of which rank go where, for a transport of one's own."""

from __future__ import annotations

from collections.abc import Iterable

import numpy

from ._core import Layout, Rows

row_dtype = numpy.dtype([(field, numpy.int64) for field in ("array", "peer", "source_offset", "target_offset", "run_bytes",
                                                            "runs", "source_stride", "target_stride")])
"""Eight integers: the array's number in the list, the rank at the other end (this one for what stays), then bytes: where
in the sender's source tile, where in the receiver's target tile, how long a run is, how many runs, and from one run to
the next on each side (0 where there is one)."""


class RowSchedule:
    """The rows of one or many arrays, on any rank: RowSchedule([(source, target), ...]).rows(rank).

    Every rank that makes it from the same list gets rows that fit together: the k-th row that a rank sends to a peer is
    the k-th that the peer receives from it. A rank receives only what it does not hold, and replicas share the work.
    Tiles are dense and row-major. Threads may ask at once; the GIL is not held meanwhile.
    Errors: InputError (different arrays), UnsupportedError (unreduced axes: a sum is no copy).
    """

    def __init__(self, problems: Iterable[tuple[Layout, Layout]]) -> None:
        self._rows = Rows(list(problems))

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """What a rank sends, or with side="receive" receives: a structured array of row_dtype, without copies.

        Local copies are in both. Sorted by array, then by peer. Ranks that hold nothing have no rows.
        """
        return self._rows.rows(rank, side).view(row_dtype)[:, 0]

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._rows.ranks

    def __len__(self) -> int:
        """Arrays."""
        return len(self._rows)


def schedule_rows(source: Layout, target: Layout, rank: int, side: str = "send") -> numpy.ndarray:
    """The rows of one array on one rank, as RowSchedule([(source, target)]).rows(rank, side).

    Run i of a row is `run_bytes` bytes from source_offset + i * source_stride of the sender's source tile on, and goes to
    target_offset + i * target_stride of the receiver's target tile.
    """
    return RowSchedule([(source, target)]).rows(rank, side)
