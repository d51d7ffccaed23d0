"""Element types: their short names and their numpy types. bf16 and f8 need the package ml_dtypes."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from ._core import dtypes
from .errors import InputError, UnsupportedError

ROWS = tuple(dtypes())  # the names of each type elsewhere
_BY_NAME = {row["name"]: row for row in ROWS}
_SHORT = {row["long_name"]: row["name"] for row in ROWS}
_LISTED = ", ".join(_BY_NAME)


@functools.lru_cache(maxsize=None)
def numpy_dtype(name: str) -> numpy.dtype:
    """The numpy dtype of a short name.
    Errors: InputError (no such name), UnsupportedError (bf16 and f8 without the package ml_dtypes), TypeError (no str)."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an element type is a str, not {type(name).__name__}")
    if name not in _BY_NAME:
        raise InputError(f"there is no element type {name!r}; the element types are {_LISTED}", "mismatch")
    row = _BY_NAME[name]
    if row["numpy"]:
        return numpy.dtype(row["numpy"])
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(f"numpy knows no {name}: install ml_dtypes", "unsupported") from None
    return numpy.dtype(getattr(ml_dtypes, row["long_name"]))


def name_of(dtype: Any) -> str:
    """The short name of a dtype of torch, or of any argument that numpy.dtype accepts. Errors: InputError."""
    try:
        known = numpy.dtype(dtype)
    except TypeError:
        known = None
    if known is not None:
        long = known.name
    elif isinstance(dtype, str) or type(dtype).__module__ == "torch":
        long = str(dtype).rpartition(".")[2]
    else:
        long = f"an element type that is a {type(dtype).__name__}"
    if long not in _SHORT or (known is not None and not known.isnative):
        shown = known.str if known is not None and not known.isnative else long
        raise InputError(f"there are no layouts of {shown}; the element types are {_LISTED}", "mismatch")
    return _SHORT[long]


def layout_name_of(dtype: Any) -> str:
    """The short name of a dtype as layouts take it: a short or long name, or a dtype of numpy or torch.
    Errors: InputError. A wrong text is returned as it is."""
    return _SHORT.get(dtype, dtype) if isinstance(dtype, str) else name_of(dtype)
