"""Ranks of an NCCL communicator, each with a GPU: arrays on devices, of whoever speaks DLPack (torch, cupy, jax).

    columns = torch.empty(by_columns.tile_shape(rank), device="cuda")
    reshard.nccl.redistribute(communicator, rows, by_rows, by_columns, columns,
                              stream=torch.cuda.current_stream().cuda_stream)

Every call on a communicator is collective, and all ranks make them in one order, each with its own device current.
What one rank gets wrong is an error on all, with that rank's number and words; only a rank that names no communicator
cannot tell the others. Threads: one at a time on one communicator (another gets an InputError); the ranks of one process
may be its threads. The GIL is not held while bytes move. Ctrl-C ends a wait within a second and
aborts this rank's communicators; the other ranks fail when NCCL reports that, or at their timeout. No GPU has run this
yet: it is tested on doubles of CUDA and NCCL."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ._core import Layout
from .errors import UnsupportedError


@functools.cache
def _loaded() -> tuple[Any, str]:
    """The module, or None and why it is not here. Not before it is asked for: it brings the system's libnccl, and torch,
    imported after it, would get that one in place of its own."""
    try:
        from . import _nccl
        return _nccl, ""
    except ImportError as reason:
        return None, str(reason)


def available() -> bool:
    """True where this package was built with NCCL, and its libraries are found."""
    return _loaded()[0] is not None


def _pointer(communicator: Any) -> int:
    module, absent = _loaded()
    if module is None:
        why = f": {absent}" if "_nccl" not in absent else ""
        raise UnsupportedError(f"this build of reshard has no NCCL{why}; with CUDA 12 and NCCL 2.18 or newer installed, "
                               "`pip install ./python` again", "unsupported")
    pointer = getattr(communicator, "ptr", communicator)
    if not isinstance(pointer, int):
        raise TypeError("an NCCL communicator is its pointer as an int, or has it as `ptr`; this is a "
                        f"{type(communicator).__name__}")
    return pointer


_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Function = Callable[_Parameters, _Returned]


def _ends_in(arguments: Any, named: Any, stream_place: int) -> tuple[int, Any]:
    """The communicator's pointer and the stream as they were given."""
    pointer = _pointer(arguments[0] if arguments else named.get("communicator"))
    return pointer, arguments[stream_place] if len(arguments) > stream_place else named.get("stream")


def _collective(function: _Function) -> _Function:
    """Decorates redistribute, as reshard.mpi does. A rank whose stream is none meets the others on its last one."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        pointer, stream = _ends_in(arguments, named, 5)
        with _loaded()[0].Call(pointer, "redistribute", stream):
            return function(*arguments, **named)
    return called


def _joining(function: _Function) -> _Function:
    """Decorates a call that is collective only as the first one on its communicator: that part comes first."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        pointer, stream = _ends_in(arguments, named, 2)
        _loaded()[0].join(pointer, stream)
        return function(*arguments, **named)
    return called


@_collective
def redistribute(communicator: Any, array: Any, source: Layout, target: Layout, out: Any = None,
                 stream: int | None = None) -> Any:
    """Moves this rank's tile of `source` to its tile of `target`; returns `out` once it is complete. Collective.

    communicator: the ncclComm_t as an int, or an object that has it as `ptr`.
    array, out: on this rank's GPU, contiguous, shaped source.tile_shape(rank) and target.tile_shape(rank); `out` is made
    as by allocate when None.
    stream: the cudaStream_t, as an int, behind whose work the move comes; one of the library's own when None, and then
    what makes `array` must be done.
    What is kept for a pair of layouts is kept until `clear`, which comes before the communicator is destroyed.
    Errors, on all ranks: InputError (dtype, shape, layouts that differ between ranks), UnsupportedError (an array of the
    host, or not contiguous; no NCCL here), BackendError.
    """
    pointer = _pointer(communicator)
    if out is None:
        out = _loaded()[0].allocate(pointer, target, stream or 0)
    _loaded()[0].redistribute(pointer, array, source, target, out, stream or 0)
    return out


@_joining
def allocate(communicator: Any, layout: Layout, stream: int | None = None) -> Any:
    """An uninitialized array on this rank's GPU for its tile of the layout, for torch.from_dlpack and its like.

    Errors: BackendError (there is not that much), UnsupportedError (no NCCL here).
    """
    return _loaded()[0].allocate(_pointer(communicator), layout, stream or 0)


def clear(communicator: Any) -> None:
    """Gives back all that is kept for the communicator. Collective; before it is destroyed."""
    pointer = _pointer(communicator)
    _loaded()[0].clear(pointer)


__all__ = ["allocate", "available", "clear", "redistribute"]
