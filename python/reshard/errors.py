"""The exceptions of reshard. Each has `code`, the name of the error in the library, and one sentence. If a text was
wrong, it also has that text and the place of the first wrong byte; str() marks it with a caret."""

from __future__ import annotations


class Error(Exception):
    """Any error of reshard.

    code: syntax, mesh, layout, overflow, mismatch, step, plan, infeasible, unsupported, io, usage or backend.
    message: one sentence. text, offset: the wrong text and its first wrong byte, or "" and 0.
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
    """Text, layouts, shapes, dtypes, ranks or options are wrong or do not match each other."""


class InfeasibleError(Error, ValueError):
    """A limit is below the need of every plan. The sentence names the least limit."""


class UnsupportedError(Error, NotImplementedError):
    """The input is well formed, but this build, dtype or notation does not support it."""


class BackendError(Error, RuntimeError):
    """MPI, NCCL or a peer failed. All prepared state on the communicator is dropped; the next call starts anew."""
