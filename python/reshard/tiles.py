"""Splits a whole array into tiles, and joins tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ._core import Layout
from .errors import InputError, UnsupportedError


def _expect_layout(layout: Layout) -> None:
    if not isinstance(layout, Layout):
        raise TypeError(f"a layout is a Layout, not {type(layout).__name__}; parse_layout makes one from text")


def empty_tile(layout: Layout, rank: int) -> numpy.ndarray:
    """An uninitialized array for the tile of a rank: layout.tile_shape(rank), of layout.numpy_dtype. Errors: TypeError."""
    _expect_layout(layout)
    return numpy.empty(layout.tile_shape(rank), layout.numpy_dtype)


def fill_bytes(layout: Layout, fill: Any) -> bytes | None:
    """The bytes of one element of the layout with the value `fill`. None stays None.

    Errors: InputError (the element type does not hold the value, or it is not one value); TypeError (no layout).
    """
    if fill is None:
        return None
    _expect_layout(layout)
    try:
        element = numpy.asarray(fill, layout.numpy_dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"the fill value {fill!r} is no {layout.dtype}: {error}", "mismatch") from error
    if element.shape:
        raise InputError(f"the fill value has the shape {element.shape}; one value is wanted", "mismatch")
    return element.tobytes()


def _places(layout: Layout, rank: int) -> tuple[Any, ...]:
    """The index of the tile in the whole array: slices if each dimension has one interval."""
    sides = layout.tile_indices(rank)
    if all(len(side) == 1 for side in sides):
        return tuple(slice(begin, end) for (begin, end), in sides)
    empty = numpy.empty(0, numpy.intp)
    return numpy.ix_(*(numpy.concatenate([empty, *(numpy.arange(*one) for one in side)]) for side in sides))


def _holds(layout: Layout, rank: int) -> bool:
    return layout.tile_count(rank) > 0


def split(array: Any, layout: Layout) -> list[numpy.ndarray]:
    """The tiles of a whole array, one per rank, dense and row-major.

    array: of layout.shape; its elements become layout.numpy_dtype. Errors: InputError (another shape); UnsupportedError (a
    layout with summands: the program must decide which of them has the values).
    """
    _expect_layout(layout)
    whole = numpy.asarray(array)
    if whole.shape != layout.shape:
        raise InputError(f"the array has shape {whole.shape}, its layout {layout} says {layout.shape}", "mismatch")
    if layout.summands > 1:
        raise UnsupportedError(f"{layout} is a sum over ranks, so its tiles are not parts of the array", "unsupported")
    tiles = [empty_tile(layout, rank) for rank in range(layout.ranks)]
    for rank, tile in enumerate(tiles):
        if _holds(layout, rank):
            tile[...] = whole[_places(layout, rank)]
    return tiles


def join(tiles: Sequence[Any], layout: Layout) -> numpy.ndarray:
    """The whole array of these tiles: the inverse of split. If tiles are replicas, the last one stays.

    Errors: InputError (another number of tiles, or another shape); UnsupportedError (a layout with summands).
    """
    _expect_layout(layout)
    if len(tiles) < layout.ranks:
        raise InputError(f"{layout} has tiles on {layout.ranks} ranks, {len(tiles)} were given", "mismatch")
    if layout.summands > 1:
        raise UnsupportedError(f"{layout} is a sum over ranks: reduce it first", "unsupported")
    whole = numpy.empty(layout.shape, layout.numpy_dtype)
    for rank, tile in enumerate(map(numpy.asarray, tiles)):
        if tuple(tile.shape) != layout.tile_shape(rank):
            raise InputError(f"rank {rank} holds a tile of shape {layout.tile_shape(rank)} of {layout}, it was given "
                             f"{tuple(tile.shape)}", "mismatch")
        if _holds(layout, rank):
            whole[_places(layout, rank)] = tile
    return whole
