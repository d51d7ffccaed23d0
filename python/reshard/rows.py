"""A move as data: the bytes that each rank sends and receives, for your own transport."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from ._core import Layout, Model, Rows

row_dtype = numpy.dtype([(field, numpy.int64) for field in ("array", "peer", "source_offset", "target_offset", "run_bytes",
                                                            "runs", "source_stride", "target_stride")])
"""Eight integers: the number of the array in the list, and the rank at the other end (this rank for local copies). Then, in
bytes: the offset in the source tile of the sender, the offset in the target tile of the receiver, and the length of a run.
Then the number of runs, and the stride from run to run on each side in bytes (0 if there is one run)."""


class RowSchedule:
    """The rows of one or many arrays, on any rank: RowSchedule([(source, target), ...]).rows(rank).

    Ranks that make it from the same list get rows that match: the k-th row that a rank sends to a peer is the k-th row
    that the peer receives from it. A rank receives only bytes that it does not hold, and replicas share the work. Tiles
    are dense and row-major. Several threads may call it at once; the GIL is not held meanwhile.
    Errors: InputError (different arrays), UnsupportedError (unreduced axes: a sum is no copy).
    """

    def __init__(self, problems: Iterable[tuple[Layout, Layout]]) -> None:
        self._rows = Rows(list(problems))

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The rows that a rank sends, or with side="receive" receives: a structured array of row_dtype, without copies.

        Both sides include local copies. Sorted by array, then by peer. Ranks that hold nothing have no rows.
        """
        return self._rows.rows(rank, side).view(row_dtype)[:, 0]

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._rows.ranks

    def __len__(self) -> int:
        """The number of arrays."""
        return len(self._rows)


class CheckpointMapping:
    """Moves the tensors of a model from one set of layouts to another, by rules: CheckpointMapping(rules, tensors).rows(rank).

    rules: lines `pattern = layout` under `source MESH` and `target MESH`, with renames. Fused, stacked and split
    tensors are parts of one tensor. docs/rows.md has all rules.
    tensors: the tensors of the model: lines `name dtype[shape]`, or triples of name, dtype and shape. In a line {n:61}
    stands for the numbers below 61. Equal layers are understood once.
    Threads and memory: as RowSchedule.
    Errors: InputError, with the line and a caret (a name that matches no line or two lines, a line that matches no
    name, parts of other shapes), UnsupportedError.
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
        """For each move, which a row numbers in `array`: the name at the source, and the name at the target."""
        return self._model.ends

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._model.ranks

    def __len__(self) -> int:
        """The number of moves."""
        return len(self._model)

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The rows that a rank sends, or with side="receive" receives, as RowSchedule.rows. Offsets are within whole
        tiles."""
        return self._model.rows(rank, side).view(row_dtype)[:, 0]


def schedule_rows(source: Layout, target: Layout, rank: int, side: str = "send") -> numpy.ndarray:
    """The rows of one array on one rank, as RowSchedule([(source, target)]).rows(rank, side).

    Run i of a row has `run_bytes` bytes. It begins at source_offset + i * source_stride in the source tile of the
    sender, and goes to target_offset + i * target_stride in the target tile of the receiver.
    """
    return RowSchedule([(source, target)]).rows(rank, side)
