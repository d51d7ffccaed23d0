"""reshard: a primitive of JAX, linear, whose transpose is the reverse plan."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy
from jax._src import dispatch  # lowering, and the list of primitives that need devices for it
from jax._src.sharding_impls import ShardingContext
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from .. import Error, UnsupportedError
from . import _choice, _devices, _partition, _program
from ._fallback import fall_back
from ._originals import constrain, explicit_reshard
from ._shardings import axis_types, context_mesh, dims, is_traced, named, named_layout, on_one_mesh, transposed
from ._trees import each

# The mesh selects the primitive. If the mesh is abstract, the program must bring the devices, and JAX allows only one mesh
# in such a program.
move_p, move_on_p = Primitive("reshard_move"), Primitive("reshard_move_on")
dispatch.prim_requires_devices_during_lowering.add(move_p)


def reshard(x: Any, sharding: Any, source: Any = None, *, dtype: Any = None, permute: Sequence[int] | None = None) -> Any:
    """x under another sharding, moved by a plan. Replaces jax.lax.with_sharding_constraint and jax.reshard.

    x: an array or a pytree of arrays, inside jax.jit or outside. sharding: a PartitionSpec, on the mesh of jax.set_mesh
    or of `with mesh:`, or a NamedSharding; or a pytree of them that is a prefix of x.
    source: the present sharding of x, if you want to fix it for jit. The program is then fixed at tracing, and
    jax.export can export it. None: XLA's partitioner (auto mode), the type of x (explicit mode), or x itself (outside
    jit) knows it.
    dtype, permute: the result is x.transpose(permute).astype(dtype), under the sharding. Each device transposes its tile
    before the move, and casts it before the move if that narrows it, else after. Both apply to each array of a pytree.
    Values are equal to x. Differentiable any number of times; under vmap the new dimension is not
    constrained. If no plan is possible (sizes that do not divide, axes that are partly manual), XLA moves x, and a
    FallbackWarning gives the reason. Errors: the errors of with_sharding_constraint; under jax.export without source,
    UnsupportedError."""
    if dtype is None and permute is None:
        return each(_reshard, x, sharding, source)
    return each(functools.partial(_changed, dtype=dtype, permute=permute), x, sharding, source)


def _changed(x: Any, sharding: Any, source: Any, dtype: Any, permute: Sequence[int] | None) -> Any:
    """Transposes and casts tiles, which moves nothing, before the move or after it."""
    x = x if hasattr(x, "astype") else numpy.asarray(x)
    if permute is not None:
        source = transposed(source, x.ndim, permute)
        x = x.transpose(tuple(permute))
    wide = dtype is not None and numpy.dtype(dtype).itemsize > x.dtype.itemsize
    moved = _reshard(x if dtype is None or wide else x.astype(dtype), sharding, source)
    return moved.astype(dtype) if wide else moved


def _reshard(x: Any, sharding: Any, source: Any = None) -> Any:
    target, known = named(sharding, x), named(source, x)
    if target is None or (source is not None and known is None):
        return constrain(x, sharding)
    if not is_traced(x):
        return _devices.device_put(x, target)
    types = axis_types(target.mesh)
    if types == {AxisType.Explicit}:
        if not jax.sharding.get_abstract_mesh().empty:
            known = NamedSharding(target.mesh, jax.typeof(x).sharding.spec)
    elif types != {AxisType.Auto}:
        fall_back("some axes of its mesh are explicit or manual and some are not")
        return constrain(x, sharding) if AxisType.Auto in types else explicit_reshard(x, sharding)
    if known is None and not any(dims(target.spec, x.ndim) or [True]):
        return constrain(x, target)  # whole arrays everywhere: always a gather, which propagation may avoid
    end = target
    if known is not None and known.mesh != target.mesh:
        x = constrain(x, known)
        known, end = on_one_mesh(known, target, x.ndim) or (None, target)
    moved = _move(x, _whole(known, x.ndim), _whole(end, x.ndim), known is not None)
    # The constraint pins the target, and tells jit how many devices the program runs on.
    return moved if types == {AxisType.Explicit} else constrain(moved, target)


def _move(x, source, target, known):
    """The primitive, bound with the mesh of either end."""
    abstract = isinstance((target or source).mesh, jax.sharding.AbstractMesh)
    return (move_p if abstract else move_on_p).bind(x, source=source, target=target, known=known)


def _whole(sharding: NamedSharding | None, rank: int) -> NamedSharding | None:
    """The spec with one entry per dimension."""
    if sharding is None:
        return None
    if len(sharding.spec) > rank:
        raise ValueError(f"{sharding.spec} has more entries than an array of rank {rank} has dimensions")
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec, *(None,) * (rank - len(sharding.spec))))


def _abstract(x, *, source, target, known):
    pinned = target if target is not None else source
    if axis_types(pinned.mesh) != {AxisType.Explicit}:
        return x
    return x.update(sharding=NamedSharding(getattr(pinned.mesh, "abstract_mesh", pinned.mesh), pinned.spec))


def _body(x, *, source, target, known):
    """The function that the primitive stands for."""
    if not known:
        return _partition.moved(x)
    try:
        layouts = [named_layout(end, x.shape, x.dtype) for end in (source, target)]
        program = _program.program(*layouts, _program.on_host(target.mesh))
    except Error as error:
        fall_back(str(error).partition("\n")[0])
        return explicit_reshard(x, target) if axis_types(target.mesh) == {AxisType.Explicit} else x
    return _devices.mapped(program, source, target)(x)


def _lower(ctx, x, *, source, target, known):
    module = ctx.module_context
    if not known and module.lowering_parameters.for_export:
        raise UnsupportedError("jax.export cannot take along what asks at partition time: give reshard(..., source=)")
    if getattr(module.axis_context, "manual_axes", None):
        fall_back("it is inside a shard_map over some axes of the mesh")
        return [x]
    mesh = (target or source).mesh
    if isinstance(mesh, jax.sharding.Mesh) and isinstance(module.axis_context, ShardingContext):
        devices = tuple(mesh.devices.flat)
        ctx = ctx.replace(module_context=module.replace(axis_context=ShardingContext(len(devices), devices)))
    body = functools.partial(_body, source=source, target=target, known=known)
    return _choice.mark(mlir.lower_fun(body, multiple_results=False)(ctx, x))


def _transpose(cotangent, x, *, source, target, known):
    del x
    return [_move(cotangent, target, source, known)]


def _inserted(sharding, at, entry):
    if sharding is None:
        return None
    spec = list(sharding.spec)
    return NamedSharding(sharding.mesh, PartitionSpec(*spec[:at], entry, *spec[at:]))


def _batched(axis, values, places, *, source, target, known):
    """The new dimension is not cut, or is cut as vmap requires, or in auto mode as XLA chooses."""
    at, = places
    if at is None:  # the same for all
        return _move(*values, source, target, known), None
    entry = getattr(axis, "explicit_mesh_axis", None)
    if axis.spmd_name is not None:
        entry = axis.spmd_name
    elif not known:
        entry = PartitionSpec.UNCONSTRAINED
    return _move(*values, _inserted(source, at, entry), _inserted(target, at, entry), known), at


def _now(x, *, source, target, known):
    """Outside jit, for a value that is differentiated or batched."""
    if target is None:
        return x
    held = dims(x.sharding.spec, x.ndim) if isinstance(x.sharding, NamedSharding) else None
    entries = [entry if entry is not PartitionSpec.UNCONSTRAINED else held[at] if held else None
               for at, entry in enumerate(target.spec)]
    return _devices.device_put(x, NamedSharding(target.mesh, PartitionSpec(*entries)))


for _primitive in (move_p, move_on_p):
    _primitive.def_impl(_now)
    _primitive.def_abstract_eval(_abstract)
    ad.deflinear2(_primitive, _transpose)
    batching.fancy_primitive_batchers[_primitive] = _batched
    mlir.register_lowering(_primitive, _lower)
