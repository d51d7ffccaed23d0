"""Element types: the library's short names beside numpy's, with ml_dtypes where it is installed."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from .errors import InputError, UnsupportedError

_NUMPY = {"bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
          "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
          "c128": "complex128"}
_ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
_NAMES = {long: short for short, long in {**_NUMPY, **_ML_DTYPES}.items()}


@functools.lru_cache(maxsize=None)
def numpy_dtype(name: str) -> numpy.dtype:
    """The numpy dtype of a short name. Errors: InputError (no such name), UnsupportedError (bf16 and f8 without the package
    ml_dtypes), TypeError (no str)."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an element type is a str, not {type(name).__name__}")
    if name in _NUMPY:
        return numpy.dtype(_NUMPY[name])
    if name not in _ML_DTYPES:
        raise InputError(f"there is no element type {name!r}; the element types are {', '.join(_NAMES.values())}", "mismatch")
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(f"numpy knows no {name}: install ml_dtypes", "unsupported") from None
    return numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))


def name_of(dtype: Any) -> str:
    """The short name of whatever numpy.dtype takes, or of torch's dtypes. Errors: InputError."""
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
    if long not in _NAMES or (known is not None and not known.isnative):
        shown = known.str if known is not None and not known.isnative else long
        raise InputError(f"there are no layouts of {shown}; the element types are {', '.join(_NAMES.values())}",
                         "mismatch")
    return _NAMES[long]
