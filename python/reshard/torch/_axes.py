"""Moves that take one mesh axis after another: torch's own, and reductions before an exchange. Prices are of the largest tile
and depend on placements alone, since shapes differ from rank to rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from . import _specs
from ._prices import Call, Price
from ._versions import DTensorSpec, Replicate, Shard, StridedShard, on_cpus, transforms

Change = tuple[int, Any, Any]
"""A mesh axis, its placement before and its placement after."""


def native_all_to_all(mesh: Any) -> bool:
    """True if torch moves a shard to another dimension by an all_to_all. On CPUs it gathers instead."""
    return not on_cpus(mesh)


def torch_price(source: DTensorSpec, target: DTensorSpec) -> Price | None:
    """The price of torch's own steps; None for a move that torch refuses. Steps that torch may merge count one by one."""
    tile = Tile(source)
    try:
        for step in transforms(source, target):
            tile.take(step.mesh_dim, *step.src_dst_placements)
    except Exception:  # the error of torch comes when the move runs
        return None
    return tile.price()


def middles(source: DTensorSpec, target: DTensorSpec) -> Iterator[tuple[Any, ...]]:
    """Placements without the sums that the target lacks: each partial axis cuts a dimension or holds all of it. A replicated axis
    that is to cut a dimension cuts it here already, which costs nothing and makes the reductions smaller."""
    wanted = target.placements if source.mesh == target.mesh else source.placements
    fixed = _specs.strange_dims(source)
    choices: list[list[Any]] = []
    for axis, (held, end) in enumerate(zip(source.placements, wanted)):
        cut = fixed | {getattr(one, "dim", None) for one in source.placements[axis + 1:]}
        if held.is_partial() and (held != end or wanted is source.placements):
            free = [Shard(dim) for dim in range(len(source.tensor_meta.shape)) if dim not in cut]
            choices.append(sorted([*free, Replicate()], key=lambda one: one != end))
        else:
            cuts = held.is_replicate() and type(end) is Shard and end.dim not in cut
            choices.append([end if cuts else held])
    return itertools.product(*choices)


def reduction(source: Tile, middle: tuple[Any, ...]) -> tuple[tuple[Change, ...], Price]:
    """The changes from a source to placements of middles(), and their price. Replicas are cut first. Reduce-scatters follow, and
    the one that pads least begins. All-reduces are last. Axes that cut one dimension stay in their order."""
    tile, ordered = source.copy(), []
    left = [(axis, *ends) for axis, ends in enumerate(zip(source.placements, middle)) if ends[0] is not ends[1]]
    while left:
        ready = [one for one in left if not any(axis < one[0] and getattr(end, "dim", -1) == getattr(one[2], "dim", -2)
                                                for axis, _, end in left)] if len(left) > 1 else left
        ordered.append(min(ready, key=tile.haste) if len(ready) > 1 else ready[0])
        left.remove(ordered[-1])
        tile.take(*ordered[-1])
    return tuple(ordered), tile.price()


class Tile:
    """The largest tile of a spec, and what torch's steps cost that change it."""

    def __init__(self, spec: DTensorSpec) -> None:
        self.placements, self._shape, self._sizes = spec.placements, spec.tensor_meta.shape, _specs.sizes_of(spec.mesh)
        self._native = native_all_to_all(spec.mesh)
        self._cut_by = [getattr(one, "dim", None) for one in spec.placements]  # the dimension that each axis cuts
        self._parts = [1] * len(self._shape)
        for dim, size in zip(self._cut_by, self._sizes):
            if dim is not None:
                self._parts[dim] *= size
        self._size = spec.tensor_meta.dtype.itemsize
        self._calls: list[Call] = []
        self._copied = 0
        self._first = self._peak = self._most = self._bytes = self._bytes_now()

    def copy(self) -> Tile:
        made = object.__new__(Tile)
        made.__dict__.update(self.__dict__, _cut_by=[*self._cut_by], _parts=[*self._parts], _calls=[*self._calls])
        return made

    def _bytes_now(self) -> int:
        count = self._size
        for extent, parts in zip(self._shape, self._parts):
            count *= -(-extent // parts)
        return count

    def haste(self, change: Change) -> tuple[bool, bool, float]:
        """A key that sorts changes. The change that makes the tile smaller for the fewest bytes is first."""
        axis, held, end = change
        if end.is_replicate():
            return True, True, 0.0
        part, ranks = -(-self._shape[end.dim] // self._parts[end.dim]), self._sizes[axis]
        return False, held.is_partial(), -(-part // ranks) * ranks / max(part, 1)

    def take(self, axis: int, a: Any, b: Any) -> None:
        ranks, before = self._sizes[axis], self._bytes
        old, new = self._cut_by[axis], getattr(b, "dim", None)
        if old is not None:
            self._parts[old] //= ranks
        if new is not None:
            self._parts[new] *= ranks
        self._cut_by[axis] = new
        after = self._bytes = self._bytes_now()
        if ranks == 1 or a == b:
            return
        cuts = old is not None, new is not None
        whole = after if cuts == (True, False) else before
        strided = StridedShard in (type(a), type(b))
        if all(cuts) and not strided and self._native:
            padded = self._size
            for dim, (extent, parts) in enumerate(zip(self._shape, self._parts)):
                held = -(-extent // (parts // ranks if dim == b.dim else parts))  # without this axis
                padded *= -(-held // ranks) * (ranks if dim == b.dim else 1) if dim in (a.dim, b.dim) else held
            self._call("all_to_all", ranks, padded * (ranks - 1) // ranks)
            self._copied += 2 * before
        elif cuts[0]:
            whole = before * ranks
            self._call("all_gather", ranks, before * (ranks - 1))
            self._copied += (whole if a.dim or strided else 0) + (after if cuts[1] else 0)
        elif a.is_partial() and (b.is_replicate() or strided):
            self._call("all_reduce", ranks, 2 * before * (ranks - 1) // ranks)
        elif a.is_partial():
            self._call("reduce_scatter", ranks, after * (ranks - 1))
            self._copied += before if b.dim else 0
        else:
            self._copied += after
        self._peak = max(self._peak, whole, after)
        self._most = max(self._most, self._first + before + whole + after)

    def _call(self, kind: str, ranks: int, received: int) -> None:
        self._calls.append(Call(kind, ranks, received))

    def price(self) -> Price:
        return Price(tuple(self._calls), self._copied, self._peak, self._most, ", ".join(call.kind for call in self._calls) or "local")
