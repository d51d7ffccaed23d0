#!/usr/bin/env python3
"""Granules moved over their bound, of random conversions: granules.py TOOL [--count 500] [--seed 1] [--only N].

Each is a checkpoint of 1 to 12 tensors of up to 3 dimensions and 0.01 to 4 GB in all, in torch DCP's form, cut along some
dimension on 1 to 64 ranks, that becomes one in another (DCP, files of ranks with replicas, one file, an index), in 16 MiB
to 1 GiB. Files have headers and no bytes, and `convert --dry-run` plans. Prints the median, the 95th percentile and the
worst ones with the line that repeats each."""

import argparse
import json
import math
import os
import random
import shutil
import struct
import subprocess
import tempfile


def shape_of(draw, elements):
    dims = draw.randint(1, 3)
    sides = []
    for _ in range(dims - 1):
        sides.append(draw.choice([1, 3, 8, 60, 128, 1000, 1024, 4096]))
    rest = max(1, elements // math.prod(sides))
    sides.insert(draw.randrange(dims), rest)
    return sides


def cut_of(draw, shape):
    return None if draw.random() < 0.15 else draw.randrange(len(shape))


def write_headers(folder, tensors, ranks):
    os.makedirs(folder)
    for rank in range(ranks):
        header, offsets, at = {}, {}, 0
        for name, (shape, cut, _) in tensors.items():
            begin, box = [0] * len(shape), list(shape)
            if cut is None and rank > 0:
                continue
            if cut is not None:
                share = -(-shape[cut] // ranks)
                begin[cut] = min(share * rank, shape[cut])
                box[cut] = min(share * (rank + 1), shape[cut]) - begin[cut]
            if math.prod(box) == 0:
                continue
            header[name] = {"dtype": "BF16", "shape": box, "data_offsets": [at, at + 2 * math.prod(box)]}
            offsets[name] = {"saved_offsets": begin}
            at += 2 * math.prod(box)
        header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}
        text = json.dumps(header).encode()
        with open(os.path.join(folder, f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + at)


def one(tool, folder, seed):
    """(granules / bound, the question), or None if the memory does not suffice."""
    draw = random.Random(seed)
    count = draw.randint(1, 12)
    total = 10 ** draw.uniform(7, 9.6) / 2  # elements of two bytes
    shares = [draw.random() for _ in range(count)]
    tensors = {}
    for i, share in enumerate(shares):
        shape = shape_of(draw, max(1, int(total * share / sum(shares))))
        tensors[f"t{i}"] = (shape, cut_of(draw, shape), cut_of(draw, shape))
    source, target = draw.choice([1, 4, 8, 16, 64]), draw.choice([2, 4, 8, 16])
    form = draw.choice(["dcp", "ranks", "single", "index"])
    memory = 2 ** draw.randint(24, 30)
    path = os.path.join(folder, "source")
    shutil.rmtree(path, ignore_errors=True)
    write_headers(path, tensors, source)
    command = [tool, "convert", path, os.path.join(folder, "target"), "--to", form, "--memory", str(memory), "--dry-run",
               "--json", "--jobs", "2"]
    if form in ("dcp", "ranks"):
        lines = [f"target r={target}"]
        for name, (shape, _, cut) in tensors.items():
            cut = None if cut is None or shape[cut] < target else cut
            lines.append(f"{name} = " + ("-" if cut is None else
                                         "[" + ", ".join("r" if k == cut else "-" for k in range(len(shape))) + "]"))
        with open(os.path.join(folder, "rules"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        command += ["--rules", os.path.join(folder, "rules")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        if "too few" in ran.stderr:
            return None
        raise SystemExit(f"--only {seed}: {ran.stderr}")
    done = json.loads(ran.stdout)
    words = (f"{count} tensors, {done['source_bytes'] / 1e6:.0f} MB, {source} files to {form} on {target}, "
             f"{memory >> 20} MiB, {done['batches']} batches, {done['granules']} / {done['granules_bound']}")
    return done["granules"] / max(done["granules_bound"], 1), words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the one of this seed alone")
    asked = parser.parse_args()
    seeds = [asked.only] if asked.only is not None else range(asked.seed * 1000, asked.seed * 1000 + asked.count)
    tool = os.path.abspath(asked.tool)
    with tempfile.TemporaryDirectory() as folder:
        found = [(seed, made) for seed in seeds if (made := one(tool, folder, seed))]
    ratios = sorted(ratio for _, (ratio, _) in found)
    print(f"{len(ratios)} of {len(seeds)} fit their memory; granules / bound: median {ratios[len(ratios) // 2]:.2f}, 95% "
          f"up to {ratios[int(0.95 * (len(ratios) - 1))]:.2f}, maximum {ratios[-1]:.2f}")
    for seed, (ratio, words) in sorted(found, key=lambda one: -one[1][0])[:8]:
        print(f"    {ratio:.2f}  --only {seed}: {words}")


if __name__ == "__main__":
    main()
