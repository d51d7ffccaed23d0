"""Moves of tiles by the chosen way, kept by pair of specs, and the function that users call."""

from __future__ import annotations

import collections
import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import Any

from .. import InputError
from . import _everywhere, _exchange, _program, _specs
from ._choice import Choice, Settings, choose
from ._groups import epoch, prepare
from ._versions import DTensor, DTensorSpec, Replicate, Shard, funcol, is_simulated, is_tracing, torch, without_modes

_KEPT_MAX = 4096  # moves; the oldest goes first, on all ranks alike
_kept: dict[Any, _Move] = {}
_lock = threading.Lock()
_counts: collections.Counter[str] = collections.Counter()
_prepared: set[Any] = set()


def stats() -> dict[str, int]:
    """How many moves of this process took each way since its start: program, exchange, "reduce, exchange" and
    torch."""
    return dict(_counts)


@dataclass
class _Move:
    """A choice, and its steps on this rank."""
    choice: Choice
    steps: list[_program.Step] = field(default_factory=list)
    is_view: bool = False

    def run(self, tile: Any, source: DTensorSpec, target: DTensorSpec, async_op: bool, more: dict[str, Any]) -> Any:
        if self.choice.how == "torch":
            return _everywhere.theirs()(tile, source, target, async_op=async_op, **more)
        if isinstance(tile, funcol.AsyncCollectiveTensor):
            tile = tile.wait()
        last = len(self.steps) - 1
        for number, (step, waits) in enumerate(self.steps):
            tile = step(tile)
            if waits and async_op and number == last and not is_tracing():
                return funcol.AsyncCollectiveTensor(tile)
            if waits:
                tile = torch.ops._c10d_functional.wait_tensor(tile)
        return tile.clone(memory_format=torch.contiguous_format) if self.is_view else tile.contiguous()


def move_of(source: DTensorSpec, target: DTensorSpec, settings: Settings, memory: int | None = None) -> _Move:
    """The move between two specs. Errors: InfeasibleError (no way within memory)."""
    try:
        key = (source, target, memory, settings, epoch())
        found = _kept.get(key)
    except TypeError:  # symbols have no hash
        return _Move(Choice("torch", why="sizes are symbols"))
    if found is None:
        with without_modes():  # plans and groups are of real ranks, also while a compiler records
            found = _made(source, target, settings, memory)
        with _lock:
            if len(_kept) >= _KEPT_MAX:
                _kept.pop(next(iter(_kept)))
            _kept[key] = found
    return found


def _made(source: DTensorSpec, target: DTensorSpec, settings: Settings, memory: int | None) -> _Move:
    mesh = source.mesh
    one_mesh = mesh == target.mesh
    known = (mesh, epoch())
    if one_mesh and known not in _prepared:
        prepare(mesh)
        _prepared.add(known)
    choice = choose(source, target, settings, memory)
    if choice.how == "torch":
        return _Move(choice)
    devices = None
    if one_mesh and len(choice.axes) < mesh.ndim:
        devices = _specs.members(mesh, list(choice.axes), mesh.get_coordinate())
    axes = list(choice.axes) if one_mesh else None
    if choice.how == "program":
        ranks = devices if devices is not None else _specs.devices_of(mesh)
        # an autograd graph that is alive at exit keeps this module, which must hold no object of the library then
        kept = replace(choice, operations=())
        return _Move(kept, _program.steps(choice.operations, ranks, mesh), _program.is_view(choice.operations))
    steps = _program.reductions(choice.reductions, mesh)
    ends = [_specs.layout_of(source, axes, devices, choice.middle), _specs.layout_of(target, axes, devices)]
    if choice.middle is None or ends[0] != ends[1]:
        moves = "exchange" in choice.price.words
        steps.append((_exchange.exchange(*ends, mesh, source.tensor_meta.dtype.itemsize, moves), False))
    return _Move(choice, steps, is_view=not steps)


