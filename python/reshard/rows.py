"""A move as data: the bytes that each rank sends and receives, for your own transport.

RowSchedule and CheckpointMapping make rows. addressed, blocks, pack, unpack, buckets and choose_transfers turn them into
what a transport takes. docs/rows.md has a recipe for each transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy

from . import _core
from ._core import Layout, Model, Rows
from ._ranges import Periods, Width, widths_of
from .errors import InputError

row_dtype = numpy.dtype([(field, numpy.int64) for field in ("array", "peer", "source_offset", "target_offset", "run_bytes",
                                                            "runs", "source_stride", "target_stride")])
"""Eight integers: the number of the array in the list, and the rank at the other end (this rank for local copies). Then, in
bytes: the offset in the source tile of the sender, the offset in the target tile of the receiver, and the length of a run.
Then the number of runs, and the stride from run to run on each side in bytes (0 if there is one run)."""


nested_row_dtype = numpy.dtype([(field, numpy.int64) for field in row_dtype.names[:5]] +
                               [(field, numpy.int64, 4) for field in ("runs", "source_strides", "target_strides")])
"""A row with four nested loops, outermost first. Loops that are not used have one run and stride 0, and come first."""

Storage = str | Sequence[str] | None
"""The place of tiles in memory. None: dense and row-major. "order 0,2,1": dense, with the dimensions from the outermost to the
innermost, as HND and NHD caches differ. "strides 64,1 offset 8": in elements. A sequence has one text for each rank."""


def _storage_text(storage: Storage) -> str:
    return storage if isinstance(storage, str) else ";".join(storage or ())


class RowSchedule:
    """The rows of one or many arrays, on any rank: RowSchedule([(source, target), ...]).rows(rank).

    storages: for each array a pair of Storage, of the source and of the target; none: all tiles are dense and row-major.

    Ranks that make it from the same list get rows that match: the k-th row that a rank sends to a peer is the k-th row
    that the peer receives from it. A rank receives only bytes that it does not hold, and replicas share the work.
    Several threads may call it at once; the GIL is not held meanwhile.
    Errors: InputError (different arrays, a storage that does not fit), UnsupportedError (unreduced axes: a sum is no
    copy).
    """

    def __init__(self, problems: Iterable[tuple[Layout, Layout]],
                 storages: Iterable[tuple[Storage, Storage]] | None = None) -> None:
        self._rows = Rows(list(problems), [tuple(map(_storage_text, pair)) for pair in storages or ()])

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The rows that a rank sends, or with side="receive" receives: a structured array of row_dtype, without copies.

        Both sides include local copies. Sorted by array, then by peer. Ranks that hold nothing have no rows.
        """
        return self._rows.rows(rank, side).view(row_dtype)[:, 0]

    def nested_rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The same bytes in nested loops: a structured array of nested_row_dtype. Block-cyclic tiles have far fewer."""
        return self._rows.nested_rows(rank, side).view(nested_row_dtype)[:, 0]

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._rows.ranks

    def __len__(self) -> int:
        """The number of arrays."""
        return len(self._rows)


class CheckpointMapping:
    """Moves the tensors of a model from one set of layouts to another, by rules: CheckpointMapping(rules, tensors).rows(rank).

    rules: lines `pattern = layout` under `source MESH` and `target MESH`, with renames. Fused, stacked and split
    tensors are parts of one tensor. docs/rules.md has all rules.
    tensors: the tensors of the model: lines `name dtype[shape]`, or triples of name, dtype and shape. In a line {n:61}
    stands for the numbers below 61. Equal layers are understood once.
    Threads and memory: as RowSchedule.
    Errors: InputError, with the line and a caret (a name that matches no line or two lines, a line that matches no
    name, parts of other shapes), UnsupportedError.
    """

    def __init__(self, rules: str, tensors: str | Iterable[tuple[str, Any, Sequence[int]]]) -> None:
        self._model = Model(rules, tensors if isinstance(tensors, str) else list(tensors))

    @property
    def sources(self) -> dict[str, Layout]:
        """The layout of each tensor at the source, by its name there."""
        return self._model.sources

    @property
    def targets(self) -> dict[str, Layout]:
        """The layout of each tensor at the target, by its name there."""
        return self._model.targets

    @property
    def ends(self) -> list[tuple[str, str]]:
        """For each move, which a row numbers in `array`: the name at the source, and the name at the target."""
        return self._model.ends

    @property
    def ranks(self) -> int:
        """Ranks from 0 on that may have rows."""
        return self._model.ranks

    def __len__(self) -> int:
        """The number of moves."""
        return len(self._model)

    def rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The rows that a rank sends, or with side="receive" receives, as RowSchedule.rows. Offsets are within whole
        tiles. If a rule casts a tensor (`as bf16`), its rows count in the narrower of the dtypes in `sources` and
        `targets`, or in that of `sources` if both have one size. The end with the other dtype casts its tile."""
        return self._model.rows(rank, side).view(row_dtype)[:, 0]

    def nested_rows(self, rank: int, side: str = "send") -> numpy.ndarray:
        """The same bytes in nested loops, as RowSchedule.nested_rows."""
        return self._model.nested_rows(rank, side).view(nested_row_dtype)[:, 0]


