#!/usr/bin/env python3
"""mpirun -n 8 build/python/bin/python bench/python/moves.py [--rounds 15] [--only TEXT,TEXT] [--peer LIBRARY]

Moves from Python beside the same moves from C++ (libpython_peer.so of bench/) and mpi4py's Alltoallw over subarrays, on
the problems of bench/README, then small arrays; on one rank, without mpirun, what a call costs by itself. Small arrays
also run beside mpi4py's Neighbor_alltoallw and its persistent requests, and the fastest of the three counts. All
contestants run in one launch, in turn, round by round; a time is the slowest rank's, from a barrier on; the table has
medians, and ratios are medians of the ratios within a round. Every result is compared element by element; `wrong` must
be 0."""

import argparse
import ctypes
import pathlib
import statistics
import sys
import time

import numpy
from mpi4py import MPI

import reshard

COMM = MPI.COMM_WORLD
WAYS = ("alltoallw", "neighbours", "persistent")  # of mpi4py
SMALL = 1 << 20  # bytes of an array that moves many times in a round
ROOT = pathlib.Path(__file__).resolve().parents[2]


def problems(ranks):
    """Name, mesh, source, target, and whether the target's tiles are column-major: bench/redistribution/problems.cpp."""
    x, pencil, block = f"x={ranks}", "512@x,512@y,512", "8192@x,8192@y"
    every = [("rows to columns", x, "8192@x,8192", "8192,8192@x"), ("uneven 10007x6661", x, "10007@x,6661", "10007,6661@x"),
             ("slab x to slab z", x, "512@x,512,512", "512,512,512@x"),
             ("A to its transpose", x, "8192@x,8192", "8192,8192@x"), ("small 512x512", x, "512@x,512", "512,512@x")]
    grid = {8: "x=2,y=4", 4: "x=2,y=2"}.get(ranks, "")
    if ranks == 8:
        every += [("grid 2x4 to 4x2", grid, block, "8192@y,8192@x"),
                  ("permuted grid", grid, block, "8192@y:(2)2,8192@(x,y:(1)2)")]
    if ranks == 4:
        every += [("rows to 2x2", grid, "8192@(x,y),8192", block), ("permuted grid", grid, block, "8192@y,8192@x")]
    if grid:
        every += [("replicate over part", grid, "8192@(x,y),8192", "8192@x,8192"),
                  ("pencil x to pencil y", grid, pencil, "512@x,512,512@y"), ("pencil to slab", grid, pencil, "512@(x,y),512,512")]
        slab = ("512@x,512@y,512@z", "512@(x,y,z),512,512") if ranks == 8 else ("512,512@x,512@y", "512@(x,y),512,512")
        every += [("cube to slab" if ranks == 8 else "square to slab", "x=2,y=2,z=2" if ranks == 8 else grid, *slab)]
    small = [(f"{side}x{side}", x, f"{side}@x,{side}", f"{side},{side}@x") for side in (2, 4, 8, 16, 32, 64, 128, 256) if side >= ranks]
    return [(*one, one[0] == "A to its transpose") for one in every + small]


def place(layout, rank):
    """The value of each element of a tile: a number made of its place in the whole array."""
    total = numpy.zeros((1,) * layout.ndim, numpy.uint32)
    for dim, side in enumerate(layout.tile_indices(rank)):
        at = numpy.concatenate([numpy.arange(*one, dtype=numpy.uint64) for one in side])
        stride = int(numpy.prod(layout.shape[dim + 1:], dtype=numpy.uint64))
        weight = (at * numpy.uint64(stride) * numpy.uint64(0x9e3779b1)).astype(numpy.uint32)
        total = total + weight.reshape([-1 if k == dim else 1 for k in range(layout.ndim)])
    return total.view(numpy.float32)


def subarray(array, offset, box):
    """The MPI type of a box, given in global indices, of a tile that starts at `offset`."""
    kind = MPI.FLOAT
    start = sum((begin - first) * stride for (begin, _), first, stride in zip(box, offset, array.strides))
    for (begin, end), stride in reversed(list(zip(box, array.strides))):
        kind = kind.Create_hvector(end - begin, 1, stride)
    if array.flags.c_contiguous:
        kind = MPI.FLOAT.Create_subarray(array.shape, [end - begin for begin, end in box],
                                         [begin - first for (begin, _), first in zip(box, offset)])
        start = 0
    return kind.Commit(), start


