"""Programs that are not to be touched: JAX's own names, pointed at reshard for a while."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import jax

from . import _originals
from ._devices import device_put
from ._primitive import reshard


@functools.wraps(_originals.constrain)
def _constrain(x: Any, shardings: Any) -> Any:
    return reshard(x, shardings)


@functools.wraps(_originals.explicit_reshard)
def _explicit_reshard(xs: Any, out_shardings: Any) -> Any:
    return reshard(xs, out_shardings)


@functools.wraps(_originals.put)
def _put(x: Any, device: Any = None, **more: Any) -> Any:
    return device_put(x, device, **more)


_PLACES = [(jax.lax, "with_sharding_constraint", _constrain), (jax, "reshard", _explicit_reshard),
           (jax.sharding, "reshard", _explicit_reshard), (jax, "device_put", _put)]


@contextlib.contextmanager
def everywhere() -> Iterator[None]:
    """While it is open, jax.lax.with_sharding_constraint, jax.reshard and jax.device_put move by plans.

    It reaches whoever looks these names up in JAX: not `from jax.lax import with_sharding_constraint` of before, not
    functions that jit has traced already, not what JAX does by itself (in_shardings, out_shardings, and where XLA's
    propagation decides). All threads of the process see it. Open ones may be nested."""
    held = [(place, name, getattr(place, name)) for place, name, _ in _PLACES if hasattr(place, name)]
    for place, name, ours in _PLACES:
        if hasattr(place, name):
            setattr(place, name, ours)
    try:
        yield
    finally:
        for place, name, theirs in held:
            setattr(place, name, theirs)
