"""DTensorSpecs as layouts, and the specs that are no layouts."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from .. import Layout, Mesh
from ..dtypes import name_of
from ._versions import DTensorSpec, Partial, Replicate, Shard, StridedShard

_KNOWN = (Shard, Replicate, Partial, StridedShard)


def why_unknown(spec: DTensorSpec) -> str:
    """Why a spec is no layout, or an empty text."""
    if spec.tensor_meta is None:
        return "the spec has no shape"
    if not all(type(extent) is int for extent in spec.tensor_meta.shape):
        return "sizes are symbols"
    for placement in spec.placements:
        if type(placement) not in _KNOWN:
            return f"{type(placement).__name__} is no placement that layouts have"
    for entry in _strange_order(spec):  # torch.chunk axis by axis, in an order that a layout has for even parts alone
        if spec.tensor_meta.shape[entry.tensor_dim] % math.prod(map(spec.mesh.size, entry.mesh_dims)):
            return f"dimension {entry.tensor_dim} is cut unevenly by axes {tuple(entry.mesh_dims)} in this order"
    if any(type(one) is StridedShard for one in spec.placements) and getattr(
            spec, "use_strided_shard_as_shard_order", True) is False:
        return "_StridedShard comes from a view"
    return ""


@functools.lru_cache(maxsize=64)
def _grid(mesh: Any) -> numpy.ndarray:
    """The ranks of a mesh at their places."""
    return numpy.asarray(mesh.mesh)


def sizes_of(mesh: Any) -> tuple[int, ...]:
    """The number of ranks on each axis of a mesh."""
    return _grid(mesh).shape


def devices_of(mesh: Any) -> list[int]:
    """The ranks of a mesh, row-major."""
    return _grid(mesh).reshape(-1).tolist()


def members(mesh: Any, axes: Sequence[int], at: list[int]) -> list[int]:
    """The ranks that share a place on all axes but `axes`, row-major. at: the place."""
    return _grid(mesh)[tuple(slice(None) if axis in axes else at[axis] for axis in range(mesh.ndim))].reshape(-1).tolist()


def _strange_order(spec: DTensorSpec) -> list[Any]:
    """The dimensions that mesh axes cut in another order than theirs: tensor_dim and mesh_dims, major to minor. [_StridedShard,
    Shard] has such an order too; layouts read it from the placements."""
    if any(type(one) is StridedShard for one in spec.placements):
        return []
    return [entry for entry in getattr(spec, "shard_order", None) or ()
            if tuple(sorted(entry.mesh_dims)) != tuple(entry.mesh_dims)]


def divides(spec: DTensorSpec) -> bool:
    """True if all tiles have one shape."""
    shape = list(spec.tensor_meta.shape)
    for size, one in zip(sizes_of(spec.mesh), spec.placements):
        if hasattr(one, "dim"):
            shape[one.dim], rest = divmod(shape[one.dim], size)
            if rest:
                return False
    return True


def strange_dims(spec: DTensorSpec) -> set[int]:
    """The dimensions that another axis may not cut by plain placements: strided, or cut in another order."""
    return {one.dim for one in spec.placements if type(one) is StridedShard} | {one.tensor_dim for one in _strange_order(spec)}


def with_placements(spec: DTensorSpec, placements: tuple[Any, ...]) -> DTensorSpec:
    """The spec with other placements. Dimensions that axes cut in another order keep their order."""
    strange = {one.tensor_dim: one for one in _strange_order(spec)}
    made = DTensorSpec(spec.mesh, placements, tensor_meta=spec.tensor_meta)
    if strange:
        made.shard_order = tuple(strange.get(one.tensor_dim, one) for one in made.shard_order)
    return made


_name = functools.lru_cache(maxsize=64)(name_of)


def layout_of(spec: DTensorSpec, axes: list[int] | None = None, devices: list[int] | None = None,
              placements: tuple[Any, ...] | None = None) -> Layout:
    """The layout of a spec, or of the same array under other placements. axes: the mesh axes that it keeps, which are named d0,
    d1 and so on; devices: their ranks. Errors: InputError, UnsupportedError."""
    strange = _strange_order(spec)
    if strange and placements is not None:
        spec, placements = with_placements(spec, placements), None
    mesh, meta, held = spec.mesh, spec.tensor_meta, placements or spec.placements
    kept, sizes = range(mesh.ndim) if axes is None else axes, sizes_of(mesh)
    own = Mesh([(f"d{axis}", sizes[axis]) for axis in kept], devices_of(mesh) if devices is None else devices)
    if not strange:
        return Layout.from_placements(own, _name(meta.dtype), tuple(meta.shape), [held[axis] for axis in kept])
    dims: list[tuple[str, ...]] = [()] * len(meta.shape)
    for entry in spec.shard_order:
        dims[entry.tensor_dim] = tuple(f"d{axis}" for axis in entry.mesh_dims if axis in kept)
    sums = {f"d{axis}": one.reduce_op for axis, one in enumerate(held) if axis in kept and one.is_partial()}
    return Layout(own, _name(meta.dtype), tuple(meta.shape), dims, list(sums), next(iter(sums.values()), "sum"))