def moved(tile: Any, source: DTensorSpec, target: DTensorSpec, settings: Settings, memory: int | None = None,
          async_op: bool = False, **more: Any) -> Any:
    """This rank's tile after the move. more: arguments that torch's own function takes."""
    one_mesh = source.mesh == target.mesh
    if is_simulated() or (one_mesh and source.mesh.get_coordinate() is None):
        return _everywhere.theirs()(tile, source, target, async_op=async_op, **more)
    if not one_mesh and source.mesh.get_coordinate() is None and target.mesh.get_coordinate() is None:
        return tile  # a rank of neither mesh has no part
    move = move_of(source, target, settings, memory)
    _counts[move.choice.how] += 1
    return move.run(tile, source, target, async_op, more)


class _Redistribute(torch.autograd.Function):
    """Linear, so its backward is the move back, which is differentiable again. The gradient of a sum is replicated."""

    @staticmethod
    def forward(ctx: Any, x: DTensor, mesh: Any, placements: tuple[Any, ...], settings: Settings, memory: int | None,
                async_op: bool) -> DTensor:
        ctx.source, ctx.asked = x._spec, (settings, memory, async_op)
        if x._spec.mesh == mesh and tuple(x._spec.placements) == placements:
            return DTensor(x._local_tensor, x._spec, requires_grad=x.requires_grad)
        target = DTensorSpec(mesh, placements, tensor_meta=x._spec.tensor_meta)
        tile = moved(x._local_tensor, x._spec, target, settings, memory, async_op)
        return DTensor(tile, target, requires_grad=x.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple[Any, ...]:
        here = grad._spec.mesh == ctx.source.mesh
        back = tuple(Replicate() if one.is_partial() and not (here and grad.placements[axis].is_partial()) else one
                     for axis, one in enumerate(ctx.source.placements))
        return _Redistribute.apply(grad, ctx.source.mesh, back, *ctx.asked), None, None, None, None, None


def redistribute(x: DTensor, placements: Any, mesh: Any = None, *, memory: int | None = None,
                 async_op: bool = False, dtype: Any = None) -> DTensor:
    """A DTensor with the elements of x under other placements, or on another mesh. It replaces DTensor.redistribute.

    placements: one for each axis of the mesh. mesh: x's own by default; all ranks of both meshes call, and a rank outside
    x's mesh brings a DTensor without elements. Other ranks may call. Sums are reduced on x's mesh first. memory: the bytes
    that a device may hold, source and target included; a cast is not counted. async_op: returns before the last collective
    has ended, as torch does. dtype: of the result; the narrower type travels, and sums are reduced in the wider one. The
    policy is the one of install(), or "time".
    Values and gradients equal the ones of DTensor.redistribute. In a compiled function it is DTensor.redistribute itself, which
    install() moves by plans.
    Errors: InputError (a placement that is no target), InfeasibleError (no way within memory), the errors of torch."""
    if dtype is not None and dtype != x.dtype:
        narrows, sums = dtype.itemsize < x.dtype.itemsize, any(one.is_partial() for one in x.placements)
        if narrows != sums:  # the cast is first
            return redistribute(x.to(dtype), placements, mesh, memory=memory, async_op=async_op)
        return redistribute(x, placements, mesh, memory=memory, async_op=async_op).to(dtype)
    target = x.device_mesh if mesh is None else mesh
    wanted = tuple(_normal(one, x.ndim) for one in placements)
    if len(wanted) != target.ndim:
        raise InputError(f"{len(wanted)} placements for a mesh of {target.ndim} axes; one for each axis is wanted")
    one_mesh = target == x.device_mesh
    if torch.compiler.is_compiling():
        if memory is not None or not one_mesh:
            raise InputError("memory= and mesh= are not known in a compiled function; call redistribute outside it")
        return x.redistribute(target, wanted, async_op=async_op)
    if one_mesh and any(one.is_partial() and one != held for one, held in zip(wanted, x.placements)):
        return x.redistribute(target, wanted, async_op=async_op)  # torch has its own rules for new sums, and its own errors
    if not one_mesh and any(one.is_partial() for one in wanted):
        raise InputError(f"no move to {wanted} on another mesh: a target there has no sums")
    return _Redistribute.apply(x, target, wanted, _everywhere.settings(), memory, async_op)


def _normal(placement: Any, ndim: int) -> Any:
    """A placement whose dimension counts from 0."""
    if type(placement) is Shard and placement.dim < 0:
        return Shard(placement.dim + ndim)
    return placement
