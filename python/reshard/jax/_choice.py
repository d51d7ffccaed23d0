"""Never worse than plain JAX. While everywhere() is open, XLA compiles a program with its moves and without them, and
the two results are compared. A move may cost more elsewhere than it saves, since a constraint of JAX also fixes how its
operand is made. No rule that looks at one move sees that."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import jax
from jaxlib.mlir import ir

from . import _hlo
from ._fallback import fall_back
from ._quiet import without_complaints
from ._shardy import operations, sources

_MARK, _FRONTEND, _CONSTRAINT = "reshard_move", "mhlo.frontend_attributes", "sdy.sharding_constraint"
_ROUNDED = 1024  # bytes: XLA rounds buffers up, and a program with slices holds a table of their starts


def mark(results: Any) -> Any:
    """Marks a lowered move. results: the results of its lowering, which are returned."""
    for result in results:
        if not isinstance(result.owner, ir.Block) and result.owner.operation.name == "stablehlo.custom_call":
            _say(result.owner.operation, "plan")
    return results


def compared(compile_program: Any) -> Any:
    """Wraps the compiler of jax (arguments: backend, module and more). It keeps a program with moves if that is no worse."""
    @functools.wraps(compile_program)
    def chosen(backend: Any, module: Any, *rest: Any, **more: Any) -> Any:
        if not any(map(_is_move, operations(module.operation))):
            return compile_program(backend, module, *rest, **more)
        ours = compile_program(backend, module, *rest, **more)
        pinned, without = _others(module)
        with without_complaints():  # the program will most likely never run
            theirs = compile_program(backend, without, *rest, **more)
        bound, first = _costs(theirs), _costs(ours)
        if _is_within(first, bound):
            return ours
        del ours
        if pinned is not None:
            with without_complaints():
                second = compile_program(backend, pinned, *rest, **more)
            if _is_within(_costs(second), bound):
                return second
        fall_back(f"by plans {_name(module)} receives {first[0]} bytes a device instead of {bound[0]} and holds {first[1]} "
                  f"instead of {bound[1]}: its constraints stay as they were")
        return theirs
    return chosen


def _is_within(costs: tuple[int, int], bound: tuple[int, int]) -> bool:
    """Compares costs. The bytes held may differ from host to host, but all hosts must run one program."""
    return costs[0] <= bound[0] and (costs[1] <= bound[1] + _ROUNDED or jax.process_count() > 1)


def _name(module: Any) -> str:
    return ir.StringAttr(module.operation.attributes["sym_name"]).value


def _costs(executable: Any) -> tuple[int, int]:
    """Bytes that a device receives, and bytes that it holds (arguments and temp; 0 if the backend does not report them)."""
    text = "\n\n".join(module.to_string() for module in executable.hlo_modules())
    try:
        memory = executable.get_compiled_memory_stats()
    except jax.errors.JaxRuntimeError:
        memory = None
    held = 0 if memory is None else memory.argument_size_in_bytes + memory.temp_size_in_bytes
    return _hlo.received(text), held


def _others(module: Any) -> tuple[Any, Any]:
    """The program with moves at the places where JAX's own program has them, and JAX's own program with constraints and
    no moves. The first is None if those places are unknown, or if no move is left."""
    with module.context:
        without, pinned = _copy(module), _copy(module)
        for number, op in enumerate(list(filter(_is_move, operations(without.operation)))):
            for use in op.results[0].uses:
                if use.owner.operation.name == _CONSTRAINT:
                    _say(use.owner.operation, str(number))
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        with contextlib.suppress(ir.MLIRError):  # a pipeline that this JAX lacks
            _pin(pinned, sources(_copy(without), _said))
        for op in filter(_said, operations(without.operation)):
            del op.attributes[_FRONTEND]
        moves = sum(map(_is_move, operations(pinned.operation)))
        return pinned if moves else None, without


def _pin(module: Any, found: dict[str, str | None]) -> None:
    """Puts moves where JAX's own program has them, between the same ends. found: sharding of operands, by number."""
    for number, op in enumerate(list(filter(_is_move, operations(module.operation)))):
        source = found.get(str(number))
        operand = op.operands[0]
        if source is None:
            op.results[0].replace_all_uses_with(operand)
            op.erase()
            continue
        with ir.InsertionPoint(op), op.location:
            op.operands[0] = ir.Operation.create(_CONSTRAINT, results=[operand.type], operands=[operand],
                                                 attributes={"sharding": ir.Attribute.parse(source)}).results[0]


def _copy(module: Any) -> Any:
    return ir.Module.parse(module.operation.get_asm(binary=True))


def _say(op: Any, word: str) -> None:
    op.attributes[_FRONTEND] = ir.DictAttr.get({_MARK: ir.StringAttr.get(word)})


def _said(op: Any) -> str | None:
    """The word that _say attached."""
    words = ir.DictAttr(op.attributes[_FRONTEND]) if _FRONTEND in op.attributes else ()
    return ir.StringAttr(words[_MARK]).value if _MARK in words else None


def _is_move(op: Any) -> bool:
    return op.name == "stablehlo.custom_call" and _said(op) is not None
