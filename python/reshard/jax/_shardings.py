"""Shardings of JAX as layouts. Devices of these layouts are positions in a mesh, or in the device list of a program."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from .. import Layout, Mesh, UnsupportedError, parse_layout
from ..dtypes import ROWS

_NAMES = {row["long_name"]: row["name"] for row in ROWS}
_OF_SIZE = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # for types that reshard has no name for
Spec = tuple[tuple[str, ...], ...]


def dims(spec: Any, rank: int) -> Spec | None:
    """For each dimension the axes that cut it, major to minor; returns None if a dimension is unconstrained."""
    entries = tuple(spec) + (None,) * (rank - len(spec))
    if any(entry is PartitionSpec.UNCONSTRAINED for entry in entries):
        return None
    return tuple(() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in entries)


def element(dtype: Any) -> str:
    """The element type of that name, or else one of that size, since a plan depends on the size alone.
    Errors: UnsupportedError (JAX's extended types, such as random keys, and sizes that no type has)."""
    if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        raise UnsupportedError(f"{dtype} has no size in bytes")
    known = numpy.dtype(dtype)
    name = _NAMES.get(known.name) or _OF_SIZE.get(known.itemsize)
    if name is None:
        raise UnsupportedError(f"elements of {dtype} have {known.itemsize} bytes; 1, 2, 4 or 8 are supported")
    return name


@functools.lru_cache(4096)
def layout(axes: tuple[tuple[str, int], ...], spec: Spec, shape: tuple[int, ...], dtype: str) -> Layout:
    """axes: name and size of each axis of the mesh. Names that reshard cannot write are replaced by numbers."""
    names = {name: str(name) if re.fullmatch(r"[A-Za-z_]\w*", str(name)) else f"axis_{number}"
             for number, (name, _) in enumerate(axes)}
    mesh = Mesh([(names[name], size) for name, size in axes])
    return Layout(mesh, dtype, shape, [[names[axis] for axis in dim] for dim in spec])


def named_layout(sharding: NamedSharding, shape: tuple[int, ...], dtype: Any) -> Layout:
    """Errors: UnsupportedError, for an unconstrained dimension."""
    spec = dims(sharding.spec, len(shape))
    if spec is None:
        raise UnsupportedError("a dimension is unconstrained")
    return layout(tuple(sharding.mesh.shape.items()), spec, shape, element(dtype))


@functools.lru_cache(4096)
def _hlo_layout(text: str, devices: int, array: str) -> Layout:
    mesh = Mesh({"devices": devices}) if "replicated}" in text and "tile" not in text else None
    found = parse_layout(mesh, text, "hlo", array)
    if found.ranks != devices:
        raise UnsupportedError(f"{text} is not over all {devices} devices")
    return found


def positional_layout(sharding: Any, shape: tuple[int, ...], dtype: Any, order: Any) -> Layout:
    """Any sharding over the devices of `order`; a device is its index there. Errors: UnsupportedError, InputError."""
    held = _hlo_layout(str(sharding._to_xla_hlo_sharding(len(shape))), len(order),
                       f"{element(dtype)}[{','.join(map(str, shape))}]")
    own = tuple(sharding._device_assignment)
    if own == tuple(order):
        return held
    place = {device: number for number, device in enumerate(order)}
    return held.with_devices([place[own[device]] for device in held.mesh.devices])


def context_mesh() -> Any:
    """The mesh of jax.set_mesh or of `with mesh:`; returns None outside of both."""
    mesh = jax.sharding.get_abstract_mesh()
    if not mesh.empty:
        return mesh
    from jax._src import mesh as mesh_of_jax  # the only place that knows `with mesh:`
    mesh = mesh_of_jax.thread_resources.env.physical_mesh
    return None if mesh.empty else mesh


def axis_types(mesh: Any) -> set[AxisType]:
    """The types of its axes; Auto if they have no types."""
    return set(mesh.axis_types or (AxisType.Auto,))


def named(sharding: Any, array: Any) -> NamedSharding | None:
    """The request as a NamedSharding; returns None if it is no sharding of that kind.

    array: the array to move. Its mesh is used if a PartitionSpec finds no other."""
    spec = sharding.spec if isinstance(sharding, NamedSharding) else sharding
    if not isinstance(spec, PartitionSpec):
        return None
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else context_mesh()
    if (mesh is None or isinstance(mesh, jax.sharding.AbstractMesh)) and not is_traced(array):
        held = getattr(array, "sharding", None)
        of_array = held.mesh if isinstance(held, NamedSharding) else None
        if mesh is None or (of_array is not None and of_array.abstract_mesh == mesh):
            mesh = of_array
        else:
            mesh = jax.sharding.get_mesh()
    if mesh is None:
        return None
    return sharding if isinstance(sharding, NamedSharding) and sharding.mesh is mesh else NamedSharding(mesh, spec)


def on_one_mesh(source: NamedSharding, target: NamedSharding, rank: int) -> tuple[NamedSharding, NamedSharding] | None:
    """Both shardings over one mesh, whose axes are the common parts of the axes of the two meshes. Returns None if they
    have no common parts, or list the devices in two orders."""
    meshes = source.mesh, target.mesh
    if any(isinstance(mesh, jax.sharding.AbstractMesh) or axis_types(mesh) != {AxisType.Auto} for mesh in meshes):
        return None
    devices = meshes[0].devices.ravel()
    if devices.tolist() != meshes[1].devices.ravel().tolist() or None in (specs := [dims(source.spec, rank), dims(target.spec, rank)]):
        return None
    spans = [_spans(mesh) for mesh in meshes]
    borders = sorted({border for of_mesh in spans for span in of_mesh.values() for border in span}, reverse=True)
    if any(wide % narrow for wide, narrow in zip(borders, borders[1:])):
        return None
    parts = {(wide, narrow): f"part_{narrow}" for wide, narrow in zip(borders, borders[1:])}
    sizes = [wide // narrow for wide, narrow in parts]
    mesh = jax.sharding.Mesh(devices.reshape(sizes), tuple(parts.values()), axis_types=(AxisType.Auto,) * len(sizes))
    found = []
    for spec, of_mesh in zip(specs, spans):
        entries = [tuple(name for axis in axes for part, name in parts.items()
                         if of_mesh[axis][0] >= part[0] and part[1] >= of_mesh[axis][1]) for axes in spec]
        found.append(NamedSharding(mesh, PartitionSpec(*(entry or None for entry in entries))))
    return found[0], found[1]


def _spans(mesh: Any) -> dict[Any, tuple[int, int]]:
    """For each axis, the distance in devices between neighbouring indices, times its size and once."""
    found, stride = {}, 1
    for axis, size in reversed(tuple(mesh.shape.items())):
        found[axis] = (stride * size, stride)
        stride *= size
    return found


def transposed(sharding: Any, rank: int, permute: Sequence[int]) -> Any:
    """The sharding of the transposed array: dimension i is dimension permute[i]. None, and shardings that are not by
    dimension, stay."""
    spec = sharding.spec if isinstance(sharding, NamedSharding) else sharding
    if not isinstance(spec, PartitionSpec):
        return sharding
    entries = [*spec, *(None,) * (rank - len(spec))]
    made = PartitionSpec(*(entries[dim] for dim in permute))
    return NamedSharding(sharding.mesh, made) if isinstance(sharding, NamedSharding) else made


def is_traced(value: Any) -> bool:
    """True for a value of a function that JAX traces."""
    return isinstance(value, jax.core.Tracer)
