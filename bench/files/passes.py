#!/usr/bin/env python3
"""One pass against two with little memory, from times to places: passes.py TOOL [--rounds 3] [--memory 16MiB]
[--cache MIB] [--folder .], in a Python that has numpy.

f32[400,512,512] as .npy (400 MiB) becomes a zarr array of chunks (400, 32, 32). The rows alternate. The source leaves the
system's cache before each run. Bytes are counted in read and write calls (/proc/PID/io) and those that came from the disk,
in units of 400 MiB. With --cache each run is in a control group of so many MiB, which count its memory and its pages in the
system's cache. So the array is larger than the cache, as an array is that is larger than the machine's memory. This needs
a superuser."""

import argparse
import contextlib
import os
import resource
import shutil
import statistics
import subprocess
import time

import numpy as np

import watch

SHAPE = (400, 512, 512)
BYTES = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]


def forget(path):
    os.sync()
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(arguments, join):
    """Runs the tool under a shell, whose counters hold those of its children at the end. Returns seconds, seconds of
    processors, and units that were read, written and brought from the disk."""
    begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    told = subprocess.run(["bash", "-c", '"$@" > /dev/null || exit; cat /proc/$$/io', "x", *arguments], check=True,
                          capture_output=True, text=True, preexec_fn=join).stdout
    seconds, now = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    counts = dict(line.split(": ") for line in told.splitlines())
    return seconds, processors, *(int(counts[name]) / BYTES for name in ("rchar", "wchar", "read_bytes"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="16MiB")
    parser.add_argument("--cache", type=int, default=0, metavar="MIB", help="of the control group; 0: none")
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    folder = os.path.join(asked.folder, "passes")
    os.makedirs(os.path.join(folder, "scratch"))
    try:
        source, target = os.path.join(folder, "in.npy"), os.path.join(folder, "out.zarr")
        np.save(source, np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32))
        found = {"one pass": [], "two passes": []}
        for _ in range(asked.rounds):
            for name, rows in found.items():
                shutil.rmtree(target, ignore_errors=True)
                forget(source)
                scratch = ["--scratch", os.path.join(folder, "scratch")] if name == "two passes" else []
                command = [asked.tool, "convert", source, target, "--chunks", "400,32,32", "--memory", asked.memory,
                           *scratch]
                with watch.group_of(asked.cache << 20) if asked.cache else contextlib.nullcontext((None, "")) as group:
                    if asked.cache and group[0] is None:
                        raise SystemExit(group[1])
                    rows.append(run(command, group[0]))
        print(f"{'':12}{'median':>10}{'least':>10}{'cpu':>9}{'read':>8}{'written':>9}{'from disk':>11}")
        for name, rows in found.items():
            seconds, processors, read, written, disk = (sorted(column) for column in zip(*rows))
            print(f"{name:12}{statistics.median(seconds):8.2f} s{seconds[0]:8.2f} s{processors[0]:7.2f} s{read[0]:7.2f}x"
                  f"{written[0]:8.2f}x{disk[0]:10.2f}x")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
