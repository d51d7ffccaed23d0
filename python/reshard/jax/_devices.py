"""Concrete arrays, moved by a plan from their shardings to new ones."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from .. import Error
from . import _partition, _program, _pull
from ._fallback import fall_back
from ._originals import put
from ._shardings import is_traced, named, named_layout, positional_layout
from ._trees import each


def mapped(program: _program.Program, source: NamedSharding, target: NamedSharding) -> Any:
    """The program as a function of whole arrays, on the mesh that both shardings share."""
    axes = tuple(target.mesh.axis_names)
    return jax.shard_map(lambda tile: program.run(tile, axes), mesh=target.mesh, in_specs=source.spec,
                         out_specs=target.spec, check_vma=False)


@functools.lru_cache(1024)
def _on_one_mesh(source: NamedSharding, target: NamedSharding, shape: tuple[int, ...], dtype: Any) -> Any:
    layouts = [named_layout(end, shape, dtype) for end in (source, target)]
    return jax.jit(mapped(_program.program(*layouts, _program.on_host(target.mesh)), source, target))


@functools.lru_cache(1024)
def _on_one_set(source: Sharding, target: Sharding, shape: tuple[int, ...], dtype: Any) -> Any:
    """Between meshes over the same devices: on a flat mesh of tiles, in the device order of the target."""
    order = list(target._device_assignment)
    flat = jax.sharding.Mesh(numpy.array(order), (_partition.AXIS,))
    layouts = [positional_layout(end, shape, dtype, order) for end in (source, target)]
    program = _program.program(*layouts, _program.on_host(order))
    tiles = PartitionSpec(_partition.AXIS)
    move = jax.shard_map(lambda tile: program.run(tile, _partition.AXIS), mesh=flat, in_specs=tiles,
                         out_specs=tiles, check_vma=False)
    return jax.jit(move), NamedSharding(flat, tiles)


def _retiled(x: jax.Array, target: NamedSharding) -> jax.Array:
    move, tiles = _on_one_set(x.sharding, target, x.shape, x.dtype)
    tile = x.sharding.shard_shape(x.shape)
    shape = (tile[0] * len(x.sharding.device_set), *tile[1:])
    with jax.set_mesh(tiles.mesh):
        moved = move(jax.make_array_from_single_device_arrays(shape, tiles, [s.data for s in x.addressable_shards]))
    return jax.make_array_from_single_device_arrays(x.shape, target, [s.data for s in moved.addressable_shards])


def device_put(x: Any, device: Any = None, **more: Any) -> Any:
    """jax.device_put by a plan, if x is on devices already and device is a NamedSharding or a PartitionSpec.

    On other devices that this process reaches, every target tile fetches its boxes from the devices that hold them, and
    no whole array passes through the host. jax.device_put does everything else (arrays of the host, one device, more of
    its arguments). Inside jit as jax.device_put. Errors: the errors of jax.device_put."""
    if device is None or any(value not in (None, False) for value in more.values()):
        return put(x, device, **more)
    return each(_put, x, device)


def _put(x: Any, device: Any) -> Any:
    target = named(device, x)
    if target is None or is_traced(x) or not isinstance(x, jax.Array) or not x.committed:
        return put(x, target or device)
    held = x.sharding
    if held.is_equivalent_to(target, x.ndim) or target.memory_kind != held.memory_kind or not x.ndim:
        return put(x, target)
    try:
        if isinstance(held, NamedSharding) and held.mesh == target.mesh:
            return _on_one_mesh(_plain(held), _plain(target), x.shape, x.dtype)(x)
        if held.device_set == target.device_set:
            return _retiled(x, target)
        if x.is_fully_addressable and target.is_fully_addressable:
            return _pull.pulled(x, target)
    except Error as error:
        fall_back(str(error).partition("\n")[0])
    return put(x, target)


def _plain(sharding: NamedSharding) -> NamedSharding:
    return NamedSharding(sharding.mesh, sharding.spec)
