#!/usr/bin/env python3
"""`reshard convert` against dask and rechunker, from times to places: rechunk.py TOOL [--size 1] [--rounds 3]
[--folder .], in a Python that has dask and zarr (`pip install 'dask[array]' zarr`), and perhaps rechunker, which needs
zarr 2 (`pip install 'dask[array]' rechunker`).

A zarr array f32[times,721,1440], raw, a chunk for each hour, becomes one of chunks (all times, 72, 144). With zarr 2 both
are zarr v2, and with zarr 3 v3. dask runs first, with threads and its own defaults, and its largest RssAnon is measured.
rechunker gets a quarter of that as max_mem, divided among its threads, and convert gets it as --memory. All end when
everything is on the disk, with caches dropped before; medians. The results are compared with the source."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import watch

PLACE = (72, 144)
CREATE = """
import os, sys, zarr
def create(path, shape, chunks):
    if zarr.__version__ < "3":
        return zarr.open(path, mode="w", shape=shape, chunks=chunks, dtype="f4", compressor=None)
    return zarr.create_array(path, shape=shape, chunks=chunks, dtype="f4", compressors=None)
"""
MAKE = CREATE + """
import numpy
path, times = sys.argv[1], int(sys.argv[2])
array = create(path, (times, 721, 1440), (1, 721, 1440))
numbers = numpy.random.default_rng(1)
for time in range(times):
    array[time] = numbers.random((721, 1440), numpy.float32)
"""
DASK = CREATE + """
import dask.array
source, target = sys.argv[1:3]
array = dask.array.from_zarr(source)
chunks = (array.shape[0], 72, 144)
dask.array.store(array.rechunk(chunks), create(target, array.shape, chunks), lock=False, scheduler="threads")
os.sync()
"""
RECHUNKER = """
import os, sys, rechunker, zarr
source, target, memory = sys.argv[1:4]
array = zarr.open(source, mode="r")
raw = {"compressor": None}
plan = rechunker.rechunk(array, (array.shape[0], 72, 144), int(memory) // os.cpu_count(), target, target_options=raw,
                         temp_store=target + ".between", temp_options=raw)
plan.execute(scheduler="threads")
os.sync()
"""
SAME = """
import sys, numpy, zarr
one, other = (zarr.open(path, mode="r") for path in sys.argv[1:3])
for place in range(0, 721, 72):
    if not numpy.array_equal(one[:, place:place + 72], other[:, place:place + 72]):
        raise SystemExit(f"{sys.argv[2]} differs")
"""


def has(modules):
    return subprocess.run([sys.executable, "-c", f"import {modules}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--size", type=float, default=1, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    if not has("dask.array, zarr"):
        raise SystemExit("dask or zarr is not here: pip install 'dask[array]' zarr")
    times = max(2, round(asked.size * 1e9 / (4 * 721 * 1440)))
    folder = tempfile.mkdtemp(dir=asked.folder)
    source = os.path.join(folder, "hours.zarr")
    python = lambda program, *arguments: [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    try:
        subprocess.run(python(MAKE, source, times), check=True)
        form = "zarr2" if os.path.exists(os.path.join(source, ".zarray")) else "zarr"
        names = ["dask", "rechunker", "convert"] if has("rechunker") else ["dask", "convert"]
        took, held = {name: [] for name in names}, dict.fromkeys(names, 0)
        for _ in range(asked.rounds):
            for name in names:
                target, memory = os.path.join(folder, name), max(held["dask"] // 4, 32 << 20)
                command = {"dask": python(DASK, source, target), "rechunker": python(RECHUNKER, source, target, memory),
                           "convert": [os.path.abspath(asked.tool), "convert", source, target, "--to", form, "--chunks",
                                       f"{times},{PLACE[0]},{PLACE[1]}", "--memory", str(memory)]}[name]
                for old in (target, target + ".between"):
                    watch.remove(old)
                watch.drop_caches(folder)
                seconds, most, _ = watch.watched(command)
                took[name].append(seconds)
                held[name] = max(held[name], most)
        for name in names:
            subprocess.run(python(SAME, source, os.path.join(folder, name)), check=True)
        print(f"f32[{times},721,1440], {form}, bytes right, load {os.getloadavg()[0]:.1f}")
        ours = statistics.median(took["convert"])
        for name in names:
            print(f"  {name:10} {statistics.median(took[name]):7.2f} s {statistics.median(took[name]) / ours:6.2f}x   "
                  f"{held[name] / 2**20:6.0f} MiB   " + " ".join(f"{one:.2f}" for one in took[name]))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
