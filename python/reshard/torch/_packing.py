"""Rows of bytes between a tile and the buffer that an all_to_all sends or receives. Every pack and unpack is here. On the host,
reshard.rows copies them without the GIL. On a GPU, and while a compiler records, a row is one view of torch. Both pack the same
bytes in the same order, so ranks of either kind understand each other."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ..rows import pack, row_dtype, unpack
from ._versions import is_tracing, torch

_View = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides and offset in elements


class Rows:
    """Rows of one side of a schedule. nested: of RowSchedule.nested_rows; size: bytes of an element."""

    def __init__(self, nested: numpy.ndarray, size: int) -> None:
        self._nested, self._size = nested, size
        self._counts = nested["runs"].prod(1) * nested["run_bytes"] // size
        self._elements = int(self._counts.sum())

    def counts(self, ranks: list[int]) -> list[int]:
        """The elements that go to or come from each of these ranks."""
        held = dict.fromkeys(ranks, 0)
        for peer, count in zip(self._nested["peer"].tolist(), self._counts.tolist()):
            held[peer] += count
        return list(held.values())

    @functools.cached_property
    def _rows(self) -> numpy.ndarray:
        """The innermost loops, in the order of the nested ones: rows of RowSchedule.rows."""
        return numpy.concatenate([numpy.empty(0, row_dtype), *map(_unrolled, self._nested)])

    @functools.cached_property
    def _sources(self) -> list[_View]:
        return [self._view_of(row, "source") for row in self._nested]

    @functools.cached_property
    def _targets(self) -> list[_View]:
        return [self._view_of(row, "target") for row in self._nested]

    def _view_of(self, row: Any, end: str) -> _View:
        strides = (row[f"{end}_strides"] // self._size).tolist()
        return (*row["runs"].tolist(), int(row["run_bytes"]) // self._size), (*strides, 1), int(row[f"{end}_offset"]) // self._size

    def in_order(self, end: str) -> bool:
        """True if the rows, one after the other, are the memory of a tile from its begin on. end: "source" or "target"."""
        nested, counts = self._nested, self._counts
        if (nested[f"{end}_offset"] != (counts.cumsum() - counts) * self._size).any():
            return False
        runs = nested["runs"]
        inside = counts[:, None] * self._size // runs.cumprod(1)  # the bytes of one turn of each loop
        return bool(((runs == 1) | (nested[f"{end}_strides"] == inside)).all())

    @functools.cached_property
    def _is_source(self) -> bool:
        return self.in_order("source")

    def packed(self, tile: Any) -> Any:
        """The rows of a dense source tile, one after the other. It may share memory with the tile."""
        if self._is_source:
            return tile.view(-1).narrow(0, 0, self._elements)
        if is_on_host(tile):
            made = tile.new_empty(self._elements)
            if self._elements:
                pack(self._rows, [_bytes(tile)], _bytes(made), torch.get_num_threads())
            return made
        parts = [_seen(tile, view).reshape(-1) for view in self._sources]
        if not parts:
            return tile.new_empty(0)
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def unpack(self, packed: Any, tile: Any) -> None:
        """Writes packed rows to a dense target tile."""
        if not self._elements:
            return
        if is_on_host(tile):
            unpack(self._rows, _bytes(packed), [_bytes(tile)], torch.get_num_threads())
            return
        at = 0
        for view, count in zip(self._targets, self._counts.tolist()):
            _seen(tile, view).copy_(packed.narrow(0, at, count).view(view[0]))
            at += count

    def gathered(self, tile: Any) -> Any:
        """The elements of a target tile in the order of packed rows."""
        return torch.cat([tile.new_empty(0), *(_seen(tile, view).reshape(-1) for view in self._targets)])

    def add(self, packed: Any, tile: Any) -> None:
        """Adds packed rows to a source tile. Rows of several peers may add to one element."""
        for view, part in zip(self._sources, packed.split(self._counts.tolist())):
            _seen(tile, view).add_(part.view(view[0]))

    def copy(self, source: Any, target: Any) -> None:
        """Copies rows that stay on this rank."""
        for here, there in zip(self._sources, self._targets):
            _seen(target, there).copy_(_seen(source, here))


def is_on_host(tile: Any) -> bool:
    """True if a tensor is memory that reshard.rows may read and write."""
    return type(tile) is torch.Tensor and tile.device.type == "cpu" and not is_tracing()


def _bytes(dense: Any) -> numpy.ndarray:
    return dense.detach().view(-1).view(torch.uint8).numpy()


def _seen(tile: Any, view: _View) -> Any:
    shape, strides, offset = view
    return tile.as_strided(shape, strides, tile.storage_offset() + offset)


def _unrolled(row: Any) -> numpy.ndarray:
    """The rows of a nested one."""
    at = numpy.indices(tuple(row["runs"][:-1])).reshape(len(row["runs"]) - 1, -1)
    made = numpy.zeros(at.shape[1], row_dtype)
    made["peer"], made["run_bytes"], made["runs"] = row["peer"], row["run_bytes"], row["runs"][-1]
    for end in ("source", "target"):
        made[f"{end}_offset"] = row[f"{end}_offset"] + row[f"{end}_strides"][:-1] @ at
        made[f"{end}_stride"] = row[f"{end}_strides"][-1]
    return made
