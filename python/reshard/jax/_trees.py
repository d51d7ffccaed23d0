"""Pytrees of arrays beside pytrees of shardings, which may be shallower."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import PartitionSpec, Sharding


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, (PartitionSpec, Sharding))


def each(move: Callable[..., Any], x: Any, sharding: Any, *more: Any) -> Any:
    """Calls move(leaf of x, its sharding, ...). A sharding applies to everything below its place. Errors: ValueError."""
    leaves, form = jax.tree.flatten(x)
    ends = []
    for one in (sharding, *more):
        if _is_leaf(one):
            ends.append([one] * len(leaves))
            continue
        spread: list[Any] = []
        jax.tree.map(lambda end, below: spread.extend([end] * len(jax.tree.leaves(below))), one, x, is_leaf=_is_leaf)
        ends.append(spread)
    return form.unflatten([move(leaf, *of_it) for leaf, *of_it in zip(leaves, *ends, strict=True)])
