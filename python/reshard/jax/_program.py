"""The portable program of a move in jax.lax: collectives over groups of all devices, on one tile."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from .. import Layout, Plan, portable, synthesize


@dataclass(frozen=True, eq=False)
class Program:
    """A plan and what it does to a tile. on_device: the device at each position that the operations speak of."""

    plan: Plan
    operations: list[Any]
    on_device: tuple[int, ...]

    def groups(self, groups: Any) -> list[list[int]]:
        """Of devices instead of positions."""
        return [[self.on_device[position] for position in group] for group in groups]

    def by_device(self, table: Any) -> numpy.ndarray:
        """A table by position as one by device."""
        return numpy.asarray(table, numpy.int32)[numpy.argsort(self.on_device)]


@functools.lru_cache(4096)
def program(source: Layout, target: Layout) -> Program:
    """The move that lets the busiest device receive least. Errors: UnsupportedError, for sizes that do not divide."""
    plan = synthesize(source, target, vocabulary="collectives", objective="bytes")
    return Program(plan, portable(plan).operations, source.mesh.devices)


def run(moved: Program, tile: Any, axes: Any) -> Any:
    """The tile after the program. axes: the name, or all names, of a mesh whose positions are the layouts' devices."""
    for operation in moved.operations:
        tile = _MEANING[operation.kind](moved, operation, tile, axes)
    return tile


def _slice(moved, operation, tile, axes):
    starts = jnp.asarray(moved.by_device(operation.starts))[lax.axis_index(axes)]
    return lax.dynamic_slice(tile, [starts[dim] for dim in range(tile.ndim)], operation.output_shape)


def _grouped(collective, **places):
    return lambda moved, operation, tile, axes: collective(
        tile, axes, tiled=True, axis_index_groups=moved.groups(operation.groups), **places)


# What moves an array that holds no summands consists of.
_MEANING = {
    "reshape": lambda moved, operation, tile, axes: lax.reshape(tile, operation.output_shape),
    "transpose": lambda moved, operation, tile, axes: lax.transpose(tile, operation.permutation),
    "slice": _slice,
    "permute": lambda moved, operation, tile, axes: lax.ppermute(tile, axes, moved.groups(operation.pairs)),
    "all_gather": _grouped(lax.all_gather, axis=0),
    "all_to_all": _grouped(lax.all_to_all, split_axis=0, concat_axis=0),
}
