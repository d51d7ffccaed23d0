"""Moves that take one mesh axis after another: torch's own, and reductions before an exchange. Prices are of the largest tile
and depend on placements alone, since shapes differ from rank to rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .._core import axis_prices
from . import _specs
from ._prices import Call, Price
from ._versions import DTensorSpec, Replicate, Shard, StridedShard, on_cpus, transforms

Change = tuple[int, Any, Any]
"""A mesh axis, its placement before and its placement after."""


def native_all_to_all(mesh: Any) -> bool:
    """True if torch moves a shard to another dimension by an all_to_all. On CPUs it gathers instead."""
    return not on_cpus(mesh)


def torch_price(source: DTensorSpec, target: DTensorSpec) -> Price | None:
    """The price of torch's own steps; None for a move that torch refuses. Steps that torch may merge count one by one."""
    try:
        steps = [(step.mesh_dim, *step.src_dst_placements) for step in transforms(source, target)]
        return _priced(source, [steps], ordered=True)[0][1]
    except Exception:  # the error of torch comes when the move runs
        return None


def middles(source: DTensorSpec, target: DTensorSpec) -> Iterator[tuple[Any, ...]]:
    """Placements without the sums that the target lacks: each partial axis cuts a dimension or holds all of it. A replicated axis
    that is to cut a dimension cuts it here already, which costs nothing and makes the reductions smaller."""
    wanted = target.placements if source.mesh == target.mesh else source.placements
    fixed = _specs.strange_dims(source)
    choices: list[list[Any]] = []
    for axis, (held, end) in enumerate(zip(source.placements, wanted)):
        cut = fixed | {getattr(one, "dim", None) for one in source.placements[axis + 1:]}
        if held.is_partial() and (held != end or wanted is source.placements):
            free = [Shard(dim) for dim in range(len(source.tensor_meta.shape)) if dim not in cut]
            choices.append(sorted([*free, Replicate()], key=lambda one: one != end))
        else:
            cuts = held.is_replicate() and type(end) is Shard and end.dim not in cut
            choices.append([end if cuts else held])
    return itertools.product(*choices)


def reductions(source: DTensorSpec, ends: list[tuple[Any, ...]]) -> list[tuple[tuple[Change, ...], Price]]:
    """For each of some middles(), the changes from a source to it, and their price. Replicas are cut first. Reduce-scatters follow,
    and the one that pads least begins. All-reduces are last. Axes that cut one dimension stay in their order."""
    return _priced(source, [[(axis, held, end) for axis, (held, end) in enumerate(zip(source.placements, middle)) if held is not end]
                            for middle in ends], ordered=False)


def _priced(spec: DTensorSpec, ways: list[list[Change]], ordered: bool) -> list[tuple[tuple[Change, ...], Price]]:
    """Each way in the order of its changes, and its price. ordered: that order is given."""
    coded = [[(axis, _code(b), StridedShard in (type(a), type(b))) for axis, a, b in way] for way in ways]
    meta, made = spec.tensor_meta, []
    found = axis_prices(meta.shape, meta.dtype.itemsize, _specs.sizes_of(spec.mesh), [*map(_code, spec.placements)],
                        native_all_to_all(spec.mesh), coded, ordered)
    for way, (order, (calls, *numbers)) in zip(ways, found):
        words = ", ".join(call[0] for call in calls) or "local"
        made.append((tuple(way[at] for at in order), Price(tuple(Call(*call) for call in calls), *numbers, words)))
    return made


def _code(placement: Any) -> int:
    """The dimension that a placement cuts, -1 for the whole, or -2 for a sum."""
    return placement.dim if hasattr(placement, "dim") else -2 if placement.is_partial() else -1
