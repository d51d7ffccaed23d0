"""Keeps XLA's complaints about reshards, which its C++ writes to stderr, off the terminal while explain compiles."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_COMPLAINT = b"[SPMD] Involuntary full rematerialization"
_one_at_a_time = threading.Lock()  # stderr belongs to the whole process


def _pass_on(reading: int, stderr: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(stderr, "wb", buffering=0) as kept:
        for line in lines:
            if _COMPLAINT not in line:
                kept.write(line)


@contextlib.contextmanager
def without_complaints() -> Iterator[None]:
    """Passes on everything else that the process writes to stderr meanwhile, line by line."""
    with _one_at_a_time, contextlib.ExitStack() as undone:
        with contextlib.suppress(OSError):  # a process without a stderr
            _divert(undone)
        yield


def _divert(undone: contextlib.ExitStack) -> None:
    held = os.dup(2)
    reading, writing = os.pipe()
    passing = threading.Thread(target=_pass_on, args=(reading, os.dup(held)), daemon=True)
    _flush()
    os.dup2(writing, 2)
    os.close(writing)
    passing.start()
    undone.callback(passing.join, 5)  # last: a child of the process may hold the pipe open
    undone.callback(os.close, held)
    undone.callback(os.dup2, held, 2)
    undone.callback(_flush)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
