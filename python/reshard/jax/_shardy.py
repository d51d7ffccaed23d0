"""Reshards of a lowered program, found by Shardy's own propagation and explicit reshards. jaxlib runs both on a copy of
its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxlib.mlir import ir, passmanager

_PIPELINE = ("builtin.module(sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true},"
             "sdy-sharding-constraint-to-reshard))")
_MADE_HERE = {"sdy.constant", "stablehlo.constant", "stablehlo.iota"}
_OWN = ("reshard_move", "CustomSPMDPartitioning")  # a plan moves these already


class Ends(NamedTuple):
    """An array between two shardings. mesh: its sdy text. source, target: sdy dimension shardings."""

    mesh: str
    source: str
    target: str
    shape: tuple[int, ...]
    element: str


@dataclass(frozen=True)
class Found:
    """A reshard of a program. mesh: its sdy text. source, target: sdy dimension shardings. times: runs, as far as loops
    determine them. asked: a constraint or reshard of the program itself; else the partitioner needs it. op, place: the
    user of the value; maker: JAX's name and place of the operation that makes it."""

    mesh: str
    source: str
    target: str
    shape: tuple[int, ...]
    element: str
    times: int
    asked: bool
    op: str
    place: str
    maker: tuple[str, str]

    @property
    def ends(self) -> Ends:
        return Ends(self.mesh, self.source, self.target, self.shape, self.element)


def reshards(lowered: Any) -> list[Found]:
    """All operations that change a sharding, in program order. lowered: jax.jit(f).lower(...). Raises the errors of
    jaxlib."""
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        copy = ir.Module.parse(module.operation.get_asm(binary=False, enable_debug_info=True))
        passmanager.PassManager.parse(_PIPELINE).run(copy.operation)
        return list(_Program(copy).found())


def sources(module: Any, mark: Any) -> dict[str, str | None]:
    """The sharding that Shardy finds for the operand of each marked constraint that changes it. Keys are marks, values
    the text of the attribute, or None if calls differ. module: gets propagated. mark: the mark of an operation, or None."""
    passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
    program, found = _Program(module), {}
    for op in operations(module.operation):
        word = mark(op) if op.name == "sdy.reshard" else None
        if word is not None:
            mesh, target = _split(str(op.attributes["sharding"]))
            held = program.sharding(op.operands[0]) or (mesh, _whole(target))
            text = None if held == (mesh, target) else f"#sdy.sharding<@{held[0]}, {held[1]}>"
            found[word] = text if found.get(word, text) == text else None
    return found


def operations(op: Any) -> Iterator[Any]:
    """All operations inside an operation, outer ones first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from operations(inner.operation)


class _Program:
    def __init__(self, module: Any) -> None:
        self.meshes, self.functions = {}, {}
        for op in module.body.operations:
            kind = op.operation.name
            if kind == "sdy.mesh":
                text = re.search(r"mesh(<.*?>)", str(op.attributes["mesh"]))
                self.meshes[_symbol(op)] = text.group(1) if text else "<[]>"
            elif kind == "func.func":
                self.functions[_symbol(op)] = op

    def found(self) -> Iterator[Found]:
        yield from self._function("main", 1)

    def _function(self, name: str, times: int) -> Iterator[Found]:
        function = self.functions.get(name)
        if function is not None:
            for block in function.regions[0].blocks:
                yield from self._block(block, times)

    def _block(self, block: Any, times: int) -> Iterator[Found]:
        for op in block.operations:
            kind = op.operation.name
            if kind == "sdy.reshard":
                yield from self._reshard(op, times)
            elif kind in ("func.call", "call"):
                yield from self._function(str(op.attributes["callee"]).strip('@"'), times)
            elif kind != "sdy.manual_computation":  # its body works on tiles and reshards nothing
                turns = _turns(op) if kind == "stablehlo.while" else 1
                for region in op.operation.regions:
                    for inner in region.blocks:
                        yield from self._block(inner, times * turns)

    def _reshard(self, op: Any, times: int) -> Iterator[Found]:
        operand = op.operands[0]
        mesh, target = _split(str(op.attributes["sharding"]))
        held, source = self.sharding(operand) or (mesh, _whole(target))
        own = _word_and_place(op)
        if held != mesh:  # between two meshes, which no line to paste can express
            return
        if source == target or _is_made_here(operand) or any(word in own[0] or word in _words(operand) for word in _OWN):
            return
        users = [use.owner for use in op.results[0].uses]
        if any(_OWN[1] in _words(user) for user in users):
            return
        name, place = own
        made = operand.owner
        if not place or (not isinstance(made, ir.Block) and str(made.location) == str(op.location)):
            # The pass inserted it where the value is made, but the user needs it.
            name, place = next((found for found in map(_word_and_place, users) if found[1]), own)
        kind = ir.RankedTensorType(operand.type)
        yield Found(self.meshes.get(mesh, mesh), source, target, tuple(kind.shape), str(kind.element_type), times,
                    _is_asked(name), name, place, own)

    def sharding(self, value: Any) -> tuple[str, str] | None:
        """Mesh and dimension shardings of a value; returns None if it has no sharding."""
        owner, number = value.owner, None
        if isinstance(owner, ir.Block):
            number, parent = ir.BlockArgument(value).arg_number, owner.owner
            if parent.operation.name == "func.func":
                return _of_argument(parent, "arg_attrs", number)
            return _of_values(parent, number)
        number = ir.OpResult(value).result_number
        if owner.name == "sdy.reshard":
            return _split(str(owner.attributes["sharding"]))
        found = _of_values(owner, number)
        if found is None and owner.name in ("func.call", "call"):
            function = self.functions.get(str(owner.attributes["callee"]).strip('@"'))
            return _of_argument(function, "res_attrs", number) if function is not None else None
        return found


def _is_asked(name: str) -> bool:
    return name.endswith(("sharding_constraint", "reshard"))


def _word_and_place(op: Any) -> tuple[str, str]:
    """JAX's name of an operation, and its file and line."""
    text = str(op.location)
    name, place = re.match(r'loc\("([^"]*)"', text), re.search(r'"([^"]+)":(\d+)', text)
    return name.group(1) if name else "", f"{place.group(1)}:{place.group(2)}" if place else ""


