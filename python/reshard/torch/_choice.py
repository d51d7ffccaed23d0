"""How a pair of specs is answered. The choice depends on the two specs and the settings alone. It asks for no rank and no
group, since ranks that choose differently wait for each other for ever."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

from .. import Error, InfeasibleError, Layout, portable, synthesize
from . import _specs
from ._prices import Call, Price, Prices, usual
from ._versions import DTensorSpec, Replicate, Shard, StridedShard, on_cpus, reduces_all, transforms

_FASTER = 0.8  # torch's own way stays unless a plan takes at most this part of its time; prices are estimates
_MIDDLES_MAX = 16  # ways to reduce first that are priced


@dataclass(frozen=True, eq=False)
class Settings:
    """policy: "time", "bytes", or "always" (tests: torch's own way is not asked). prices: None for the usual prices.
    Compared by identity."""
    policy: str = "time"
    prices: Prices | None = None


@dataclass(frozen=True)
class Choice:
    """The answer to a pair of specs. how: program, exchange, "reduce, exchange", "torch, min cost" or torch. axes: mesh axes
    that take part; the others keep their summands. middle: torch reduces to it first. theirs: torch's own price, None if
    torch cannot make the move. why: why torch moves."""
    how: str
    price: Price | None = None
    theirs: Price | None = None
    axes: tuple[int, ...] = ()
    operations: tuple[Any, ...] = ()
    middle: DTensorSpec | None = None
    why: str = ""


def native_all_to_all(mesh: Any) -> bool:
    """True if torch moves a shard to another dimension by an all_to_all. On CPUs it gathers instead."""
    return not on_cpus(mesh)


def choose(source: DTensorSpec, target: DTensorSpec, settings: Settings, memory: int | None = None) -> Choice:
    """The best way from source to target. memory: bytes that a device may hold, source and target included. Errors:
    InfeasibleError (no way within memory)."""
    why = _specs.why_unknown(source) or _specs.why_unknown(target)
    one_mesh = source.mesh == target.mesh
    if not why and one_mesh and any(q.is_partial() and p != q for p, q in zip(source.placements, target.placements)):
        why = "the target has a sum that the source has not"
    others = [one for one in source.placements if one.is_partial() and one.reduce_op != "sum"] if not why else []
    if others and not reduces_all(source.mesh):
        why = f"gloo of this torch is not right for {others[0].reduce_op}"
    if why:
        return Choice("torch", why=why)
    found = _Candidates(source, target, settings, memory)
    if one_mesh and settings.policy != "always":
        found.add_torch()
    found.add_plans(one_mesh)
    return found.best()


class _Candidates:
    """The ways that are known for a pair, torch's own first."""

    def __init__(self, source: DTensorSpec, target: DTensorSpec, settings: Settings, memory: int | None) -> None:
        self._source, self._target, self._settings, self._memory = source, target, settings, memory
        self._prices = settings.prices or usual(source.mesh)
        self._theirs: Price | None = None
        self._found: list[Choice] = []
        self._why = ""

    def add_torch(self) -> None:
        with contextlib.suppress(Exception):  # a move that torch refuses; its own error comes when it runs
            self._theirs = torch_price(self._source, self._target)
            self._found.append(Choice("torch", self._theirs))

    def add_plans(self, one_mesh: bool) -> None:
        source, target, ndim = self._source, self._target, self._source.mesh.ndim
        pairs = list(zip(source.placements, target.placements))
        stays = [one_mesh and p.is_partial() and p == q for p, q in pairs] if one_mesh else [False] * ndim
        axes = [axis for axis in range(ndim) if not stays[axis]] if one_mesh else None
        inner = _specs.members(source.mesh, axes, [0] * ndim) if any(stays) else None
        ends = [self._layout(spec, axes, inner) for spec in (source, target)]
        if None in ends:
            return
        summed = any(one.is_partial() for spec in (source, target) for axis, one in enumerate(spec.placements)
                     if axes is None or axis in axes)
        kept = tuple(axes) if axes is not None else tuple(range(ndim))
        least = self._add_program(*ends, kept, one_mesh)
        if not summed:
            self._add_exchange(*ends, kept, least)
        else:
            self._add_reductions(axes, inner, kept, ends[1])
        if self._settings.policy == "bytes" and self._theirs is not None:
            self._add_min_cost(least)

    def _layout(self, spec: DTensorSpec, axes: list[int] | None, inner: list[int] | None) -> Layout | None:
        try:
            return _specs.layout_of(spec, axes, inner)
        except Error as error:
            self._note(error)
            return None

    def _note(self, error: Error) -> None:
        self._why = self._why or str(error).partition("\n")[0]

    def _add_program(self, source: Layout, target: Layout, kept: tuple[int, ...], one_mesh: bool) -> int | None:
        """Adds a tile program if there is one over whole mesh axes. Returns the least bytes that any way receives."""
        if not one_mesh and set(source.mesh.devices) != set(target.mesh.devices):
            return None
        try:
            plan = synthesize(source, target, vocabulary="collectives", objective="bytes")
            operations = tuple(portable(plan).operations)
        except Error as error:
            self._note(error)
            return None
        if all(op.axes is not None for op in operations if op.groups):
            price = program_price(operations, source, self._size)
            self._found.append(Choice("program", price, axes=kept, operations=operations))
        return plan.lower_bound_bytes

    @property
    def _size(self) -> int:
        return self._source.tensor_meta.dtype.itemsize

    def _add_exchange(self, source: Layout, target: Layout, kept: tuple[int, ...], least: int | None) -> None:
        try:
            if least is None:
                least = synthesize(source, target, objective="bytes").received_bytes
        except Error as error:
            self._note(error)
            return
        self._found.append(Choice("exchange", exchange_price(source, target, least), axes=kept))

    def _add_reductions(self, axes: list[int] | None, inner: list[int] | None, kept: tuple[int, ...], end: Layout) -> None:
        price_of = torch_price if axes is not None else reduction_price
        for middle in itertools.islice(_reduced(self._source, self._target), _MIDDLES_MAX):
            try:
                first = price_of(self._source, middle)
                between = _specs.layout_of(middle, axes, inner)
                least = synthesize(between, end, objective="bytes").received_bytes
            except Error as error:
                self._note(error)
                continue
            price = _joined(first, exchange_price(between, end, least))
            self._found.append(Choice("reduce, exchange", price, axes=kept, middle=middle))

    def _add_min_cost(self, least: int | None) -> None:
        """Adds torch's plan of least cost, which takes milliseconds to find, if a better one may exist."""
        if least is not None and min(choice.price.received for choice in self._found) <= least:
            return
        with contextlib.suppress(Exception):
            self._found.append(Choice("torch, min cost", torch_price(self._source, self._target, True)))

    def best(self) -> Choice:
        fits = [choice for choice in self._found if self._memory is None or choice.price.held <= self._memory]
        if self._found and not fits:
            floor = min(choice.price.held for choice in self._found)
            raise InfeasibleError(f"memory is {self._memory} bytes; the move from {self._source} to {self._target} holds at "
                                  f"least {floor} bytes on a device, source and target included")
        if not fits:
            return Choice("torch", self._theirs, self._theirs, why=self._why or "no plan")
        key = self._seconds if self._settings.policy == "time" else _bytes
        chosen = min(fits, key=key)
        if fits[0].how == "torch" and not self._is_better(chosen, fits[0]):
            chosen = replace(fits[0], why=self._why or "torch's own way is as good")
        return replace(chosen, theirs=self._theirs)

    def _seconds(self, choice: Choice) -> float:
        return self._prices.seconds(choice.price)

    def _is_better(self, chosen: Choice, theirs: Choice) -> bool:
        if self._settings.policy == "time":
            return self._seconds(chosen) < _FASTER * self._seconds(theirs)
        return _bytes(chosen) < _bytes(theirs)


def _bytes(choice: Choice) -> tuple[int, int, int]:
    return choice.price.received, len(choice.price.calls), choice.price.peak


def _joined(first: Price, second: Price) -> Price:
    return Price(first.calls + second.calls, first.copied + second.copied, max(first.peak, second.peak),
                 max(first.held, first.peak + second.held), f"{first.words}, {second.words}")


def program_price(operations: tuple[Any, ...], source: Layout, size: int) -> Price:
    """The price of a tile program. size: bytes of an element."""
    calls, copied, words = [], 0, []
    held = peak = source.tile_bytes
    for op in operations:
        before, after = size * math.prod(op.input_shape), size * math.prod(op.output_shape)
        peak, held = max(peak, after), max(held, source.tile_bytes + before + after)
        if op.groups:
            ranks = len(op.groups[0])
            share = {"all_gather": before * (ranks - 1), "all_to_all": before * (ranks - 1) // ranks,
                     "reduce_scatter": after * (ranks - 1), "all_reduce": 2 * before * (ranks - 1) // ranks}[op.kind]
            calls.append(Call(op.kind, ranks, share))
            words.append(op.kind)
        elif op.kind == "permute":
            calls.append(Call("all_to_all", len(op.pairs), before))
            words.append("permute")
        elif op.kind != "reshape":
            copied += max(before, after)
    return Price(tuple(calls), copied, peak, held, ", ".join(words) or "local")


def exchange_price(source: Layout, target: Layout, received: int) -> Price:
    """The price of one uneven all_to_all. received: bytes."""
    ends = source.tile_bytes + target.tile_bytes
    calls = (Call("all_to_all", len(set(source.mesh.devices) | set(target.mesh.devices)), received),) if received else ()
    return Price(calls, received + target.tile_bytes, max(source.tile_bytes, target.tile_bytes), ends + 2 * received,
                 "exchange" if received else "local")


def _reduced(source: DTensorSpec, target: DTensorSpec):
    """Specs that torch may reduce to first: each partial axis onto a dimension that no later axis cuts, or everywhere. A sum
    that both ends have stays."""
    choices: list[list[Any]] = []
    stays = target.placements if source.mesh == target.mesh else ()
    for axis, p in enumerate(source.placements):
        cut = {getattr(one, "dim", None) for one in source.placements[axis + 1:]}
        free = [Shard(dim) for dim in range(len(source.tensor_meta.shape)) if dim not in cut]
        choices.append([p] if not p.is_partial() or p in stays[axis:axis + 1] else [*free, Replicate()])
    for placements in itertools.product(*choices):
        yield DTensorSpec(source.mesh, placements, tensor_meta=source.tensor_meta)


def torch_price(source: DTensorSpec, target: DTensorSpec, min_cost: bool = False) -> Price:
    """The price of torch's own steps, for the largest tile. Steps that torch may merge count one by one.

    Sizes come from the placements. Torch's steps also have shapes, but shapes differ from rank to rank."""
    tile = _Tile(source)
    for step in transforms(source, target, min_cost):
        tile.take(step.mesh_dim, *step.src_dst_placements)
    return tile.price()


def reduction_price(source: DTensorSpec, middle: DTensorSpec) -> Price:
    """The price of a reduction of one axis after another. Torch's planner knows only meshes of this rank, and the price must be
    the same on all ranks of two meshes."""
    tile = _Tile(source)
    for axis, ends in enumerate(zip(source.placements, middle.placements)):
        tile.take(axis, *ends)
    return tile.price()


class _Tile:
    """The largest tile of a spec, and what torch's steps cost that change it."""

    def __init__(self, spec: DTensorSpec) -> None:
        self._mesh, self._shape, self._held = spec.mesh, spec.tensor_meta.shape, list(spec.placements)
        self._size = spec.tensor_meta.dtype.itemsize
        self._calls: list[Call] = []
        self._words: list[str] = []
        self._copied = 0
        self._first = self._peak = self._bytes()
        self._most = self._first

    def _extent(self, dim: int, without: int | None = None) -> int:
        cuts = math.prod(self._mesh.size(axis) for axis, one in enumerate(self._held)
                         if getattr(one, "dim", None) == dim and axis != without)
        return -(-self._shape[dim] // cuts)

    def _bytes(self) -> int:
        return self._size * math.prod(map(self._extent, range(len(self._shape))))

    def take(self, axis: int, a: Any, b: Any) -> None:
        ranks, before = self._mesh.size(axis), self._bytes()
        self._held[axis] = b
        after = self._bytes()
        if a == b or ranks == 1:
            return
        whole = after if hasattr(a, "dim") and not hasattr(b, "dim") else before
        cuts = hasattr(a, "dim"), hasattr(b, "dim")
        strided = StridedShard in (type(a), type(b))
        if all(cuts) and not strided and native_all_to_all(self._mesh):
            dims = range(len(self._shape))
            padded = self._size * math.prod(
                -(-self._extent(d, axis) // ranks) * (ranks if d == b.dim else 1) if d in (a.dim, b.dim) else self._extent(d)
                for d in dims)
            self._call("all_to_all", ranks, padded * (ranks - 1) // ranks)
            self._copied += 2 * before
        elif cuts[0]:
            whole = before * ranks
            self._call("all_gather", ranks, before * (ranks - 1))
            self._copied += (whole if a.dim or strided else 0) + (after if cuts[1] else 0)
        elif a.is_partial() and (b.is_replicate() or strided):
            self._call("all_reduce", ranks, 2 * before * (ranks - 1) // ranks)
        elif a.is_partial():
            self._call("reduce_scatter", ranks, after * (ranks - 1))
            self._copied += before if b.dim else 0
        else:
            self._copied += after
        self._peak = max(self._peak, whole, after)
        self._most = max(self._most, self._first + before + whole + after)

    def _call(self, kind: str, ranks: int, received: int) -> None:
        self._calls.append(Call(kind, ranks, received))
        self._words.append(kind)

    def price(self) -> Price:
        return Price(tuple(self._calls), self._copied, self._peak, self._most, ", ".join(self._words) or "local")
