#!/usr/bin/env python3
"""`reshard.load` and `reshard.save` under MPI against reading, or writing, the same bytes once: mpirun -n RANKS python
load.py [--size 1] [--rounds 3] [--folder .], in a Python that has reshard and mpi4py.

A Llama's layers in torch DCP's form over 64 ranks become the tiles of RANKS ranks, as vLLM cuts them, and files of these
ranks again. Beside it all ranks read the same files once, each as many bytes as any other, and write and flush as many;
caches are dropped before each; medians of the slowest rank. The tiles are compared with the source."""

import argparse
import os
import statistics
import tempfile
import time

import llama
import numpy
import reshard
import watch
from mpi4py import MPI

COMM = MPI.COMM_WORLD
PART = 8 << 20


def slowest(folder, work):
    """Seconds of the slowest rank, and the result of the work on this rank."""
    if COMM.rank == 0:
        watch.drop_caches(folder)
    COMM.Barrier()
    begin = time.monotonic()
    made = work()
    return COMM.allreduce(time.monotonic() - begin, MPI.MAX), made


def parts(source):
    """This rank's parts of all files: file, begin, end."""
    files = [os.path.join(source, name) for name in sorted(os.listdir(source))]
    every = [(file, begin, min(begin + PART, os.path.getsize(file))) for file in files
             for begin in range(0, os.path.getsize(file), PART)]
    return every[len(every) * COMM.rank // COMM.size:len(every) * (COMM.rank + 1) // COMM.size]


def read_once(source):
    held = []
    for file, begin, end in parts(source):
        descriptor = os.open(file, os.O_RDONLY)
        held.append(numpy.empty(end - begin, numpy.uint8))
        os.preadv(descriptor, [held[-1]], begin)
        os.close(descriptor)
    return held


def write_once(folder, held):
    with open(os.path.join(folder, f"plain{COMM.rank}"), "wb") as file:
        for part in held:
            file.write(part.data)
        file.flush()
        os.fsync(file.fileno())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    folder = COMM.bcast(tempfile.mkdtemp(dir=asked.folder) if COMM.rank == 0 else None)
    source, saved = os.path.join(folder, "fsdp64"), os.path.join(folder, "saved")
    try:
        tensors = llama.shapes(asked.size)
        if COMM.rank == 0:
            llama.make_dcp(source, tensors, 64)
        COMM.Barrier()
        rules = {end: "\n".join(llama.rules(end, COMM.size, tensors)) for end in ("source", "target")}
        times = {what: [] for what in ("read", "load", "write", "save")}
        tiles = {}
        for _ in range(asked.rounds):
            seconds, held = slowest(folder, lambda: read_once(source))
            times["read"].append(seconds)
            times["write"].append(slowest(folder, lambda: write_once(folder, held))[0])
            del held
            os.remove(os.path.join(folder, f"plain{COMM.rank}"))
            seconds, tiles = slowest(folder, lambda: reshard.load(COMM, source, rules["target"]))
            times["load"].append(seconds)
            if COMM.rank == 0:
                watch.remove(saved)
            COMM.Barrier()
            times["save"].append(slowest(folder, lambda: reshard.save(
                COMM, saved, tiles, rules["source"] + "\n" + rules["target"], shapes=tensors, form="ranks"))[0])
        theirs = llama.boxes(source, tensors)
        mine = {name: [([COMM.rank * tile.shape[k] if k == llama.cut_dim(name) else 0 for k in range(tile.ndim)],
                        tile.view(numpy.uint16))] for name, tile in tiles.items()}
        wrong = llama.differences(theirs, mine, tensors, whole=False)
        if COMM.allreduce(len(wrong)):
            raise SystemExit("\n".join(wrong))
        if COMM.rank == 0:
            middle = {what: statistics.median(seconds) for what, seconds in times.items()}
            print(f"{COMM.size} ranks, {asked.size:g} GB: read once {middle['read']:.2f} s, load {middle['load']:.2f} s = "
                  f"{middle['load'] / middle['read']:.2f}x; written once {middle['write']:.2f} s, save "
                  f"{middle['save']:.2f} s = {middle['save'] / middle['write']:.2f}x   bytes right, load "
                  f"{os.getloadavg()[0]:.1f}")
    finally:
        COMM.Barrier()
        if COMM.rank == 0:
            watch.remove(folder)


if __name__ == "__main__":
    main()
