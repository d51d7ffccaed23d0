"""The reshards of a program beside plans, as text, as JSON, as a page, and as a verdict for CI. Each framework adds a Row
with the fields of its own plans."""

from __future__ import annotations

import dataclasses
import html
import json
import math
from dataclasses import dataclass, field
from typing import ClassVar

from .errors import Error


class WasteError(Error):
    """A program moves more bytes than allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "infeasible")


@dataclass
class Row:
    """One reshard. Bytes are the bytes that the busiest device receives in one run; peaks are the largest tile of an
    array on the way. times: runs in one call of the program. peer: the framework that moves without plans; word: the
    beginning of its fields, which end in _bytes, _peak and _plan."""

    peer: ClassVar[str] = ""
    word: ClassVar[str] = ""

    place: str
    op: str
    asked: bool
    times: int
    line: str
    source: str
    target: str
    bytes: int = 0
    peak: int = 0
    plan: list[str] = field(default_factory=list)
    lower_bound_bytes: int = 0
    problem: str = ""

    @property
    def peer_bytes(self) -> int | None:
        """The bytes of the framework's own plan, or None."""
        return getattr(self, f"{self.word}_bytes")

    @property
    def peer_peak(self) -> int | None:
        """The peak of the framework's own plan, or None."""
        return getattr(self, f"{self.word}_peak")

    @property
    def peer_plan(self) -> list[str] | None:
        """The collectives of the framework's own plan, or None."""
        return getattr(self, f"{self.word}_plan")

    @property
    def saved_bytes(self) -> int:
        """The framework's received bytes minus the plan's, over all runs."""
        return (self.peer_bytes - self.bytes) * self.times if self.peer_bytes is not None else 0

    @property
    def waste(self) -> float:
        """The framework's received bytes divided by the plan's; 1 if nothing is received or its bytes are unknown."""
        if self.peer_bytes is None or self.peer_bytes == self.bytes:
            return 1.0
        return self.peer_bytes / self.bytes if self.bytes else math.inf


@dataclass
class Explained:
    """The reshards of a program, most wasteful first. collectives, received_bytes: of the program without plans."""

    rows: list[Row]
    collectives: int
    received_bytes: int

    @property
    def saved_bytes(self) -> int:
        """Bytes that the busiest device saves in one call of the program."""
        return sum(row.saved_bytes for row in self.rows)

    def require(self, waste_max: float) -> None:
        """For CI. Errors: WasteError, with the worst row, if the framework receives more than waste_max
        times the bytes of a plan."""
        worst = max(self.rows, key=lambda row: row.waste, default=None)
        if worst is not None and worst.waste > waste_max:
            raise WasteError(f"{worst.place}: {worst.peer} receives {_ratio(worst.waste)} of what is needed, at most {waste_max}x is "
                             f"allowed: {worst.source} -> {worst.target}; write {worst.line}")

    def json(self) -> str:
        """One object: schema, totals, rows with all their fields."""
        rows = [{**dataclasses.asdict(row), "saved_bytes": row.saved_bytes,
                 "waste": row.waste if math.isfinite(row.waste) else None} for row in self.rows]
        return json.dumps({"schema": 1, "collectives": self.collectives, "received_bytes": self.received_bytes,
                           "saved_bytes": self.saved_bytes, "rows": rows})

    def html(self) -> str:
        """One page without external scripts, styles or pictures."""
        peer = html.escape(self.rows[0].peer) if self.rows else ""
        head = "".join(f"<th>{title.format(peer)}</th>" for title in _TITLES)
        body = "".join("<tr{}>{}</tr>".format(" class=waste" if row.waste > 1 else "", "".join(
            f"<td>{html.escape(cell)}</td>" for cell in _cells(row))) for row in self.rows)
        return (f"<!doctype html><html lang=en><meta charset=utf-8><title>Reshards</title><style>{_STYLE}</style>"
                f"<p>{html.escape(self._summary())}</p><table><tr>{head}</tr>{body}</table></html>")

    def _repr_html_(self) -> str:
        return self.html()

    def _summary(self) -> str:
        return (f"{len(self.rows)} reshards; the program's {self.collectives} collectives receive "
                f"{_bytes(self.received_bytes)} a device, {_bytes(self.saved_bytes)} of it for nothing")

    def __str__(self) -> str:
        lines = []
        for number, row in enumerate(self.rows, 1):
            where = row.place or row.op
            lines.append(f"{number}. {where}" + (f"   {row.times} times" if row.times > 1 else ""))
            lines.append(f"   {row.source} -> {row.target}")
            if row.problem:
                lines.append(f"   no plan: {row.problem}")
                continue
            if row.peer_bytes is not None:
                lines.append(f"   {row.peer:9} {_bytes(row.peer_bytes):>10}  peak {_bytes(row.peer_peak):>10}  {_steps(row.peer_plan)}")
            lines.append(f"   reshard   {_bytes(row.bytes):>10}  peak {_bytes(row.peak):>10}  {_steps(row.plan)}")
            if row.waste > 1:
                lines.append(f"   saves {_bytes(row.saved_bytes)} ({_ratio(row.waste)}):  {row.line}")
        return "\n".join([*lines, self._summary()])


_TITLES = ("where", "from", "to", "times", "{0}", "{0}'s bytes", "{0}'s peak", "a plan", "bytes", "peak", "saved", "write")
_STYLE = ("body{font:14px sans-serif}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:4px 8px;"
          "text-align:left;font-family:monospace}.waste{background:#fee}")


def _cells(row: Row) -> list[str]:
    known = row.peer_bytes is not None
    return [row.place or row.op, row.source, row.target, str(row.times), _steps(row.peer_plan or []) if known else "",
            _bytes(row.peer_bytes) if known else "", _bytes(row.peer_peak) if known else "",
            row.problem or _steps(row.plan), _bytes(row.bytes), _bytes(row.peak), _bytes(row.saved_bytes), row.line]


def _steps(kinds: list[str] | None) -> str:
    return ", ".join(kinds or []) or "nothing"


def _ratio(waste: float) -> str:
    return f"{waste:.3g}x" if math.isfinite(waste) else "bytes where none are needed"


def _bytes(count: int | None) -> str:
    size = float(count or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
