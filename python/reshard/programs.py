"""Programs of tasks and moves, which reshard.schedule puts into one order under limits on memory."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ._core import Layout, Mesh, ProgramLines, generated_lines
from .errors import InputError


class Program(ProgramLines):
    """Tasks that compute on meshes, and the arrays that they use and make. Moves are inferred from the layouts.

    Program() is empty; task, array and limit add to it. Program(text) reads lines of JSON, as `reshard schedule` does, and
    str(program) writes them. Errors: Error (no JSON) and InputError, with the number of the line.
    """

    @classmethod
    def generate(cls, text: str) -> Program:
        """A program by name: generate("1f1b stages=4 microbatches=16 forward=10ms").

        reshard.program_generators has the names. Errors: InputError (a name or a value that does not exist).
        """
        return cls(generated_lines(text))

    def task(self, name: str, mesh: Mesh | str, seconds: float, *, uses: Mapping[str, Any] | None = None,
             makes: Mapping[str, Any] | None = None, donates: Sequence[str] = (), after: Sequence[str] = (),
             scratch: int | str = 0, engine: str = "compute") -> None:
        """Adds a task that takes `seconds` on all devices of `mesh` at once.

        uses, makes: {array: layout}. A layout is a Layout, or its text on the task's mesh. To say more, write a mapping:
        {"layout": layout, "again": True, "seconds": of its move} in uses, {"layout": layout, "kept": True} in makes. "pieces": d
        in uses lets the move arrive in pieces along dimension d while the task runs. A list uses an array in several layouts. donates: used arrays whose memory the made arrays take over. after: tasks that end
        before. scratch: bytes that each device holds while the task runs. Tasks of two engines run beside each other.
        Errors: InputError; then nothing is added. Names and shapes are checked by schedule.
        """
        if not math.isfinite(seconds):
            raise InputError(f"task {name} takes {seconds} seconds; a number from 0 to 200000 is wanted")
        for arrays, what in ((uses, "uses"), (makes, "makes")):
            if arrays is not None and not isinstance(arrays, Mapping):
                raise TypeError(f"{what} of task {name} is a dict of arrays and layouts, not {type(arrays).__name__}")
        line: dict[str, Any] = {"task": name, "mesh": _text(mesh), "seconds": float(seconds)}
        if uses:
            line["uses"] = {array: _use(use) for array, use in uses.items()}
        if makes:
            line["makes"] = {array: _array(made) for array, made in makes.items()}
        line.update(donates=list(donates), after=list(after), scratch=_bytes(scratch), engine=engine)
        self.add_line(json.dumps(line))

    def array(self, name: str, layout: Layout, *, kept: bool = False) -> None:
        """Adds an array that is there from the beginning. A kept one is held to the end. Errors: InputError."""
        self.add_line(json.dumps({"array": name, **_array(layout), "kept": kept}))

    def limit(self, mesh: Mesh | str, limit_bytes: int | str) -> None:
        """Limits the bytes that each device of a mesh holds: an int, or a text such as '24MiB'. Errors: InputError."""
        self.add_line(json.dumps({"limit": _bytes(limit_bytes), "mesh": _text(mesh)}))


def _text(mesh: Mesh | str) -> str:
    return mesh if isinstance(mesh, str) else str(mesh)


def _bytes(given: int | str) -> int | str:
    return given if isinstance(given, str) else operator.index(given)


def _array(given: Any) -> Any:
    """A layout as a program writes it: a Layout brings its mesh."""
    if isinstance(given, Layout):
        return {"layout": str(given), "mesh": str(given.mesh)}
    if isinstance(given, Mapping):
        layout = _array(given["layout"]) if "layout" in given else {}
        return {**given, **(layout if isinstance(layout, dict) else {"layout": layout})}
    return given


def _use(given: Any) -> Any:
    return [_array(one) for one in given] if isinstance(given, (list, tuple)) else _array(given)
