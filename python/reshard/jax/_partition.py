"""The hook under jit: XLA's partitioner asks for the program of a move when it knows both shardings.

The sharding rule is the identity, each dimension a factor of its own, so that propagation flows through a move as it
does through jax.lax.with_sharding_constraint. A rule with unrelated factors would replicate a source that is not pinned."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy
from jax.experimental.custom_partitioning import custom_partitioning

from .. import Error
from . import _program
from ._fallback import fall_back
from ._shardings import positional_layout

AXIS = "devices"  # of the flat mesh that such a program runs on


def moved(x: Any) -> Any:
    """The identity. XLA may change the sharding of x across it, by a plan."""
    return _hook(x.ndim)(x) if x.ndim else x


@functools.lru_cache(None)
def _hook(rank: int):
    hook = custom_partitioning(lambda x: x)
    factors = " ".join(f"d{dim}" for dim in range(rank))
    hook.def_partition(partition=_partition, infer_sharding_from_operands=lambda mesh, operands, _: operands[0].sharding,
                       propagate_user_sharding=lambda mesh, user: user.sharding, decode_shardings=False,
                       sharding_rule=f"{factors} -> {factors}")
    return hook


def _partition(mesh, operands, result):
    """Answers XLA: (mesh of the program, program on a tile, sharding of the result, shardings of the operands)."""
    operand, = operands
    devices = tuple(result.sharding._device_assignment)
    flat = jax.sharding.Mesh(numpy.array(devices), (AXIS,))
    try:
        layouts = [positional_layout(end.sharding, end.shape, end.dtype, devices) for end in (operand, result)]
        program = _program.program(*layouts, _program.on_host(devices))
    except Error as error:
        fall_back(str(error).partition("\n")[0])
        return flat, lambda tile: tile, result.sharding, (result.sharding,)
    return flat, lambda tile: program.run(tile, AXIS), result.sharding, (operand.sharding,)
