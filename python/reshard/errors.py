"""What goes wrong, as exceptions. Each has `code`, the library's own word for it, one sentence and, where a text was
wrong, that text and the place of the first wrong byte; str() shows it with a caret."""

from __future__ import annotations


class Error(Exception):
    """Any error of reshard.

    code: syntax, mesh, layout, overflow, mismatch, step, plan, infeasible, unsupported, io, usage or backend.
    message: one sentence. text, offset: the offending text and the byte of the first wrong place, or "" and 0.
    """

    def __init__(self, message: str, code: str = "usage", text: str = "", offset: int = 0, shown: str = "") -> None:
        super().__init__(shown or message)
        self.message = message
        self.code = code
        self.text = text
        self.offset = offset

    def __reduce__(self):
        return type(self), (self.message, self.code, self.text, self.offset, str(self))


class InputError(Error, ValueError):
    """Text, layouts, shapes, dtypes, ranks or options that are wrong or do not fit each other."""


class InfeasibleError(Error, ValueError):
    """A limit below what any plan needs; the sentence names the least."""


class UnsupportedError(Error, NotImplementedError):
    """Well formed, but nothing that this build, this dtype or this notation can do."""


class BackendError(Error, RuntimeError):
    """MPI, NCCL or a peer failed. What was prepared on the communicator is given back; the next call starts anew."""
