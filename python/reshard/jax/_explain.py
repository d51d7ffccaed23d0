"""Every reshard of a program: its place, XLA's move, a plan's move, and the line to paste."""

from __future__ import annotations

import contextlib
import linecache
import math
import re
from typing import Any

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .. import Error, Layout, parse_layout
from ..dtypes import ROWS
from . import _hlo, _program, _shardy
from ._quiet import without_complaints
from ._report import Explained, Row

_ELEMENT = {row["stablehlo"]: row["name"] for row in ROWS}
_NAMED = "reshard_pair"  # followed by its number
_LIKE = {1: numpy.uint8, 2: numpy.float16, 4: numpy.float32, 8: numpy.complex64}  # a JAX type of each size


def explain(jitted: Any, *args: Any, **kwargs: Any) -> Explained:
    """Every reshard of a program with both ends, its price under XLA and under a plan, and the line to paste.

    jitted: jax.jit(f), or f. args, kwargs: its arguments, arrays or jax.ShapeDtypeStruct with shardings.
    Lowers the program, and runs Shardy's propagation and its explicit reshards on a copy. Compiles it once to see which
    implicit reshards the partitioner made, and compiles the moves between all ends for XLA's own plans. A loop counts
    as often as it runs, if its condition is a constant. Runs nothing. print() shows a table, .json() and .html() the
    same for programs and browsers, .require(waste_max=1.1) is for CI. Only for Shardy's partitioner, JAX's default.
    Errors: the errors of lowering and compiling."""
    lowered = (jitted if hasattr(jitted, "lower") else jax.jit(jitted)).lower(*args, **kwargs)
    found = _shardy.reshards(lowered)
    made = _hlo.collectives(_compiled(lowered))
    places = ({one.place for one in made} | {one.op for one in made}) - {""}
    kept: dict[_shardy.Found, int] = {}
    for one in found:
        if one.asked or places & {one.place, one.op, *one.maker}:
            kept[one] = kept.get(one, 0) + 1
    theirs = _of_xla([one.ends for one in kept])
    rows = [_row(one, count, theirs.get(one.ends)) for one, count in kept.items()]
    rows = [row for row in rows if row.xla_bytes or row.bytes or row.problem]
    return Explained(sorted(rows, key=lambda row: -row.saved_bytes), len(made), sum(one.received * one.times for one in made))


def _compiled(lowered: Any) -> str:
    """The text of XLA. The choices of the partitioner do not depend on the optimization of host code, or on the
    emitters that run later. The newer emitters take most of a compilation's time."""
    fast = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else {}
    with without_complaints():  # each complaint is a row of the result
        if fast:
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # a jaxlib without this option
                return lowered.compile(compiler_options={**fast, "xla_cpu_use_fusion_emitters": False}).as_text()
        return lowered.compile(compiler_options=fast or None).as_text()


def _row(found: _shardy.Found, count: int, xla: list[_hlo.Collective] | None) -> Row:
    runs = found.times * count
    words = {"place": found.place, "op": found.op, "asked": found.asked, "times": runs,
             "line": _line(found)}
    try:
        source, target = (_layout(found, dims) for dims in (found.source, found.target))
        plan = _program.chosen(source, target, _program.on_host(jax.devices()))
    except Error as error:
        return Row(source=found.source, target=found.target, problem=str(error).partition("\n")[0], **words)
    tile = max(source.tile_bytes, target.tile_bytes)
    kinds = [step.kind for step in plan.steps]
    row = Row(source=str(source), target=str(target), bytes=plan.received_bytes, peak=plan.peak_bytes, plan=kinds,
              lower_bound_bytes=plan.lower_bound_bytes, **words)
    if xla is not None:
        row.xla_plan = [one.kind for one in xla]
        row.xla_bytes = sum(one.received * one.times for one in xla)
        row.xla_peak = max([tile, *(one.bytes for one in xla)])
    return row


def _layout(found: _shardy.Found, dims: str) -> Layout:
    array = f"{_ELEMENT.get(found.element, found.element)}[{','.join(map(str, found.shape))}]"
    return parse_layout(None, f"#sdy.sharding<mesh{found.mesh}, {dims}>", "sdy", array)


def _of_xla(asked: list[_shardy.Ends]) -> dict[_shardy.Ends, list[_hlo.Collective]]:
    """XLA's own plans: its collectives of the identity between both ends of each pair. Pairs that JAX cannot express
    are missing. All pairs are in one program, each under a name that XLA keeps, since the start takes most of a
    compilation's time."""
    programs: dict[int, dict[_shardy.Ends, tuple[NamedSharding, NamedSharding]]] = {}
    for ends in asked:
        pair = shardings(ends.mesh, ends.source, ends.target)
        if pair is not None and all(_divides(end, ends.shape) for end in pair):
            programs.setdefault(pair[0].num_devices, {})[ends] = pair
    found = {}
    for pairs in programs.values():
        made = _moved(pairs)
        if all(_name_of(one) in range(len(pairs)) for one in made):
            found.update({ends: [one for one in made if _name_of(one) == at] for at, ends in enumerate(pairs)})
        else:  # XLA has lost the pair of one collective
            found.update({ends: _moved({ends: pair}) for ends, pair in pairs.items()})
    return found


