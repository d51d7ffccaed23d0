"""Arrays that know how they are cut: jax.Arrays and DTensors. Each is a layout over the ranks of a job, and on each rank
a tile on the host."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from typing import Any

import numpy

from .._core import Layout, Mesh
from ..dtypes import name_of
from ..errors import InputError, UnsupportedError
from ._jobs import Job

Box = tuple[tuple[int, int], ...]  # begin and end in each dimension


def sharded(name: str, value: Any, job: Job) -> JaxTensor | TorchTensor | None:
    """How arrays like `value` become tiles, or None if it knows no sharding. Errors: InputError, UnsupportedError, TypeError."""
    jax = sys.modules.get("jax")
    if jax is not None:
        if isinstance(value, jax.core.Tracer):
            raise TypeError(f"tensor {name} is traced and has no elements yet; publish it outside of jax.jit")
        if isinstance(value, jax.Array) or (isinstance(value, jax.ShapeDtypeStruct) and value.sharding is not None):
            return JaxTensor(name, value, job)
    torch = sys.modules.get("torch.distributed.tensor")
    if torch is not None and isinstance(value, torch.DTensor):
        return TorchTensor(name, value, job)
    return None


def has_elements(value: Any) -> bool:
    """True for an array that sharded() knows, and false for a jax.ShapeDtypeStruct."""
    return hasattr(value, "addressable_shards") or hasattr(value, "to_local")


class JaxTensor:
    """Arrays of one shape, type and sharding in JAX. The tile of a process is the box that its devices hold together."""

    def __init__(self, name: str, like: Any, job: Job) -> None:
        import jax
        if jax.process_index() != job.group.rank:
            raise InputError(f"tensor {name} is an array of JAX; this process is {jax.process_index()} in JAX and rank "
                             f"{job.group.rank} of the job; wanted equal numbers, or a Layout and this rank's array", "usage")
        self._name, self._rank, self._sharding = name, job.group.rank, like.sharding
        self._shape, self._dtype = tuple(like.shape), like.dtype
        self.layout, self._box = _jax_layout(like.sharding, self._shape, name_of(like.dtype), self._rank)

    def tile(self, array: Any) -> tuple[Any, int]:
        """This rank's tile on the host, and the bytes that were copied from devices. An array that is not sharded is the
        tile. Errors: InputError (another shape, type or sharding)."""
        if not hasattr(array, "addressable_shards"):
            return array, 0
        if (tuple(array.shape), array.dtype) != (self._shape, self._dtype):
            raise InputError(f"tensor {self._name} comes as {array.dtype}{list(array.shape)}; it was published as "
                             f"{self._dtype}{list(self._shape)}", "mismatch")
        if array.sharding != self._sharding and self._layout_in(array.sharding) != self.layout:
            raise InputError(f"tensor {self._name} comes as {array.sharding}; it was published as {self._sharding}", "mismatch")
        shards = {_box_of(shard.index, self._shape): shard.data for shard in array.addressable_shards}
        staged = sum(data.nbytes for data in shards.values() if next(iter(data.devices())).platform != "cpu")
        if len(shards) == 1:
            return numpy.asarray(next(iter(shards.values()))), staged
        whole = numpy.empty(self.layout.tile_shape(self._rank), self.layout.numpy_dtype)
        for box, data in shards.items():
            whole[self._within(box)] = data
        return whole, staged

    def array(self, flat: numpy.ndarray) -> Any:
        """The jax.Array of the bytes of this rank's tile, which it copies. Errors: InputError (JAX has 64-bit types off)."""
        import jax
        tile = flat.view(self.layout.numpy_dtype).reshape(self.layout.tile_shape(self._rank))
        place = functools.partial(jax.sharding.SingleDeviceSharding, memory_kind=self._sharding.memory_kind)
        pieces = [jax.device_put(tile[self._within(_box_of(index, self._shape))].copy(), place(device))
                  for device, index in self._sharding.addressable_devices_indices_map(self._shape).items()]
        if any(piece.dtype != self._dtype for piece in pieces):
            raise InputError(f"tensor {self._name} is {self._dtype}, and JAX makes {pieces[0].dtype} of it; set jax_enable_x64",
                             "mismatch")
        if not pieces:
            return jax.make_array_from_single_device_arrays(self._shape, self._sharding, [], dtype=self._dtype)
        return jax.make_array_from_single_device_arrays(self._shape, self._sharding, pieces)

    def _layout_in(self, sharding: Any) -> Layout:
        return _jax_layout(sharding, self._shape, name_of(self._dtype), self._rank)[0]

    def _within(self, box: Box) -> tuple[slice, ...]:
        return tuple(slice(begin - first, end - first) for (begin, end), (first, _) in zip(box, self._box))


