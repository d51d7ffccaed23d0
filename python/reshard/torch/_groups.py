"""Process groups by their ranks. A compiled program that a rank loads from a cache names its groups, so the name of a group
depends on its ranks alone."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from ._specs import members
from ._versions import dist, new_group

_known: dict[tuple[int, ...], Any] = {}
_world: Any = lambda: None
_epoch = 0


def epoch() -> int:
    """A number that changes when the default process group is another one. The groups of before are forgotten then."""
    global _world, _epoch
    world = dist.distributed_c10d._get_default_group()
    if _world() is not world:
        _world = weakref.ref(world)
        _epoch += 1
        _known.clear()
    return _epoch


def group_name(ranks: list[int], mesh: Any) -> str:
    """The name of the group of these ranks, in ascending order. Its members make it if it does not exist yet."""
    epoch()
    group = _known.get(tuple(ranks))
    if group is None:
        group = _known[tuple(ranks)] = _found(ranks, mesh) or new_group(list(ranks))
    return group.group_name


def _found(ranks: list[int], mesh: Any) -> Any:
    """A group that exists already: the world, or an axis of the mesh."""
    if ranks == list(range(dist.get_world_size())):
        return dist.distributed_c10d._get_default_group()
    if mesh.get_coordinate() is not None:
        for axis in range(mesh.ndim):
            group = mesh.get_group(axis)
            if sorted(dist.get_process_group_ranks(group)) == ranks:
                return group
    return None


def prepare(mesh: Any) -> None:
    """Makes the groups of all sets of axes of a mesh. All its ranks call it; other ranks may. After it no program needs
    a new group on this mesh, so a compiled program runs on a rank that loads it from a cache."""
    at = mesh.get_coordinate()
    if at is None:
        return
    for count in range(2, mesh.ndim + 1):
        for axes in itertools.combinations(range(mesh.ndim), count):
            group_name(sorted(members(mesh, axes, at)), mesh)
