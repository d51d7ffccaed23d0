"""How a pair of specs is answered. The choice depends on the two specs and the settings alone. It asks for no rank and no
group, since ranks that choose differently wait for each other for ever."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

from .. import Error, InfeasibleError, Layout, portable, synthesize
from .._core import rebuild_traffic
from . import _axes, _specs
from ._prices import Call, Price, Prices, usual
from ._versions import DTensorSpec, on_cpus, reduces_all

_FASTER = 0.8  # torch's own way stays unless a plan takes at most this part of its time; prices are estimates
_MIDDLES_MAX = 8  # ways to reduce first whose reductions are priced
_EXCHANGES_MAX = 4  # the cheapest of them, whose exchange is priced too


@dataclass(frozen=True, eq=False)
class Settings:
    """policy: "time", "bytes", or "always" (tests: torch's own way is not asked). prices: None for the usual prices.
    Compared by identity."""
    policy: str = "time"
    prices: Prices | None = None


@dataclass(frozen=True)
class Choice:
    """The answer to a pair of specs. how: program, exchange, "reduce, exchange" or torch. axes: mesh axes
    that take part; the others keep their summands. reductions: what happens before the exchange, up to the placements `middle`.
    why: why torch moves."""
    how: str
    price: Price | None = None
    axes: tuple[int, ...] = ()
    operations: tuple[Any, ...] = ()
    reductions: tuple[_axes.Change, ...] = ()
    middle: tuple[Any, ...] | None = None
    why: str = ""


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
    if not why and source.tensor_meta.dtype.is_complex and on_cpus(source.mesh):
        why = "gloo exchanges no complex numbers"  # it gathers them
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
        self._found: list[tuple[Any, Choice]] = []  # with the key that sorts them
        self._why = ""

    def add_torch(self) -> None:
        price = _axes.torch_price(self._source, self._target)
        if price is not None:
            self._add(Choice("torch", price))

    def _add(self, choice: Choice) -> None:
        self._found.append((self._key(choice.price), choice))

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
        if _specs.divides(source) and _specs.divides(target) and set(ends[0].mesh.devices) == set(ends[1].mesh.devices):
            self._add_program(*ends, kept)
        if not summed:
            self._add_exchange(*ends, kept)
        else:
            self._add_reductions(axes, inner, kept, ends[1])

    def _layout(self, spec: DTensorSpec, axes: list[int] | None, inner: list[int] | None) -> Layout | None:
        try:
            return _specs.layout_of(spec, axes, inner)
        except Error as error:
            self._note(error)
            return None

    def _note(self, error: Error) -> None:
        self._why = self._why or str(error).partition("\n")[0]

    def _add_program(self, source: Layout, target: Layout, kept: tuple[int, ...]) -> None:
        """Adds a tile program if there is one over whole mesh axes. Tiles of one shape have one."""
        try:
            operations = tuple(portable(synthesize(source, target, vocabulary="collectives", objective="bytes")).operations)
        except Error as error:
            self._note(error)
            return
        if all(op.axes is not None for op in operations if op.groups):
            price = program_price(operations, source, self._source.tensor_meta.dtype.itemsize)
            self._add(Choice("program", price, axes=kept, operations=operations))

    def _add_exchange(self, source: Layout, target: Layout, kept: tuple[int, ...]) -> None:
        try:
            self._add(Choice("exchange", exchange_price(source, target), axes=kept))
        except Error as error:
            self._note(error)

    def _add_reductions(self, axes: list[int] | None, inner: list[int] | None, kept: tuple[int, ...], end: Layout) -> None:
        ways = []
        ranks = len(inner) if inner is not None else self._source.mesh.size()
        middles = list(itertools.islice(_axes.middles(self._source, self._target), _MIDDLES_MAX))
        for middle, (changes, price) in zip(middles, _axes.reductions(self._source, middles)):
            least = price
            if self._surely_exchanges(middle):
                least = Price((*price.calls, Call("all_to_all", ranks, 0)), *price[1:])
            ways.append((self._key(least), changes, price, middle))
        ways.sort(key=lambda way: way[0])
        for least, changes, price, middle in ways[:_EXCHANGES_MAX if self._memory is None else None]:
            if not self._may_win(least):
                continue
            try:
                between = _specs.layout_of(self._source, axes, inner, middle)
                if between != end:
                    price = _joined(price, exchange_price(between, end))
                self._add(Choice("reduce, exchange", price, axes=kept, reductions=changes, middle=middle))
            except Error as error:
                self._note(error)

    def best(self) -> Choice:
        fits = [(key, one) for key, one in self._found if self._memory is None or one.price.held <= self._memory]
        if self._found and not fits:
            floor = min(one.price.held for _, one in self._found)
            raise InfeasibleError(f"memory is {self._memory} bytes; the move from {self._source} to {self._target} holds at "
                                  f"least {floor} bytes on a device, source and target included")
        if not fits:
            return Choice("torch", why=self._why or "no plan")
        (first, theirs), (key, chosen) = fits[0], min(fits, key=lambda one: one[0])
        if theirs.how == "torch" and (self._is_tie(chosen.price, theirs.price) or not self._is_better(key, first)):
            return replace(theirs, why=self._why or "torch's own way is as good")
        return chosen

    def _surely_exchanges(self, middle: tuple[Any, ...]) -> bool:
        """True if some rank receives elements after the reductions, unless tiles are empty. Two ranks on an axis that cuts a dimension
        hold different parts of it. If the target does not cut it by this axis, both want one part, which one of them lacks."""
        return self._source.mesh == self._target.mesh and any(
            hasattr(one, "dim") and one != end for one, end in zip(middle, self._target.placements))

    def _may_win(self, least: Any) -> bool:
        """True if a way with this key or a larger one may be chosen. A limit of memory needs the price of every way."""
        return self._memory is not None or all(
            self._is_better(least, key) if one.how == "torch" else least < key for key, one in self._found)

    def _key(self, price: Price) -> Any:
        if self._settings.policy == "time":
            return self._prices.seconds(price)
        return price.received, len(price.calls), price.peak

    def _is_tie(self, *prices: Price) -> bool:
        """True if two ways differ only in the kind of collective, so that only noise of the prices tells their times apart."""
        return self._settings.policy == "time" and len({(one.received, len(one.calls), one.copied) for one in prices}) == 1

    def _is_better(self, key: Any, torchs: Any) -> bool:
        return key < (_FASTER * torchs if self._settings.policy == "time" else torchs)


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


def exchange_price(source: Layout, target: Layout) -> Price:
    """The price of one uneven all_to_all. Rows of dimension 0 alone are contiguous and arrive in their place, so their copies
    cost little. Errors: UnsupportedError (a sum)."""
    received = max(received for received, _, _ in rebuild_traffic([(source, target)], []))
    ends = source.tile_bytes + target.tile_bytes
    calls = (Call("all_to_all", len(set(source.mesh.devices) | set(target.mesh.devices)), received),) if received else ()
    arrives = received and all(one.tile_shape(one.mesh.devices[0])[1:] == one.shape[1:] for one in (source, target))
    copied = 0 if arrives else received + target.tile_bytes
    return Price(calls, copied, max(source.tile_bytes, target.tile_bytes), ends + 2 * received, "exchange" if received else "local")
