"""Never worse than without: while everywhere() is open, XLA compiles a program with its moves and without them, and what it
makes of both is compared. A move may cost elsewhere what it saves, since a constraint of JAX also fixes how its operand is
made; no rule that looks at one move knows."""

from __future__ import annotations

import functools
from typing import Any

import jax
from jaxlib.mlir import ir

from . import _hlo
from ._fallback import fall_back
from ._quiet import without_complaints

_MARK, _FRONTEND = "reshard_move", "mhlo.frontend_attributes"


def mark(results: Any) -> Any:
    """Says of a lowered move that it is one. results: of its lowering; given back."""
    for result in results:
        if not isinstance(result.owner, ir.Block) and result.owner.operation.name == "stablehlo.custom_call":
            result.owner.operation.attributes[_FRONTEND] = ir.DictAttr.get({_MARK: ir.StringAttr.get("true")})
    return results


def compared(compile_program: Any) -> Any:
    """jax's compiler (a module, executable from what it takes after the backend), which keeps the better program."""
    @functools.wraps(compile_program)
    def chosen(backend: Any, module: Any, *rest: Any, **more: Any) -> Any:
        without = _without_moves(module)
        ours = compile_program(backend, module, *rest, **more)
        if without is None:
            return ours
        with without_complaints():  # of a program that most likely nobody runs
            theirs = compile_program(backend, without, *rest, **more)
        (received, held), (their_received, their_held) = _costs(ours), _costs(theirs)
        if received <= their_received and (held <= their_held or jax.process_count() > 1):
            return ours  # bytes held may differ from host to host, and all have to run one program
        name = ir.StringAttr(module.operation.attributes["sym_name"]).value
        fall_back(f"with plans {name} receives {received} instead of {their_received} bytes a device and holds {held} instead "
                  f"of {their_held}, so its constraints are XLA's own")
        return theirs
    return chosen


def _costs(executable: Any) -> tuple[int, int]:
    """Bytes that a device receives, and that it holds (arguments and temp; 0 where the backend does not say)."""
    text = "\n\n".join(module.to_string() for module in executable.hlo_modules())
    try:
        memory = executable.get_compiled_memory_stats()
    except jax.errors.JaxRuntimeError:
        memory = None
    held = 0 if memory is None else memory.argument_size_in_bytes + memory.temp_size_in_bytes
    return _hlo.received(text), held


def _without_moves(module: Any) -> Any:
    """JAX's own program: constraints stay, moves go. None where there are none."""
    with module.context:
        if not any(_moves(module.operation)):
            return None
        copy = ir.Module.parse(module.operation.get_asm(binary=True))
        for op in list(_moves(copy.operation)):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        return copy


def _moves(op: Any) -> Any:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.custom_call":
                    attributes = inner.operation.attributes
                    if _FRONTEND in attributes and _MARK in ir.DictAttr(attributes[_FRONTEND]):
                        yield inner.operation
                else:
                    yield from _moves(inner.operation)
