"""Rows of bytes between a tile and the buffer that an all_to_all sends or receives. Every pack and unpack is here."""

from __future__ import annotations

from typing import Any

import numpy

from ._versions import is_tracing, torch

_ROWS_MAX = 64  # more rows than these are gathered by index, and not one by one


class Rows:
    """Rows of one side of a schedule, in elements. rows: of RowSchedule.rows; size: bytes of an element."""

    def __init__(self, rows: numpy.ndarray, size: int) -> None:
        self._views = {side: [(int(row["runs"]), int(row["run_bytes"]) // size, int(row[side + "_stride"]) // size,
                               int(row[side + "_offset"]) // size) for row in rows] for side in ("source", "target")}
        self._peers = [int(peer) for peer in rows["peer"]]
        self._indices: dict[tuple[str, Any], Any] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def counts(self, ranks: list[int]) -> list[int]:
        """The elements that go to or come from each of these ranks."""
        held = dict.fromkeys(ranks, 0)
        for peer, (runs, run, _, _) in zip(self._peers, self._views["source"]):
            held[peer] += runs * run
        return [held[rank] for rank in ranks]

    def packed(self, tile: Any) -> Any:
        """The rows of a dense source tile, one after the other."""
        if not len(self):
            return tile.new_empty(0)
        if len(self) > _ROWS_MAX:
            return tile.view(-1)[self._index("source", tile.device)]
        if len(self) == 1:
            return _view(tile, *self._views["source"][0]).contiguous().view(-1)
        return torch.cat([_view(tile, *one).reshape(-1) for one in self._views["source"]])

    def unpack(self, packed: Any, tile: Any) -> None:
        """Writes packed rows to a dense target tile."""
        if len(self) > _ROWS_MAX:
            tile.view(-1)[self._index("target", tile.device)] = packed
            return
        at = 0
        for runs, run, stride, offset in self._views["target"]:
            _view(tile, runs, run, stride, offset).copy_(packed.narrow(0, at, runs * run).view(runs, run))
            at += runs * run

    def copy(self, source: Any, target: Any) -> None:
        """Copies rows that stay on this rank."""
        if len(self) > _ROWS_MAX:
            target.view(-1)[self._index("target", target.device)] = source.view(-1)[self._index("source", source.device)]
            return
        for here, there in zip(self._views["source"], self._views["target"]):
            _view(target, *there).copy_(_view(source, *here))

    def _index(self, side: str, device: Any) -> Any:
        """The elements of all rows, in order. Kept, but not while a compiler records: tensors are symbols then."""
        found = self._indices.get((side, device))
        if found is None or is_tracing():
            parts = [(torch.arange(runs)[:, None] * stride + torch.arange(run) + offset).reshape(-1)
                     for runs, run, stride, offset in self._views[side]]
            found = torch.cat(parts).to(device)
            if not is_tracing():
                self._indices[side, device] = found
        return found


def _view(tile: Any, runs: int, run: int, stride: int, offset: int) -> Any:
    return tile.as_strided((runs, run), (stride, 1), tile.storage_offset() + offset)