def ways_of_mpi(source, target, array, out):
    """Calls of mpi4py that do what the plan does, by name; the sources of these problems have no replicas."""
    def ends(own, others, held):
        counts, places, kinds = [], [], []
        for rank in range(COMM.size):
            box = [(max(a, c), min(b, d)) for ((a, b),), ((c, d),) in zip(own.tile_indices(COMM.rank),
                                                                            others.tile_indices(rank))]
            some = all(begin < end for begin, end in box)
            kind, start = subarray(held, own.tile_offset(COMM.rank), box) if some else (MPI.FLOAT, 0)
            counts.append(int(some))
            places.append(start)
            kinds.append(kind)
        return [held, counts, places, kinds]
    sent, received = ends(source, target, array), ends(target, source, out)
    ways = {"alltoallw": lambda: COMM.Alltoallw(sent, received)}
    if source.global_bytes > SMALL or any(sent[2] + received[2]):
        return ways
    everyone = range(COMM.size)
    graph = COMM.Create_dist_graph_adjacent(everyone, everyone)
    requests = [init([end[0], end[1][rank], end[3][rank]], rank)
                for end, init in ((received, COMM.Recv_init), (sent, COMM.Send_init)) for rank in everyone if end[1][rank]]

    def persistent():
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
    return ways | {"neighbours": lambda: graph.Neighbor_alltoallw(sent, received), "persistent": persistent}


class CxxPeer:
    """The contestant in C++."""

    def __init__(self, library, mesh, source, target, transposed):
        self.library = library
        self.handle = library.peer_make(MPI._addressof(COMM), mesh.encode(), str(source).encode(), str(target).encode(),
                                        int(transposed))

    def array(self, layout, target, transposed):
        shape = layout.tile_shape(COMM.rank)
        memory = (ctypes.c_float * layout.tile_count(COMM.rank)).from_address(self.library.peer_memory(self.handle, target))
        return numpy.ctypeslib.as_array(memory).reshape(shape, order="F" if transposed else "C")

    def run(self, times):
        return self.library.peer_run(self.handle, times)

    def drop(self):
        self.library.peer_drop(self.handle)


def load(path):
    library = ctypes.CDLL(str(path))
    library.peer_make.restype = library.peer_memory.restype = ctypes.c_void_p
    library.peer_make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)
    library.peer_memory.argtypes = (ctypes.c_void_p, ctypes.c_int)
    library.peer_run.argtypes, library.peer_run.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_double
    library.peer_drop.argtypes, library.peer_drop.restype = (ctypes.c_void_p,), None
    return library


def timed(call):
    def run(times):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - begin
    return run


def plain(shape, order="C"):
    """Memory of the program's own, touched."""
    array = numpy.empty(shape, numpy.float32, order=order)
    array.fill(0)
    return array


def contestants(mesh, source, target, transposed, library):
    """Name: (run, target array, what keeps it alive)."""
    order = "F" if transposed else "C"
    shape = target.tile_shape(COMM.rank)
    everyone = {}
    if library:
        peer = CxxPeer(library, mesh, source, target, transposed)
        peer.array(source, 0, False)[...] = place(source, COMM.rank)
        everyone["cxx"] = peer.run, peer.array(target, 1, transposed), peer
    for name in ("allocated", "plain"):
        if name == "allocated":
            array = reshard.mpi.allocate(COMM, source)
            out = reshard.mpi.allocate(COMM, target).reshape(-1).reshape(shape, order=order)
        else:
            array, out = plain(source.tile_shape(COMM.rank)), plain(shape, order)
        array[...] = place(source, COMM.rank)
        if transposed:
            plan = reshard.synthesize(source, target, capabilities=reshard.mpi.capabilities(COMM))
            executor = reshard.mpi.Executor(COMM, plan, array, out)
            everyone[name] = timed(lambda e=executor, a=array, o=out: e.run(a, o)), out, executor
        else:
            move = lambda a=array, o=out: reshard.mpi.redistribute(COMM, a, source, target, o)
            everyone[name] = timed(move), out, None
    array, out = plain(source.tile_shape(COMM.rank)), plain(shape, order)
    array[...] = place(source, COMM.rank)
    for name, call in ways_of_mpi(source, target, array, out).items():
        everyone[name] = timed(call), out, array
    return everyone


def measured(everyone, rounds, times):
    """Seconds a call of each contestant, round by round; the slowest rank's."""
    seconds = {name: [] for name in everyone}
    for number in range(rounds + 1):
        for name, (run, _, _) in everyone.items():
            COMM.Barrier()
            spent = COMM.allreduce(run(times), MPI.MAX) / times
            if number > 0:  # the first prepares
                seconds[name].append(spent)
    return seconds


