"""Versions of arrays from one job to another that was started apart, such as weights from a trainer to an engine.

    with reshard.live.publish(job, "/run/weights", {"w": (by_rows, array)}) as out:    # trainer, m ranks
        out.commit(7)
    with reshard.live.subscribe(job, "/run/weights", {"w": by_columns}) as into:       # engine, n ranks
        version = into.update()    # waits until a newer version is whole
        into["w"]                  # this rank's tile of it

A job is the way in which the processes of one side agree: None for one process, an intracommunicator of mpi4py, or what
join_group and join_through return. Neither side needs MPI. Calls are collective over the job, and all ranks make them in
one order. A process that dies is an error on all survivors, which names it. docs/live.md explains the promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from ._core import Layout
from .errors import InputError, UnsupportedError

try:
    from . import _live
except ImportError as reason:
    _live = None  # type: ignore[assignment]
    _absent = str(reason)

_LONGEST = 10 * 365 * 86400  # seconds


def available() -> bool:
    """True if this package was built with reshard.live, which needs Linux."""
    return _live is not None


def _module() -> Any:
    if _live is None:
        raise UnsupportedError(f"this build of reshard has no reshard.live, which needs Linux: {_absent}", "unsupported")
    return _live


def _milliseconds(name: str, seconds: float | None) -> int:
    """The same in milliseconds; None means for ever. Errors: InputError, TypeError."""
    if seconds is None:
        return _LONGEST * 1000
    value = float(seconds)
    if math.isnan(value) or value < 0:
        raise InputError(f"{name} is {seconds} seconds; wanted 0 or more", "usage")
    return round(min(value, _LONGEST) * 1000)


def join_group(endpoint: str, rank: int, size: int, timeout: float = 60.0) -> Any:
    """The job of `size` processes that were started by anything. All of them call it within `timeout` seconds.

    endpoint: a path of a Unix socket, "/run/trainer", or "host:port". Rank 0 listens there, and the others connect to it.
    Errors: InputError (a rank outside the group, no endpoint); BackendError (a rank does not come).
    """
    return _module().join_group(endpoint, rank, size, _milliseconds("timeout", timeout))


def join_through(broadcast: Callable[[str], str], rank: int, size: int, timeout: float = 60.0) -> Any:
    """The job of `size` processes that can already broadcast a text.

    broadcast: called once on each rank; returns the text that rank 0 gave. Rank 0 listens at a free port of its host.
    Errors: as join_group, and exceptions of `broadcast`.
    """
    return _module().join_through(broadcast, rank, size, _milliseconds("timeout", timeout))


def _job_of(job: Any, timeout: float = 60.0) -> Any:
    """The group behind what a caller gives. Errors: TypeError, as join_through."""
    if job is None:
        return _module().alone()
    if isinstance(job, _module().Group):
        return job
    if not all(hasattr(job, name) for name in ("bcast", "rank", "size")):
        raise TypeError(f"a job is None, a communicator of mpi4py, or what join_group returns, not {type(job).__name__}")
    return join_through(lambda text: job.bcast(text, 0), job.rank, job.size, timeout)


class Publisher:
    """Publishes versions of this job's arrays. publish makes it. A context: leaving it closes the connections."""

    def __init__(self, job: Any, endpoint: str, tensors: Mapping[str, Any], rules: str | None,
                 shapes: Mapping[str, Sequence[int]] | None, cast: Any, lease: float, bytes_per_second: int | None,
                 check_bytes: bool) -> None:
        self._out = _module().Publisher(_job_of(job), endpoint, dict(tensors), rules, dict(shapes or {}),
                                        dict(cast) if isinstance(cast, Mapping) else cast, _milliseconds("lease", lease),
                                        int(bytes_per_second or 0), check_bytes)

    def commit(self, version: int, arrays: Mapping[str, Any] | None = None) -> None:
        """Copies this rank's arrays and offers them as a version. They may change when it returns. Collective.

        version: from 1 on, larger than all before. arrays: by name, if an array is a new object in each version. Each
        other array was given to publish. No subscriber delays it.
        Errors: InputError (a version that does not grow, an array of another shape or type, no array);
        UnsupportedError (an array on a GPU); BackendError (a rank is lost or fails: subscribers keep the version before).
        """
        self._out.commit(version, dict(arrays or {}))

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

    def __init__(self, job: Any, endpoint: str, tensors: Mapping[str, Layout] | None, rules: str | None, lease: float,
                 connect_timeout: float, progress: Callable[[int, int], Any] | None,
                 arrived: Callable[[str, numpy.ndarray], Any] | None) -> None:
        group = _job_of(job, connect_timeout)
        self._rank = rank = group.rank
        self._layouts: dict[str, Layout] = {}
        layouts = self._layouts  # not self, which would never be freed

        def tell(place: int, flat: Any) -> None:
            name = list(layouts)[place]
            arrived(name, _tile(flat, layouts[name], rank))  # type: ignore[misc]

        self._into = _module().Subscriber(group, endpoint, None if tensors is None else dict(tensors), rules,
                                          _milliseconds("lease", lease), _milliseconds("connect_timeout", connect_timeout),
                                          progress, tell if arrived is not None else None)
        layouts.update(self._into.layouts)
        self._places = {name: place for place, name in enumerate(self._layouts)}

    def update(self, timeout: float | None = None) -> int:
        """Waits for a version that is newer than `version`, takes it, and returns its number, the same on all ranks.

        timeout: seconds; None: no limit. Ctrl-C ends the wait; then reconnect. Errors, on all ranks: BackendError (no newer
        version in time, a process that is lost or silent, wrong bytes). The version before stays.
        """
        return self._into.update(_milliseconds("timeout", timeout))

    def poll(self) -> int | None:
        """The same without waiting for a newer version: None if there is none. All ranks call it."""
        return self._into.poll()

    @property
    def version(self) -> int:
        """The version of the arrays; 0: none yet, or the result of the last vote is unknown until reconnect."""
        return self._into.version

    def __getitem__(self, name: str) -> numpy.ndarray:
        """This rank's tile, read-only. Copy it to keep it: its memory changes at the second update after this one.
        Errors: KeyError; InputError (no version yet); BackendError (the result of the last vote is unknown)."""
        layout = self._layouts[name]
        return _tile(self._into.tile(self._places[name]), layout, self._rank)

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
        self._into.reconnect(_job_of(job))

    def close(self) -> None:
        """Closes the connections. The version and its arrays stay."""
        self._into.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def publish(job: Any, endpoint: str, tensors: Mapping[str, Any], *, rules: str | None = None,
            shapes: Mapping[str, Sequence[int]] | None = None, cast: Any = None, lease: float = 30.0,
            bytes_per_second: int | None = None, check_bytes: bool = True) -> Publisher:
    """Offers arrays of this job to subscribers. Collective over the job.

    job: None, a communicator of mpi4py, or what join_group returns. endpoint: a path, "/run/weights", if subscribers
    are on this machine: rank r listens at the Unix socket `endpoint`.r, and subscribers read shared memory. Or
    "host:port" for subscribers anywhere, who receive over TCP: rank 0 listens there, and the others at free ports.
    tensors: by name, a pair of a Layout, whose device r is rank r, and this rank's tile: an array of numpy, or of
    another library through DLPack, on the host. Or a Layout alone, if each commit brings the array. rules: a text whose
    `source` lines give the layouts. Then tensors has this rank's array by name, and shapes the shape of each whole
    tensor. A tensor that shapes does not name is whole on each rank. cast: an element type for all floating tensors, or
    a dict of types by name. Commits cast to it, so that subscribers see this type. lease: a reader or publisher that is
    silent for so many seconds counts as lost; at least 0.1. bytes_per_second: this rank sends at most so many over TCP, to
    all subscribers together; None: no limit. check_bytes: each version has a digest that subscribers compare, which costs
    one pass over the arrays.
    Errors, on all ranks: InputError (bad names, arrays, layouts, rules, lease); UnsupportedError (an array on a GPU,
    unreduced axes, a cast between such types); BackendError (another process listens there, a rank is lost).
    """
    return Publisher(job, endpoint, tensors, rules, shapes, cast, lease, bytes_per_second, check_bytes)


