"""Ranks of an NCCL communicator, each with a GPU: arrays on devices, of any DLPack library (torch, cupy, jax). ::

    columns = torch.empty(by_columns.tile_shape(rank), device="cuda")
    reshard.nccl.redistribute(communicator, rows, by_rows, by_columns, columns,
                              stream=torch.cuda.current_stream().cuda_stream)

Every call on a communicator is collective, and all ranks make the calls in one order, each with its own device current.
An error on one rank is an error on all ranks, with the number and the text of that rank. Only a rank that passes no
communicator cannot inform the others. Only one thread at a time may use a communicator (another gets an InputError); the
ranks of one process may be its threads. The GIL is not held while bytes move. Ctrl-C ends a wait within a second and
aborts the communicators of this rank. The other ranks fail when NCCL reports that, or at their timeout. It is
tested on doubles of CUDA and NCCL, and by ranks that share one GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ._core import Layout
from .errors import UnsupportedError
from .tiles import fill_bytes


@functools.cache
def _loaded() -> tuple[Any, str]:
    """The module, or None and the reason why it is missing. It is imported only on use: it loads the libnccl of the
    system, and a torch that is imported later would get that library instead of its own."""
    try:
        from . import _nccl
        return _nccl, ""
    except ImportError as reason:
        return None, str(reason)


def available() -> bool:
    """True if this package was built with NCCL, and its libraries are found."""
    return _loaded()[0] is not None


def _pointer(communicator: Any) -> int:
    module, absent = _loaded()
    if module is None:
        why = f": {absent}" if "_nccl" not in absent else ""
        raise UnsupportedError(f"this build of reshard has no NCCL{why}; with CUDA 12 and NCCL 2.18 or newer installed, "
                               "`pip install .` again", "unsupported")
    pointer = getattr(communicator, "ptr", communicator)
    if not isinstance(pointer, int):
        raise TypeError("an NCCL communicator is its pointer as an int, or has it as `ptr`; this is a "
                        f"{type(communicator).__name__}")
    return pointer


_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Function = Callable[_Parameters, _Returned]


def _ends_in(arguments: Any, named: Any, stream_place: int) -> tuple[int, Any]:
    """The pointer of the communicator, and the stream as it was passed."""
    pointer = _pointer(arguments[0] if arguments else named.get("communicator"))
    return pointer, arguments[stream_place] if len(arguments) > stream_place else named.get("stream")


def _collective(function: _Function) -> _Function:
    """Decorates redistribute, as reshard.mpi does. A rank without a stream meets the others on its last one."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        pointer, stream = _ends_in(arguments, named, 5)
        with _loaded()[0].Call(pointer, "redistribute", stream):
            return function(*arguments, **named)
    return called


def _joining(function: _Function) -> _Function:
    """Decorates a call that is collective only as the first one on its communicator. That part comes first."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        pointer, stream = _ends_in(arguments, named, 2)
        _loaded()[0].join(pointer, stream)
        return function(*arguments, **named)
    return called


@_collective
def redistribute(communicator: Any, array: Any, source: Layout, target: Layout, out: Any = None,
                 stream: int | None = None, *, cast: bool = False, permute: Sequence[int] | None = None,
                 fill: Any = None) -> Any:
    """Moves this rank's tile of `source` to its tile of `target`; returns `out` once it is complete. Collective.

    communicator: the ncclComm_t as an int, or an object that has it as `ptr`.
    array, out: on the GPU of this rank, contiguous, shaped source.tile_shape(rank) and target.tile_shape(rank). None:
    `out` is made as by allocate.
    stream: the cudaStream_t as an int; the move runs behind its work. None: a stream of the library, and `array` must
    be complete.
    cast, permute, fill: as for reshard.local(n).redistribute: the target has another dtype, the dimensions in this order,
    other extents. All three happen on the GPU.
    The state for a pair of layouts is kept until `clear`, which comes before the communicator is destroyed.
    Errors, on all ranks: InputError (dtype, shape, layouts that differ between ranks), UnsupportedError (an array of
    the host, or not contiguous; no NCCL here), BackendError.
    """
    pointer = _pointer(communicator)
    if out is None:
        out = _loaded()[0].allocate(pointer, target, stream or 0)
    _loaded()[0].redistribute(pointer, array, source, target, out, stream or 0, bool(cast), list(permute or ()),
                              fill_bytes(target, fill))
    return out


@_joining
def allocate(communicator: Any, layout: Layout, stream: int | None = None) -> Any:
    """An uninitialized array on the GPU of this rank for its tile of the layout, for torch.from_dlpack and similar calls.

    Errors: BackendError (not enough memory), UnsupportedError (no NCCL here).
    """
    return _loaded()[0].allocate(_pointer(communicator), layout, stream or 0)


def clear(communicator: Any) -> None:
    """Frees all state for the communicator. Collective; call it before the communicator is destroyed."""
    pointer = _pointer(communicator)
    _loaded()[0].clear(pointer)


__all__ = ["allocate", "available", "clear", "redistribute"]
