"""Scheduled HLO as a program of tasks: how far XLA's own order is from the bound."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from .._core import parse_layout, parse_mesh
from ..errors import InputError
from ..programs import Program
from . import _hlo

_NAMED = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = ")
_PASSED_ON = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "opt-barrier")
_COLLECTIVES = ("all-gather", "all-to-all", "all-reduce", "reduce-scatter", "collective-permute", "collective-broadcast",
                "ragged-all-to-all")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """An instruction of scheduled HLO that takes time. bytes: of its result. read_bytes: of its operands. op: JAX's name of it;
    empty if XLA has lost it."""

    name: str
    opcode: str
    bytes: int
    read_bytes: int
    op: str


@dataclasses.dataclass(frozen=True)
class ScheduledProgram:
    """The instructions of a compiled program as tasks, free to run in any order, and the end of XLA's own order."""

    program: Program
    """Collectives are tasks of the engine `network`, all others of `compute`. Arrays have the bytes of one device."""
    xla_seconds: float
    """The end of XLA's order: a collective starts at its start, and its done waits for it. One is on its way at a time."""
    hidden: int
    """Collectives that XLA starts before it waits for them: pairs of start and done."""
    blocking: int
    """Collectives that XLA waits for at once."""


@dataclasses.dataclass(frozen=True)
class _Line:
    root: bool
    name: str
    shape: str
    opcode: str
    operands: list[str]
    before: list[str]
    op: str


def program(fn: Any, *args: Any, seconds: Mapping[str, float] | Callable[[Instruction], float], computation: str | None = None,
            **kwargs: Any) -> ScheduledProgram:
    """Compiles a program, and reads the order that XLA's scheduler gave it.

    fn: jax.jit(f), or f, lowered for args and kwargs; or the text of a scheduled HLO module. seconds: of each instruction, by
    its name (from a profile), or a function of the Instruction. The done of a pair takes no time; its start has the time of
    the collective. computation: its name, such as the body of a loop; by default the entry. Runs nothing.
    reshard.schedule(result.program) is the schedule to compare with. Errors: InputError (no scheduled module, no such
    computation, an instruction without a time)."""
    text = fn if isinstance(fn, str) else (fn if hasattr(fn, "lower") else jax.jit(fn)).lower(*args, **kwargs).compile().as_text()
    if "is_scheduled=true" not in text:
        raise InputError("the HLO module is not scheduled: its first line has no is_scheduled=true")
    computations, entry, _ = _hlo._computations(text)
    name = computation or entry
    if name not in computations:
        raise InputError(f"the module has no computation {name}; it has {', '.join(computations)}")
    return _Reader(list(_lines(computations[name])), seconds).read()


def _lines(lines: list[str]) -> Iterator[_Line]:
    known: set[str] = set()
    for line in lines:
        named = _NAMED.match(line)
        if not named:
            continue
        rest = line[named.end():]
        end = _closing(rest, 0) if rest.startswith("(") else rest.index(" ")
        shape, call = rest[:end], rest[end:].lstrip()
        opened = call.index("(")
        closed = _closing(call, opened)
        operands = [word for word in re.findall(r"[\w.\-]+", call[opened:closed]) if word in known]
        control = re.search(r"control-predecessors=\{([^}]*)\}", call[closed:])
        op = re.search(r'op_name="([^"]*)"', call[closed:])
        before = [word for word in re.findall(r"[\w.\-]+", control.group(1) if control else "") if word in known]
        yield _Line(bool(named.group(1)), named.group(2), shape, call[:opened], operands, before, op.group(1) if op else "")
        known.add(named.group(2))


def _closing(text: str, begin: int) -> int:
    """Behind the parenthesis that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise InputError(f"an HLO line has no closing parenthesis: {text[:80]}")


def _bytes_of(shape: str) -> int:
    return sum(_hlo._bytes(*one) for one in _hlo._SHAPE.findall(shape))


class _Reader:
    def __init__(self, lines: list[_Line], seconds: Mapping[str, float] | Callable[[Instruction], float]) -> None:
        self._lines, self._seconds = lines, seconds
        self._program = Program()
        self._mesh = parse_mesh("d=1")
        self._held: dict[str, dict[str, int]] = {}  # of each instruction, the arrays that its result is made of, in bytes
        self._task: dict[str, str] = {}  # the task that an instruction stands for
        self._compute = self._network = 0.0
        self._ends: dict[str, float] = {}
        self._hidden = self._blocking = 0

    def read(self) -> ScheduledProgram:
        done_of = {operand: line for line in self._lines if line.opcode.endswith("-done") for operand in line.operands}
        kept = {array for line in self._lines if line.root for array in self._behind(line)}
        for line in self._lines:
            if line.opcode == "parameter":
                size = _bytes_of(line.shape)
                self._program.array(line.name, parse_layout(self._mesh, f"u8[{size}]"), kept=line.name in kept)
                self._held[line.name] = {line.name: size}
            elif line.opcode in _PASSED_ON:
                self._pass_on(line)
            elif line.opcode.endswith("-done"):
                self._pass_on(line)
                self._compute = max([self._compute, *(self._ends[one] for one in line.operands if one in self._ends)])
            else:
                self._add(line, _bytes_of(done_of.get(line.name, line).shape), line.name in kept)
        return ScheduledProgram(self._program, max(self._compute, self._network), self._hidden, self._blocking)

    def _behind(self, line: _Line) -> set[str]:
        """The names of the instructions that make a result, through tuples and dones."""
        by_name = {one.name: one for one in self._lines}
        if line.opcode not in _PASSED_ON[2:] and not line.opcode.endswith("-done"):
            return {line.name}
        return {name for operand in line.operands for name in self._behind(by_name[operand])}

    def _pass_on(self, line: _Line) -> None:
        self._held[line.name] = {array: size for one in line.operands for array, size in self._held[one].items()}
        for one in line.operands:
            if one in self._task:
                self._task[line.name] = self._task[one]

    def _add(self, line: _Line, size: int, kept: bool) -> None:
        uses = {array: read for one in line.operands for array, read in self._held[one].items()}
        taken = self._seconds_of(Instruction(line.name, line.opcode, size, sum(uses.values()), line.op))
        starts = line.opcode.endswith("-start")
        moves = starts or line.opcode in _COLLECTIVES
        begin = max(self._compute, self._network) if moves else self._compute
        if moves:
            self._network = begin + taken
        if not starts:
            self._compute = begin + taken
        self._ends[line.name] = begin + taken
        self._hidden += starts
        self._blocking += moves and not starts
        after = sorted({self._task[one] for one in line.before if one in self._task})
        self._program.task(line.name, "d=1", taken, uses={array: f"u8[{read}]" for array, read in uses.items()},
                           makes={line.name: {"layout": f"u8[{size}]", "kept": kept}}, after=after,
                           engine="network" if moves else "compute")
        self._held[line.name] = {line.name: size}
        self._task[line.name] = line.name

    def _seconds_of(self, one: Instruction) -> float:
        if callable(self._seconds):
            return float(self._seconds(one))
        if one.name not in self._seconds:
            raise InputError(f"instruction {one.name} ({one.opcode}) has no time; seconds has {len(self._seconds)} names")
        return float(self._seconds[one.name])
