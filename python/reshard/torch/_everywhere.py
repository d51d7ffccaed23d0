"""Replaces the function that moves every DTensor, for programs that you do not edit."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
import threading
from typing import Any

from .. import InputError, UnsupportedError
from . import _versions
from ._choice import Settings
from ._prices import Prices

_POLICIES = ("time", "bytes")
_USUAL = Settings()
_lock = threading.Lock()
_open: list[Settings] = []
_known: dict[tuple[str, str], Settings] = {("time", ""): _USUAL}  # equal settings are one object, so moves are planned once
_replaced: list[tuple[Any, Any]] = []  # modules, and the function that each had
_before: Any = None


def theirs() -> Any:
    """The function that moved DTensors before install()."""
    return _before if _before is not None else getattr(_versions.moves, _versions.NAME)


def settings() -> Settings:
    """The settings of the last install() that is still open, or the usual ones."""
    return _open[-1] if _open else _USUAL


def _ours(local_tensor: Any, current_spec: Any, target_spec: Any, *rest: Any, async_op: bool = False, **more: Any) -> Any:
    """Stands where torch's function stood. If somebody keeps it after uninstall(), it calls torch's."""
    from ._move import moved
    if not _open or rest or more.get("use_graph_based_transform") is not None or current_spec.mesh != target_spec.mesh:
        return theirs()(local_tensor, current_spec, target_spec, *rest, async_op=async_op, **more)
    return moved(local_tensor, current_spec, target_spec, settings(), async_op=async_op, **more)


def replace(function: Any, wrapper: Any) -> list[tuple[Any, Any]]:
    """Puts `wrapper` in the place of `function` in every module that has it under its name. Returns what to put back."""
    held = []
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if names is not None and names.get(_versions.NAME) is function:
            held.append((module, function))
            setattr(module, _versions.NAME, wrapper)
    return held


def put_back(held: list[tuple[Any, Any]], wrapper: Any) -> None:
    """Undoes replace(). A module whose name somebody else has replaced meanwhile stays as it is."""
    for module, function in held:
        if getattr(module, _versions.NAME, None) is wrapper:
            setattr(module, _versions.NAME, function)


def install(policy: str = "time", *, prices: Prices | None = None, mesh: Any = None) -> None:
    """From now on plans move every DTensor of the process: explicit, implicit and backward moves, also under torch.compile.

    policy: "time" takes the fastest way by the prices, and torch's own way if no other takes at most 0.8 of its time;
    "bytes" takes the way that lets the busiest device receive least. prices: of calibrate(), or of a machine; by default
    the usual ones of gloo or NCCL. All ranks give the same. mesh: makes the groups of this mesh now; needed if compiled
    programs come from a cache on disk. Programs that torch.compile made before are compiled again.
    Errors: InputError (no such policy), UnsupportedError (this torch moves DTensors in another way; it stays as it is)."""
    if policy not in _POLICIES:
        raise InputError(f"policy is {policy!r}; 'time' or 'bytes' is wanted")
    key = policy, prices.json() if prices is not None else ""
    _enter(_known.setdefault(key, Settings(policy, prices)), mesh)


def _enter(asked: Settings, mesh: Any) -> None:
    global _before
    with _lock:
        if not _open:
            function = getattr(_versions.moves, _versions.NAME, None)
            if why := _versions.refusal(function):
                raise UnsupportedError(why)
            _before = function
            _replaced[:] = replace(function, _ours)
        _open.append(asked)
        _tag()
    if mesh is not None:
        from ._groups import prepare
        prepare(mesh)


def uninstall() -> None:
    """Ends the last install(). After the last one torch moves its DTensors itself again."""
    global _before
    with _lock:
        if not _open:
            return
        _open.pop()
        if not _open:
            put_back(_replaced, _ours)
            _replaced.clear()
            if getattr(_versions.moves, _versions.NAME) is not _ours:
                _before = None
        _tag()


@contextlib.contextmanager
def installed(policy: str = "time", *, prices: Prices | None = None, mesh: Any = None):
    """Installs plans while it is open. It has the arguments of install()."""
    install(policy, prices=prices, mesh=mesh)
    try:
        yield
    finally:
        uninstall()


def _tag() -> None:
    """Keeps programs apart that torch.compile made with other moves. Its caches see a move as one call, so their key gets
    our version and policy. It also gets the rank: torch's key is the same on all ranks of a host, but their groups differ."""
    config = getattr(getattr(_versions.torch, "compiler", None), "config", None)
    if hasattr(config, "cache_key_tag"):
        held = ";".join(part for part in config.cache_key_tag.split(";") if part and not part.startswith("reshard "))
        rank = _versions.dist.get_rank() if _versions.dist.is_initialized() else os.environ.get("RANK", "")
        ours = f"reshard {_version()} {settings().policy} {hash_of(settings().prices)} rank {rank}" if _open else ""
        config.cache_key_tag = ";".join(part for part in (held, ours) if part)
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


def hash_of(prices: Prices | None) -> str:
    """Eight digits that tell prices apart, the same in every process."""
    import zlib
    return f"{zlib.crc32(prices.json().encode()):08x}" if prices is not None else "usual"


def _version() -> str:
    try:
        return importlib.metadata.version("reshard")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
