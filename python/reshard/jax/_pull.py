"""Moves an array onto other devices. Every target tile fetches each of its boxes once, from a device that holds it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Sharding

Box = tuple[tuple[int, int], ...]


def _box(index: tuple[slice, ...], shape: tuple[int, ...]) -> Box:
    return tuple(one.indices(extent)[:2] for one, extent in zip(index, shape))


def _cut(a: Box, b: Box) -> Box | None:
    both = tuple((max(p, r), min(q, s)) for (p, q), (r, s) in zip(a, b))
    return both if all(begin < end for begin, end in both) else None


def pulled(x: jax.Array, target: Sharding) -> jax.Array:
    """pre: all devices of both ends belong to this process."""
    held: dict[Box, list[jax.Array]] = {}
    for shard in x.addressable_shards:
        held.setdefault(_box(shard.index, x.shape), []).append(shard.data)
    sent: dict[Any, int] = {}
    tiles = [_tile(x, device, _box(index, x.shape), held, sent)
             for device, index in target.addressable_devices_indices_map(x.shape).items()]
    return jax.make_array_from_single_device_arrays(x.shape, target, tiles)


def _tile(x: jax.Array, device: Any, wanted: Box, held: dict[Box, list[jax.Array]], sent: dict[Any, int]) -> jax.Array:
    tile = None
    for box, copies in held.items():
        both = _cut(box, wanted)
        if both is None:
            continue
        copy = min(copies, key=lambda one: (one.device != device, sent.get(one.device, 0)))
        if copy.device != device:
            sent[copy.device] = sent.get(copy.device, 0) + 1
        piece = copy
        if both != box:
            piece = lax.slice(copy, [b - first for (b, _), (first, _) in zip(both, box)],
                              [e - first for (_, e), (first, _) in zip(both, box)])
        piece = jax.device_put(piece, device)
        if both == wanted:
            return piece
        if tile is None:
            tile = jnp.zeros([end - begin for begin, end in wanted], x.dtype, device=device)
        tile = _written(tile, piece, *[begin - first for (begin, _), (first, _) in zip(both, wanted)])
    return tile


@jax.jit
def _written(tile, piece, *at):
    return lax.dynamic_update_slice(tile, piece, at)
