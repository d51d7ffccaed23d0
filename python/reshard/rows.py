"""A move as data: which bytes of which rank go where, for a transport of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from ._core import Layout, Model, Rows

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


class ModelMoves:
    """A model's tensors from one set of layouts to another, by rules: ModelMoves(rules, tensors).rows(rank).

    rules: lines `pattern = layout` under `source MESH` and `target MESH`, with renames, and fused, stacked and split
    tensors as parts of one; docs/rows.md has them all.
    tensors: what the model has: lines `name dtype[shape]`, or triples of name, dtype and shape.
    Threads and memory: as RowSchedule.
    Errors: InputError, with the line and a caret (a name that no line or two lines have, a line that no name fits, parts
    of other shapes), UnsupportedError.
    """

    def __init__(self, rules: str, tensors: str | Iterable[tuple[str, Any, Sequence[int]]]) -> None:
        self._model = Model(rules, tensors if isinstance(tensors, str) else list(tensors))

    @property
    def sources(self) -> dict[str, Layout]:
        """The layout of each tensor at the source, by its name there."""
        return self._model.sources

    @property
    def targets(self) -> dict[str, Layout]:
        """The layout of each tensor at the target, by its name there."""
        return self._model.targets

    @property
    def ends(self) -> list[tuple[str, str]]:
        """Of each move, which a row's `array` counts: the name at the source, and at the target."""
        return self._model.ends

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._model.ranks

    def __len__(self) -> int:
        """Moves."""
        return len(self._model)

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """What a rank sends, or with side="receive" receives: as RowSchedule.rows. Offsets are within whole tiles."""
        return self._model.rows(rank, side).view(row_dtype)[:, 0]


def schedule_rows(source: Layout, target: Layout, rank: int, side: str = "send") -> numpy.ndarray:
    """The rows of one array on one rank, as RowSchedule([(source, target)]).rows(rank, side).

    Run i of a row is `run_bytes` bytes from source_offset + i * source_stride of the sender's source tile on, and goes to
    target_offset + i * target_stride of the receiver's target tile.
    """
    return RowSchedule([(source, target)]).rows(rank, side)
