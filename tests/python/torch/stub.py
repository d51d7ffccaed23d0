"""The names of torch that reshard.torch touches, as modules without torch. Import it before reshard.torch."""

import contextlib
import dataclasses
import sys
import types
from typing import Any

import numpy


def _module(name, **names):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(names, __file__=__file__)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


class Placement:
    def is_partial(self):
        return isinstance(self, Partial)

    def is_replicate(self):
        return isinstance(self, Replicate)


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    dim: int

    def __str__(self):
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    def __str__(self):
        return "R"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    reduce_op: str = "sum"

    def __str__(self):
        return f"P({self.reduce_op})"


@dataclasses.dataclass(frozen=True)
class StridedShard(Placement):
    dim: int
    split_factor: int


class DType:
    __module__ = "torch"
    itemsize = 4
    is_complex = False

    def __str__(self):
        return "torch.float32"


@dataclasses.dataclass(frozen=True)
class TensorMeta:
    shape: tuple
    stride: tuple = ()
    dtype: Any = DType()


@dataclasses.dataclass(frozen=True)
class DTensorSpec:
    mesh: Any
    placements: tuple
    tensor_meta: Any = None


class DeviceMesh:
    device_type = "cuda"

    def __init__(self, *sizes):
        self.mesh = numpy.arange(int(numpy.prod(sizes))).reshape(sizes)
        self.ndim = len(sizes)

    def size(self, axis=None):
        return self.mesh.size if axis is None else self.mesh.shape[axis]


@dataclasses.dataclass
class Step:
    mesh_dim: int
    src_dst_placements: tuple


def _steps(source, target, use_graph_based_transform=None):
    """Torch's greedy plan where no axis hides another: what differs, from the last axis to the first one."""
    return [Step(axis, (a, b)) for axis, (a, b) in reversed(list(enumerate(zip(source.placements, target.placements)))) if a != b]


def moved_by_torch(local_tensor, current_spec, target_spec, *, async_op=False):
    return "torch moved it"


_module("torch", __path__=["stub"], __version__="stub", autograd=types.SimpleNamespace(Function=object),
        compiler=types.SimpleNamespace(config=types.SimpleNamespace(cache_key_tag="theirs", compile_on_one_rank=False)))
_module("torch.distributed", is_initialized=lambda: False, get_backend=lambda: "nccl")
_module("torch.distributed.distributed_c10d", _get_default_group=lambda: None, _hash_ranks_to_str=str,
        _world=types.SimpleNamespace(group_count=0))
_module("torch.distributed._functional_collectives", AsyncCollectiveTensor=type("AsyncCollectiveTensor", (), {}))
_module("torch.distributed.tensor", DTensor=type("DTensor", (), {}), Partial=Partial, Replicate=Replicate, Shard=Shard)
_module("torch.distributed.tensor._redistribute", redistribute_local_tensor=moved_by_torch,
        _gen_transform_infos=_steps, _are_we_tracing=lambda: False)
_module("torch.distributed.tensor._dispatch", redistribute_local_tensor=moved_by_torch)
_module("torch.distributed.tensor._dtensor_spec", DTensorSpec=DTensorSpec, TensorMeta=TensorMeta)
_module("torch.distributed.tensor.placement_types", _StridedShard=StridedShard)
_module("torch.utils")
_module("torch.utils._python_dispatch", _disable_current_modes=contextlib.nullcontext)
