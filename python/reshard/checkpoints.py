"""Checkpoints between files and the ranks of an MPI communicator: each byte read, or written, once by all together.

    from mpi4py import MPI
    import reshard
    tiles = reshard.load(MPI.COMM_WORLD, "model", "target tp=8\\n*.q_proj.weight = [tp, -]\\notherwise = -")
    reshard.save(MPI.COMM_WORLD, "again", tiles, "source tp=8\\n*.q_proj.weight = [tp, -]\\notherwise = -", shapes=shapes)

The forms and the rules are those of `reshard convert`; docs/checkpoints.md has them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import mpi
from .dtypes import name_of, numpy_dtype
from .errors import UnsupportedError

if TYPE_CHECKING:
    from mpi4py import MPI


def _module(comm: MPI.Comm) -> tuple[Any, int]:
    address = mpi._address(comm)
    if not hasattr(mpi._mpi, "load"):
        raise UnsupportedError("this build of reshard reads no files; install nlohmann-json3-dev, then `pip install "
                               "./python` again", "unsupported")
    return mpi._mpi, address


def _casts(cast: Any) -> list[tuple[str, str]]:
    if cast is None:
        return []
    return [(pattern, name_of(dtype) if not isinstance(dtype, str) else dtype)
            for pattern, dtype in (cast.items() if isinstance(cast, Mapping) else [("*", cast)])]


@mpi._collective("prepare")
def load(comm: MPI.Comm, path: str | os.PathLike[str], rules: str = "", *, list: str = "", cast: Any = None,
         memory: int = 1 << 28, jobs: int = 0) -> dict[str, numpy.ndarray]:
    """This rank's tiles of a checkpoint, by name; in memory that peers reach. Collective.

    path: a checkpoint in any form that `reshard inspect` reads.
    rules: their text; without `target` lines each rank gets all. list: whole tensors of ranks' files, `name dtype[shape]`
    a line, where their tiles do not say it.
    cast: an element type for all floating tensors, or {pattern: element type}; the first pattern that fits counts.
    memory: bytes of buffers on this rank, beside the tiles. jobs: threads; 0: the processors divided by the ranks of a node.
    Each array has the shape of the rank's tile, as Layout.tile_shape; an extent is 0 if the rank has no elements of the
    tensor.
    Errors, on all ranks: InputError (rules, files that are not what they say, too few ranks, options that differ), OSError's
    kin as reshard.Error (a file that is not there or becomes shorter), InfeasibleError (memory), UnsupportedError.
    """
    module, address = _module(comm)
    tiles = {}
    for name, dtype, shape, raw in module.load(address, os.fspath(path), rules, list, _casts(cast), memory, jobs):
        kind = numpy_dtype(dtype)
        tiles[name] = numpy.empty(shape, kind) if raw is None else raw.view(kind).reshape(shape)
    return tiles


@mpi._collective("prepare")
def save(comm: MPI.Comm, path: str | os.PathLike[str], tiles: Mapping[str, Any], rules: str, *,
         shapes: Mapping[str, Sequence[int]] | None = None, form: str | None = None, cast: Any = None,
         memory: int = 1 << 28, jobs: int = 0) -> None:
    """Writes the tensors of which the ranks have tiles. Collective; all ranks see one file system.

    tiles: name -> this rank's tile, row-major on the host, the same names in the same order on all ranks.
    rules: `source` and a mesh, then where tensors are; `target` lines where the form holds parts (dcp, ranks).
    shapes: of whole tensors, in elements; a tensor that is not in it is whole on each rank.
    form: a name of `reshard convert --to`; None: as the path ends, else index.
    What several ranks have is written once (form ranks: in each rank's file). Nothing has its final name before all is
    on the disk; reshard.json has the checksums. cast, memory, jobs and errors: as load.
    """
    module, address = _module(comm)
    for mapping, name in ((tiles, "tiles"), (shapes, "shapes")):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise TypeError(f"`{name}` is a dict by the names of tensors, not {type(mapping).__name__}")
    arrays = [numpy.ascontiguousarray(tile) if isinstance(tile, numpy.ndarray) and tile.ndim else tile
              for tile in tiles.values()]
    whole = [[int(extent) for extent in (shapes or {}).get(name, array.shape)] for name, array in zip(tiles, arrays)]
    module.save(address, os.fspath(path), [*tiles], whole, arrays, form or "", rules, _casts(cast), memory, jobs)


__all__ = ["load", "save"]
