"""Replaces JAX's own names by reshard's for a while, for programs that you do not want to edit."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any

import jax
from jax._src import compiler  # where jit and lowered.compile() meet XLA

from . import _choice, _originals
from ._devices import device_put
from ._fallback import fall_back
from ._primitive import reshard

_PLACES = [(jax.lax, "with_sharding_constraint", lambda theirs: lambda x, shardings: reshard(x, shardings)),
           (jax, "reshard", lambda theirs: lambda xs, out_shardings: reshard(xs, out_shardings)),
           (jax.sharding, "reshard", lambda theirs: lambda xs, out_shardings: reshard(xs, out_shardings)),
           (jax, "device_put", lambda theirs: lambda x, device=None, **more: device_put(x, device, **more))]
_COMPILER = (compiler, "compile_or_get_cached", _choice.compared)


class _Open:
    """How often each name is open, its value before the first opening, and its value now. A function that somebody
    keeps after the last closing is JAX's own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[tuple[Any, str], list[Any]] = {}

    def enter(self, places: list[tuple[Any, str, Any]]) -> None:
        """places: object, name, and a function that turns the original into ours."""
        with self._lock:
            for place, name, make in places:
                held = self._places.setdefault((place, name), [0, None, None])
                if held[0] == 0:
                    theirs = getattr(place, name)
                    held[1:] = theirs, self._while_open((place, name), theirs, make(theirs))
                    setattr(place, name, held[2])
                held[0] += 1

    def leave(self, places: list[tuple[Any, str, Any]]) -> None:
        """Closes in any order. If somebody else has replaced a name meanwhile, it stays as it is."""
        with self._lock:
            for place, name, _ in places:
                held = self._places[place, name]
                held[0] -= 1
                if held[0] == 0:
                    if getattr(place, name) is held[2]:
                        setattr(place, name, held[1])
                    held[1:] = None, None

    def _while_open(self, key: tuple[Any, str], theirs: Any, ours: Any) -> Any:
        @functools.wraps(theirs)
        def named(*values: Any, **more: Any) -> Any:
            return (ours if self._places[key][0] > 0 else theirs)(*values, **more)
        setattr(named, _originals.THEIRS, theirs)
        named.opened = self
        return named


# A copy of this module that is imported while another one is open shares its count.
_open = getattr(jax.lax.with_sharding_constraint, "opened", None) or _Open()


class _Everywhere(contextlib.ContextDecorator):
    """The result of everywhere(). Any thread may enter it again before it is left."""

    def __init__(self, compare: bool) -> None:
        self._places = [place for place in _PLACES if hasattr(*place[:2])]
        if compare and hasattr(*_COMPILER[:2]):
            self._places.append(_COMPILER)
        elif compare:
            fall_back("this JAX compiles where programs cannot be compared, so that some may receive or hold more by plans")

    def __enter__(self) -> None:
        _open.enter(self._places)

    def __exit__(self, *exception: object) -> None:
        _open.leave(self._places)


def everywhere(compare: bool = True) -> contextlib.AbstractContextManager[None]:
    """While it is open, jax.lax.with_sharding_constraint, jax.reshard and jax.device_put move by plans.

    It affects code that looks these names up in JAX. It does not affect an earlier `from jax.lax import
    with_sharding_constraint`, functions that jit has traced already, or moves that JAX makes by itself (in_shardings,
    out_shardings, and the choices of XLA's propagation). All threads of the process see it. One or many threads may
    open several, and close them in any order: the names are JAX's own again after the last one is closed. If one of them
    compares, all do.

    compare: compiles a program under jit with its plans and without. JAX's own program is kept, with a FallbackWarning,
    if a device would receive more by plans, or hold more (arguments and temp). This takes a second compilation. False
    skips it, and is needed for programs on which XLA alone ends the process."""
    return _Everywhere(compare)
