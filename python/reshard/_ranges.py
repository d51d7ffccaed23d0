"""Ranges of indices as callers give them: the widths of halos, and boxes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .errors import InputError

Width = int | Sequence[int | tuple[int, int]]
Periods = bool | Sequence[bool]
Box = Sequence[slice | tuple[int, int]]


def _pair(width: Any) -> tuple[int, int]:
    """The cells before and after a block. Errors: TypeError, InputError."""
    pair = (width, width) if hasattr(width, "__index__") else tuple(width)
    if len(pair) != 2:
        raise InputError(f"a width is a number or a pair (before, after), not {len(pair)} numbers", "usage")
    before, after = operator.index(pair[0]), operator.index(pair[1])
    if max(abs(before), abs(after)) >= 1 << 62:
        raise InputError(f"a width of ({before}, {after}) cells does not fit 64 bits", "overflow")
    return before, after


def widths_of(dims: int, width: Width, periodic: Periods, array: Any) -> list[tuple[int, int, bool]]:
    """For each dimension: cells before, cells after, periodic. `array` names the array in errors."""
    each = [width] * dims if isinstance(width, int) else list(width)
    wraps = [periodic] * dims if isinstance(periodic, int) else list(periodic)
    for what, given in (("width", each), ("periodic", wraps)):
        if len(given) != dims:
            raise InputError(f"{what} has {len(given)} entries; {array} has {dims} dimensions", "usage")
    return [(*_pair(one), bool(wrap)) for one, wrap in zip(each, wraps, strict=True)]


def _side(side: Any, extent: int) -> tuple[int, int]:
    """The first index of a side and one past its last. Errors: TypeError, InputError."""
    if isinstance(side, slice):
        if side.step not in (None, 1):
            raise InputError(f"a box has no steps, and {side} has the step {side.step}", "usage")
        side = (0 if side.start is None else side.start, extent if side.stop is None else side.stop)
    pair = tuple(side)
    if len(pair) != 2:
        raise InputError(f"a side of a box is a slice or a pair (begin, end), not {len(pair)} numbers", "usage")
    begin, end = operator.index(pair[0]), operator.index(pair[1])
    if max(abs(begin), abs(end)) >= 1 << 62:
        raise InputError(f"the side ({begin}, {end}) of a box does not fit 64 bits", "overflow")
    return begin, end


def sides_of(shape: Sequence[int], boxes: Sequence[Box]) -> list[list[tuple[int, int]]]:
    """The sides of each box as pairs (begin, end). Errors: TypeError, InputError."""
    made = []
    for box in boxes:
        sides = [box] if isinstance(box, slice) else list(box)
        if len(sides) != len(shape):
            raise InputError(f"a box of {len(sides)} dimensions was given for an array of {len(shape)}", "mismatch")
        made.append([_side(side, extent) for side, extent in zip(sides, shape, strict=True)])
    return made
