"""XLA's own way, for moves that a plan cannot make. Each reason is reported once."""

from __future__ import annotations

import warnings


class FallbackWarning(UserWarning):
    """XLA moves an array, and not a plan; the text gives the reason. Each reason is given once per process."""


_said: set[str] = set()


def fall_back(reason: str) -> None:
    """Warns that XLA moves an array, and gives the reason."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"reshard.jax leaves an array to XLA: {reason}", FallbackWarning, stacklevel=3)