def schedule_rows(source: Layout, target: Layout, rank: int, side: str = "send", source_storage: Storage = None,
                  target_storage: Storage = None) -> numpy.ndarray:
    """The rows of one array on one rank, as RowSchedule([(source, target)]).rows(rank, side).

    Run i of a row has `run_bytes` bytes. It begins at source_offset + i * source_stride in the source tile of the
    sender, and goes to target_offset + i * target_stride in the target tile of the receiver.
    """
    storages = None if source_storage is None and target_storage is None else [(source_storage, target_storage)]
    return RowSchedule([(source, target)], storages).rows(rank, side)


def halo_rows(layout: Layout, rank: int, width: Width = 1, periodic: Periods = False, source: Layout | None = None,
              side: str = "send", by_dimension: bool = False) -> list[numpy.ndarray]:
    """The rows of a fill of halos on one rank, one array of row_dtype for each round.

    layout: the owners. width, periodic and source are as for reshard.mpi.Halo. by_dimension: a round for each dimension
    instead of one for all. A round may begin when all rows of the round before have arrived. Offsets count from the
    start of the arrays, block and halo, in C order. In the first round of a fill from a source, source_offset counts from
    the start of the source tile. Both sides include local copies.
    Errors: InputError (widths, a side, another array), UnsupportedError (as reshard.mpi.Halo).
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"the rows of a halo are those of a Layout; a {type(layout).__name__} was given")
    rounds = _core.halo_rows(layout, widths_of(len(layout.shape), width, periodic, layout), source, rank, side, by_dimension)
    return [rows.view(row_dtype)[:, 0] for rows in rounds]


def _numbers(rows: numpy.ndarray) -> numpy.ndarray:
    """Rows as n x 8 integers: a view if they are dense."""
    if getattr(rows, "dtype", None) != row_dtype or rows.ndim != 1:
        raise InputError("rows are a one-dimensional array of reshard.row_dtype, as RowSchedule.rows returns")
    return numpy.ascontiguousarray(rows).view(numpy.int64).reshape(-1, 8)


def _arrays(buffers: Any) -> list[Any]:
    """One array of numpy or DLPack for each buffer."""
    listed = buffers if isinstance(buffers, (list, tuple)) else [buffers]
    return [buffer if hasattr(buffer, "__dlpack__") else numpy.frombuffer(buffer, numpy.uint8) for buffer in listed]


def packed_bytes(rows: numpy.ndarray) -> int:
    """The bytes of all runs of the rows."""
    return _core.packed_bytes(_numbers(rows))


def pack(rows: numpy.ndarray, tiles: Any, out: Any = None, threads: int = 1) -> Any:
    """Copies the runs of the rows from the source tiles into `out`, one after another, and returns `out`.

    tiles: the memory of each array, or of the only array: numpy, torch, or bytes, on the host. Offsets count from its
    first element. out: dense memory of at least packed_bytes(rows) bytes; none: a new array of uint8.
    At most `threads` threads share the work, and the GIL is not held.
    Errors: InputError (a run outside its tile, a buffer that is too small); then nothing is written.
    """
    numbers = _numbers(rows)
    if out is None:
        out = numpy.empty(_core.packed_bytes(numbers), numpy.uint8)
    _core.pack_rows(numbers, _arrays(tiles), _arrays(out)[0], threads)
    return out


def unpack(rows: numpy.ndarray, packed: Any, tiles: Any, threads: int = 1) -> None:
    """Copies runs that `pack` packed to the target tiles.

    rows: the rows of the receiver with this sender, rows(rank, "receive"), or the rows of the sender with this receiver:
    they have the same runs. Buffers, threads and errors: as pack.
    """
    _core.unpack_rows(_numbers(rows), _arrays(packed)[0], _arrays(tiles), threads)


def _side_sends(side: str) -> bool:
    if side not in ("send", "receive"):
        raise InputError(f"a side is 'send' or 'receive', not {side!r}")
    return side == "send"


def _peer_table(peers: Any, arrays: int) -> numpy.ndarray:
    """The addresses of peers as ranks x arrays numbers; 0: unknown."""
    if isinstance(peers, dict):
        lists = {rank: numpy.atleast_1d(addresses) for rank, addresses in peers.items()}
        width = max([arrays, *map(len, lists.values())])
        table = numpy.zeros((max(lists, default=-1) + 1, width), numpy.uint64)
        for rank, addresses in lists.items():
            table[rank, :len(addresses)] = addresses
        return table
    table = numpy.ascontiguousarray(peers, numpy.uint64)
    return table.reshape(-1, 1) if table.ndim == 1 else table


def addressed(rows: numpy.ndarray, own: Any, peers: Any, side: str = "send", device: int = 0,
              peer_devices: Any = ()) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The memory of the rows at this rank and at the peers: two arrays of n x 5 uint64, line k for row k.

    A line has address, bytes, device, stride and count: `count` blocks of `bytes` bytes, `stride` bytes apart. NIXL takes
    both arrays as they are.
    own: the address of this rank's tile of each array, at the rows' own end: sources for side="send", else targets.
    peers: the addresses of the tiles at the other end: an array of ranks x arrays, or a dictionary from rank to the
    addresses of its tiles. peer_devices: a device for each rank; empty: 0.
    Errors: InputError (an array or a peer without an address: 0 is none).
    """
    bases = numpy.ascontiguousarray(numpy.atleast_1d(own), numpy.uint64)
    table = _peer_table(peers, len(bases))
    return _core.addressed_rows(_numbers(rows), _side_sends(side), bases, device, table.reshape(-1), table.shape[1],
                                numpy.ascontiguousarray(peer_devices, numpy.uint64))


