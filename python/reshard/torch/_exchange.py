"""A move as one uneven all_to_all: each rank receives the elements that it lacks, straight from a rank that holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import Layout, RowSchedule
from ._groups import group_name
from ._packing import Rows
from ._versions import dist, torch


def exchange(source: Layout, target: Layout, mesh: Any, size: int, moves: bool) -> Callable[[Any], Any]:
    """A function from this rank's tile to its tile after the move. size: bytes of an element; moves: False if no
    rank receives anything. Elements that a rank holds already are copied and not sent. Errors: UnsupportedError (a sum)."""
    me, schedule = dist.get_rank(), RowSchedule([(source, target)])
    ranks = sorted(set(source.mesh.devices) | set(target.mesh.devices))
    sends, receives = schedule.nested_rows(me, "send"), schedule.nested_rows(me, "receive")
    is_tile = moves and Rows(receives, size).in_order("target")  # if so, the rank sends its own rows too, and copies nothing
    if is_tile:
        out, into = Rows(sends, size), Rows(receives, size)
    else:
        stays = Rows(sends[sends["peer"] == me], size)
        out, into = (Rows(rows[rows["peer"] != me], size) for rows in (sends, receives))
    shape, name = target.tile_shape(me), group_name(ranks, mesh)
    sent, received = out.counts(ranks), into.counts(ranks)
    all_to_all, wait = (getattr(torch.ops._c10d_functional, one).default for one in ("all_to_all_single", "wait_tensor"))

    def run(tile: Any) -> Any:
        tile = tile.contiguous().resolve_conj().resolve_neg()
        got = wait(all_to_all(out.packed(tile), received, sent, name)) if moves else None
        if is_tile:
            return got.view(shape)
        made = tile.new_empty(shape)
        stays.copy(tile, made)
        if got is not None:
            into.unpack(got, made)
        return made

    return run
