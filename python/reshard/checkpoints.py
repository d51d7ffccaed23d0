"""Models on the ranks of an MPI communicator: from files, to files, and from one sharding to another in memory. All ranks
together read or write each byte of a file once.

    from mpi4py import MPI
    import reshard
    tiles = reshard.load(MPI.COMM_WORLD, "model", "target tp=8\\n*.q_proj.weight = [tp, -]\\notherwise = -")
    reshard.save(MPI.COMM_WORLD, "again", tiles, "source tp=8\\n*.q_proj.weight = [tp, -]\\notherwise = -", shapes=shapes)
    again = reshard.move_tensors(MPI.COMM_WORLD, tiles, "source tp=8\\n...\\ntarget tp=4\\n...", tensors)

The forms and the rules are the same as for `reshard convert`; see docs/checkpoints.md."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import mpi
from ._core import Model
from .dtypes import layout_name_of, name_of, numpy_dtype
from .errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from mpi4py import MPI


def _module(comm: MPI.Comm) -> tuple[Any, int]:
    address = mpi._address(comm)
    if not hasattr(mpi._mpi, "load"):
        raise UnsupportedError("this build of reshard reads no files; install nlohmann-json3-dev, then `pip install .` "
                               "again", "unsupported")
    return mpi._mpi, address


def _casts(cast: Any) -> list[tuple[str, str]]:
    if cast is None:
        return []
    return [(pattern, name_of(dtype) if not isinstance(dtype, str) else dtype)
            for pattern, dtype in (cast.items() if isinstance(cast, Mapping) else [("*", cast)])]


def _tiles(listed: Any) -> dict[str, numpy.ndarray]:
    tiles = {}
    for name, dtype, shape, raw in listed:
        kind = numpy_dtype(dtype)
        tiles[name] = numpy.empty(shape, kind) if raw is None else raw.view(kind).reshape(shape)
    return tiles


def _dense(tile: Any) -> Any:
    return numpy.ascontiguousarray(tile) if isinstance(tile, numpy.ndarray) and tile.ndim else tile


@mpi._collective("prepare")
def load(comm: MPI.Comm, path: str | os.PathLike[str], rules: str = "", *, list: str = "", cast: Any = None,
         memory: int = 1 << 28, jobs: int = 0, verify: bool = False) -> dict[str, numpy.ndarray]:
    """Loads a checkpoint: returns the tiles of this rank by name, in memory that peers reach. Collective.

    path: a checkpoint in any form that `reshard inspect` reads.
    rules: their text. Each rank gets whole tensors if no line begins with `target`. list: the whole tensors, a line `name
    dtype[shape]` each, if the files of ranks do not describe them.
    cast: an element type for all floating tensors, or {pattern: element type}; the first pattern that matches counts.
    memory: bytes of buffers on this rank, beside the tiles. jobs: threads; 0: the processors divided by the ranks of a
    node. Each array has the shape of the tile of the rank, as Layout.tile_shape. An extent is 0 if the rank has no
    elements of the tensor.
    verify: read all files first, each rank its part, and compare them with the checksums of their reshard.json.
    Errors, on all ranks: InputError (rules, files with wrong contents, too few ranks, options that differ), a kind of
    OSError as reshard.Error (a file that is missing or becomes shorter, bytes that changed), InfeasibleError (memory),
    UnsupportedError.
    """
    module, address = _module(comm)
    return _tiles(module.load(address, os.fspath(path), rules, list, _casts(cast), memory, jobs, verify))


@mpi._collective("prepare")
def move_tensors(comm: MPI.Comm, tiles: Mapping[str, Any], rules: str, tensors: str | Iterable[tuple[str, Any, Sequence[int]]], *,
                 cast: Any = None, lost: Sequence[int] | None = None,
                 devices: Sequence[int] | None = None) -> dict[str, numpy.ndarray]:
    """Moves a model in memory, by rules: returns the tiles of this rank by name, in memory that peers reach. Collective.

    tiles: name -> tile of this rank at the source, row-major on the host. Tensors that the rank has no part of may be absent.
    rules: `source` and `target` lines with a mesh each, then layouts. Rules rename, fuse, split, transpose, cast and pad.
    tensors: the whole tensors at the source: lines `name dtype[shape]`, or triples of name, dtype and shape.
    cast: as load. Plans move each part from tile to tile: elements are copied once and cast on the way. Padding is 0.
    lost: devices whose tiles are gone. The model is rebuilt from the replicas that are left, in one round. Both meshes name
    devices as before the loss, and devices has the device of each rank, as in mpi.rebuild. Each target is a whole tensor.
    Errors, on all ranks before a byte moves: InputError (rules; tiles of another size or dtype, or not among the tensors; too
    few ranks; rules, tensors or casts that differ), UnsupportedError (an array on a device; with `lost`: parts, padding or
    casts), InfeasibleError (only lost devices held some boxes). BackendError: a peer failed.
    """
    module, address = _module(comm)
    if not isinstance(tiles, Mapping):
        raise TypeError(f"`tiles` is a dict by the names of tensors, not {type(tiles).__name__}")
    lines = tensors if isinstance(tensors, str) else "".join(
        f"{name} {layout_name_of(dtype)}[{','.join(map(str, shape))}]\n" for name, dtype, shape in tensors)
    held = {name: _dense(tile) for name, tile in tiles.items()}
    if lost is not None or devices is not None:
        if cast is not None:
            raise UnsupportedError("a rebuild casts nothing; load or move the tensors with `cast` afterwards", "unsupported")
        return _rebuilt(comm, held, rules, lines, () if lost is None else lost, mpi._devices_of(comm, devices))
    return _tiles(module.move_tensors(address, held, rules, lines, _casts(cast)))


def _with_owners(tile: Any, owners: int) -> Any:
    """The tile as a layout has it: a dimension that says who owns a tensor has one index."""
    if getattr(tile, "size", 1) == 0:
        return None
    return tile.reshape((1,) * owners + tile.shape) if owners and tile is not None else tile


def _rebuilt(comm: MPI.Comm, held: dict[str, Any], rules: str, lines: str, lost: Sequence[int],
             devices: list[int]) -> dict[str, numpy.ndarray]:
    moves = Model(rules, lines).whole_moves()
    for name in held:
        if all(name != move[0] for move in moves):
            raise InputError(f"no tensor of the target is made of '{name}'", "mismatch")

    tiles = [_with_owners(held.get(move[0]), move[4]) for move in moves]
    outs = mpi._rebuilt(comm, tiles, [move[2] for move in moves], [move[3] for move in moves], lost, devices)
    rebuilt = {}
    for (_, name, _, _, owners), out in zip(moves, outs, strict=True):
        rebuilt[name] = out[(0,) * owners] if out.size or not owners else numpy.empty((0,) * (out.ndim - owners), out.dtype)
    return rebuilt


@mpi._collective("prepare")
def save(comm: MPI.Comm, path: str | os.PathLike[str], tiles: Mapping[str, Any], rules: str, *,
         shapes: Mapping[str, Sequence[int]] | None = None, form: str | None = None, cast: Any = None,
         memory: int = 1 << 28, jobs: int = 0, verify: bool = False, resume: bool = False) -> None:
    """Writes a checkpoint from the tiles of the ranks. Collective; all ranks see one file system.

    tiles: name -> tile of this rank, row-major on the host, with the same names in the same order on all ranks.
    rules: `source` and a mesh, then the layouts of tensors; also `target` lines if the form holds parts (dcp, ranks).
    shapes: of whole tensors, in elements. A tensor that is not listed is whole on each rank.
    form: a name of `reshard convert --to`; None: by the suffix of the path, else index.
    Data that several ranks hold is written once (form ranks: in the file of each rank). No file gets its final name
    before all data is on the disk. reshard.json has the checksums. cast, memory, jobs and errors: as load.
    verify: read the new files again, each rank its part, and compare checksums before the checkpoint gets its name.
    resume: keep what is written if the run fails or is killed, and write only the rest if such a run was here before. The
    rest belongs to the same checkpoint only if the tiles, the ranks and the options are the same, else all is written.
    """
    module, address = _module(comm)
    for mapping, name in ((tiles, "tiles"), ({} if shapes is None else shapes, "shapes")):
        if not isinstance(mapping, Mapping):
            raise TypeError(f"`{name}` is a dict by the names of tensors, not {type(mapping).__name__}")
    arrays = [_dense(tile) for tile in tiles.values()]
    for name, array in zip(tiles, arrays):
        if not hasattr(array, "shape"):
            raise TypeError(f"the tile of `{name}` is an array, not {type(array).__name__}")
    whole = [[int(extent) for extent in (shapes or {}).get(name, array.shape)] for name, array in zip(tiles, arrays)]
    module.save(address, os.fspath(path), [*tiles], whole, arrays, form or "", rules, _casts(cast), memory, jobs,
                verify, resume)


__all__ = ["load", "move_tensors", "save"]
