"""The portable program of a move in jax.lax: collectives over groups of all devices, on one tile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from .. import Layout, Machine, Plan, portable, synthesize


@dataclass(frozen=True, eq=False)
class Program:
    """A plan, and the function that runs it: run(tile, axes) returns the tile after the move.

    axes: the name, or all names, of a mesh whose positions are the layouts' devices."""

    plan: Plan
    run: Callable[[Any, Any], Any]


# XLA on devices of one host, where a collective is a rendezvous and receiving is a copy within one memory. Not measured one
# by one: of machines with copies of 10 GB/s, bandwidths of 2 to 40 GB/s and runs of 0 to 60 ns one in the midst of those that
# choose, of the plans of tests/cases/portable.jsonl that differ, the ones that run fastest and receive no more than XLA's
# (bench/README.md, "Inside XLA"). That bytes cost little beside rendezvous and short runs is what bench/xla_machine.py shows.
_HOST = Machine("machine xla-cpu\nlevel host devices all message 20us bandwidth 10GB/s start 100us\ncopy 10GB/s run 10ns\n")


def on_host(where: Any) -> bool:
    """It runs on cores of a host, as far as is known. where: JAX's devices, or a mesh of them, which may be abstract."""
    if isinstance(where, jax.sharding.AbstractMesh):
        return False
    found = where.devices.flat if isinstance(where, jax.sharding.Mesh) else where
    return all(device.platform == "cpu" for device in found)


def chosen(source: Layout, target: Layout, hosted: bool) -> Plan:
    """The move that lets the busiest device receive least; on devices that are cores of a host the fastest of those that
    receive no more than XLA's own. hosted: on_host of the devices. Errors: those of synthesize."""
    least = synthesize(source, target, vocabulary="collectives", objective="bytes", machine=_HOST)
    if not hosted:
        return least
    fast = synthesize(source, target, vocabulary="collectives", objective="time", machine=_HOST)
    as_little = fast.received_bytes <= least.received_bytes or _is_as_xla(fast, least)
    return fast if fast.seconds < least.seconds and as_little else least


@functools.lru_cache(4096)
def program(source: Layout, target: Layout, hosted: bool) -> Program:
    """The move, made from the text that `reshard emit --to jax` prints. Errors: UnsupportedError, if sizes do not divide."""
    plan = chosen(source, target, hosted)
    names: dict[str, Any] = {}
    exec(portable(plan)._jax_function(), names)
    return Program(plan, names["move"])


def _is_as_xla(fast: Plan, least: Plan) -> bool:
    """XLA's partitioner receives no less than `fast`. It never moves on by an all-to-all what it has just sliced, but takes
    one all-to-all and one permute where `least` does that."""
    kinds, of_least = ([step.kind for step in plan.steps if step.kind != "slice"] for plan in (fast, least))
    return (sorted(kinds) == ["all_to_all", "permute"] and of_least == ["all_to_all", "all_to_all"] and
            least.steps[0].kind == "slice")
