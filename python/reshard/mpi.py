"""Ranks of an MPI communicator, given by mpi4py: arrays of numpy and of DLPack on the host, at the speed of C++.

    from mpi4py import MPI
    import reshard
    mesh = {"ranks": MPI.COMM_WORLD.size}
    by_rows = reshard.Layout(reshard.Mesh(mesh), "f64", (n, n), ("ranks", None))
    by_columns = reshard.Layout(reshard.Mesh(mesh), "f64", (n, n), (None, "ranks"))
    columns = reshard.mpi.redistribute(MPI.COMM_WORLD, rows, by_rows, by_columns)

Every call on a communicator is collective, and all ranks make the calls in one order. An error on one rank is an error on
all ranks: the others raise it with the number and the text of that rank. Only a rank that passes no communicator cannot
inform the others. Prepared state belongs to the communicator and is freed with it. Only one thread at a time may use a
communicator; another gets an InputError. Several threads may use several communicators if MPI was initialized with
THREAD_MULTIPLE. The GIL is never held while bytes move or a rank waits.

Ctrl-C ends a wait for other ranks within a second, and so does any signal handler that raises. The other ranks raise a
BackendError, and the next call works again. The interrupted run is lost, and its executor must be prepared anew. If a rank
is interrupted during prepare, every later call fails until each rank has called `clear`."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy

from ._core import Capabilities, Layout, ListPlan, Plan, Schedule, Split
from ._ranges import Box, Periods, Width, sides_of, widths_of
from .dtypes import layout_name_of, name_of, numpy_dtype
from .errors import BackendError, Error, InputError, UnsupportedError
from .rebuilds import Layouts, ends_of
from .tiles import empty_tile, fill_bytes

if TYPE_CHECKING:
    from mpi4py import MPI

_absent = ""  # the reason, if there is no MPI
_addressof: Any = None
_Comm: Any = None
_Intercomm: Any = None
_Intracomm: Any = ()  # no class, until mpi4py is found
_is_finalized: Any = None
_REGISTERED_MIN = 1 << 20  # bytes of an array that register_after registers
_repeats: int | None = None  # the attribute of communicators with register_after; None if no communicator has it
try:
    from . import _mpi
except ImportError as reason:
    _mpi = None  # type: ignore[assignment]
    _absent = str(reason)


def available() -> bool:
    """True if this package was built with MPI, and mpi4py is installed and uses the same MPI."""
    try:
        _connect()
    except UnsupportedError:
        return False
    return True


def _connect() -> None:
    """Finds mpi4py, once. Errors: UnsupportedError."""
    global _addressof, _Comm, _Intercomm, _Intracomm, _is_finalized
    if _mpi is None:
        why = f": {_absent}" if "_mpi" not in _absent else ""
        raise UnsupportedError(f"this build of reshard has no MPI{why}; install libopenmpi-dev or another MPI, then "
                               "`pip install .` again. Planning, rows and reshard.local work without", "unsupported")
    try:
        from mpi4py import MPI
    except ImportError:
        raise UnsupportedError("reshard.mpi takes mpi4py's communicators, and mpi4py is not installed: `pip install "
                               "mpi4py`", "unsupported") from None
    theirs, ours = MPI.Get_library_version().rstrip("\0"), _mpi.library_version().rstrip("\0")
    if theirs != ours:
        raise UnsupportedError(f"mpi4py runs {theirs.splitlines()[0]!r}, and reshard was built with "
                               f"{ours.splitlines()[0]!r}", "unsupported")
    _addressof, _is_finalized = MPI._addressof, MPI.Is_finalized
    _Comm, _Intercomm, _Intracomm = MPI.Comm, MPI.Intercomm, MPI.Intracomm


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
    """The address of the communicator, which is the argument at `place`."""
    return _address(arguments[place] if len(arguments) > place else named.get("comm"))


def _collective(kind: str, place: int = 0) -> Callable[[_Function], _Function]:
    """Decorates a call in which the ranks agree once: "prepare" or "redistribute", with the communicator at `place`.

    If an exception leaves the call before the library has agreed, this rank contributes it to the agreement. So no rank
    waits for a failed one, and all ranks stay at the same call.
    """
    def decorated(function: _Function) -> _Function:
        @functools.wraps(function)
        def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
            address = _address_in(place, arguments, named)
            with _mpi.Call(address, kind):
                return function(*arguments, **named)
        return called
    return decorated


def _short_way(redistribute: _Function) -> _Function:
    """Decorates redistribute. Most calls pass five arguments that the library takes at once; all others come to it."""
    @functools.wraps(redistribute)
    def called(*arguments: Any, **named: Any) -> Any:
        given = arguments
        if named:
            given = (*arguments, named["out"]) if named.keys() == {"out"} else ()
        if len(given) == 5 and _repeats is None:
            comm, array, source, target, out = given
            if isinstance(comm, _Intracomm) and _mpi.redistribute_plain(_addressof(comm), array, source, target, out):
                return out
        return redistribute(*arguments, **named)
    return called


def _joining(function: _Function) -> _Function:
    """Decorates a call that is collective only as the first one on its communicator. That part comes first."""
    @functools.wraps(function)
    def called(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        address = _address_in(0, arguments, named)
        _mpi.join(address)
        return function(*arguments, **named)
    return called


def _starting(function: _Function) -> _Function:
    """Decorates a call that starts a run. If this rank fails to start it, the waiting ranks receive the reason."""
    @functools.wraps(function)
    def called(self: Any, *arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        try:
            return function(self, *arguments, **named)
        except BaseException as error:
            self._prepared.report_failure(error)  # does nothing after the start
            raise
    return called


@_short_way
@_collective("redistribute")
def redistribute(comm: MPI.Comm, array: Any, source: Layout, target: Layout, out: Any = None, *, cast: bool = False,
                 permute: Sequence[int] | None = None, fill: Any = None) -> Any:
    """Moves this rank's tile of `source` to its tile of `target`; returns `out` once it is complete. Collective.

    array: of numpy or DLPack on the host, shaped source.tile_shape(comm.rank), of the dtype of the layout; only read.
    out: shaped target.tile_shape(comm.rank); a new numpy array when None. Arrays of `allocate` are the fastest. Others
    work too: Fortran order and strided views are copied (an Executor moves them in place).
    cast, permute, fill: as for reshard.local(n).redistribute: the target has another dtype, the dimensions in this order,
    other extents.
    The first call plans and prepares a pair of layouts and keeps it, for the 64 pairs that were used last.
    Errors, on all ranks before any byte moves: InputError (dtype, shape, layouts that differ between ranks, too few
    ranks, `array` and `out` that overlap), UnsupportedError (an array on a device; no MPI here), TypeError on the rank
    that passed no array or no layout, and InputError on the others. TypeError on one rank alone: no communicator.
    BackendError: MPI or a peer failed. After an error the next call prepares anew.
    """
    repeats = None if _repeats is None else comm.Get_attr(_repeats)
    if repeats is not None:
        repeats.note(_addressof(comm), array, out)
    if out is None:
        out = empty_tile(target, comm.rank)
    _mpi.redistribute(_addressof(comm), array, source, target, out, bool(cast), list(permute or ()),
                      fill_bytes(target, fill))  # the decorator has checked it
    return out


@_joining
def allocate(comm: MPI.Comm, layout: Layout | Sequence[int] | int, dtype: Any = None) -> numpy.ndarray:
    """An uninitialized numpy array in memory that peers on this node reach, which is the fastest to move from and to.

    layout: a Layout, for this rank's tile of it; or a shape in elements, with `dtype`. The memory is freed with the
    last array that uses it, at any time. Collective only as the first call on its communicator.
    Errors: BackendError (not enough memory), UnsupportedError (no MPI here).
    """
    address = _address(comm)
    shape: tuple[int, ...]
    if isinstance(layout, Layout):
        shape, kind = layout.tile_shape(comm.rank), layout.numpy_dtype
    else:
        shape, kind = (layout,) if isinstance(layout, int) else tuple(layout), numpy.dtype(dtype)
        name_of(kind)  # refuses types that no layout has
    if 0 in shape:
        return numpy.empty(shape, kind)
    size = math.prod(shape) * kind.itemsize
    return _mpi.allocate(address, size).view(kind).reshape(shape)


class Registration:
    """Arrays that `registered` has registered: a context manager, and `end` for programs that do not use it as one.
    registered makes them."""

    def __init__(self, held: Any) -> None:
        if _mpi is None or not isinstance(held, _mpi.RegisteredArrays):
            raise TypeError(f"reshard.mpi.registered makes a Registration, not {type(held).__name__}")
        self._held = held

    def end(self) -> None:
        """Turns the memory back into ordinary memory, with its contents. A second call does nothing.

        Errors: InputError (a run in flight uses it), BackendError (it was freed or mapped anew meanwhile).
        """
        self._held.end()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


@_joining
def registered(comm: MPI.Comm, *arrays: Any, on_fork: Literal["share", "withhold"] = "share") -> Registration:
    """Makes your arrays as fast as arrays of allocate: `with reshard.mpi.registered(comm, rows, columns):` around a
    loop. Addresses and contents stay. The arrays are kept alive, and numpy resizes none of them meanwhile.

    arrays: of numpy or DLPack on the host, in any order and strides, writable or not. All memory from the first byte to
    the last is registered, for all communicators. Each rank decides alone; the call is collective only as the first one
    on its communicator. While it works, and while it ends, no thread may write the arrays and no process may fork.
    on_fork: whether a child of fork shares the memory, or does not have it at all. docs/memory.md has the cost.
    Errors: InputError (memory that is not private to this process, such as a file mapping or a stack; registered
    already), UnsupportedError (on a device, or page-locked), BackendError (not enough memory, or a limit), TypeError
    (no array). After an error none of the arrays is registered.
    """
    if on_fork not in ("share", "withhold"):
        raise InputError(f"on_fork is 'share' or 'withhold', not {on_fork!r}", "usage")
    address = _address(comm)
    return Registration(_mpi.register(address, *arrays, withhold=on_fork == "withhold", keep=True))


def _owner_of(array: Any) -> Any:
    """The object whose death may free the memory: the last numpy array behind a view, or an array of DLPack itself."""
    while isinstance(array, numpy.ndarray) and isinstance(array.base, numpy.ndarray):
        array = array.base
    return array


class _MovedMemory:
    """Memory that moved, and its registration once it has one. numpy resizes no array with a weak reference."""

    __slots__ = ("owner", "moves", "held")

    def __init__(self, owner: weakref.ref[Any]) -> None:
        self.owner = owner
        self.moves = 0
        self.held: Any = None


class _Repeats:
    """The arrays that moved on one communicator. All that it registered ends with it, and at the exit of Python."""

    def __init__(self, after: int) -> None:
        self._after = after
        self._memories: dict[tuple[int, int], _MovedMemory] = {}
        weakref.finalize(self, self._memories.clear)

    def note(self, address: int, array: Any, out: Any) -> None:
        """Counts a move before it begins, and registers `out` if it has moved often enough.

        Data that goes into registered memory is as fast as it can be. So `array` is registered only if the targets are
        new ones each time, and one move later. Memory that cannot be registered is counted anew.
        """
        target = self._counted(out)
        if target is not None and target.held is not None:
            return
        source = self._counted(array)
        if target is not None and target.moves > self._after:
            self._try_to_register(address, target, out)
            target.moves = 0
            if source is not None:
                source.moves = 0
        elif source is not None and source.held is None and source.moves > self._after + 1:
            self._try_to_register(address, source, array)
            source.moves = 0

    def end(self) -> None:
        """Ends all registrations."""
        self._memories.clear()

    def _counted(self, array: Any) -> _MovedMemory | None:
        try:
            extent = None if array is None else _mpi.dense_extent(array)
            if extent is None or extent[1] < _REGISTERED_MIN:
                return None
            owner = _owner_of(array)
            memory = self._memories.get(extent)
            if memory is None or memory.owner() is not owner:
                memories = self._memories
                memory = memories[extent] = _MovedMemory(weakref.ref(owner, lambda _: memories.pop(extent, None)))
        except (TypeError, Error):  # no array, or one that cannot be registered or watched
            return None
        memory.moves += 1
        return memory

    def _try_to_register(self, address: int, memory: _MovedMemory, array: Any) -> None:
        try:
            memory.held = _mpi.register(address, array, withhold=True, keep=False)
        except Error:
            pass


@_joining
def register_after(comm: MPI.Comm, moves: int | None = None) -> int:
    """From now on `redistribute` on this communicator registers arrays that move again and again. Returns `moves`.

    moves: the same on all ranks. Before the next move after so many, an array of 1 MiB or more is registered, as by
    `registered` with on_fork="withhold": children of fork do not have its memory and must not touch it. None: as many
    moves as repay a registration. The call measures that, and is collective. 0: never, as on a new communicator.
    A registration ends when the array that owns the memory dies, with `clear`, and with the communicator. numpy
    resizes no array that moved. Strided arrays, and objects without weak references, are not registered.
    While redistribute registers, no thread may write the array and no process may fork. Errors: InputError.
    """
    global _repeats
    address = _address(comm)
    if moves is None:
        moves = _mpi.moves_that_repay(address)
    moves = operator.index(moves)
    if moves < 0:
        raise InputError(f"`moves` is {moves}, it is a number of moves or 0 for never", "usage")
    _stop_registering(comm)
    if moves > 0:
        from mpi4py import MPI
        if _repeats is None:
            _repeats = MPI.Comm.Create_keyval()
        comm.Set_attr(_repeats, _Repeats(moves))
    return moves


def _stop_registering(comm: MPI.Comm) -> None:
    """Ends what register_after began on this communicator."""
    if _repeats is None or comm.Get_attr(_repeats) is None:
        return
    comm.Get_attr(_repeats).end()
    comm.Delete_attr(_repeats)


@_collective("prepare")
def program_runner(comm: MPI.Comm, schedule: Schedule) -> Any:
    """The prepared runs behind reshard.Runner(schedule, comm). Collective. Errors: as reshard.Runner."""
    return _mpi.runner(_address(comm), schedule)


class Executor:
    """A plan prepared once, for loops: Executor(comm, plan).run(source, target). All its calls are collective.

    plan: a Plan or a ListPlan. Make it with capabilities=reshard.mpi.capabilities(comm) to run it as mpi.redistribute does.
    source, target: arrays (for a list: lists of arrays) with the strides of the tiles, such as Fortran order; row-major
    when None. They are not kept. split: the pieces of a Plan that travel one after another, beside your computation
    (Run.arrived, Run.offer; docs/overlap.md). None: no overlap.
    Errors, on all ranks: InputError (dtype, shape, plans that differ between ranks, an impossible split),
    InfeasibleError (a footprint limit that cannot be met), UnsupportedError (negative strides, an array on a device, a
    split of an array that is reshaped), TypeError on the rank that passed anything else, BackendError.
    """

    @_collective("prepare", place=1)
    def __init__(self, comm: MPI.Comm, plan: Plan | ListPlan, source: Any = None, target: Any = None,
                 split: Split | None = None) -> None:
        address = _address(comm)
        self._prepared = _mpi.prepare(address, plan, source, target, split)

    @_starting
    def run(self, source: Any, target: Any) -> None:
        """Moves; returns when `target` is complete on this rank.

        For a list: lists of arrays, in the order of its problems. The same arrays again are not bound again. If the
        plan donates, `source` is written and its contents are undefined afterwards. Errors: InputError (dtype, shape,
        strides, memory that overlaps; this rank may run again), BackendError. After a BackendError the executor must be
        prepared anew, also on ranks that waited more than a second for a rank with wrong arguments.
        """
        self._prepared.start(source, target).wait()

    @_starting
    def start(self, source: Any, target: Any, offers_withheld: bool = False) -> Any:
        """As run, but returns at once a run with test() -> bool and wait(); dropping it waits. One run at a time.

        `source` and `target` are kept alive until then. Do not write `source` or read `target` meanwhile, except for
        the pieces that have arrived: arrived() -> int counts them. offers_withheld: the program still computes the
        source, and offer(piece) marks a piece as ready. If you drop the run before all pieces are offered, it fails.
        """
        return self._prepared.start(source, target, offers_withheld)

    @property
    def arrival_count(self) -> int:
        """The final value of arrived(): the pieces of an overlapped split, or the buckets of a list."""
        return self._prepared.arrival_count

    @property
    def workspace_bytes(self) -> int:
        """Bytes that the executor itself holds, for tiles between source and target."""
        return self._prepared.workspace_bytes

    @property
    def staging_bytes(self) -> int:
        """Bytes that the backend holds for it."""
        return self._prepared.staging_bytes

    @property
    def footprint_bytes(self) -> int:
        """The most bytes that this rank holds: sources, targets, workspace and staging."""
        return self._prepared.footprint_bytes

    def describe(self) -> str:
        """How bytes move, for people."""
        return self._prepared.describe()


class Halo:
    """The cells around each rank's block, filled in place: Halo(comm, layout)(u). All its calls are collective.

    Each rank keeps its block and its halo in one array of `shape`, and u[core] is the block. A fill copies from the
    blocks of other ranks, corners too, and writes nothing but halos. A halo may be wider than a block, and blocks may be
    uneven or empty. Cells beyond the border of a dimension that is not periodic are never touched.
    layout: the owners of the elements, a Layout without summands; or a list of Layouts, whose arrays are filled together.
    width: cells on both sides of each dimension; or for each dimension a number or a pair (before, after).
    periodic: a bool, or one for each dimension. source: a Layout (or a list) of other tiles of the same array, on any
    devices of the communicator. Then a fill reads these tiles, and writes blocks and halos in one exchange.
    source_width: as width, for tiles that lie in arrays with halos, which a fill does not read.
    Errors, on all ranks: InputError (widths, layouts that differ between ranks, too few ranks), UnsupportedError
    (summands, a block-cyclic dimension with a halo, a periodic halo of more than 8 times the extent), TypeError on the
    rank that passed anything else, BackendError.
    """

    __slots__ = ("_comm", "_one", "_layouts", "_widths", "_prepared", "_sum", "_shapes", "_cores", "__weakref__")

    @_collective("prepare", place=1)
    def __init__(self, comm: MPI.Comm, layout: Layout | Sequence[Layout], width: Width = 1,
                 periodic: Periods = False, source: Layout | Sequence[Layout] | None = None,
                 source_width: Width = 0) -> None:
        address = _address(comm)
        self._comm = comm
        self._one = isinstance(layout, Layout)
        self._layouts = [layout] if isinstance(layout, Layout) else list(layout)
        if not all(isinstance(one, Layout) for one in self._layouts):
            raise TypeError("a halo is for a Layout, or for a list of Layouts")
        sources = [source] * len(self._layouts) if source is None or isinstance(source, Layout) else list(source)
        self._widths = [widths_of(len(one.shape), width, periodic, one) for one in self._layouts]
        beside = [widths_of(len(one.shape), source_width, False, one) for one in self._layouts]
        self._prepared = _mpi.prepare_halo(address, self._layouts, self._widths, sources, beside)
        self._sum: _HaloSum | None = None
        places = self._prepared.places()
        self._shapes = [tuple(shape) for shape, _ in places]
        self._cores = [tuple(slice(begin, end) for begin, end in core) for _, core in places]

    @property
    def shape(self) -> Any:
        """The shape of this rank's array: its block and its halo. All 0 if the rank owns nothing. A list for a list."""
        return self._shapes[0] if self._one else self._shapes

    @property
    def core(self) -> Any:
        """Slices: array[core] is this rank's tile of the layout. A list for a list."""
        return self._cores[0] if self._one else self._cores

    @property
    def received_bytes(self) -> int:
        """Bytes that a fill brings to this rank from others, the fewest possible."""
        return self._prepared.received_bytes

    def allocate(self) -> Any:
        """An array of zeros with this shape, in memory that peers on this node reach. A list for a list."""
        made = [allocate(self._comm, shape, layout.numpy_dtype)
                for shape, layout in zip(self._shapes, self._layouts, strict=True)]
        for array in made:
            array.fill(0)
        return made[0] if self._one else made

    @_starting
    def start(self, array: Any, tile: Any = None) -> Any:
        """Begins a fill and returns at once a run with test() -> bool and wait(); dropping it waits. One run at a time.

        array: shaped `shape`, in C order (a list for a list). Until the run is over, do not touch its halo and only read
        its block. tile: shaped source.tile_shape(comm.rank), if there is a source, and larger by source_width.
        Errors: InputError (dtype, shape, order, memory that overlaps; this rank may try again), BackendError. After a
        BackendError the halo must be prepared anew.
        """
        return self._prepared.start(*self._lists(array, tile))

    @_starting
    def __call__(self, array: Any, tile: Any = None) -> Any:
        """Fills and returns the array. Errors: as start."""
        self._prepared.run(*self._lists(array, tile))
        return array

    def _lists(self, array: Any, tile: Any) -> tuple[list[Any], list[Any]]:
        if self._one:
            return [array], [tile]
        return list(array), [None] * len(self._layouts) if tile is None else list(tile)

    def start_sum(self, array: Any) -> Any:
        """Begins a sum and returns at once a run with test() -> bool and wait(); dropping it waits. One run at a time.

        Until the run is over, only read the halo of the array. The first call prepares, and all ranks must make
        it. Errors: as start, and UnsupportedError on all ranks (a dtype that has no sums). A BackendError
        leaves all blocks as they were.
        """
        if self._sum is None:
            self._sum = _HaloSum(self._comm, self._layouts, self._widths)
        return self._sum.start([array] if self._one else list(array))

    def sum(self, array: Any) -> Any:
        """Adds each cell of the halos to the element of its owner's block, and returns the array (a list for a list).

        This is the adjoint of a fill in place: the inner products (fill(x), y) and (x, sum(y)) are equal. Cells of this
        rank's own elements are added too. The halo stays as it is, and cells beyond an open border are not read. The
        order of the additions is fixed: the element, then its cells by ascending rank, and on one rank in C order. With
        a source, sum adds to the blocks and moves nothing back. Errors: as start_sum.
        """
        self.start_sum(array).wait()
        return array

    def describe(self) -> str:
        """How bytes move, for people."""
        return self._prepared.describe()


