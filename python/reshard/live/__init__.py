"""Versions of arrays from one job to another that was started apart, such as weights from a trainer to an engine.

    with reshard.live.publish(job, "/run/weights", {"w": (by_rows, array)}) as out:    # trainer, m ranks
        out.commit(7)
    with reshard.live.subscribe(job, "/run/weights", {"w": by_columns}) as into:       # engine, n ranks
        version = into.update()    # waits until a newer version is whole
        into["w"]                  # this rank's tile of it

The processes of one side agree through their job: None for one process, an intracommunicator of mpi4py, a process
group of torch, the module torch.distributed or jax for all their processes, or what join_group and join_through return.
Neither side needs MPI. Calls are collective over the job, and all ranks make them in one order. A process that dies is an
error on all survivors, which names it. docs/live.md explains the promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from .._core import Layout
from ._jobs import available, job_of, join_group, join_through, milliseconds, module, reported
from ._sharded import has_elements, sharded

__all__ = ["Publisher", "RankStatus", "ReaderStatus", "Subscriber", "available", "join_group", "join_through", "offered", "publish",
           "status", "subscribe"]

for _made in (available, join_group, join_through):
    _made.__module__ = __name__  # the name that users write


class Publisher:
    """Publishes versions of this job's arrays. publish makes it. A context: leaving it closes the connections."""

    def __init__(self, job: Any, endpoint: str, tensors: Mapping[str, Any], rules: str | None,
                 shapes: Mapping[str, Sequence[int]] | None, cast: Any, lease: float, bytes_per_second: int | None,
                 memory_bytes: int | None, check_bytes: bool, transport: str) -> None:
        self._lease = milliseconds("lease", lease)
        self._job = job_of(job)
        self._staged = 0
        with reported(self._job.group, self._lease):
            found = {} if rules is not None else {name: sharded(name, value, self._job) for name, value in tensors.items()}
            self._sharded = {name: how for name, how in found.items() if how is not None}
        self._arrays = {name: tensors[name] for name in self._sharded if has_elements(tensors[name])}  # without tiles
        plain = {name: self._sharded[name].layout if name in self._sharded else value for name, value in tensors.items()}
        self._out = module().Publisher(self._job.group, endpoint, plain, rules, dict(shapes or {}),
                                       dict(cast) if isinstance(cast, Mapping) else cast, self._lease,
                                       int(bytes_per_second or 0), int(memory_bytes or 0), check_bytes, transport)

    def commit(self, version: int, arrays: Mapping[str, Any] | None = None) -> None:
        """Copies this rank's arrays and offers them as a version. They may change when it returns. Collective.

        version: from 1 on, larger than all before. arrays: by name, if an array is a new object in each version. Each
        other array was given to publish. No subscriber delays it.
        Errors: InputError (a version that does not grow, an array of another shape, type or sharding, no array);
        UnsupportedError (an array on a GPU that does not know its sharding); BackendError (a rank is lost or fails; readers
        keep more old versions than memory_bytes allows). Subscribers then keep the version before.
        """
        given = dict(arrays or {})
        staged = 0
        with reported(self._job.group, self._lease):
            for name, how in self._sharded.items():
                array = given.get(name, self._arrays.get(name))
                if array is not None:
                    given[name], copied = how.tile(array)
                    staged += copied
        self._out.commit(version, given)
        self._staged = staged

    @property
    def staged_bytes(self) -> int:
        """Bytes that the last commit copied from devices to the host before it published them. 0: all arrays were there."""
        return self._staged

    @property
    def endpoint(self) -> str:
        """The endpoint for subscribers: as given, with the port in place of 0 and this host's name in place of 0.0.0.0.
        Errors: InputError (closed)."""
        return self._out.endpoint

    @property
    def newest(self) -> int:
        """The last version that was offered; 0: none. Errors: InputError (closed)."""
        return self._out.newest

    @property
    def subscriber_count(self) -> int:
        """Processes that are connected to this rank. Errors: InputError (closed)."""
        return self._out.subscriber_count

    def close(self) -> None:
        """Closes the connections. Subscribers keep their last version and get an error."""
        self._out.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _tile(flat: Any, layout: Layout, rank: int) -> numpy.ndarray:
    return flat.view(layout.numpy_dtype).reshape(layout.tile_shape(rank))


