"""Halos within shard_map: the cells around a device's block come by permutes, one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from .._ranges import Periods, Width, widths_of
from ..errors import InputError
from ._shardings import dims as axes_of_dims


def halo(block: Any, axes: Sequence[Any], width: Width = 1, periodic: Periods = False) -> Any:
    """The block with its halo: the cells before and after it in each dimension, corners too.

    For a function within jax.shard_map. block: this device's part of an array. axes: the PartitionSpec that cuts it.
    width: cells on both sides of each dimension; or for each dimension a number or a pair (before, after).
    periodic: a bool, or one for each dimension. Cells beyond the border of another dimension are 0.
    A halo may be wider than a block. It costs two permutes for each dimension and each block that it reaches, and a
    device receives each cell once. The gradient adds the halos to the blocks of their owners.
    Errors: InputError (negative widths, other numbers of entries), TypeError.
    """
    block = jnp.asarray(block)
    spec = axes_of_dims(axes, block.ndim)
    if spec is None or len(spec) != block.ndim:
        raise InputError(f"axes are {axes}; a name, a tuple of names or None for each of {block.ndim} dimensions is wanted", "usage")
    for dim, (before, after, wraps) in enumerate(widths_of(block.ndim, width, periodic, f"a block of {block.shape}")):
        if min(before, after) < 0:
            raise InputError(f"dimension {dim} has a halo of ({before}, {after}) cells; at least 0 are wanted", "layout")
        if before or after:
            block = _widened(block, dim, spec[dim], before, after, wraps)
    return block


def _widened(block: Any, dim: int, axes: tuple[str, ...], before: int, after: int, wraps: bool) -> Any:
    """The block with its halo in one dimension."""
    extent = block.shape[dim]
    if extent == 0:
        raise InputError(f"a block of {block.shape} is empty; at least one index in dimension {dim} is wanted", "layout")
    farther = [_from(block, dim, axes, -far, min(extent, before - (far - 1) * extent), wraps)
               for far in range(-(-before // extent), 0, -1)]
    behind = [_from(block, dim, axes, far, min(extent, after - (far - 1) * extent), wraps)
              for far in range(1, -(-after // extent) + 1)]
    return jnp.concatenate([*farther, block, *behind], axis=dim)


def _from(block: Any, dim: int, axes: tuple[str, ...], far: int, cells: int, wraps: bool) -> Any:
    """The nearest cells of the block that is `far` blocks behind this one; before it, if `far` is negative."""
    begin = block.shape[dim] - cells if far < 0 else 0
    part = jax.lax.slice_in_dim(block, begin, begin + cells, axis=dim)
    shards = jax.lax.axis_size(axes) if axes else 1
    if wraps and far % shards == 0:
        return part
    if not wraps and abs(far) >= shards:
        return jnp.zeros_like(part)
    ordered, number = _in_mesh_order(axes)
    pairs = [(here, here - far) for here in range(shards) if wraps or 0 <= here - far < shards]
    return jax.lax.ppermute(part, ordered, [(number[here], number[there % shards]) for here, there in pairs])


def _in_mesh_order(axes: tuple[str, ...]) -> tuple[tuple[str, ...], list[int]]:
    """The axes as the mesh orders them, and the number there of each shard. lax.ppermute numbers devices in this order,
    whatever the order of its axis names."""
    names = jax.sharding.get_abstract_mesh().axis_names
    ordered = tuple(sorted(axes, key=names.index))
    shards = numpy.arange(jax.lax.axis_size(axes)).reshape([jax.lax.axis_size(axis) for axis in axes])
    return ordered, numpy.argsort(shards.transpose([axes.index(axis) for axis in ordered]).ravel()).tolist()
