"""A tile program as functions of torch: views, and functional collectives over groups of whole mesh axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import UnsupportedError
from . import _specs
from ._groups import group_name
from ._versions import dist, torch

Step = tuple[Callable[[Any], Any], bool]
"""A function of the tile, and whether its result must be waited for."""

_REDUCE = {"sum": lambda tile: tile.sum(0, dtype=tile.dtype), "max": lambda tile: tile.amax(0),
           "min": lambda tile: tile.amin(0), "prod": lambda tile: tile.prod(0, dtype=tile.dtype)}
_WORDS = {"prod": "product"}  # c10d's names of reductions, if they differ


def steps(operations: tuple[Any, ...], devices: list[int], mesh: Any) -> list[Step]:
    """The steps of a program on this rank. devices: the rank at each position of the program. Errors: UnsupportedError."""
    me = devices.index(dist.get_rank())
    made: list[Step] = []
    for op in operations:
        if op.groups:
            made += _collective(op, devices, me, mesh)
        elif op.kind == "permute":
            made += _permute(op, devices, me, mesh)
        elif not (op.kind == "mask" and me in op.keeps):
            made.append((_local(op, me), False))
    return made


def is_view(operations: tuple[Any, ...]) -> bool:
    """True if the result of a program may share memory with its argument."""
    return all(op.kind in ("reshape", "transpose", "mask") for op in operations)


def _local(op: Any, me: int) -> Callable[[Any], Any]:
    """An operation on the tile alone."""
    kind, shape = op.kind, tuple(op.output_shape)
    if kind == "reshape":
        return lambda tile: tile.reshape(shape)
    if kind == "transpose":
        order = tuple(op.permutation)
        return lambda tile: tile.permute(order)
    if kind == "reorder":
        runs = op.runs
        return lambda tile: torch.cat([tile[:, begin:end] for begin, end in runs], 1)
    if kind == "slice":  # copied: a view of dimension 0 would write to the source, and would keep all of it
        cuts = _cuts(op, me)
        return lambda tile: _narrowed(tile, cuts).clone(memory_format=torch.contiguous_format)
    if kind == "update_slice":
        return functools.partial(_filled, cuts=_cuts(op, me), shape=shape, reduction=op.reduction)
    if kind == "mask":
        return lambda tile, reduction=op.reduction: torch.full_like(tile, _neutral(reduction, tile.dtype))
    if kind == "scale":
        times, over = op.times, op.over
        return lambda tile: tile * times / over
    if kind == "reduce":
        return _REDUCE[op.reduction]
    raise UnsupportedError(f"an operation {kind} has no function of torch")


def _cuts(op: Any, me: int) -> list[tuple[int, int, int]]:
    """Dimension, begin and length of the block that a slice reads or an update_slice writes."""
    ends = zip(op.starts[me], op.input_shape, op.output_shape)
    return [(dim, start, min(a, b)) for dim, (start, a, b) in enumerate(ends) if a != b]


def _narrowed(tile: Any, cuts: list[tuple[int, int, int]]) -> Any:
    for dim, start, length in cuts:
        tile = tile.narrow(dim, start, length)
    return tile


def _filled(tile: Any, cuts: list[tuple[int, int, int]], shape: tuple[int, ...], reduction: str) -> Any:
    whole = tile.new_full(shape, _neutral(reduction, tile.dtype))
    _narrowed(whole, cuts).copy_(tile)
    return whole


def _blocks(tile: Any, order: list[int] | None) -> Any:
    """The equal blocks of dimension 0 in another order."""
    return tile if order is None else tile.unflatten(0, (len(order), -1))[order].flatten(0, 1)


def _collective(op: Any, devices: list[int], me: int, mesh: Any) -> list[Step]:
    """A collective and, if the group lists its ranks in another order, the step that orders the blocks of its result."""
    ranks = [devices[position] for position in next(group for group in op.groups if me in group)]
    return _call(op.kind, ranks, mesh, op.reduction or "sum")


def _call(kind: str, ranks: list[int], mesh: Any, reduction: str = "sum") -> list[Step]:
    """A collective of these ranks, whose blocks are in their order."""
    ascending, count = sorted(ranks), len(ranks)
    same = ranks == ascending
    first = None if same else [ranks.index(rank) for rank in ascending]
    last = None if same else [ascending.index(rank) for rank in ranks]
    name, word = group_name(ascending, mesh), _WORDS.get(reduction, reduction)
    if kind == "all_gather":
        run = torch.ops._c10d_functional.all_gather_into_tensor.default
        return [(lambda tile: run(tile.contiguous(), count, name), True), *_ordered(last)]
    if kind == "all_reduce":
        run = torch.ops._c10d_functional.all_reduce.default
        return [(lambda tile: run(tile.contiguous(), word, name), True)]
    if kind == "reduce_scatter":
        run = torch.ops._c10d_functional.reduce_scatter_tensor.default
        return [(lambda tile: run(_blocks(tile, first).contiguous(), word, count, name), True)]
    run = torch.ops._c10d_functional.all_to_all_single.default

    def exchanged(tile: Any) -> Any:
        splits = [tile.shape[0] // count] * count
        return run(_blocks(tile, first).contiguous(), splits, splits, name)

    return [(exchanged, True), *_ordered(last)]


def reductions(changes: tuple[Any, ...], mesh: Any) -> list[Step]:
    """The steps that cut replicas and reduce sums, one mesh axis after another, on a rank of the mesh. Other ranks have none."""
    at, made = mesh.get_coordinate(), []
    for axis, held, end in changes if at is not None else ():
        ranks = _specs.members(mesh, [axis], at)
        if len(ranks) == 1:
            continue
        if held.is_replicate():
            made.append((functools.partial(_part, dim=end.dim, count=len(ranks), at=at[axis]), False))
        elif end.is_replicate():
            made += _call("all_reduce", ranks, mesh, held.reduce_op)
        else:
            made.append(_reduce_scatter(end.dim, ranks, at[axis], mesh, held.reduce_op))
    return made


def _part(tile: Any, dim: int, count: int, at: int) -> Any:
    """The part of a tile that torch.chunk gives to a rank, as dense memory of its own."""
    part = -(-tile.shape[dim] // count)
    begin = min(at * part, tile.shape[dim])
    return tile.narrow(dim, begin, min(part, tile.shape[dim] - begin)).clone(memory_format=torch.contiguous_format)


def _reduce_scatter(dim: int, ranks: list[int], at: int, mesh: Any, reduction: str) -> Step:
    """Torch.chunk's parts of a dimension, each reduced on its rank. Parts are padded to one size."""
    (scattered, _), count = _call("reduce_scatter", ranks, mesh, reduction)[0], len(ranks)

    def run(tile: Any) -> Any:
        extent, part = tile.shape[dim], -(-tile.shape[dim] // count)
        if padding := part * count - extent:
            tile = torch.cat([tile, tile.new_zeros((*tile.shape[:dim], padding, *tile.shape[dim + 1:]))], dim)
        blocks = tile.unflatten(dim, (count, part)).movedim(dim, 0)
        reduced = torch.ops._c10d_functional.wait_tensor.default(scattered(blocks)) if tile.numel() else blocks[:1]
        return reduced.squeeze(0).narrow(dim, 0, max(0, min(part, extent - at * part)))

    return run, False


def _ordered(order: list[int] | None) -> list[Step]:
    return [] if order is None else [(functools.partial(_blocks, order=order), False)]


def _permute(op: Any, devices: list[int], me: int, mesh: Any) -> list[Step]:
    """Tiles to other ranks: an all_to_all with one part that is not empty."""
    ranks = sorted(devices)
    count, shape = math.prod(op.input_shape), tuple(op.output_shape)
    name, ops = group_name(ranks, mesh), torch.ops._c10d_functional
    to = next(devices[target] for source, target in op.pairs if source == me)
    origin = next(devices[source] for source, target in op.pairs if target == me)
    sent, received = ([count if rank == one else 0 for rank in ranks] for one in (to, origin))
    return [(lambda tile: ops.all_to_all_single(tile.contiguous().view(-1), received, sent, name), True),
            (lambda tile: tile.view(shape), False)]


def _neutral(reduction: str, dtype: Any) -> Any:
    if reduction in ("sum", "prod"):
        return 0 if reduction == "sum" else 1
    if dtype.is_floating_point:
        return float("-inf") if reduction == "max" else float("inf")
    return torch.iinfo(dtype).min if reduction == "max" else torch.iinfo(dtype).max
