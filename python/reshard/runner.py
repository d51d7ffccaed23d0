"""Schedules that run, with tasks in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy

from . import _core, mpi
from ._core import Layout, ProgramLines, Schedule
from ._local import Local
from .errors import InputError
from .programs import Program


class TaskPiece(NamedTuple):
    """A part of a used array that has arrived. The task is called once for each part, in the order in which they arrive."""

    array: str
    dim: int
    """The dimension that is cut."""
    parts: list[slice]
    """The part of this rank's tile along dim, in indices of the tile."""
    place: int
    """The number of calls before this one."""
    count: int
    """The number of calls."""


class TaskRun(NamedTuple):
    """A task that runs on a rank. Its arrays are numpy arrays, shaped layout.tile_shape(rank)."""

    name: str
    rank: int
    uses: dict[str, Any]
    """The tile of each used array, to read. A list of tiles if the task uses an array in several layouts."""
    makes: dict[str, numpy.ndarray]
    """The tile of each made array, to write. If it takes over donated memory, it lies where the donated tile is."""
    progress: Callable[[], None]
    """Lets moves go on. A long task calls it every half millisecond or so. Errors: those of the moves."""
    piece: TaskPiece | None = None
    """The part of a used array to compute with in this call. None: all arrays are there, and this is the only call."""


class Runner:
    """A schedule that is prepared on ranks, to run any number of times: Runner(schedule, ranks).run(tasks).

    ranks: reshard.local(n), whose ranks all run in the calling thread, or a communicator of mpi4py. Then all calls are
    collective. Device i is rank i. The runner owns the tiles, moves them in the order of the schedule, and keeps the limits.
    Errors, on all ranks: InputError (too few ranks, schedules that differ), UnsupportedError (memory that a task takes over
    only in part), BackendError.
    """

    def __init__(self, schedule: Schedule, ranks: Any) -> None:
        if isinstance(ranks, Local):
            self._made = _core.local_runner(ranks._ranks, schedule)
        else:
            self._made = mpi.program_runner(ranks, schedule)

    def run(self, tasks: Mapping[str, Callable[[TaskRun], Any]],
            arrays: Mapping[str, Callable[[int], Any]] | None = None) -> dict[str, list[numpy.ndarray]]:
        """Runs once. Returns the tiles of each kept array on the ranks of this process.

        tasks: by name, or by the beginning of a name, the function that computes the task; the longest one counts. arrays:
        for each array that is there from the beginning, a function from the rank to its tile. An exception of a task ends
        the run on all ranks: it is raised here, and the other ranks raise BackendError with its words. Then make the runner
        anew. Errors also: InputError (a task that no function computes, an array that is not given).
        """
        given = dict(arrays or {})

        def fill(rank: int, array: str, layout: Layout) -> numpy.ndarray:
            if array not in given:
                raise InputError(f"array {array} is there from the beginning: give a function from the rank to its tile")
            tile = numpy.ascontiguousarray(given[array](rank), layout.numpy_dtype)
            if tile.shape != tuple(layout.tile_shape(rank)):
                raise InputError(f"the tile of {array} on rank {rank} has shape {tile.shape}, {layout.tile_shape(rank)} is "
                                 "wanted")
            return tile.reshape(-1).view(numpy.uint8)

        def compute(rank: int, task: str, uses: Any, makes: Any, progress: Callable[[], None], piece: Any) -> None:
            function = _function_of(tasks, task)
            used: dict[str, Any] = {}
            for array, layout, tile in uses:
                shaped = _shaped(tile, layout, rank)
                if array not in used:
                    used[array] = shaped
                elif isinstance(used[array], list):
                    used[array].append(shaped)
                else:
                    used[array] = [used[array], shaped]
            made = {array: _shaped(tile, layout, rank) for array, layout, tile in makes}
            function(TaskRun(task, rank, used, made, progress, _piece(piece)))

        self._made.run(fill, compute)
        return {array: [_shaped(tile, layout, rank) for rank, tile in zip(self._made.ranks, tiles)]
                for array, (layout, tiles) in self._made.kept().items()}

    @property
    def measured(self) -> Program:
        """The program with the seconds of the last run. A task has the longest time of its ranks, and a move the shortest,
        since ranks may wait in a move for each other. Errors: InputError before a run has ended well."""
        return Program(str(self._made.measured()))

    @property
    def most_bytes(self) -> list[int]:
        """The most bytes of tiles, scratch and workspace that each rank of this process has held."""
        return self._made.most_bytes()


def _piece(given: Any) -> TaskPiece | None:
    if given is None:
        return None
    array, dim, parts, place, count = given
    return TaskPiece(array, dim, [slice(*part) for part in parts], place, count)


def _function_of(tasks: Mapping[str, Callable[[TaskRun], Any]], name: str) -> Callable[[TaskRun], Any]:
    fitting = [begin for begin in tasks if name.startswith(begin)]
    if not fitting:
        raise InputError(f"no function computes task {name}; the names begin with {', '.join(tasks) or 'nothing'}")
    return tasks[max(fitting, key=len)]


def _shaped(tile: numpy.ndarray, layout: Layout, rank: int) -> numpy.ndarray:
    shape = layout.tile_shape(rank)
    if tile.size == 0:
        return numpy.empty(shape if 0 in shape else (0,), layout.numpy_dtype)
    return tile.view(layout.numpy_dtype).reshape(shape)