def blocks(memory: numpy.ndarray) -> numpy.ndarray:
    """The blocks of strided memory, one by one: m x 2 uint64, address and bytes. This is an array of struct iovec.

    memory: one of the arrays that `addressed` returns. Both have the same blocks in the same order, so the addresses of
    both and the bytes are the three lists that Mooncake takes.
    """
    return _core.memory_blocks(numpy.ascontiguousarray(memory, numpy.uint64))


def buckets(rows: numpy.ndarray, staging_bytes: int) -> list[numpy.ndarray]:
    """The rows in buckets of at most `staging_bytes` packed bytes, in order. Both ends of a pair cut at the same bytes."""
    return [numbers.view(row_dtype)[:, 0] for numbers in _core.row_buckets(_numbers(rows), staging_bytes)]


def mpi_type(rows: numpy.ndarray, end: str) -> Any:
    """The runs of the rows in one tile, as one committed datatype of mpi4py: end="source" or "target".

    The types of both ends have the same runs in the same order, so a put or a message moves them. Select the rows of one
    peer and one array first. Free the type after use. A run of 2 GiB and more needs MPI 4.
    """
    from mpi4py import MPI
    if end not in ("source", "target"):
        raise InputError(f"an end is 'source' or 'target', not {end!r}")
    packed_bytes(rows)
    parts = [MPI.BYTE.Create_hvector(runs, size, stride) for runs, size, stride in
             zip(rows["runs"].tolist(), rows["run_bytes"].tolist(), rows[f"{end}_stride"].tolist())]
    whole = MPI.Datatype.Create_struct([1] * len(parts), rows[f"{end}_offset"].tolist(), parts)
    for part in parts:
        part.Free()
    return whole.Commit()


class WayCosts(NamedTuple):
    """The costs of one way to move rows, in seconds. They add up."""
    seconds_per_message: float
    """For each call of the transport."""
    seconds_per_run: float
    """For each run, however short."""
    seconds_per_byte: float
    """For each byte of long runs."""


class TransferCosts(NamedTuple):
    """The costs of a transport. measure_costs measures them."""
    direct: WayCosts
    """One message for all runs of a peer."""
    packed: WayCosts
    """One message for each bucket: its runs are packed, sent and unpacked."""


class PeerTransfer(NamedTuple):
    """How the rows of one peer go. Seconds are predicted from TransferCosts."""
    peer: int
    packed: bool
    bytes: int
    blocks: int
    direct_seconds: float
    packed_seconds: float


