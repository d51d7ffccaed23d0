#!/usr/bin/env python3
"""`reshard convert` against torch's own consolidation of the same files: consolidation.py TOOL [--size 0.5] [--rounds 3]
[--threads CORES] [--folder .], in a Python that has torch (`./dev check --peers` makes build/peers/bin/python).

A Llama's layers, bf16, in torch DCP's safetensors, cut by rows and by columns on 4, 16 and 64 ranks, become one file of
whole tensors. Both end when all is on the disk (torch's by `sync -f`), with caches dropped before; medians. Both results
are compared with the source by numpy."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import llama
import watch

GOALS = {("rows", 4): 1, ("rows", 16): 1, ("rows", 64): 1, ("columns", 4): 2, ("columns", 16): 5, ("columns", 64): 15}
THEIRS = """
import os, sys, time
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
source, target, threads, names = sys.argv[1:5]
begin = time.monotonic()
os.makedirs(target)
consolidate_safetensors_files(source, target, {name: 1 for name in open(names).read().split()}, int(threads))
os.sync()
print(time.monotonic() - begin)  # what it takes to import torch does not count
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--size", type=float, default=0.5, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch's consolidation")
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    if subprocess.run([sys.executable, "-c", THEIRS.splitlines()[2]], stderr=subprocess.DEVNULL, check=False).returncode:
        raise SystemExit("there is no torch here that consolidates: run it by build/peers/bin/python")
    folder = tempfile.mkdtemp(dir=asked.folder)
    source, theirs, ours, names = (os.path.join(folder, name) for name in ("source", "theirs", "ours", "names"))
    tensors = llama.shapes(asked.size)
    with open(names, "w", encoding="utf-8") as file:
        file.write("\n".join(tensors))
    try:
        for (cut, ranks), goal in GOALS.items():
            llama.make_dcp(source, tensors, ranks, dim=0 if cut == "rows" else 1)
            times = {theirs: [], ours: []}
            for _ in range(asked.rounds):
                for target, command in (
                        (theirs, [sys.executable, "-c", THEIRS, source, theirs, str(asked.threads), names]),
                        (ours, [os.path.abspath(asked.tool), "convert", source, ours, "--to", "index"])):
                    watch.remove(target)
                    watch.drop_caches(folder)
                    seconds, _, out = watch.watched(command)
                    times[target].append(float(out) if target == theirs else seconds)
            held = llama.boxes(source, tensors)
            for target in (theirs, ours):
                wrong = llama.differences(held, llama.boxes(target, tensors), tensors)
                if wrong:
                    raise SystemExit("\n".join([f"{target} after {cut} on {ranks}:"] + wrong))
            del held
            torch_s, our_s = (statistics.median(times[target]) for target in (theirs, ours))
            print(f"{cut} on {ranks}: torch {torch_s:.2f} s, convert {our_s:.2f} s: {torch_s / our_s:.1f}x as fast, "
                  f"goal {goal}x   bytes right, load {os.getloadavg()[0]:.1f}", flush=True)
            for one in (source, theirs, ours):
                watch.remove(one)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
