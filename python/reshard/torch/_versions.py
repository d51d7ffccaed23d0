"""The names of torch that this package uses, in one place. The first three arguments of the function that moves every
DTensor are the same from torch 2.6 to 2.15; all below it changed from release to release."""

from __future__ import annotations

import functools
import inspect
import operator
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.tensor._redistribute as moves
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard as StridedShard
from torch.utils._python_dispatch import _disable_current_modes as without_modes

__all__ = ["NAME", "DTensor", "DTensorSpec", "Partial", "Replicate", "Shard", "StridedShard", "TensorMeta", "dist", "funcol",
           "is_simulated", "is_tracing", "moves", "new_group", "on_cpus", "reduces_all", "refusal", "torch", "transforms", "without_modes"]

NAME = "redistribute_local_tensor"
_WANTED = ("local_tensor", "current_spec", "target_spec")
_tracing = moves if hasattr(moves, "_are_we_tracing") else funcol  # older torch has it in funcol
_PRIVATE = ((moves, NAME), (moves, "_gen_transform_infos"), (_tracing, "_are_we_tracing"),
            (dist, "distributed_c10d._get_default_group"), (dist, "distributed_c10d._hash_ranks_to_str"),
            (dist, "distributed_c10d._world.group_count"))
"""The private names that are used after the import, which checks the others."""


def refusal(function: Any) -> str:
    """Why this function cannot be replaced, or an empty text. function: what torch has under NAME, or None."""
    for module, name in _PRIVATE:
        try:
            operator.attrgetter(name)(module)
        except AttributeError:
            return f"torch {torch.__version__} has no {module.__name__}.{name}, which reshard.torch uses"
    try:
        parameters = list(inspect.signature(function).parameters.values())[:3]
    except (TypeError, ValueError):
        parameters = []
    names = tuple(one.name for one in parameters)
    passes_on = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL  # another library's wrapper
    if names != _WANTED and not passes_on:
        return (f"torch {torch.__version__} moves DTensors by {NAME}({', '.join(names)}, ...); reshard.torch knows "
                f"{NAME}({', '.join(_WANTED)}, ...)")
    return ""


def on_cpus(mesh: Any) -> bool:
    """True if the ranks of a mesh are processes on CPUs. A group of torch's backend "fake" plays GPUs."""
    return mesh.device_type == "cpu" and "fake" not in str(dist.get_backend())


def reduces_all(mesh: Any) -> bool:
    """True if collectives reduce by max, min, avg and product. Gloo of torch 2.8 gives wrong elements for some; 2.12 is right."""
    return not on_cpus(mesh) or tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 12)


def transforms(source: DTensorSpec, target: DTensorSpec) -> list[Any]:
    """Torch's own steps, one mesh axis each: mesh_dim and src_dst_placements. Torch keeps them under the arguments of its own
    call, so a move that stays torch's is planned once. Errors: the errors of torch's planner."""
    return moves._gen_transform_infos(source, target, *_defaults(moves._gen_transform_infos))


@functools.lru_cache(maxsize=1)
def _defaults(planner: Any) -> tuple[None, ...]:
    """The arguments after the two specs in torch's own call: none before torch 2.10."""
    return (None,) * ("use_graph_based_transform" in inspect.signature(planner).parameters)


def new_group(ranks: list[int]) -> Any:
    """The group of these ranks, ascending. Its members alone call it, and its name depends on the ranks alone. Torch's own name
    has a count of groups, which differs from rank to rank once a group has not all ranks; then members would wait for ever. For
    the same reason the count stays as it was."""
    c10d = dist.distributed_c10d
    name_of, count = c10d._hash_ranks_to_str, c10d._world.group_count
    c10d._hash_ranks_to_str = lambda ranks: "_".join(["reshard", *map(str, ranks)])
    try:
        return dist.new_group(ranks, use_local_synchronization=True)
    finally:
        c10d._hash_ranks_to_str, c10d._world.group_count = name_of, count


def is_tracing() -> bool:
    """True while torch.compile records what runs."""
    return _tracing._are_we_tracing()


try:
    from torch.distributed._local_tensor import local_tensor_mode as _local_tensor_mode
except ImportError:  # torch before 2.10
    def _local_tensor_mode() -> None:
        return None


def is_simulated() -> bool:
    """True if one process plays several ranks (LocalTensorMode), or if ranks are symbols (compile_on_one_rank)."""
    return _local_tensor_mode() is not None or getattr(torch.compiler.config, "compile_on_one_rank", False)
