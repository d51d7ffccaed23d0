"""Programs that are not to be touched: JAX's own names, pointed at reshard for a while."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import jax
from jax._src import compiler  # where jit and lowered.compile() meet XLA

from . import _choice, _originals
from ._devices import device_put
from ._fallback import fall_back
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
_COMPILER = (compiler, "compile_or_get_cached")


@contextlib.contextmanager
def everywhere(compare: bool = True) -> Iterator[None]:
    """While it is open, jax.lax.with_sharding_constraint, jax.reshard and jax.device_put move by plans.

    It reaches whoever looks these names up in JAX: not `from jax.lax import with_sharding_constraint` of before, not
    functions that jit has traced already, not what JAX does by itself (in_shardings, out_shardings, and where XLA's
    propagation decides). All threads of the process see it. Open ones may be nested; one that compares is enough.

    compare: a program under jit is compiled with its plans and without, and JAX's own is kept, with a FallbackWarning,
    where a device would receive more by plans, or hold more (arguments and temp). It takes a second compilation; False
    spares it, and programs on which XLA alone ends the process."""
    places = list(_PLACES)
    if compare and (compiles := getattr(*_COMPILER, None)) is None:
        fall_back("this JAX compiles where programs cannot be compared, so that some may receive or hold more by plans")
    elif compare and not _choice.compares(compiles):
        places.append((*_COMPILER, _choice.compared(compiles)))
    held = [(place, name, getattr(place, name)) for place, name, _ in places if hasattr(place, name)]
    for place, name, ours in places:
        if hasattr(place, name):
            setattr(place, name, ours)
    try:
        yield
    finally:
        for place, name, theirs in held:
            setattr(place, name, theirs)
