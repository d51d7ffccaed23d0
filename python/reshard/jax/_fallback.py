"""Where a plan cannot stand in for XLA, XLA's own way is taken, and that is said once for each reason."""

from __future__ import annotations

import warnings


class FallbackWarning(UserWarning):
    """An array is moved by XLA and not by a plan; the text says why. Each reason is said once a process."""


_said: set[str] = set()


def fall_back(reason: str) -> None:
    """Says that XLA moves an array, and why."""
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"reshard.jax leaves an array to XLA: {reason}", FallbackWarning, stacklevel=3)
