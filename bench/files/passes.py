#!/usr/bin/env python3
"""One pass against two with little memory, from times to places: passes.py TOOL [--rounds 3] [--memory 16MiB] [--folder .],
in a Python that has numpy.

f32[400,512,512] as .npy (400 MiB) becomes a zarr array of chunks (400, 32, 32). The rows alternate. The source leaves the
system's cache before each run. Bytes are those of read and write calls (/proc/PID/io), in units of 400 MiB."""

import argparse
import os
import shutil
import statistics
import subprocess
import time

import numpy as np

SHAPE = (400, 512, 512)
BYTES = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]


def forget(path):
    os.sync()
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(arguments):
    """Runs the tool under a shell, whose counters hold those of its children at the end."""
    begin = time.monotonic()
    told = subprocess.run(["bash", "-c", '"$@" > /dev/null || exit; cat /proc/$$/io', "x", *arguments], check=True,
                          capture_output=True, text=True).stdout
    seconds = time.monotonic() - begin
    counts = dict(line.split(": ") for line in told.splitlines())
    return seconds, int(counts["rchar"]) / BYTES, int(counts["wchar"]) / BYTES


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="16MiB")
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
                rows.append(run([asked.tool, "convert", source, target, "--chunks", "400,32,32", "--memory", asked.memory,
                                 *scratch]))
        print(f"{'':12}{'median':>10}{'least':>10}{'read':>8}{'written':>9}")
        for name, rows in found.items():
            seconds = [row[0] for row in rows]
            print(f"{name:12}{statistics.median(seconds):8.2f} s{min(seconds):8.2f} s{rows[0][1]:7.2f}x{rows[0][2]:8.2f}x")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
