"""The cells around a DTensor's block. The gradient adds halos to the blocks of their owners."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from .. import UnsupportedError
from .._ranges import Periods, Width, widths_of
from ..rows import halo_rows, nested_row_dtype
from . import _specs
from ._groups import epoch, group_name
from ._packing import Rows
from ._versions import DTensor, DTensorSpec, dist, torch


def halo(x: DTensor, width: Width = 1, periodic: Periods = False) -> Any:
    """This rank's block of x and the cells around it, as one tensor of the shape block + before + after.

    x: a DTensor that every axis of its mesh cuts. width, periodic: as for reshard.mpi.Halo. Cells beyond an open border are
    0, and a rank without elements gets none. A halo may be wider than a block, and blocks may be uneven. All ranks of the
    mesh call it: one all_to_all, or two if a periodic halo is wide, and as many for the gradient, of any order.
    Errors: InputError (widths), UnsupportedError (an axis that does not cut, a periodic halo of more than 8 times the
    extent)."""
    if why := _specs.why_unknown(x._spec) or ("" if all(hasattr(one, "dim") for one in x.placements) else
                                              f"{x.placements} does not cut the array by every axis"):
        raise UnsupportedError(f"no halo: {why}")
    exchange = _exchange(x._spec, tuple(widths_of(x.ndim, width, periodic, "the array")), epoch())
    return _Linear.apply(x.to_local(), exchange.fill, exchange.sum)


class _Round:
    """Copies from the tiles of all ranks to their blocks with halos, and the adjoint."""

    def __init__(self, sends: numpy.ndarray, receives: numpy.ndarray, ranks: list[int], mesh: Any, size: int) -> None:
        me, self._group = dist.get_rank(), group_name(ranks, mesh)
        self._stays, self._out = (Rows(sends[keep], size) for keep in (sends["peer"] == me, sends["peer"] != me))
        self._into = Rows(receives[receives["peer"] != me], size)
        self._sent, self._received = self._out.counts(ranks), self._into.counts(ranks)

    def _moved(self, packed: Any, received: list[int], sent: list[int]) -> Any:
        ops = torch.ops._c10d_functional
        return ops.wait_tensor(ops.all_to_all_single(packed, received, sent, self._group))

    def fill(self, tile: Any, whole: Any) -> None:
        got = self._moved(self._out.packed(tile), self._received, self._sent)
        self._stays.copy(tile, whole)
        self._into.unpack(got, whole)

    def sum(self, whole: Any, tile: Any) -> None:
        self._out.add(self._moved(self._into.gathered(whole), self._sent, self._received), tile)
        self._stays.add(self._stays.gathered(whole), tile)


class _Exchange:
    """A fill on this rank, and its adjoint. Later rounds copy from halos that earlier ones filled."""

    def __init__(self, spec: DTensorSpec, widths: tuple[tuple[int, int, bool], ...]) -> None:
        layout, size = _specs.layout_of(spec), spec.tensor_meta.dtype.itemsize
        me, ranks = dist.get_rank(), sorted(_specs.devices_of(spec.mesh))
        asked = layout, me, [one[:2] for one in widths], [one[2] for one in widths], layout
        self._rounds = [_Round(_nested(sends), _nested(receives), ranks, spec.mesh, size)
                        for sends, receives in zip(halo_rows(*asked, "send"), halo_rows(*asked, "receive"))]
        self._block = tuple(layout.tile_shape(me))
        self._whole = tuple(n + before + after if 0 not in self._block else 0
                            for n, (before, after, _) in zip(self._block, widths))

    def fill(self, block: Any) -> Any:
        whole = block.new_zeros(self._whole)
        for number, one in enumerate(self._rounds):
            one.fill(whole if number else block.contiguous(), whole)
        return whole

    def sum(self, whole: Any) -> Any:
        whole, block = whole.clone(memory_format=torch.contiguous_format), whole.new_zeros(self._block)
        for number, one in reversed(list(enumerate(self._rounds))):
            one.sum(whole, whole if number else block)
        return block


_exchange = functools.lru_cache(maxsize=256)(lambda spec, widths, _: _Exchange(spec, widths))


def _nested(rows: numpy.ndarray) -> numpy.ndarray:
    """Rows with nested loops, in the order of the peers."""
    rows = rows[numpy.argsort(rows["peer"], kind="stable")]
    made = numpy.zeros(len(rows), nested_row_dtype)
    made["runs"] = 1
    for field in ("peer", "source_offset", "target_offset", "run_bytes"):
        made[field] = rows[field]
    for field, flat in (("runs", "runs"), ("source_strides", "source_stride"), ("target_strides", "target_stride")):
        made[field][:, -1] = rows[flat]
    return made


class _Linear(torch.autograd.Function):
    """A linear map. Its gradient is the adjoint, whose gradient is the map again."""

    @staticmethod
    def forward(ctx: Any, x: Any, apply: Callable[[Any], Any], adjoint: Callable[[Any], Any]) -> Any:
        ctx.back = adjoint, apply
        return apply(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, None, None]:
        return _Linear.apply(grad, *ctx.back), None, None
