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


# XLA on devices of one host. A collective is a rendezvous there, and receiving is a copy within one memory. The numbers are
# not measured one by one. Machines with copies of 10 GB/s, bandwidths of 2 to 40 GB/s and runs of 0 to 60 ns were tried on
# the plans of tests/cases/portable.jsonl. This one is central among the machines that choose the fastest plan that receives
# no more than XLA's (bench/README.md, "Inside XLA"). bench/xla_machine.py shows that bytes cost little beside rendezvous
# and short runs.
_HOST = Machine("machine xla-cpu\nlevel host devices all message 20us bandwidth 20GB/s start 100us\ncopy 10GB/s run 10ns\n")


def on_host(where: Any) -> bool:
    """True if it runs on cores of a host, as far as is known. where: JAX's devices, or a mesh of them, which may be
    abstract."""
    if isinstance(where, jax.sharding.AbstractMesh):
        return False
    found = where.devices.flat if isinstance(where, jax.sharding.Mesh) else where
    return all(device.platform == "cpu" for device in found)


def chosen(source: Layout, target: Layout, hosted: bool) -> Plan:
    """The move that lets the busiest device receive least. On devices that are cores of a host, it is the fastest move
    that receives no more than XLA's own. hosted: on_host of the devices. Errors: the errors of synthesize."""
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
    """True if XLA's partitioner receives no less than `fast`. XLA never sends a fresh slice on by an all-to-all; it
    takes one all-to-all and one permute, as `least` does."""
    kinds, of_least = ([step.kind for step in plan.steps if step.kind not in ("slice", "view")] for plan in (fast, least))
    first = next(step.kind for step in least.steps if step.kind != "view")
    return (sorted(kinds) == ["all_to_all", "permute"] and of_least == ["all_to_all", "all_to_all"] and first == "slice")
