"""The widths of halos, as callers give them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .errors import InputError

Width = int | Sequence[int | tuple[int, int]]
Periods = bool | Sequence[bool]


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
