"""Rebuilds from the replicas that are left when devices are lost: what they cost, before anything moves."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _core
from ._core import Layout, Model
from .errors import InputError

Layouts = Layout | Sequence[Layout] | Mapping[str, Layout]
"""The layout of one array, a list of layouts, or layouts by the names of arrays."""


class DeviceTraffic(NamedTuple):
    """The bytes of one device in a rebuild."""

    received_bytes: int
    """From others; no protocol brings fewer."""
    sent_bytes: int
    """To others."""
    kept_bytes: int
    """Held before and wanted afterwards."""


def ends_of(source: Layouts, target: Layouts) -> tuple[list[str] | None, list[Layout], list[Layout]]:
    """The names of the arrays, if there are any, and their layouts in one order."""
    if isinstance(source, Mapping) or isinstance(target, Mapping):
        if not (isinstance(source, Mapping) and isinstance(target, Mapping) and set(source) == set(target)):
            raise InputError("source and target do not name the same arrays", "mismatch")
        names = sorted(source)
        return names, [source[name] for name in names], [target[name] for name in names]
    sources = [source] if isinstance(source, Layout) else list(source)
    targets = [target] if isinstance(target, Layout) else list(target)
    if len(sources) != len(targets):
        raise InputError(f"{len(sources)} sources and {len(targets)} targets were given", "mismatch")
    return None, sources, targets


def rebuild_traffic(source: Layouts | str, target: Layouts | str | Iterable[tuple[str, Any, Sequence[int]]],
                    lost: Sequence[int]) -> list[DeviceTraffic]:
    """The traffic of each device, from device 0 on, when arrays are rebuilt from the replicas that are left.

    source, target: as mpi.rebuild. Or rules and the tensors of a model, as move_tensors; each target is a whole tensor.
    lost: the devices whose tiles are gone. All arrays count together.
    Errors: InfeasibleError (only lost devices held some boxes; it names them), InputError (rules, types, shapes),
    UnsupportedError (summands; a target that is made of parts, padded or cast).
    """
    if isinstance(source, str):
        moves = Model(source, target if isinstance(target, str) else list(target)).whole_moves()
        ends = [(move[2], move[3]) for move in moves]
    else:
        _, sources, targets = ends_of(source, target)
        ends = list(zip(sources, targets))
    gone = [operator.index(device) for device in lost]
    return [DeviceTraffic(*one) for one in _core.rebuild_traffic(ends, gone)]