def _symbol(op: Any) -> str:
    return str(op.attributes["sym_name"]).strip('"')


def _words(owner: Any) -> str:
    """The words that mark an operation, or the maker of a value, as ours."""
    op = getattr(owner, "owner", owner)
    if isinstance(op, ir.Block):
        return ""
    target = str(op.attributes["call_target_name"]) if "call_target_name" in op.attributes else ""
    return f"{op.name if hasattr(op, 'name') else ''} {target}"


def _split(text: str) -> tuple[str, str]:
    """Mesh and dimensions of #sdy.sharding<@mesh, [...]>."""
    found = re.search(r"<@?(mesh<[^>]*>|[\w.]+), (\[[^\]]*\])", text)
    return (found.group(1).removeprefix("mesh"), found.group(2)) if found and found.group(1).startswith("mesh<") else (
        (found.group(1), found.group(2)) if found else ("", "[]"))


def _whole(dims: str) -> str:
    """Shardings of this many dimensions without any cut."""
    return re.sub(r"\{[^{}]*\}", "{}", dims)


def _of_values(op: Any, number: int) -> tuple[str, str] | None:
    attributes = op.operation.attributes if hasattr(op, "operation") else op.attributes
    if "sdy.sharding" not in attributes:
        return None
    each = re.findall(r"<@?((?:mesh<[^>]*>|[\w.]+), \[[^\]]*\])[^>]*>", str(attributes["sdy.sharding"]))
    return _split(f"<@{each[number]}>") if number < len(each) else None


def _of_argument(function: Any, name: str, number: int) -> tuple[str, str] | None:
    if name not in function.attributes:
        return None
    each = ir.ArrayAttr(function.attributes[name])
    words = ir.DictAttr(each[number])
    return _split(str(words["sdy.sharding"])) if "sdy.sharding" in words else None


def _is_made_here(value: Any) -> bool:
    """True if every device can make its own tile of it: a constant, an iota, a broadcast scalar."""
    op = value.owner
    if isinstance(op, ir.Block):
        return False
    if op.name == "stablehlo.broadcast_in_dim":
        return not ir.RankedTensorType(op.operands[0].type).shape or _is_made_here(op.operands[0])
    return op.name in _MADE_HERE


def _turns(loop: Any) -> int:
    """Iterations of a loop that counts from 0 up to a constant; 1 if its condition is no constant."""
    for op in loop.operation.regions[0].blocks[0].operations:
        if op.operation.name == "stablehlo.compare" and "LT" in str(op.attributes["comparison_direction"]):
            bound = op.operands[1].owner
            if not isinstance(bound, ir.Block) and "constant" in bound.name:
                count = re.search(r"dense<(\d+)>", str(bound.attributes["value"]))
                return int(count.group(1)) if count else 1
    return 1
