"""The processes of one job, and their ways to agree."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

from ..errors import InputError, UnsupportedError

try:
    from .. import _live
except ImportError as reason:
    _live = None  # type: ignore[assignment]
    _absent = str(reason)

_LONGEST = 10 * 365 * 86400  # seconds
_TEXT_BYTES = 1024  # of a broadcast in JAX; an endpoint is far shorter


def available() -> bool:
    """True if this package was built with reshard.live, which needs Linux."""
    return _live is not None


def module() -> Any:
    """The compiled half. Errors: UnsupportedError (it was not built)."""
    if _live is None:
        raise UnsupportedError(f"this build of reshard has no reshard.live, which needs Linux: {_absent}", "unsupported")
    return _live


def milliseconds(name: str, seconds: float | None) -> int:
    """The same in milliseconds, or ten years for None. Errors: InputError, TypeError."""
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
    return module().join_group(endpoint, rank, size, milliseconds("timeout", timeout))


def join_through(broadcast: Callable[[str], str], rank: int, size: int, timeout: float = 60.0) -> Any:
    """The job of `size` processes that can already broadcast a text.

    broadcast: called once on each rank; returns the text that rank 0 gave. Rank 0 listens at a free port of its host.
    Errors: as join_group, and exceptions of `broadcast`.
    """
    return module().join_through(broadcast, rank, size, milliseconds("timeout", timeout))


class Job(NamedTuple):
    """A job, and the ranks of its members in a framework."""
    group: Any  #: what join_group returns
    members: list[int] | None = None  #: the global rank in torch of each rank of the job; None: the same numbers


def job_of(job: Any, timeout: float = 60.0) -> Job:
    """The job behind what a caller gives. Collective unless it is None or a group. Errors: TypeError, as join_through."""
    if job is None:
        return Job(module().alone())
    if isinstance(job, module().Group):
        return Job(job)
    dist = sys.modules.get("torch.distributed")
    if dist is not None and (job is dist or isinstance(job, getattr(dist, "ProcessGroup", ()))):
        return _torch_job(dist, None if job is dist else job, timeout)
    if job is sys.modules.get("jax"):
        return Job(join_through(_jax_broadcast, job.process_index(), job.process_count(), timeout))
    if not all(hasattr(job, name) for name in ("bcast", "rank", "size")):
        raise TypeError("a job is None, a communicator of mpi4py, a process group of torch, the module jax or torch.distributed, "
                        f"or what join_group returns, not {type(job).__name__}")
    return Job(join_through(lambda text: job.bcast(text, 0), job.rank, job.size, timeout))


def _torch_job(dist: Any, group: Any, timeout: float) -> Job:
    members = list(range(dist.get_world_size())) if group is None else list(dist.get_process_group_ranks(group))

    def broadcast(text: str) -> str:
        box = [text]
        dist.broadcast_object_list(box, src=members[0], group=group)
        return box[0]
    return Job(join_through(broadcast, dist.get_rank(group), len(members), timeout), members)


def _jax_broadcast(text: str) -> str:
    """The text of process 0. All processes of jax.distributed call it."""
    from jax.experimental.multihost_utils import broadcast_one_to_all
    mine = numpy.zeros(_TEXT_BYTES, "u1")
    given = text.encode()
    mine[:len(given)] = list(given)
    return bytes(numpy.asarray(broadcast_one_to_all(mine))).rstrip(b"\0").decode()


@contextlib.contextmanager
def reported(group: Any, limit: int) -> Iterator[None]:
    """Prepares a collective call. If it raises, the other ranks fail with its words at once. limit: milliseconds."""
    try:
        yield
    except Exception as error:
        group.report(str(error), limit)
        raise