class Subscriber:
    """The newest whole version that this job has taken. subscribe makes it. A context: leaving it closes the connections."""

    def __init__(self, job: Any, endpoint: str, tensors: Mapping[str, Any] | None, rules: str | None, lease: float,
                 connect_timeout: float, in_place: bool, progress: Callable[[int, int], Any] | None,
                 arrived: Callable[[str, Any], Any] | None) -> None:
        lease_, limit = milliseconds("lease", lease), milliseconds("connect_timeout", connect_timeout)
        own = job_of(job, connect_timeout)
        self._rank = rank = own.group.rank
        with reported(own.group, limit + lease_):
            found = {name: sharded(name, value, own) for name, value in (tensors or {}).items()}
        self._sharded = how = {name: one for name, one in found.items() if one is not None}
        self._layouts: dict[str, Layout] = {}
        self._made: dict[str, Any] = {}  # arrays of frameworks, of the version beside
        self._made_of = 0
        layouts, self._coming = self._layouts, {}
        coming: dict[str, Any] = self._coming  # these names instead of self, which would never be freed

        def tell(place: int, flat: Any) -> None:
            name = list(layouts)[place]
            if name in how:
                array = coming[name] = how[name].array(flat)
            else:
                array = _tile(flat, layouts[name], rank)
            arrived(name, array)  # type: ignore[misc]

        plain = None if tensors is None else {name: how[name].layout if name in how else tensors[name] for name in tensors}
        self._into = module().Subscriber(own.group, endpoint, plain, rules, lease_, limit, bool(in_place), progress,
                                         tell if arrived is not None else None)
        layouts.update(self._into.layouts)
        self._places = {name: place for place, name in enumerate(self._layouts)}

    def update(self, timeout: float | None = None) -> int:
        """Waits for a version that is newer than `version`, takes it, and returns its number, the same on all ranks.

        timeout: seconds; None: no limit. Ctrl-C ends the wait; then reconnect. Errors, on all ranks: BackendError (no newer
        version in time, a process that is lost or silent, wrong bytes). The version before stays, unless in_place.
        """
        return self._taken(lambda: self._into.update(milliseconds("timeout", timeout)))

    def poll(self) -> int | None:
        """The same without waiting for a newer version: None if there is none. All ranks call it."""
        return self._taken(self._into.poll)

    def _taken(self, take: Callable[[], Any]) -> Any:
        self._coming.clear()
        version = take()
        if version is not None:
            self._made, self._made_of = dict(self._coming), version
        return version

    @property
    def version(self) -> int:
        """The version of the arrays; 0: none yet, the result of the last vote is unknown until reconnect, or the last update
        in place has failed."""
        return self._into.version

    def __getitem__(self, name: str) -> Any:
        """This rank's tile, read-only. Copy it to keep it: its memory changes at the second update after this one, or in
        place at the next one.
        If the tensor was wanted as an array of JAX or torch: such an array, with memory of its own.
        Errors: KeyError; InputError (no version yet); BackendError (the result of the last vote is unknown; the last update
        in place has failed)."""
        layout = self._layouts[name]
        flat = self._into.tile(self._places[name])
        if name not in self._sharded:
            return _tile(flat, layout, self._rank)
        version = self.version  # reconnect may change it
        if self._made_of != version:
            self._made, self._made_of = {}, version
        if name not in self._made:
            self._made[name] = self._sharded[name].array(flat)
        return self._made[name]

    @property
    def layouts(self) -> dict[str, Layout]:
        """The layout of each tensor at this job, by name."""
        return dict(self._layouts)

    def __iter__(self) -> Any:
        return iter(self._layouts)

    def __len__(self) -> int:
        return len(self._layouts)

    def reconnect(self, job: Any = None) -> None:
        """Connects again after an error, with a new job of as many ranks. The version stays if all ranks have it.
        Errors: as subscribe."""
        self._into.reconnect(job_of(job).group)

    def close(self) -> None:
        """Closes the connections. The version and its arrays stay."""
        self._into.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def publish(job: Any, endpoint: str, tensors: Mapping[str, Any], *, rules: str | None = None,
            shapes: Mapping[str, Sequence[int]] | None = None, cast: Any = None, lease: float = 30.0,
            bytes_per_second: int | None = None, memory_bytes: int | None = None, check_bytes: bool = True,
            transport: str = "auto") -> Publisher:
    """Offers arrays of this job to subscribers. Collective over the job.

    job: None, a communicator of mpi4py, a process group of torch, the module torch.distributed or jax, or what join_group
    returns. endpoint: a path, "/run/weights", if subscribers are on this machine: rank r listens at the Unix socket
    `endpoint`.r, and subscribers read shared memory. Or "host:port" for subscribers anywhere, who receive over TCP: rank 0
    listens there, and the others at free ports. tensors: by name, a pair of a Layout, whose device r is rank r, and this
    rank's tile: an array of numpy, or of another library through DLPack, on the host. Or a Layout alone, if each commit
    brings the array. Or a jax.Array or a DTensor, whose layout is its own: process r of JAX, or the r-th member of the group,
    is rank r. Its devices are copied to the host first (staged_bytes). A jax.ShapeDtypeStruct with a sharding stands for
    arrays that commits bring. rules: a text whose `source` lines give the layouts. Then tensors has this rank's array by
    name, and shapes the shape of each whole tensor. A tensor that shapes does not name is whole on each rank. cast: an
    element type for all floating tensors, or a dict of types by name. Commits cast to it, so that subscribers see this type.
    lease: a reader or publisher that is silent for so many seconds counts as lost; at least 0.1. bytes_per_second: this rank
    sends at most so many over TCP, to all subscribers together; None: no limit. memory_bytes: a
    commit fails if the versions of this rank would take more; at least three times its tiles; None: no limit. check_bytes: each version has a digest that
    subscribers compare, which costs one pass over the arrays. transport: how rows travel to "host:port". "tcp"; "ucx": UCX
    if the subscriber has it, else TCP; "auto": UCX if both ends have RDMA and reach each other by it, else TCP.
    Errors, on all ranks: InputError (bad names, arrays, layouts, rules, lease, transport); UnsupportedError (an array on a
    GPU, unreduced axes, a cast between such types, "ucx" without UCX); BackendError (another process listens there, a rank is lost).
    """
    return Publisher(job, endpoint, tensors, rules, shapes, cast, lease, bytes_per_second, memory_bytes, check_bytes,
                     transport)


