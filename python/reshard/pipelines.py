"""Pipelines whose order another program wrote: a row of actions for each rank."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from ._core import Layout, Mesh
from .errors import InputError
from .programs import Program

_ACTION = re.compile(r"(\d+)([FBIW])(\d+)")
_Cell = tuple[str, int, int]  # kind, stage, microbatch


def pipeline_of_rows(rows: str, meshes: Sequence[Mesh | str], seconds: Mapping[str, float], *,
                     message: Layout | str | Sequence[Layout | str], activation: Layout | str | Sequence[Layout | str],
                     move_seconds: float | None = None) -> Program:
    """The program of a pipeline whose rows torch.distributed.pipelining wrote as CSV (compute only), a row for each rank.

    An action is stage, kind and microbatch: 1F0 is the forward task of stage 1 and microbatch 0. B is a full backward task;
    I computes the gradient of the input, and W of the weights. Empty cells are skipped. meshes: one for each row.
    seconds: of each kind, {"F": 0.01, "B": 0.02}. message, activation: the layout of what a stage receives, and of what a
    forward task keeps for its backward tasks: for all rows, or one for each. A text is read on the mesh of its row.
    move_seconds: of a message; by default the estimate of its plan. The rows are the written order of the program.
    Errors: InputError (an action that is unknown or twice, a stage on two rows, rows that wait for each other).
    """
    if not isinstance(rows, str):
        raise TypeError(f"rows are the text of a CSV file, not {type(rows).__name__}")
    if not isinstance(seconds, Mapping):
        raise TypeError(f"seconds are a dict by kind of action, not {type(seconds).__name__}")
    read = [_cells(number, row) for number, row in enumerate(csv.reader(rows.strip().splitlines()), 1)]
    if len(read) != len(meshes):
        raise InputError(f"{len(read)} rows; one for each of {len(meshes)} meshes is wanted")
    writer = _Writer(read, [str(mesh) for mesh in meshes], seconds, _each(message, meshes, "message"),
                     _each(activation, meshes, "activation"), move_seconds)
    return writer.write()


def _cells(number: int, row: Sequence[str]) -> list[_Cell]:
    cells = []
    for column, text in enumerate(row, 1):
        if not text.strip():
            continue
        found = _ACTION.fullmatch(text.strip())
        if not found:
            raise InputError(f"row {number}, column {column}: '{text.strip()}' is no compute action, such as 0F0, 1B2, 0I1 or 0W1")
        cells.append((found[2], int(found[1]), int(found[3])))
    return cells


def _each(layouts: Layout | str | Sequence[Layout | str], meshes: Sequence[Mesh | str], what: str) -> list[Layout | str]:
    if isinstance(layouts, (Layout, str)):
        return [layouts] * len(meshes)
    if len(layouts) != len(meshes):
        raise InputError(f"{len(layouts)} layouts of {what}; one for each of {len(meshes)} rows is wanted")
    return list(layouts)


class _Writer:
    def __init__(self, rows: list[list[_Cell]], meshes: list[str], seconds: Mapping[str, float],
                 message: list[Layout | str], activation: list[Layout | str], move_seconds: float | None) -> None:
        self._rows, self._meshes, self._seconds = rows, meshes, seconds
        self._message, self._activation, self._move_seconds = message, activation, move_seconds
        self._row_of: dict[int, int] = {}
        cells: set[_Cell] = set()
        for number, row in enumerate(rows):
            for kind, stage, batch in row:
                if self._row_of.setdefault(stage, number) != number:
                    raise InputError(f"stage {stage} is on rows {self._row_of[stage] + 1} and {number + 1}")
                if (kind, stage, batch) in cells or (kind in "BI" and {("B", stage, batch), ("I", stage, batch)} & cells):
                    raise InputError(f"row {number + 1}: {stage}{kind}{batch} is there twice")
                if kind not in seconds:
                    raise InputError(f"row {number + 1}: {stage}{kind}{batch} has no time; seconds has {', '.join(seconds)}")
                cells.add((kind, stage, batch))
        self._last = max(self._row_of, default=0)
        self._done: set[_Cell] = set()

    def write(self) -> Program:
        program, at = Program(), [0] * len(self._rows)
        moved = True
        while moved:  # a row goes on if its next task has its inputs
            moved = False
            for number, row in enumerate(self._rows):
                if at[number] < len(row) and self._ready(*row[at[number]]):
                    self._add(program, number, *row[at[number]])
                    at[number] += 1
                    moved = True
        for number, row in enumerate(self._rows):
            if at[number] < len(row):
                kind, stage, batch = row[at[number]]
                raise InputError(f"row {number + 1} waits for ever at {stage}{kind}{batch}: its inputs are not made before")
        return program

    def _has(self, kinds: str, stage: int, batch: int) -> bool:
        return any((kind, stage, batch) in self._done for kind in kinds)

    def _ready(self, kind: str, stage: int, batch: int) -> bool:
        if kind == "F":
            return stage == 0 or self._has("F", stage - 1, batch)
        if kind == "W":
            return self._has("I", stage, batch)
        return self._has("F", stage, batch) and (stage == self._last or self._has("BI", stage + 1, batch))

    def _add(self, program: Program, row: int, kind: str, stage: int, batch: int) -> None:
        uses, makes, after = {}, {}, []
        if kind == "F":
            makes[f"a{stage}.{batch}"] = self._activation[row]
            if stage > 0:
                uses[f"x{stage}.{batch}"] = self._received(row)
            if stage < self._last:
                makes[f"x{stage + 1}.{batch}"] = self._message[row]
        else:
            uses[f"a{stage}.{batch}"] = self._activation[row]
            if kind == "W":
                after.append(f"I{stage}.{batch}")
            elif stage < self._last:
                uses[f"g{stage + 1}.{batch}"] = self._received(row)
            if kind in "BI" and stage > 0:
                makes[f"g{stage}.{batch}"] = self._message[row]
        program.task(f"{kind}{stage}.{batch}", self._meshes[row], self._seconds[kind], uses=uses, makes=makes, after=after)
        self._done.add((kind, stage, batch))

    def _received(self, row: int) -> Layout | str | dict:
        if self._move_seconds is None:
            return self._message[row]
        return {"layout": self._message[row], "seconds": self._move_seconds}
