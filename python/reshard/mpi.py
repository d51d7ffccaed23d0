"""Ranks of an MPI communicator, taken from mpi4py: numpy's arrays and the host's DLPack, at the speed of C++.

    from mpi4py import MPI
    import reshard
    mesh = {"ranks": MPI.COMM_WORLD.size}
    by_rows = reshard.Layout(reshard.Mesh(mesh), "f64", (n, n), ("ranks", None))
    by_columns = reshard.Layout(reshard.Mesh(mesh), "f64", (n, n), (None, "ranks"))
    columns = reshard.mpi.redistribute(MPI.COMM_WORLD, rows, by_rows, by_columns)

Every call on a communicator is collective, and all ranks make them in one order. What one rank gets wrong is an error on
all: the others raise that rank's error, with its number and its words. Only a rank that names no communicator cannot tell
the others. What is prepared hangs on the communicator and goes with it. Threads: one at a time on one communicator
(another gets an InputError); several communicators may be used by several threads where MPI was initialized with
THREAD_MULTIPLE. The GIL is never held while bytes move or a rank waits.

Ctrl-C ends a wait for other ranks within a second, as does any signal's handler that raises. The others raise a
BackendError, and the next call goes on. A run that was ended so is lost, and its executor must be prepared anew. If a rank
is interrupted while all prepare, every later call fails until each rank has called `clear`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy

from ._core import Capabilities, Layout, ListPlan, Plan, Split
from .dtypes import name_of
from .errors import BackendError, InputError, UnsupportedError
from .tiles import empty_tile

if TYPE_CHECKING:
    from mpi4py import MPI

_absent = ""  # why there is no MPI here
_addressof: Any = None
_Comm: Any = None
_Intercomm: Any = None
_is_finalized: Any = None
try:
    from . import _mpi
except ImportError as reason:
    _mpi = None  # type: ignore[assignment]
    _absent = str(reason)


def available() -> bool:
    """True where this package was built with MPI, and mpi4py is there and runs the same MPI."""
    try:
        _connect()
    except UnsupportedError:
        return False
    return True


def _connect() -> None:
    """Finds mpi4py, once. Errors: UnsupportedError."""
    global _addressof, _Comm, _Intercomm, _is_finalized
    if _mpi is None:
        why = f": {_absent}" if "_mpi" not in _absent else ""
        raise UnsupportedError(f"this build of reshard has no MPI{why}; install libopenmpi-dev or another MPI, then "
                               "`pip install ./python` again. Planning, rows and reshard.local work without", "unsupported")
    try:
        from mpi4py import MPI
    except ImportError:
        raise UnsupportedError("reshard.mpi takes mpi4py's communicators, and mpi4py is not installed: `pip install "
                               "mpi4py`", "unsupported") from None
    theirs, ours = MPI.Get_library_version().rstrip("\0"), _mpi.library_version().rstrip("\0")
    if theirs != ours:
        raise UnsupportedError(f"mpi4py runs {theirs.splitlines()[0]!r}, and reshard was built with "
                               f"{ours.splitlines()[0]!r}", "unsupported")
    _addressof, _Comm, _Intercomm, _is_finalized = MPI._addressof, MPI.Comm, MPI.Intercomm, MPI.Is_finalized


def _address(comm: MPI.Comm) -> int:
    if _addressof is None:
        _connect()
    if not isinstance(comm, _Comm) or isinstance(comm, _Intercomm):
        raise TypeError(f"an intracommunicator of mpi4py is wanted, not {type(comm).__name__}")
    if _is_finalized():
        raise BackendError("MPI is not running: this call comes after MPI_Finalize", "backend")
    if not comm:
        raise BackendError("there is no rank on MPI_COMM_NULL", "backend")
    return _addressof(comm)


_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Function = Callable[_Parameters, _Returned]


def _address_in(place: int, arguments: Any, named: Any) -> int:
    """Of the communicator, which is the argument at `place`."""
    return _address(arguments[place] if len(arguments) > place else named.get("comm"))


def _collective(kind: str, place: int = 0) -> Callable[[_Function], _Function]:
    """Decorates a call in which the ranks agree once: "prepare" or "redistribute", with the communicator at `place`.

    An exception that leaves the call before the library has agreed, whoever raised it, is what this rank brings to the
    agreement. So no rank waits for one that has failed, and none is a call apart from the others.
    """
    def decorated(function: _Function) -> _Function:
        @functools.wraps(function)
        def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
            address = _address_in(place, arguments, named)
            with _mpi.Call(address, kind):
                return function(*arguments, **named)
        return called
    return decorated


def _joining(function: _Function) -> _Function:
    """Decorates a call that is collective only as the first one on its communicator: that part comes first."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        address = _address_in(0, arguments, named)
        _mpi.join(address)
        return function(*arguments, **named)
    return called