def _moved(pairs: dict[_shardy.Ends, tuple[NamedSharding, NamedSharding]]) -> list[_hlo.Collective]:
    """Collectives of the program that moves an array between each of these pairs, over the same devices."""
    def program(*arrays):
        for at, (x, (_, target)) in enumerate(zip(arrays, pairs.values())):
            with jax.named_scope(f"{_NAMED}{at}"):
                yield jax.lax.with_sharding_constraint(x, target)
    held = [jax.ShapeDtypeStruct(ends.shape, _like(ends.element), sharding=source) for ends, (source, _) in pairs.items()]
    return _hlo.collectives(_compiled(jax.jit(lambda *arrays: list(program(*arrays))).lower(*held)))


def _name_of(one: _hlo.Collective) -> int | None:
    """The number of the pair that a collective belongs to."""
    name = re.search(rf"/{_NAMED}(\d+)/", one.op)
    return int(name.group(1)) if name else None


def _divides(sharding: NamedSharding, shape: tuple[int, ...]) -> bool:
    try:
        sharding.shard_shape(shape)
    except ValueError:
        return False
    return True


def _like(element: str) -> Any:
    """A JAX type of that size."""
    bits = int(found.group()) if (found := re.search(r"\d+", element)) else 32
    return _LIKE.get(max(1, bits // 8) * (2 if "complex" in element else 1), numpy.float32)


def shardings(mesh: str, source: str, target: str) -> tuple[NamedSharding, NamedSharding] | None:
    """Both ends for JAX, on a mesh with an axis for every part of an axis that they distinguish. mesh: sdy's text, over
    as many of JAX's devices, in order. Returns None if they are too few, in another order, or have no common parts."""
    axes = [(name, int(size)) for name, size in re.findall(r'"(\w+)"=(\d+)', mesh)]
    cuts = _cuts(axes, source + target)
    count = math.prod(size for _, size in axes)
    if cuts is None or count > jax.device_count() or "device_ids" in mesh:
        return None
    names = [(f"{name}_{at}", size) for name, parts in cuts for at, size in enumerate(parts)]
    fine = Mesh(numpy.array(jax.devices()[:count]).reshape([size for _, size in names]), [name for name, _ in names])
    first, second = (NamedSharding(fine, _spec(dims, dict(cuts))) for dims in (source, target))
    return first, second


def _cuts(axes: list[tuple[str, int]], text: str) -> list[tuple[str, list[int]]] | None:
    """The parts of each axis that no sharding cuts further, major to minor; returns None if such parts do not exist."""
    cuts = []
    for name, size in axes:
        points = {1, size}
        for before, part in re.findall(rf'"{name}":\((\d+)\)(\d+)', text):
            points |= {int(before), int(before) * int(part)}
        ordered = sorted(points)
        if any(after % before for before, after in zip(ordered, ordered[1:])):
            return None
        cuts.append((name, [after // before for before, after in zip(ordered, ordered[1:])] or [1]))
    return cuts


def _spec(dims: str, cuts: dict[str, list[int]]) -> PartitionSpec:
    entries = []
    for dim in re.findall(r"\{([^{}]*)\}", dims):
        names: list[str] = []
        for name, before, part in re.findall(r'"(\w+)"(?::\((\d+)\)(\d+))?', dim):
            at = 1
            for number, size in enumerate(cuts[name]):
                if not part or int(before) <= at < int(before) * int(part):
                    names.append(f"{name}_{number}")
                at *= size
        entries.append(tuple(names) or None)
    return PartitionSpec(*entries)


def _line(found: _shardy.Found) -> str:
    """The text to write instead of the line, or before it."""
    if ":(" in found.target:  # a part of an axis, which a PartitionSpec cannot express
        return "with reshard.jax.everywhere(): ..."
    file, _, number = found.place.rpartition(":")
    text = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
    ours = re.sub(r"\b(?:jax\.)?(?:lax\.)?(?:with_sharding_constraint|(?<!reshard\.jax\.)reshard)\(", "reshard.jax.reshard(", text, count=1)
    if ours != text:
        return ours
    entries = []
    for dim in re.findall(r"\{([^{}]*)\}", found.target):
        names = re.findall(r'"(\w+)"', dim)
        entries.append("None" if not names else f'"{names[0]}"' if len(names) == 1 else "({})".format(
            ", ".join(f'"{name}"' for name in names)))
    return f"x = reshard.jax.reshard(x, P({', '.join(entries)}))"
