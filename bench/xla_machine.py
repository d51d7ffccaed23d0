#!/usr/bin/env python3
"""build/python/bin/python bench/xla_machine.py [--rounds 31] [--tile MiB]

Measures XLA's own operations on eight devices of this host, and makes a machine for `--machine` of them. It runs permutes
and all-to-alls of two sizes, and transposes in runs of several lengths, each as one program that runs on all devices at
once, in turn, and takes medians. A copy is a transpose in runs of 4 KiB. A run costs the time that a transpose in runs of
16 bytes takes beyond it. The start of a step is the time of a permute of nearly no bytes. A message is the time that each
further peer adds to an all-to-all of nearly no bytes. The bandwidth is the average over a permute and an all-to-all over
all devices, after their copies are subtracted."""

import argparse
import os
import statistics
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy
import reshard
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

RUNS = (4096, 256, 64, 16, 4)  # bytes
SMALL = 4096  # bytes of a tile that is nearly nothing


def program(mesh, shape, on_tile):
    """A compiled program and its argument. The program applies on_tile to a float32 tile of this shape on every device."""
    tiles = NamedSharding(mesh, PartitionSpec("devices"))
    x = jax.device_put(numpy.zeros((8 * shape[0], *shape[1:]), numpy.float32), tiles)
    moved = jax.shard_map(on_tile, mesh=mesh, in_specs=tiles.spec, out_specs=tiles.spec, check_vma=False)
    return jax.jit(moved).lower(x).compile(), x


def programs(tile):
    """By name. tile: bytes."""
    mesh = jax.make_mesh((8,), ("devices",))
    ring = [(one, (one + 1) % 8) for one in range(8)]
    groups = {size: [list(range(first, first + size)) for first in range(0, 8, size)] for size in (2, 4, 8)}
    made = {}
    for size in (SMALL, tile):
        flat = (size // 4,)
        made["permute", size] = program(mesh, flat, lambda x: lax.ppermute(x, "devices", ring))
        made["all_gather", size] = program(mesh, (size // 32,), lambda x: lax.all_gather(x, "devices", tiled=True))
        for count, group in groups.items():
            made[f"all_to_all {count}", size] = program(mesh, flat, lambda x, group=group: lax.all_to_all(
                x, "devices", 0, 0, tiled=True, axis_index_groups=group))
    for run in RUNS:
        shape = (64, tile // run // 64, run // 4)
        made[f"transpose {run}", tile] = program(mesh, shape, lambda x: lax.transpose(x, (1, 0, 2)).reshape(x.shape))
    return made


def measured(tile, rounds):
    """Seconds of each."""
    made = programs(tile)
    times = {name: [] for name in made}
    order = list(made)
    for turn in range(rounds + 1):
        for name in order[turn % len(order):] + order[:turn % len(order)]:
            run, x = made[name]
            begin = time.perf_counter()
            run(x).block_until_ready()
            if turn:  # the first is for the caches
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(some) for name, some in times.items()}


def machine(took, tile):
    """Its text."""
    empty = took["permute", SMALL]
    copy = max(took["transpose 4096", tile] - empty, 1e-9)
    run = max(0.0, took["transpose 16", tile] - took["transpose 4096", tile]) / (tile // 16)
    message = max(0.0, took["all_to_all 8", SMALL] - took["all_to_all 2", SMALL]) / 6
    parts = [(took["permute", tile] - empty - copy) / tile,
             (took["all_to_all 8", tile] - took["all_to_all 8", SMALL] - copy) / (tile * 7 // 8)]
    left = max(statistics.mean(parts), 1e-13)
    return (f"machine xla-cpu\nlevel host devices all message {message * 1e9:.0f}ns bandwidth {1e-6 / left:.0f}MB/s "
            f"start {empty * 1e6:.0f}us\ncopy {tile / copy * 1e-6:.0f}MB/s run {run * 1e12:.0f}ps\n")


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=31)
    asked.add_argument("--tile", type=int, default=4, help="MiB")
    options = asked.parse_args()
    tile = options.tile << 20
    took = measured(tile, options.rounds)
    for (name, size), seconds in took.items():
        print(f"{name:>14} {size:9} B {1e6 * seconds:9.0f} us")
    print(reshard.Machine(machine(took, tile)), end="")  # read back
    print(f"jaxlib {jax.lib.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds")


if __name__ == "__main__":
    main()