def _box_of(index: tuple[slice, ...], shape: tuple[int, ...]) -> Box:
    return tuple(side.indices(extent)[:2] for side, extent in zip(index, shape))


def _size(box: Box) -> int:
    return math.prod(end - begin for begin, end in box)


@functools.lru_cache(4096)
def _jax_layout(sharding: Any, shape: tuple[int, ...], dtype: str, rank: int) -> tuple[Layout, Box]:
    """The layout over the processes of a sharding, and the box of one process. Errors: UnsupportedError."""
    held: dict[int, set[Box]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        held.setdefault(device.process_index, set()).add(_box_of(index, shape))
    boxes = {}
    for process, parts in held.items():
        box = tuple((min(begins), max(ends)) for begins, ends in (zip(*sides) for sides in zip(*parts)))
        if sum(map(_size, parts)) != _size(box):
            raise UnsupportedError(f"the devices of process {process} hold parts of an array of shape {shape} that are no box; "
                                   f"order the mesh so that they do ({sharding})", "unsupported")
        boxes[process] = box
    return grid_layout(boxes, shape, dtype), boxes.get(rank, ((0, 0),) * len(shape))


def grid_layout(boxes: dict[int, Box], shape: tuple[int, ...], dtype: str) -> Layout:
    """A layout that gives each rank its box. Boxes are the cells of a grid, each held by as many ranks.
    Errors: UnsupportedError (they are no grid)."""
    sides = [sorted({box[dim] for box in boxes.values()}) for dim in range(len(shape))]
    holders: dict[Box, list[int]] = {cell: [] for cell in itertools.product(*sides)}
    for rank in sorted(boxes):
        holders[boxes[rank]].append(rank)
    copies = {len(ranks) for ranks in holders.values()}
    touching = all(before[1] == after[0] for side in sides for before, after in zip(side, side[1:]))
    if not touching or len(copies) != 1:
        raise UnsupportedError(f"the boxes of the processes are no grid over the shape {shape}, with each cell at as many "
                               f"processes: {boxes}", "unsupported")
    axes = [(f"d{dim}", len(side)) for dim, side in enumerate(sides) if len(side) > 1] + [("copies", copies.pop())]
    mesh = Mesh(axes, list(itertools.chain.from_iterable(holders.values())))
    extents = [[end - begin for begin, end in side] for side in sides]
    return Layout(mesh, dtype, shape, [f"d{dim}" if len(side) > 1 else None for dim, side in enumerate(sides)],
                  cuts=[of_dim if len(set(of_dim)) > 1 else None for of_dim in extents])


class TorchTensor:
    """Tensors of one shape, type and placement in torch. Rank r of the job is the r-th member of its process group."""

    def __init__(self, name: str, like: Any, job: Job) -> None:
        from ..torch import _specs
        spec = like._spec
        why = _specs.why_unknown(spec)
        if why:
            raise UnsupportedError(f"tensor {name}: {why}", "unsupported")
        ranks = _specs.devices_of(spec.mesh)
        if job.members is not None:
            strangers = set(ranks) - set(job.members)
            if strangers:
                raise InputError(f"tensor {name} is on rank {min(strangers)} of torch, which is not in this job", "mismatch")
            ranks = [job.members.index(rank) for rank in ranks]
        self._name, self._rank, self._spec = name, job.group.rank, spec
        self._device = like.to_local().device
        self.layout = _specs.layout_of(spec, devices=ranks)

    def tile(self, array: Any) -> tuple[Any, int]:
        """As JaxTensor.tile."""
        spec = getattr(array, "_spec", None)
        if spec is None:
            return array, 0
        if spec.mesh != self._spec.mesh or tuple(spec.placements) != tuple(self._spec.placements):
            raise InputError(f"tensor {self._name} comes as {spec.placements}; it was published as {self._spec.placements}",
                             "mismatch")
        local = array.to_local()
        local = local.wait() if hasattr(local, "wait") else local  # a collective may still fill it
        staged = 0 if local.device.type == "cpu" else local.numel() * local.element_size()
        return local.detach().cpu(), staged

    def array(self, flat: numpy.ndarray) -> Any:
        """The DTensor of the bytes of this rank's tile, which it copies. numpy need not know the type."""
        from ..torch._versions import DTensor, torch
        meta = self._spec.tensor_meta
        bytes_ = torch.from_numpy(numpy.array(flat))
        local = bytes_.view(meta.dtype).reshape(self.layout.tile_shape(self._rank)).to(self._device)
        return DTensor.from_local(local, self._spec.mesh, self._spec.placements, run_check=False, shape=meta.shape,
                                  stride=meta.stride)
