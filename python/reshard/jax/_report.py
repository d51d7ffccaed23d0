"""The result of reshard.jax.explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import _waste
from .._waste import Explained, WasteError

__all__ = ["Explained", "Row", "WasteError"]


@dataclass
class Row(_waste.Row):
    """One reshard. Bytes are the bytes that the busiest device receives in one run; peaks are the largest tile of an
    array on the way. xla_*: of XLA's own plan, None if JAX cannot compile it. times: runs in one call of the program."""

    peer: ClassVar[str] = "XLA"
    word: ClassVar[str] = "xla"

    xla_bytes: int | None = None
    xla_peak: int | None = None
    xla_plan: list[str] | None = None
