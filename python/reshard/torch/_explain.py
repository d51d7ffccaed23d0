"""Every move of the DTensors of a program: its place, torch's way, a plan's way, and the line to write."""

from __future__ import annotations

import os
import pathlib
import sys
import traceback
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import Error, UnsupportedError, _waste
from .._waste import Explained
from . import _axes, _everywhere, _specs, _versions
from ._choice import Settings, choose
from ._prices import Price

_OUTSIDE = tuple(str(pathlib.Path(file).parent) + os.sep for file in (_versions.torch.__file__, __file__))
_BYTES = Settings("bytes")


@dataclass
class Row(_waste.Row):
    """One move. Bytes are the bytes that the busiest device receives in one run; peaks are the largest tensor on the way.
    torch_*: of torch's own steps. times: runs in one call of the program. op: redistribute, implicit or backward."""

    peer: ClassVar[str] = "torch"
    word: ClassVar[str] = "torch"

    torch_bytes: int | None = None
    torch_peak: int | None = None
    torch_plan: list[str] | None = None


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explained:
    """Runs fn(*args, **kwargs), and returns every move of its DTensors, forward and backward, with torch's price and a plan's.

    Torch moves while it runs. print() shows a table, .json() and .html() show the same for programs and browsers, and
    .require(waste_max=1.1) is for CI. Plans are of policy "bytes". One process without a GPU prices any number of ranks on
    a process group of torch's backend "fake", and `python -m reshard.torch` makes one. Moves of reshard.torch.redistribute
    and of compiled functions do not count.
    Errors: the errors of fn, UnsupportedError (this torch moves DTensors in another way)."""
    before = getattr(_versions.moves, _versions.NAME, None)
    if why := _versions.refusal(before):
        raise UnsupportedError(why)
    seen: dict[Any, int] = {}

    def record(local_tensor: Any, current_spec: Any, target_spec: Any, *rest: Any, **more: Any) -> Any:
        if _is_counted(current_spec, target_spec):
            key = (current_spec, target_spec, *_place())
            seen[key] = seen.get(key, 0) + 1
        return before(local_tensor, current_spec, target_spec, *rest, **more)

    held = _everywhere.replace(before, record)
    try:
        fn(*args, **kwargs)
    finally:
        _everywhere.put_back(held, record)
    return _explained(seen)


def _is_counted(source: Any, target: Any) -> bool:
    return (source.mesh == target.mesh and tuple(source.placements) != tuple(target.placements)
            and not _specs.why_unknown(source) and not _specs.why_unknown(target))


def _explained(seen: dict[Any, int]) -> Explained:
    rows, collectives, received = [], 0, 0
    for (source, target, op, place), times in seen.items():
        row, theirs = _row(source, target, op, place, times)
        if theirs is not None:
            collectives += times * len(theirs.calls)
            received += times * theirs.received
        if row.torch_bytes or row.bytes or row.problem:
            rows.append(row)
    return Explained(sorted(rows, key=lambda row: -row.saved_bytes), collectives, received)


def _row(source: Any, target: Any, op: str, place: str, times: int) -> tuple[Row, Price | None]:
    row = Row(place=place, op=op, asked=op == "redistribute", times=times, line=_line(op, target), source=_text(source),
              target=_text(target))
    try:
        with _versions.without_modes():
            choice, theirs = choose(source, target, _BYTES), _axes.torch_price(source, target)
    except Error as error:
        row.problem = str(error).partition("\n")[0]
        return row, None
    if theirs is not None:
        row.torch_bytes, row.torch_peak, row.torch_plan = _shown(theirs)
    if choice.price is None:
        row.problem = choice.why
        return row, theirs
    row.bytes, row.peak, row.plan = _shown(choice.price)
    return row, theirs


def _shown(price: Price) -> tuple[int, int, list[str]]:
    return price.received, price.peak, [word for word in price.words.split(", ") if word != "local"]


def _place() -> tuple[str, str]:
    """The kind of the move that runs, and the line of the caller outside torch. Inside a backward it is the autograd node."""
    node = getattr(_versions.torch._C, "_current_autograd_node", lambda: None)()
    if node is not None:
        return "backward", f"backward, {node.name()}"
    op, found = "implicit", ""
    for frame, line in traceback.walk_stack(sys._getframe(2)):
        file = frame.f_code.co_filename
        if file.startswith(_OUTSIDE):
            if frame.f_code.co_name == "redistribute":
                op = "redistribute"
        elif not found:
            found = f"{file.rpartition('/')[2]}:{line}"
            break
    return op, found


def _text(spec: Any) -> str:
    """A spec as dtype, shape and placements on the sizes of its mesh."""
    meta, mesh = spec.tensor_meta, spec.mesh
    names = mesh.mesh_dim_names or [f"d{axis}" for axis in range(mesh.ndim)]
    places = ", ".join(f"{name}={mesh.size(axis)}: {_short(spec.placements[axis])}" for axis, name in enumerate(names))
    return f"{str(meta.dtype).rpartition('.')[2]}{list(meta.shape)} [{places}]"


def _short(placement: Any) -> str:
    if type(placement) is _versions.Shard:
        return f"Shard({placement.dim})"
    if type(placement) is _versions.Replicate:
        return "Replicate()"
    return f'Partial("{placement.reduce_op}")' if type(placement) is _versions.Partial else str(placement)


def _line(op: str, target: Any) -> str:
    """The text to write instead of the line, or around the program."""
    if op != "redistribute":
        return 'reshard.torch.install(policy="bytes")'
    return f"reshard.torch.redistribute(x, [{', '.join(map(_short, target.placements))}])"