class _HaloSum:
    """A prepared sum of halos."""

    @_collective("prepare", place=1)
    def __init__(self, comm: MPI.Comm, layouts: list[Layout], widths: list[list[tuple[int, int, bool]]]) -> None:
        self._prepared = _mpi.prepare_halo_sum(_address(comm), layouts, widths)

    @_starting
    def start(self, arrays: list[Any]) -> Any:
        return self._prepared.start(arrays)


class Boxes:
    """Boxes that each rank names, exchanged: Boxes(comm, shape, dtype, have, want). All its calls are collective.

    Each rank gives the boxes that it has and the boxes that it wants of an array. Ranks need not know the boxes of others.
    A run copies every wanted element from its owner, once for each rank, in one round. Wanted boxes may overlap.
    shape, dtype: of the whole array, as for a Layout. arrays: how many arrays of this shape and dtype move in one run.
    have, want: boxes in global indices, each a slice or a pair (begin, end) per dimension; [] if there are none.
    A buffer has all boxes of the rank, one after another, each in C order: allocate makes buffers, `owned` and `wanted`
    show the boxes in them.
    Errors, on all ranks: InputError (a box outside of the shape, an element with two owners, a wanted element without an
    owner, shapes or dtypes that differ between ranks), TypeError on the rank that passed anything else, BackendError.
    """

    __slots__ = ("_comm", "_one", "_dtype", "_have", "_want", "_prepared", "__weakref__")

    @_collective("prepare", place=1)
    def __init__(self, comm: MPI.Comm, shape: Sequence[int], dtype: Any, have: Sequence[Box], want: Sequence[Box],
                 arrays: int = 1) -> None:
        address = _address(comm)
        self._comm = comm
        name = layout_name_of(dtype)
        self._dtype = numpy_dtype(name)
        extents = [operator.index(extent) for extent in shape]
        self._have, self._want = sides_of(extents, have), sides_of(extents, want)
        self._one = arrays == 1
        self._prepared = _mpi.prepare_boxes(address, name, extents, self._have, self._want, arrays)

    def allocate(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Two buffers: for the boxes that this rank has, and for the boxes that it wants. Call it once for each array.

        Each is one-dimensional and not initialized, in memory that peers on this node reach.
        """
        return tuple(allocate(self._comm, _elements_of(boxes), self._dtype)  # type: ignore[return-value]
                     for boxes in (self._have, self._want))

    def owned(self, buffer: numpy.ndarray) -> list[numpy.ndarray]:
        """The boxes that this rank has, as views of a buffer, in the given order."""
        return _views_of(buffer, self._have)

    def wanted(self, buffer: numpy.ndarray) -> list[numpy.ndarray]:
        """The boxes that this rank wants, as views of a buffer, in the given order."""
        return _views_of(buffer, self._want)

    @property
    def received_bytes(self) -> int:
        """Bytes that a run brings to this rank from others, the fewest possible."""
        return self._prepared.received_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes that a run takes from this rank to others."""
        return self._prepared.sent_bytes

    @_starting
    def start(self, have: Any, want: Any) -> Any:
        """Begins a run and returns at once a run with test() -> bool and wait(); dropping it waits. One run at a time.

        have, want: buffers (lists of buffers for several arrays). Until the run is over, only read `have`, and do not
        touch `want`. Errors: InputError (dtype, size, memory that overlaps; this rank may try again), BackendError. After
        a BackendError the boxes must be prepared anew.
        """
        return self._prepared.start([have] if self._one else list(have), [want] if self._one else list(want))

    def run(self, have: Any, want: Any) -> Any:
        """Moves, and returns `want` once it is complete on this rank. Errors: as start."""
        self.start(have, want).wait()
        return want

    def describe(self) -> str:
        """The bytes of this rank, and how they move, for people."""
        return self._prepared.describe()


def _elements_of(boxes: list[list[tuple[int, int]]]) -> int:
    return sum(math.prod(end - begin for begin, end in box) for box in boxes)


def _views_of(buffer: numpy.ndarray, boxes: list[list[tuple[int, int]]]) -> list[numpy.ndarray]:
    if buffer.shape != (_elements_of(boxes),):
        raise InputError(f"a buffer of {_elements_of(boxes)} elements is wanted, not one of shape {buffer.shape}",
                         "mismatch")
    views, first = [], 0
    for box in boxes:
        shape = tuple(end - begin for begin, end in box)
        views.append(buffer[first:first + math.prod(shape)].reshape(shape))
        first += math.prod(shape)
    return views


@_collective("prepare")
def rebuild(comm: MPI.Comm, tile: Any, source: Layouts, target: Layouts, lost: Sequence[int],
            devices: Sequence[int] | None = None) -> Any:
    """Rebuilds arrays from the replicas that are left when devices are lost; returns this rank's target tiles. Collective.

    Layouts name devices as before the loss: a tile of `source` is gone on each device in `lost`. devices: the device that
    each rank of `comm` is; rank r is device r when None. Lists of layouts and tiles move a whole state in one round, and
    so do dicts: source, target and tile by the name of each array.
    tile: this rank's source tile in C order (a list for a list, a dict for a dict); None on a device that is lost or new.
    Each element comes from a holder that is left, and the holders of a tile share the work. A rank keeps what it has.
    Errors, on all ranks before any byte moves: InfeasibleError (only lost devices held some boxes; it names them),
    InputError (dtype, shape, a device that is no rank, arguments that differ between ranks), UnsupportedError (summands),
    TypeError on the rank that passed anything else. BackendError: MPI or a peer failed.
    """
    names, sources, targets = ends_of(source, target)
    if names is not None and tile is not None:
        tile = [tile.get(name) for name in names]
    one = isinstance(source, Layout)
    tiles = [tile] if one else [None] * len(sources) if tile is None else list(tile)
    if len(sources) != len(tiles):
        raise InputError(f"{len(sources)} sources, {len(targets)} targets and {len(tiles)} tiles were given", "mismatch")
    outs = _rebuilt(comm, tiles, sources, targets, lost, _devices_of(comm, devices))
    return outs[0] if one else outs if names is None else dict(zip(names, outs, strict=True))


def _devices_of(comm: MPI.Comm, devices: Sequence[int] | None) -> list[int]:
    ids = list(range(comm.size)) if devices is None else [operator.index(device) for device in devices]
    if len(ids) != comm.size:
        raise InputError(f"{comm.size} ranks were given {len(ids)} devices", "mismatch")
    return ids


def _rebuilt(comm: MPI.Comm, tiles: list[Any], sources: list[Layout], targets: list[Layout], lost: Sequence[int],
             devices: list[int]) -> list[numpy.ndarray]:
    device = devices[comm.rank]
    gone = [operator.index(one) for one in lost]
    outs = [empty_tile(layout, device) for layout in targets]
    _mpi.rebuild(_addressof(comm), sources, targets, gone, devices, [None] * len(tiles) if device in gone else tiles, outs)
    return outs


def capabilities(comm: MPI.Comm) -> Capabilities:
    """The capabilities of MPI among these ranks, for synthesize(..., capabilities=...). Collective as the first call."""
    address = _address(comm)
    return _mpi.capabilities(address)


def clear(comm: MPI.Comm) -> None:
    """Frees the state that redistribute keeps on the communicator. Collective. Arrays of `allocate` stay.

    It also ends `register_after`, and what that has registered."""
    address = _address(comm)
    _stop_registering(comm)
    _mpi.clear(address)


__all__ = ["Boxes", "Executor", "Halo", "Registration", "allocate", "available", "capabilities", "clear",
           "rebuild", "redistribute", "register_after", "registered"]