def subscribe(job: Any, endpoint: str, tensors: Mapping[str, Any] | None = None, *, rules: str | None = None,
              lease: float = 30.0, connect_timeout: float = 60.0, in_place: bool = False,
              progress: Callable[[int, int], Any] | None = None,
              arrived: Callable[[str, Any], Any] | None = None) -> Subscriber:
    """Connects to a publisher. Collective over the job.

    job: as for publish. endpoint: the publisher's, a path or "host:port". tensors: by name, the Layout that this job wants;
    device r is rank r. Its element type may be another one: this job casts. Or a jax.Array, a jax.ShapeDtypeStruct with a
    sharding or a DTensor that shows the shape, type and sharding; then `into[name]` is a new array like it. Any part of the
    publisher's tensors may be wanted. rules: in place of tensors, a text whose `target` lines make tensors of the
    publisher's: renamed, fused, split, transposed, padded. What they drop is not taken. lease: a process that is silent for so many seconds counts as lost, so
    all ranks make a call within this time of each other. connect_timeout: seconds until the publisher must be there.
    in_place: each version overwrites the version before it, which halves the memory. After a failed update `version` is 0
    until an update has brought a whole version.
    progress: called during an update with the bytes of this rank that have come, and their number in all. arrived: called
    with the name and the array of each tensor when it has come, in the order of the tensors, before the ranks agree on the
    version. The array is void if the update fails, and arrays come again, from the first one on, if the version is gone
    before it is whole. An exception of the two is raised after the update. Errors, on all ranks: InputError (a tensor that
    the publisher does not have, or of another shape); UnsupportedError (an element type that the publisher's cannot be cast
    to, a sharding that is no grid of processes); BackendError (no publisher in time, another protocol, a rank is lost).
    """
    return Subscriber(job, endpoint, tensors, rules, lease, connect_timeout, in_place, progress, arrived)


def offered(endpoint: str, timeout: float = 60.0) -> dict[str, Layout]:
    """The tensors of a publisher: by name, the Layout over its ranks. Any process may ask.

    timeout: seconds until the publisher must be there. Errors: BackendError (no publisher, another protocol).
    """
    return module().offered(endpoint, milliseconds("timeout", timeout))


class ReaderStatus(NamedTuple):
    """A process that is connected to one rank of a publisher."""
    peer: str  #: "process 4711" on the same machine, its address over TCP
    reads: int  #: the version that it reads now; 0: none
    last: int  #: the version of its last read that has ended; 0: none
    bytes: int  #: of each version that it takes from this rank; 0 until its first read
    seconds: float  #: that its last read took, with the vote of its job
    transport: str  #: that carries the bytes: "memory", "tcp" or "ucx"


class RankStatus(NamedTuple):
    """The state of one rank of a publisher."""
    newest: int  #: the newest version; 0: none
    tile_bytes: int  #: of one version in its memory
    reads: int  #: that have ended since it opened, of all versions
    versions: dict[int, str]  #: versions that it keeps: staged, ready, active (read) or releasing (read, and not the newest)
    readers: list[ReaderStatus]  #: in the order in which they came


def status(endpoint: str, timeout: float = 60.0) -> list[RankStatus]:
    """The state of each rank of a publisher, by rank. Any process may ask. Errors: as offered."""
    ranks = module().status(endpoint, milliseconds("timeout", timeout))
    return [RankStatus(*rest, [ReaderStatus(*one) for one in readers]) for *rest, readers in ranks]