def _starting(function: _Function) -> _Function:
    """Decorates what starts a run: ranks that wait in it for one that does not start are told why."""
    @functools.wraps(function)
    def called(self: Any, *arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        try:
            return function(self, *arguments, **named)
        except BaseException as error:
            self._prepared.excuse(error)  # does nothing after the start
            raise
    return called


@_collective("redistribute")
def redistribute(comm: MPI.Comm, array: Any, source: Layout, target: Layout, out: Any = None) -> Any:
    """Moves this rank's tile of `source` to its tile of `target`; returns `out` once it is complete. Collective.

    array: numpy's or DLPack's on the host, shaped source.tile_shape(comm.rank), of the layout's dtype; only read.
    out: shaped target.tile_shape(comm.rank); a new numpy array when None. Arrays of `allocate` are the fastest; any
    others are right too: Fortran order and strided views are copied (an Executor moves them where they are).
    A pair of layouts is planned and prepared by its first call and kept, for the 64 pairs that were used last.
    Errors, on all ranks before any byte moves: InputError (dtype, shape, layouts that differ between ranks, too few
    ranks, `array` and `out` that overlap), UnsupportedError (an array on a device; no MPI here), TypeError on the rank
    that gave no array or no layout, and InputError on the others. TypeError on one rank alone: no communicator.
    BackendError: MPI or a peer failed. After an error the next call prepares anew.
    """
    address = _address(comm)
    if out is None:
        out = empty_tile(target, comm.rank)
    _mpi.redistribute(address, array, source, target, out)
    return out


@_joining
def allocate(comm: MPI.Comm, layout: Layout | Sequence[int] | int, dtype: Any = None) -> numpy.ndarray:
    """An uninitialized numpy array in memory that peers on this node reach: the fastest there is to move from and to.

    layout: a Layout, for this rank's tile of it; or a shape in elements, with `dtype`. The memory is freed with the last
    array that shows it, at whatever time. Collective only as the first call on its communicator.
    Errors: BackendError (there is not that much), UnsupportedError (no MPI here).
    """
    address = _address(comm)
    shape: tuple[int, ...]
    if isinstance(layout, Layout):
        shape, kind = layout.tile_shape(comm.rank), layout.numpy_dtype
    else:
        shape, kind = (layout,) if isinstance(layout, int) else tuple(layout), numpy.dtype(dtype)
        name_of(kind)  # refuses what no layout has
    if 0 in shape:
        return numpy.empty(shape, kind)
    size = math.prod(shape) * kind.itemsize
    return _mpi.allocate(address, size).view(kind).reshape(shape)


class Registration:
    """Arrays that registered has registered: a context, and `end` for programs that have none. registered makes them."""

    def __init__(self, held: Any) -> None:
        if _mpi is None or not isinstance(held, _mpi.RegisteredArrays):
            raise TypeError(f"reshard.mpi.registered makes a Registration, not {type(held).__name__}")
        self._held = held

    def end(self) -> None:
        """The memory is as any other again, with its contents; ended already, nothing.

        Errors: InputError (a run is in flight that uses it), BackendError (it was freed or mapped anew meanwhile).
        """
        self._held.end()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


@_joining
def registered(comm: MPI.Comm, *arrays: Any, on_fork: Literal["share", "withhold"] = "share") -> Registration:
    """Makes arrays of the caller's as fast as those of allocate: `with reshard.mpi.registered(comm, rows, columns):`
    around a loop. Addresses and contents stay; the arrays are kept alive, and numpy resizes none of them meanwhile.

    arrays: numpy's or DLPack's on the host, of any order and strides, writable or not; all of the memory from the first
    byte to the last is registered. It holds for all communicators. Each rank does so as it likes; collective only as the
    first call on its communicator. While this works, and while it ends, no thread writes the arrays and nobody forks.
    on_fork: whether a child of fork shares the memory, or does not have it at all. docs/memory.md has the price.
    Errors: InputError (memory that is no private one of this process's, such as a file's or a stack's; registered
    already), UnsupportedError (on a device, or page-locked), BackendError (memory or a limit does not suffice),
    TypeError (no array). Then none of the arrays is registered.
    """
    if on_fork not in ("share", "withhold"):
        raise InputError(f"on_fork is 'share' or 'withhold', not {on_fork!r}", "usage")
    address = _address(comm)
    return Registration(_mpi.register(address, *arrays, withhold=on_fork == "withhold"))


class Executor:
    """A plan prepared once, for loops: Executor(comm, plan).run(source, target). Collective, as everything of it.

    plan: a Plan or a ListPlan; make it with capabilities=reshard.mpi.capabilities(comm) to run it as mpi.redistribute
    would. source, target: arrays (of a list: lists of arrays) whose strides the tiles will have, such as Fortran order;
    row-major when None. They are not kept. split: the pieces of a Plan that travel one after the other, beside which
    you compute (Run.arrived, Run.offer; docs/overlap.md); as the plan runs by itself when None.
    Errors, on all ranks: InputError (dtype, shape, plans that differ between ranks, a split that cannot be),
    InfeasibleError (a footprint limit that cannot be met), UnsupportedError (negative strides, an array on a device, a
    split of an array that is reshaped), TypeError on the rank that gave something else, BackendError.
    """

    @_collective("prepare", place=1)
    def __init__(self, comm: MPI.Comm, plan: Plan | ListPlan, source: Any = None, target: Any = None,
                 split: Split | None = None) -> None:
        address = _address(comm)
        self._prepared = _mpi.prepare(address, plan, source, target, split)

    @_starting
    def run(self, source: Any, target: Any) -> None:
        """Moves; returns when `target` is complete on this rank.

        Of a list: lists of arrays, in the order of its problems. The same arrays again are not bound again. With a plan
        that donates, `source` is written and nothing of it is promised afterwards. Errors: InputError (dtype, shape,
        strides, memory that overlaps; this rank may run again), BackendError, after which the executor must be prepared
        anew: also on ranks that waited more than a second for one whose arguments were wrong.
        """
        self._prepared.start(source, target).wait()

    @_starting
    def start(self, source: Any, target: Any, offers_withheld: bool = False) -> Any:
        """The same, but returns at once a run with test() -> bool and wait(); dropping it waits. One at a time.

        `source` and `target` are kept alive until then; nobody writes the one or reads the other meanwhile, but for the
        pieces that have arrived: arrived() -> int says how many. offers_withheld: the source is made meanwhile, and
        offer(piece) says so of a piece; who drops the run before all are offered has failed.
        """
        return self._prepared.start(source, target, offers_withheld)

    @property
    def arrival_count(self) -> int:
        """What arrived() ends at: the pieces of an overlapped split, or the buckets of a list."""
        return self._prepared.arrival_count

    @property
    def workspace_bytes(self) -> int:
        """Of the executor's own, for tiles between source and target."""
        return self._prepared.workspace_bytes

    @property
    def staging_bytes(self) -> int:
        """That the backend holds for it."""
        return self._prepared.staging_bytes

    @property
    def footprint_bytes(self) -> int:
        """The most that this rank holds: sources, targets, workspace and staging."""
        return self._prepared.footprint_bytes

    def describe(self) -> str:
        """How bytes move, for people."""
        return self._prepared.describe()


def capabilities(comm: MPI.Comm) -> Capabilities:
    """What MPI can do among these ranks, for synthesize(..., capabilities=...). Collective as the first call."""
    address = _address(comm)
    return _mpi.capabilities(address)


def clear(comm: MPI.Comm) -> None:
    """Gives back what redistribute keeps on the communicator. Collective. Arrays of `allocate` stay."""
    address = _address(comm)
    _mpi.clear(address)


__all__ = ["Executor", "Registration", "allocate", "available", "capabilities", "clear", "redistribute", "registered"]