def subscribe(job: Any, endpoint: str, tensors: Mapping[str, Layout] | None = None, *, rules: str | None = None,
              lease: float = 30.0, connect_timeout: float = 60.0, progress: Callable[[int, int], Any] | None = None,
              arrived: Callable[[str, numpy.ndarray], Any] | None = None) -> Subscriber:
    """Connects to a publisher. Collective over the job.

    job: as for publish. endpoint: the publisher's, a path or "host:port". tensors: by name, the Layout that this job
    wants; device r is rank r. Any part of the publisher's tensors may be wanted. rules: in place of tensors, a text
    whose `target` lines give layouts and names to the publisher's tensors; what they drop is not taken. lease: a
    process that is silent for so many seconds counts as lost, so all ranks make a call within this time of each other.
    connect_timeout: seconds until the publisher must be there. progress: called during an update with the bytes of this
    rank that have come, and their number in all. arrived: called with the name and the array of each tensor when it has
    come, in the order of the tensors, before the ranks agree on the version. The array is void if the update fails, and
    arrays come again, from the first one on, if the version is gone before it is whole. An exception of the two is raised
    after the update. Errors, on all ranks: InputError (a tensor that the
    publisher does not have, or of another shape or type); BackendError (no publisher in time, another protocol, a rank
    is lost).
    """
    return Subscriber(job, endpoint, tensors, rules, lease, connect_timeout, progress, arrived)


def offered(endpoint: str, timeout: float = 60.0) -> dict[str, Layout]:
    """The tensors of a publisher: by name, the Layout over its ranks. Any process may ask.

    timeout: seconds until the publisher must be there. Errors: BackendError (no publisher, another protocol).
    """
    return _module().offered(endpoint, _milliseconds("timeout", timeout))


class ReaderStatus(NamedTuple):
    """A process that is connected to one rank of a publisher."""
    peer: str  #: "process 4711" on the same machine, its address over TCP
    reads: int  #: the version that it reads now; 0: none
    last: int  #: the version of its last read that has ended; 0: none
    bytes: int  #: of each version that it takes from this rank; 0 until its first read
    seconds: float  #: that its last read took, with the vote of its job


class RankStatus(NamedTuple):
    """The state of one rank of a publisher."""
    newest: int  #: the newest version; 0: none
    tile_bytes: int  #: of one version in its memory
    reads: int  #: that have ended since it opened, of all versions
    versions: dict[int, str]  #: versions that it keeps: staged, ready, active (read) or releasing (read, and not the newest)
    readers: list[ReaderStatus]  #: in the order in which they came


def status(endpoint: str, timeout: float = 60.0) -> list[RankStatus]:
    """The state of each rank of a publisher, by rank. Any process may ask. Errors: as offered."""
    ranks = _module().status(endpoint, _milliseconds("timeout", timeout))
    return [RankStatus(*rest, [ReaderStatus(*one) for one in readers]) for *rest, readers in ranks]