def ratio(seconds, above, below):
    """Of the fastest contestant in `above`."""
    there = [seconds[one] for one in above if one in seconds]
    return statistics.median(min(a) / b for *a, b in zip(*there, seconds[below])) if there else float("nan")


def shown(seconds):
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def processor_seconds(run, times=3000):
    """The time of one call: the least of nine, so that other users of the machine do not count."""
    spent = []
    for _ in range(9):
        begin = time.process_time()
        run(times)
        spent.append((time.process_time() - begin) / times)
    return min(spent)


def calls_of_one_rank(library):
    """The cost of a call by itself: 16 KiB that stay in place, and a remembered plan."""
    ends = [reshard.parse_layout("x=1", text) for text in ("f32[64@x,64]", "f32[64,64@x]")]
    everyone = contestants("x=1", *ends, False, library)
    array, out = (reshard.mpi.allocate(COMM, end) for end in ends)
    executor = reshard.mpi.Executor(COMM, reshard.synthesize(*ends, capabilities=reshard.mpi.capabilities(COMM)))
    question = [reshard.parse_layout("x=2,y=4", text) for text in ("f32[8192@x,8192@y]", "f32[8192@y,8192@x]")]
    calls = {"C++": everyone["cxx"][0]} if library else {}
    calls |= {"mpi.redistribute": everyone["allocated"][0], "an executor": timed(lambda: executor.run(array, out)),
              "a remembered plan": timed(lambda: reshard.synthesize(*question))}
    print("processor time of a call on one rank: " + ", ".join(
        f"{name} {processor_seconds(run) * 1e6:.2f} us" for name, run in calls.items()))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--peer", default=str(ROOT / "build/release/bench/libpython_peer.so"))
    asked = arguments.parse_args()
    library = load(asked.peer) if pathlib.Path(asked.peer).is_file() else None
    say = print if COMM.rank == 0 else lambda *_: None
    if COMM.size == 1:
        return calls_of_one_rank(library)
    say("| ranks | problem | C++ | Python, allocated | of C++ | more a call | fastest of MPI | faster | Python, numpy's own | faster |")
    say("|---|---|---|---|---|---|---|---|---|---|")
    gains, wrong_in_all = {"allocated": [], "plain": []}, 0
    for name, mesh, source, target, transposed in problems(COMM.size):
        if not any(text in name for text in asked.only.split(",")):
            continue
        source, target = (reshard.parse_layout(mesh, f"f32[{end}]") for end in (source, target))
        everyone = contestants(mesh, source, target, transposed, library)
        seconds = measured(everyone, asked.rounds, 200 if source.global_bytes <= SMALL else 1)
        wanted = place(target, COMM.rank).view(numpy.uint32)
        wrong = COMM.allreduce(sum(int((out.view(numpy.uint32) != wanted).sum()) for _, out, _ in everyone.values()))
        wrong_in_all += wrong
        for one in gains:
            gains[one].append(ratio(seconds, WAYS, one))
        middle = {one: statistics.median(values) for one, values in seconds.items()}
        fastest = min((way for way in WAYS if way in middle), key=middle.get)
        more = middle["allocated"] - middle.get("cxx", float("nan"))
        say(f"| {COMM.size} | {name} | {shown(middle.get('cxx', float('nan')))} | {shown(middle['allocated'])} | "
            f"{ratio(seconds, ['cxx'], 'allocated'):.2f} | {more * 1e6:.2f} us | {shown(middle[fastest])}, {fastest} | "
            f"{ratio(seconds, WAYS, 'allocated'):.2f}x | {shown(middle['plain'])} | "
            f"{ratio(seconds, WAYS, 'plain'):.2f}x |" + (f" wrong {wrong}" if wrong else ""))
        sys.stdout.flush()
        for _, _, kept in everyone.values():
            if isinstance(kept, CxxPeer):
                kept.drop()
        del everyone
        reshard.mpi.clear(COMM)
    means = {one: statistics.geometric_mean(values) for one, values in gains.items() if values}
    say("geometric means against the fastest way of mpi4py: " + ", ".join(f"{one} {mean:.2f}x" for one, mean in means.items()))
    say(f"wrong {wrong_in_all}")
    return 1 if wrong_in_all else 0


if __name__ == "__main__":
    sys.exit(main())
