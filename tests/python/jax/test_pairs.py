"""Ordered pairs of shardings on eight devices, each compiled by XLA with reshard.jax.reshard and without. Values must be right,
with no involuntary rematerialization, no full gather, temp of at most 2.1 tiles, and never more received than by XLA's own.

test_pairs.py MESH RANK: rank 2 runs all pairs on 2x4, and on 2x2x2 one of each set that differs only in names of axes. Rank 3
runs one pair of each kind, on 2x2x2 only for a random part of the kinds. RESHARD_LONG=1 runs all; RESHARD_SEED draws others."""

import itertools
import math
import random
import re
import sys
import time

import devices
import jax
import numpy
import reshard.jax
from reshard.jax import _hlo
from reshard.jax._shardings import named_layout

DRAWN = 150
EXTENTS = {2: (96, 128), 3: (32, 48, 40)}  # tiles large beside the bytes that XLA rounds up


def specs(axes, rank):
    """Every way to cut an array: axes in any order, each at most once."""
    def dealt(order, dims):
        if dims == 1:
            return [(order,)]
        return [(order[:k], *rest) for k in range(len(order) + 1) for rest in dealt(order[k:], dims - 1)]
    return [spec for k in range(len(axes) + 1) for order in itertools.permutations(axes, k) for spec in dealt(order, rank)]


def first_of_its_kind(pair, axes):
    """Axes of one size are interchangeable. True for the one pair that uses their names in order."""
    met = list(dict.fromkeys(axis for spec in pair for dim in spec for axis in dim))
    return met == list(axes[:len(met)])


def of_each_kind(found, draw):
    """One of the pairs that differ only in the order of dimensions, which matters to neither a plan nor XLA's partitioner."""
    kinds = {}
    for pair in found:
        kinds.setdefault(tuple(sorted(zip(*pair))), []).append(pair)
    return [draw.choice(kind) for kind in kinds.values()]


def pairs(shape, axes, rank):
    """The pairs to run."""
    every = specs(axes, rank)
    found = [(source, target) for source in every for target in every if source != target]
    if devices.LONG:
        return found
    if len(set(shape)) == 1:
        found = [pair for pair in found if first_of_its_kind(pair, axes)]
    if rank == 2:
        return found
    draw = random.Random(devices.SEED)
    found = of_each_kind(found, draw)
    return draw.sample(found, min(DRAWN, len(found)))


def gathers_all(collective, size):
    """True if the program makes the whole array on a device."""
    return collective.kind == "all-gather" and any(
        math.prod(map(int, extents.split(","))) >= size for extents in re.findall(r"\[([\d,]+)\]", collective.array))


def least(ends, x):
    """Bytes that the busiest device must receive."""
    return reshard.synthesize(*(named_layout(end, x.shape, x.dtype) for end in ends)).lower_bound_bytes


def faults(ends, x):
    """The faults of a pair of shardings, as sentences."""
    held = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=ends[0])
    with devices.complaints() as said:
        ours = jax.jit(lambda v: reshard.jax.reshard(v, ends[1])).lower(held).compile()
        if "rematerialization" in said():
            yield "rematerialized"
    moved = ours(jax.device_put(x, ends[0]))
    if not moved.sharding.is_equivalent_to(ends[1], x.ndim):
        yield f"ended as {moved.sharding.spec}"
    if not all((numpy.asarray(shard.data) == x[shard.index]).all() for shard in moved.addressable_shards):
        yield "wrong values"
    if not any(end.is_fully_replicated for end in ends) and any(gathers_all(one, x.size) for one in _hlo.collectives(ours.as_text())):
        yield "the whole array was gathered"
    tile = max(math.prod(end.shard_shape(x.shape)) for end in ends) * x.itemsize
    temp = ours.memory_analysis().temp_size_in_bytes
    if temp > 2.1 * tile and tile > 4096:  # XLA rounds buffers up
        yield f"temp of {temp / tile:.2f} tiles"
    got = _hlo.received(ours.as_text())
    if got > least(ends, x):  # at the lower bound XLA's own program need not be compiled
        theirs = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, ends[1])).lower(held).compile()
        if got > _hlo.received(theirs.as_text()):
            yield f"received {got} B, XLA {_hlo.received(theirs.as_text())} B"


def main(mesh_text, rank_text):
    shape, rank = tuple(map(int, mesh_text.split("x"))), int(rank_text)
    axes = ("x", "y", "z")[:len(shape)]
    mesh = devices.mesh_of(**dict(zip(axes, shape)))
    x = numpy.arange(math.prod(EXTENTS[rank]), dtype=numpy.float32).reshape(EXTENTS[rank])
    begin, failed, run = time.monotonic(), 0, pairs(shape, axes, rank)
    for source, target in run:
        ends = [devices.named(mesh, *(dim or None for dim in spec)) for spec in (source, target)]
        for fault in faults(ends, x):
            failed += 1
            print(f"{mesh_text}: {source} -> {target}: {fault}   (RESHARD_SEED={devices.SEED})")
    print(f"{mesh_text} rank {rank}: {len(run)} pairs, {failed} faults, "
          f"{time.monotonic() - begin:.0f} s ({time.process_time():.0f} of CPU), jax {jax.__version__}")
    return 1 if failed or not run else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
