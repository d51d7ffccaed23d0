#!/usr/bin/env python3
"""mpirun -n 4 build/python/bin/python bench/python/pencils.py [--rounds 11] [--extents 256,256,256] [--effort ESTIMATE]

dtFFT's transpositions between its own pencils, in its own memory orders, beside the same moves by an executor. Pencils
of x lie as (z, y, x) in memory, pencils of y as (x, z, y), and pencils of z as (y, x, z). dtFFT chooses the grid and its
way (`effort`), on numpy's arrays. Executors move numpy's arrays and arrays of `allocate`. All run in one launch, in
turn, round by round. A time is the slowest rank's. Every element of every result is compared.

It needs dtFFT's package for the installed MPI: `pip install dtfft-openmpi`. Exits 77 without it."""

import argparse
import statistics
import sys
import time

import numpy
from mpi4py import MPI

import reshard

try:
    import dtfft
except ImportError:
    sys.exit(77)

COMM = MPI.COMM_WORLD
# For each end: the axes of (z, y, x) that the first and the second axis of the grid cut, and the order in memory.
ENDS = {"X": ((1, 0), (0, 1, 2)), "Y": ((2, 0), (2, 0, 1)), "Z": ((2, 1), (1, 2, 0))}


def grid_of(plan, extents):
    """The mesh of dtFFT's grid, found from the pencils of x: its first axis cuts y, and its second one cuts z."""
    pencil = plan.get_pencil(dtfft.Layout.X_PENCILS)
    _, rows, planes = pencil.counts
    first, second = extents[1] // rows, extents[0] // planes
    own = pencil.starts[1] // rows, pencil.starts[2] // planes
    by_rows = COMM.allreduce(int(COMM.rank == own[0] * second + own[1]), MPI.MIN)
    return f"a={first},b={second}" if by_rows else f"b={second},a={first}"


def layout_of(mesh, extents, end):
    cut = dict(zip(ENDS[end][0], "ab"))
    dims = [f"{extent}@{cut[k]}" if k in cut else str(extent) for k, extent in enumerate(extents)]
    return reshard.parse_layout(mesh, f"f64[{','.join(dims)}]")


def values(layout, extents):
    """The number of each element of the tile in the whole array, which is (z, y, x)."""
    at = [numpy.concatenate([numpy.arange(*one) for one in side]) for side in layout.tile_indices(COMM.rank)]
    return numpy.ravel_multi_index(numpy.ix_(*at), extents).astype(numpy.float64)


def in_memory(shape, order, allocated):
    """Memory in this order, and the same as an array of (z, y, x)."""
    shape = [shape[k] for k in order]
    memory = reshard.mpi.allocate(COMM, shape, "f8") if allocated else numpy.empty(shape)
    memory.fill(-1)
    return memory, memory.transpose(numpy.argsort(order))


def contestants(plan, mesh, extents, one, other):
    ends = [layout_of(mesh, extents, end) for end in (one, other)]
    orders = [ENDS[end][1] for end in (one, other)]
    made = reshard.synthesize(*ends, capabilities=reshard.mpi.capabilities(COMM))
    everyone = {}
    for name in ("dtFFT", "reshard, allocated", "reshard, numpy's own"):
        (held, array), (into, out) = (in_memory(end.tile_shape(COMM.rank), order, name == "reshard, allocated")
                                      for end, order in zip(ends, orders))
        array[...] = values(ends[0], extents)
        if name == "dtFFT":
            kind = getattr(dtfft.Transpose, f"{one}_TO_{other}")
            run = lambda held=held, into=into: plan.transpose(held.reshape(-1), into.reshape(-1), kind)
        else:
            executor = reshard.mpi.Executor(COMM, made, array, out)
            run = lambda executor=executor, array=array, out=out: executor.run(array, out)
        everyone[name] = run, out
    return everyone, values(ends[1], extents)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=11)
    arguments.add_argument("--extents", default="256,256,256", help="of z, y and x; the grid divides them")
    arguments.add_argument("--effort", default="ESTIMATE", help="of dtFFT: MEASURE and PATIENT try more ways")
    asked = arguments.parse_args()
    extents = [int(one) for one in asked.extents.split(",")]
    plan = dtfft.PlanR2R(extents[::-1], comm=COMM, precision=dtfft.Precision.DOUBLE,
                         effort=getattr(dtfft.Effort, asked.effort),
                         config=dtfft.Config(enable_z_slab=False))
    mesh = grid_of(plan, extents)
    say = print if COMM.rank == 0 else lambda *_: None
    say(f"{'x'.join(map(str, extents))} f64 on {mesh}, medians of {asked.rounds}")
    say("| move | dtFFT | reshard, allocated | faster | reshard, numpy's own | faster |")
    say("|---|---|---|---|---|---|")
    all_wrong = 0
    for one, other in ("XY", "YX", "YZ", "ZY"):
        everyone, wanted = contestants(plan, mesh, extents, one, other)
        seconds = {name: [] for name in everyone}
        for number in range(asked.rounds + 1):
            for name, (run, _) in everyone.items():
                COMM.Barrier()
                begin = time.perf_counter()
                run()
                spent = COMM.allreduce(time.perf_counter() - begin, MPI.MAX)
                if number > 0:  # the first touches memory
                    seconds[name].append(spent)
        wrong = {name: COMM.allreduce(int((out != wanted).sum())) for name, (_, out) in everyone.items()}
        all_wrong += sum(wrong.values())
        peer, *ours = seconds.values()
        cells = [f"{statistics.median(peer) * 1e3:.2f} ms"]
        for own in ours:
            cells += [f"{statistics.median(own) * 1e3:.2f} ms", f"{statistics.median(a / b for a, b in zip(peer, own)):.2f}x"]
        say(f"| {one} to {other} | {' | '.join(cells)} |" + "".join(f" {name}: {count} wrong" for name, count in wrong.items() if count))
    say(f"wrong {all_wrong}")
    return 1 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
