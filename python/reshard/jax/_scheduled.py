"""Scheduled HLO as a program of tasks: how far XLA's own order is from the bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .._core import HloInstruction as Instruction
from .._core import Machine, program_of_hlo
from ..errors import InputError
from ..programs import Program


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


def program(fn: Any, *args: Any, seconds: Mapping[str, float] | Callable[[Instruction], float] | None = None,
            machine: Machine | str | None = None, computation: str = "", **kwargs: Any) -> ScheduledProgram:
    """Compiles a program, and reads the order that XLA's scheduler gave it.

    fn: jax.jit(f), or f, lowered for args and kwargs; or the text of a scheduled HLO module. seconds: of each instruction, by
    its name (from a profile), or a function of the Instruction. The done of a pair takes no time; its start has the time of
    the collective. If seconds is None, times are estimated on the machine as `reshard schedule --hlo` does. computation: its
    name, such as the body of a loop; by default the entry. Runs nothing. reshard.schedule(result.program) is the schedule to
    compare with. Errors: InputError (no scheduled module, no such computation, an instruction without a time);
    UnsupportedError (a loop or a call, whose time cannot be estimated)."""
    text = fn if isinstance(fn, str) else (fn if hasattr(fn, "lower") else jax.jit(fn)).lower(*args, **kwargs).compile().as_text()
    lines, taken, hidden, blocking = program_of_hlo(text, _by_name(seconds) if isinstance(seconds, Mapping) else seconds,
                                                    machine, computation)
    return ScheduledProgram(Program(lines), taken, hidden, blocking)


def _by_name(seconds: Mapping[str, float]) -> Callable[[Instruction], float]:
    def of(one: Instruction) -> float:
        if one.name not in seconds:
            raise InputError(f"instruction {one.name} ({one.opcode}) has no time; seconds has {len(seconds)} names")
        return seconds[one.name]
    return of
