#!/usr/bin/env python3
"""`reshard.load` and `reshard.save` under MPI against `cp`, against reading or writing the same bytes once, and against
Orbax: mpirun -n RANKS python load.py [--size 1] [--rounds 3] [--folder .] [--orbax], in a Python that has reshard and
mpi4py, and Orbax if it is asked for.

A Llama's layers in torch DCP's form over 64 ranks become the tiles of RANKS ranks, as vLLM cuts them, and files of these
ranks again. Beside it rank 0 copies the files with `cp -r` and `sync -f`; all ranks read the same files once, each as
many bytes as any other, and write and flush as many. Orbax loads the same tiles from a checkpoint that it wrote of bands
of the first dimension, and saves them; each rank is a process of JAX. Caches are dropped before each. Medians of the
slowest rank, and of the time of processors of all ranks. The tiles of both are compared with the source."""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time

import llama
import numpy
import reshard
import watch
from mpi4py import MPI

COMM = MPI.COMM_WORLD
PART = 8 << 20


def processors():
    """Seconds of processors that this process and its children took so far."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in each)


def slowest(folder, work):
    """(Seconds of the slowest rank, seconds of processors of all ranks), and the result of the work on this rank."""
    if COMM.rank == 0:
        watch.drop_caches(folder)
    COMM.Barrier()
    begin, used = time.monotonic(), processors()
    made = work()
    seconds, used = time.monotonic() - begin, processors() - used
    return (COMM.allreduce(seconds, MPI.MAX), COMM.allreduce(used)), made


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


def copy(source, target):
    if COMM.rank == 0:
        watch.remove(target)
        subprocess.run(["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', source, target], check=True)


def orbax_of_rows(tensors, source, path):
    """Orbax, and a checkpoint that it wrote of bands of the first dimension."""
    import orbax_peer
    orbax = orbax_peer.Orbax(COMM, tensors)
    tiles = reshard.load(COMM, source, "\n".join(llama.rules("target", COMM.size, tensors, lambda name: 0)))
    orbax.save(path, orbax.arrays(tiles, lambda name: 0))
    return orbax


def with_orbax(orbax, folder, tiles, times):
    """Adds the seconds of Orbax's load and save, and returns the tiles that it loaded."""
    seconds, loaded = slowest(folder, lambda: orbax.load(os.path.join(folder, "rows")))
    times["Orbax's load"].append(seconds)
    if COMM.rank == 0:
        watch.remove(os.path.join(folder, "orbax"))
    arrays = orbax.arrays(tiles)
    times["Orbax's save"].append(slowest(folder, lambda: orbax.save(os.path.join(folder, "orbax"), arrays))[0])
    return {name: numpy.asarray(array.addressable_data(0)) for name, array in loaded.items()}


def check(tensors, theirs, tiles):
    mine = {name: [([COMM.rank * tile.shape[k] if k == llama.cut_dim(name) else 0 for k in range(tile.ndim)],
                    tile.view(numpy.uint16))] for name, tile in tiles.items()}
    wrong = llama.differences(theirs, mine, tensors, whole=False)
    if COMM.allreduce(len(wrong)):
        raise SystemExit("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--orbax", action="store_true")
    asked = parser.parse_args()
    folder = COMM.bcast(tempfile.mkdtemp(dir=asked.folder) if COMM.rank == 0 else None)
    source, saved = os.path.join(folder, "fsdp64"), os.path.join(folder, "saved")
    try:
        tensors = llama.shapes(asked.size)
        if COMM.rank == 0:
            llama.make_dcp(source, tensors, 64)
        COMM.Barrier()
        rules = {end: "\n".join(llama.rules(end, COMM.size, tensors)) for end in ("source", "target")}
        kinds = ["cp", "read", "load", "write", "save"] + (["Orbax's load", "Orbax's save"] if asked.orbax else [])
        times = {what: [] for what in kinds}
        tiles, own = {}, {}
        orbax = orbax_of_rows(tensors, source, os.path.join(folder, "rows")) if asked.orbax else None
        for _ in range(asked.rounds):
            times["cp"].append(slowest(folder, lambda: copy(source, os.path.join(folder, "copy")))[0])
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
            if orbax:
                own = with_orbax(orbax, folder, tiles, times)
        theirs = llama.boxes(source, tensors)
        check(tensors, theirs, tiles)
        if orbax:
            check(tensors, theirs, own)
        if COMM.rank == 0:
            print(f"{COMM.size} ranks, {asked.size:g} GB, bytes right, load {os.getloadavg()[0]:.1f}")
            cp = statistics.median(seconds for seconds, _ in times["cp"])
            for what, rounds in times.items():
                seconds, used = (statistics.median(column) for column in zip(*rounds))
                print(f"  {what:12} {seconds:6.2f} s {seconds / cp:5.2f}x of cp   {used:6.2f} s of processors   "
                      + " ".join(f"{one:.2f}" for one, _ in rounds))
    finally:
        COMM.Barrier()
        if COMM.rank == 0:
            watch.remove(folder)


if __name__ == "__main__":
    main()
