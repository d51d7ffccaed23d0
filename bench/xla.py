#!/usr/bin/env python3
"""build/python/bin/python bench/xla.py [--rounds 15] [--only ID,... | --drawn N --seed S | --pair MESH SOURCE TARGET]
                                        [--small] [--json FILE]

XLA's own plan beside ours, both run by the XLA that JAX brings, on eight devices of this host, in one process: time,
bytes that the busiest device receives, temp. tests/cases/portable.jsonl (60 drawn pairs, t0 to t59, and 13 that are known
to be hard), or --drawn fresh ones, or each --pair. XLA's program is timed twice, as two programs, which says what noise
is. All three run in turn, round by round. Ratios are medians of the ratios within a round, and ratios of the least times
of all rounds. Other programs on the machine only add to a time, so with many rounds (--rounds 101) the least times hold
under load, too. A pair counts as slower if both ratios are under 0.9, after noise is taken off. Every result is compared
element by element. Eight devices share the cores of the machine."""

import argparse
import json
import math
import os
import pathlib
import random
import re
import statistics
import sys
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy
import reshard.jax
from reshard.jax import _explain, _hlo

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIMS = re.compile(r"mesh(<.*?>), (\[.*\])>")


def problems(options):
    """(name, source, target) of each."""
    if options.pair:
        return [(f"p{at}", *(reshard.parse_layout(mesh, end) for end in ends))
                for at, (mesh, *ends) in enumerate(options.pair)]
    if options.drawn:
        return drawn(options.drawn, options.seed)
    rows = [json.loads(line) for line in (ROOT / "tests/cases/portable.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted = set(filter(None, options.only.split(",")))
    return [(row["id"], *(reshard.parse_layout(row["mesh"], row[end]) for end in ("source", "target")))
            for row in rows if not wanted or row["id"] in wanted]


def drawn(count, seed):
    """Pairs over eight devices that move bytes, 16 to 64 MiB each."""
    draw, found = random.Random(seed), []
    while len(found) < count:
        sizes = draw.choice([(8,), (2, 4), (4, 2), (2, 2, 2)])
        mesh = reshard.Mesh([("abc"[at], size) for at, size in enumerate(sizes)])
        rank = draw.randint(1, 4)
        bits = [3] * rank
        for _ in range(draw.randint(22, 24) - 3 * rank):
            bits[draw.randrange(rank)] += 1
        ends = []
        for _ in range(2):
            spec = [[] for _ in range(rank)]
            for axis in draw.sample(mesh.axis_names, draw.randint(0, len(sizes))):
                draw.choice(spec).append(axis)
            ends.append(reshard.Layout(mesh, "f32", [1 << one for one in bits], spec))
        if reshard.synthesize(*ends).received_bytes:
            found.append((f"{seed}.{len(found)}", *ends))
    return found


def smaller(layout):
    """The same layout of an array that takes no time."""
    count = layout.mesh.size
    extents = [4 * count if extent % (4 * count) == 0 else extent for extent in layout.shape]
    cut = re.findall(r"@(\([^()]*(?:\(\d+\)[^()]*)*\)|[^,\]]+)|(?<=[\[,])\d+(?=[,\]])", str(layout))
    places = [f"{extent}@{axes}" if axes else str(extent) for extent, axes in zip(extents, cut)]
    return reshard.parse_layout(layout.mesh, f"{layout.dtype}[{','.join(places)}]")


def compiled(move, source, target, shape, dtype):
    """An XLA program; the move is asked for once, at the end."""
    held = jax.ShapeDtypeStruct(shape, dtype, sharding=source)
    return jax.jit(move, out_shardings=target).lower(held).compile()


def wrong(result, x):
    """The number of wrong tiles."""
    return sum(not (numpy.asarray(shard.data) == x[shard.index]).all() for shard in result.addressable_shards)


def measured(source, target, rounds):
    """One problem as a row of results; None if JAX cannot express it."""
    (mesh, dims), (_, other) = (DIMS.search(end.format("sdy")).groups() for end in (source, target))
    ends = _explain.shardings(mesh, dims, other)
    if ends is None:
        return None
    dtype = numpy.dtype(source.numpy_dtype)
    x = numpy.arange(math.prod(source.shape)).reshape(source.shape).astype(dtype)
    programs = {"xla": compiled(lambda x: x, *ends, x.shape, dtype),
                "again": compiled(lambda x: jax.lax.with_sharding_constraint(x, ends[1]), *ends, x.shape, dtype),
                "ours": compiled(lambda x: reshard.jax.reshard(x, ends[1]), *ends, x.shape, dtype)}
    held = jax.device_put(x, ends[0])
    faults = sum(wrong(program(held), x) for program in programs.values())
    times = {name: [] for name in programs}
    order = list(programs)
    for turn in range(rounds + 1):
        for name in order[turn % 3:] + order[:turn % 3]:
            begin = time.perf_counter()
            programs[name](held).block_until_ready()
            if turn:  # the first is for the caches
                times[name].append(time.perf_counter() - begin)
    paired = lambda above, below: statistics.median(a / b for a, b in zip(times[above], times[below]))
    least = lambda above, below: min(times[above]) / min(times[below])
    temp = {name: program.memory_analysis().temp_size_in_bytes for name, program in programs.items()}
    text = {name: program.as_text() for name, program in programs.items()}
    whole = x.nbytes
    return {"wrong": faults, "faster": paired("xla", "ours"), "noise": paired("xla", "again"),
            "faster_least": least("xla", "ours"), "noise_least": least("xla", "again"),
            "xla_ms": 1e3 * statistics.median(times["xla"]), "ours_ms": 1e3 * statistics.median(times["ours"]),
            "xla_received": _hlo.received(text["xla"]), "ours_received": _hlo.received(text["ours"]),
            "xla_temp": temp["xla"], "ours_temp": temp["ours"],
            "xla_steps": [one.kind for one in _hlo.collectives(text["xla"])],
            "ours_steps": [one.kind for one in _hlo.collectives(text["ours"])],
            "replicates": max(source.tile_bytes, target.tile_bytes) < whole and any(
                one.bytes >= whole for one in _hlo.collectives(text["xla"]))}


def mean(values):
    """Geometric."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def is_slower(row):
    """By the medians and by the least times. Noise is how far XLA's program is from itself, in either direction."""
    return all(row[faster] * max(row[noise], 1 / row[noise]) < 0.9
               for faster, noise in (("faster", "noise"), ("faster_least", "noise_least")))


def table(rows):
    """The groups of the paper's table, as Markdown."""
    lines = ["| XLA's over ours | pairs | time: geometric mean | median | most | least | received | temp |",
             "|---|---|---|---|---|---|---|---|"]
    ratio = lambda row, what: max(1, row[f"xla_{what}"]) / max(1, row[f"ours_{what}"])
    for name, some in (("XLA replicates", [row for row in rows if row["replicates"]]),
                       ("it does not", [row for row in rows if not row["replicates"]]), ("all", rows)):
        if some:
            times = [row["faster"] for row in some]
            lines.append(f"| {name} | {len(some)} | {mean(times):.2f}x | {statistics.median(times):.2f}x | {max(times):.1f}x | "
                         f"{min(times):.2f}x | {mean(ratio(row, 'received') for row in some):.2f}x | "
                         f"{mean(ratio(row, 'temp') for row in some):.2f}x |")
    apart = sorted(max(row["noise"], 1 / row["noise"]) for row in rows)
    slower = [f"{row['id']} {row['faster']:.2f}x (noise {row['noise']:.2f}x), by least times {row['faster_least']:.2f}x "
              f"(noise {row['noise_least']:.2f}x)" for row in rows if is_slower(row)]
    more = [row["id"] for row in rows if row["ours_received"] > row["xla_received"]]
    least = [row["faster_least"] for row in rows]
    lines += ["", f"XLA's program beside itself: within {statistics.median(apart):.2f}x for half of the pairs, "
                  f"{apart[int(0.9 * (len(apart) - 1))]:.2f}x for 90%, {apart[-1]:.2f}x at most.",
              f"By least times: geometric mean {mean(least):.2f}x, least {min(least):.2f}x.",
              f"Slower than 0.9x beyond noise: {', '.join(slower) or 'none'}. More bytes than XLA: {', '.join(more) or 'none'}."]
    return "\n".join(lines)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=15)
    asked.add_argument("--only", default="")
    asked.add_argument("--drawn", type=int, default=0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--pair", nargs=3, action="append", metavar=("MESH", "SOURCE", "TARGET"))
    asked.add_argument("--small", action="store_true")
    asked.add_argument("--json", default="")
    options = asked.parse_args()
    rows = []
    for name, source, target in problems(options):
        if options.small:
            source, target = smaller(source), smaller(target)
        row = measured(source, target, options.rounds)
        if row is None:
            print(f"{name}: JAX has no words for {source} -> {target}", file=sys.stderr)
            continue
        rows.append({"id": name, "mesh": str(source.mesh), "source": str(source), "target": str(target), **row})
        print(f"{name:>6} {row['faster']:6.2f}x {row['xla_ms']:9.2f} ms {row['ours_ms']:9.2f} ms  {source} -> {target}  "
              f"{', '.join(row['ours_steps'])}", file=sys.stderr, flush=True)
        if options.json:
            pathlib.Path(options.json).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(table(rows))
    faults = sum(row["wrong"] for row in rows)
    print(f"jaxlib {jax.lib.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds, "
          f"wrong {faults}")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