def choose_transfers(rows: numpy.ndarray, rank: int, costs: TransferCosts,
                     staging_bytes: int = 1 << 22) -> list[PeerTransfer]:
    """For each peer whether its runs go one by one, or packed into buckets. Both ends of a pair choose the same.

    Local copies (peer == rank) are left out. Errors: InputError (a cost that is negative or no number, a bucket of no bytes).
    """
    if not (isinstance(costs, TransferCosts) and all(isinstance(way, WayCosts) for way in costs)):
        raise TypeError(f"costs are TransferCosts of two WayCosts, not {costs!r}")
    if not all(0 <= seconds < 1e6 for way in costs for seconds in way):
        raise InputError(f"costs are at least 0 and less than a million seconds, not {costs}")
    direct, packed = ((round(way.seconds_per_message * 1e12), round(way.seconds_per_run * 1e12),
                       max(1, round(1 / max(way.seconds_per_byte, 1e-18)))) for way in costs)
    return [PeerTransfer(*one) for one in _core.choose_transfers(_numbers(rows), rank, direct, packed, staging_bytes)]


_LONG_RUNS = 8


def measure_costs(transfer: Callable[[numpy.ndarray, numpy.ndarray], Any], memory: Any, remote_address: int,
                  run_bytes: int = 64, runs: int = 1024, staging_bytes: int = 1 << 20, rounds: int = 9, device: int = 0,
                  peer_device: int = 0) -> TransferCosts:
    """The costs of a transport, from minima of `rounds` moves: of one run of `run_bytes`, of so many runs, and of 8 long runs.

    The long runs fill the staging memory. All three go directly and packed. The runs are spread over the memory, as the
    runs of a tile are.
    transfer(local, remote) moves blocks between two arrays as `addressed` returns them, and returns when they are moved.
    memory: writable memory of this rank, as large as its tiles are: the last `staging_bytes` are staging, and the rest is at
    least 2 * runs * run_bytes bytes. remote_address: as much memory of the peer.
    Errors: InputError (too little memory); whatever `transfer` raises.
    """
    whole = numpy.frombuffer(memory, numpy.uint8)
    if runs <= _LONG_RUNS or run_bytes < 1 or staging_bytes < 1 or len(whole) < 2 * runs * run_bytes + staging_bytes:
        raise InputError(f"{len(whole)} bytes of memory, {runs} runs of {run_bytes}; more than {_LONG_RUNS} runs, and twice "
                         f"their bytes beside {staging_bytes} bytes of staging, are needed")
    local, staging = whole[:-staging_bytes], whole[-staging_bytes:]
    long_run = max(run_bytes + 1, min(staging_bytes, len(local) // 2) // _LONG_RUNS)

    def move(rows: numpy.ndarray) -> None:
        transfer(*addressed(rows, whole.ctypes.data, {0: [remote_address]}, "send", device, [peer_device]))

    def packed(rows: numpy.ndarray) -> None:
        for bucket in buckets(rows, staging_bytes):
            pack(bucket, local, staging)
            size = packed_bytes(bucket)
            move(numpy.array([(0, 0, len(local), len(local), size, 1, 0, 0)], row_dtype))
            unpack(bucket, staging, local)

    def seconds(way: Callable[[numpy.ndarray], None], size: int, count: int) -> float:
        stride, times = len(local) // count, []
        rows = numpy.array([(0, 0, 0, 0, size, count, stride, stride)], row_dtype)
        for _ in range(rounds):
            begin = time.perf_counter()
            way(rows)
            times.append(time.perf_counter() - begin)
        return min(times)

    def costs_of(way: Callable[[numpy.ndarray], None], bucket: int) -> WayCosts:
        # Three equations: messages * per_message + runs * (per_run + run_bytes * per_byte) + more bytes * per_byte.
        one, many, few = seconds(way, run_bytes, 1), seconds(way, run_bytes, runs), seconds(way, long_run, _LONG_RUNS)
        of_many, of_few = -(-runs * run_bytes // bucket), -(-_LONG_RUNS * long_run // bucket)
        short = max(many - of_many * one, 0.0) / (runs - of_many)
        per_message = max(one - short, 0.0)
        per_byte = max(few - of_few * per_message - _LONG_RUNS * short, 0.0) / (_LONG_RUNS * (long_run - run_bytes))
        return WayCosts(per_message, max(short - run_bytes * per_byte, 0.0), per_byte)

    return TransferCosts(costs_of(move, len(whole)), costs_of(packed, staging_bytes))
