#!/usr/bin/env python3
"""`reshard convert` against dask, from times to places: rechunk.py TOOL [--size 1] [--rounds 3] [--folder .], in a Python
that has dask and zarr (`pip install 'dask[array]' zarr`).

A zarr v3 array f32[times,721,1440], raw, a chunk for each hour, becomes one of chunks (all times, 72, 144). dask runs
first, with threads and its own defaults, and its largest RssAnon is measured; convert gets a quarter of that as --memory.
Both end when all is on the disk, with caches dropped before; medians. Both results are compared with the source."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import watch

PLACE = (72, 144)
MAKE = """
import sys, numpy, zarr
path, times = sys.argv[1], int(sys.argv[2])
array = zarr.create_array(path, shape=(times, 721, 1440), chunks=(1, 721, 1440), dtype="f4", compressors=None)
numbers = numpy.random.default_rng(1)
for time in range(times):
    array[time] = numbers.random((721, 1440), numpy.float32)
"""
THEIRS = """
import os, sys, dask.array, zarr
source, target = sys.argv[1:3]
array = dask.array.from_zarr(source)
made = array.rechunk((array.shape[0], 72, 144))
into = zarr.create_array(target, shape=array.shape, chunks=(array.shape[0], 72, 144), dtype="f4", compressors=None)
dask.array.store(made, into, lock=False, scheduler="threads")
os.sync()
"""
SAME = """
import sys, numpy, zarr
one, other = (zarr.open_array(path, mode="r") for path in sys.argv[1:3])
for place in range(0, 721, 72):
    if not numpy.array_equal(one[:, place:place + 72], other[:, place:place + 72]):
        raise SystemExit(f"{sys.argv[2]} differs")
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--size", type=float, default=1, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    if subprocess.run([sys.executable, "-c", "import dask.array, zarr"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit("dask or zarr is not here: pip install 'dask[array]' zarr")
    times = max(2, round(asked.size * 1e9 / (4 * 721 * 1440)))
    folder = tempfile.mkdtemp(dir=asked.folder)
    source, theirs, ours = (os.path.join(folder, name) for name in ("hours.zarr", "theirs.zarr", "ours.zarr"))
    python = lambda program, *arguments: [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    try:
        subprocess.run(python(MAKE, source, times), check=True)
        took = {theirs: [], ours: []}
        held = {theirs: 0, ours: 0}
        for _ in range(asked.rounds):
            for target in (theirs, ours):
                memory = max(held[theirs] // 4, 32 << 20)
                command = python(THEIRS, source, theirs) if target == theirs else \
                    [os.path.abspath(asked.tool), "convert", source, ours, "--chunks", f"{times},{PLACE[0]},{PLACE[1]}",
                     "--memory", str(memory)]
                watch.remove(target)
                watch.drop_caches(folder)
                seconds, most, _ = watch.watched(command)
                took[target].append(seconds)
                held[target] = max(held[target], most)
        for target in (theirs, ours):
            subprocess.run(python(SAME, source, target), check=True)
        dask_s, our_s = (statistics.median(took[target]) for target in (theirs, ours))
        print(f"f32[{times},721,1440]: dask {dask_s:.2f} s in {held[theirs] / 2**20:.0f} MiB, convert {our_s:.2f} s in "
              f"{held[ours] / 2**20:.0f} MiB: {dask_s / our_s:.1f}x as fast in {held[ours] / held[theirs]:.2f} of the "
              f"memory   bytes right, load {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
