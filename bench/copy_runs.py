#!/usr/bin/env python3
"""bench/copy_runs.py build/release/tool/reshard [--mpirun mpirun] [--turns 4] [--rounds 5] [--machine MACHINE] [--details]

Tests whether the price of copies by their runs tells which of two plans is faster. There are 40 pairs of plans with the
same ends: one plan passes through a layout that cuts an outer dimension, the other cuts the innermost. They run on four
ranks of `local`, or of MPI with --mpirun. `reshard plan` prices both, on `laptop` or on another --machine (`calibrated`:
the output of `reshard calibrate` through the same backend). `reshard bench` measures them in turn; a time is the median
of all rounds of all turns. On a shared machine the fastest round says more. So both counts are printed, for all pairs and
for the pairs whose times differ by more than the noise. Equal prices tell nothing: they count as wrong."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

INNERMOST = (2, 4, 8, 12, 16, 24, 32, 64)
ELEMENTS = 1 << 20
NOISE = 0.05  # times that differ by less are not told apart
# Source, target, and the first step of each plan; a, b, c are the extents.
FORMS = (
    ("f32[{a}@x,{b},{c}]", "f32[{a},{b}@x,{c}]", "slice f32[{a}@(x,y),{b},{c}]", "slice f32[{a}@x,{b},{c}@y]"),
    ("f32[{a}@(x,y),{b},{c}]", "f32[{a}@(y,x),{b},{c}]", "all_to_all f32[{a}@x,{b}@y,{c}]", "all_to_all f32[{a}@x,{b},{c}@y]"),
    ("f32[{a}@x,{b}@y,{c}]", "f32[{a}@y,{b}@x,{c}]", "all_to_all f32[{a}@(x,y),{b},{c}]", "all_to_all f32[{a}@x,{b},{c}@y]"),
    ("f32[{a}@x,{b},{c}]", "f32[{a},{b},{c}]", "slice f32[{a}@(x,y),{b},{c}]", "slice f32[{a}@x,{b},{c}@y]"),
    ("f32[{a},{b}@(x,y),{c}]", "f32[{a},{b}@(y,x),{c}]", "all_to_all f32[{a}@y,{b}@x,{c}]", "all_to_all f32[{a},{b}@x,{c}@y]"),
)


def answer(options, *words):
    """The tool's answer, as JSON; it runs under MPI if asked."""
    mpi = [options.mpirun, "-n", "4"] if options.mpirun and words[0] != "plan" else []
    backend = [] if words[0] == "plan" else ["--backend", "mpi" if options.mpirun else "local"]
    done = subprocess.run([*mpi, options.tool, *words, *backend, "--json"], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def calibrated(options, path):
    """Writes this machine, as the same ranks find it, and returns the path."""
    mpi = [options.mpirun, "-n", "4"] if options.mpirun else []
    backend = "mpi" if options.mpirun else "local"
    subprocess.run([*mpi, options.tool, "calibrate", "--backend", backend, "--output", path], check=True, capture_output=True)
    return path


def question(source, target, first, machine):
    return ("--mesh", "x=2,y=2", "--vocabulary", "collectives", "--machine", machine, f"--first={first}", source, target)


def measured(options, asked):
    """Seconds of the plan in each round; nothing may arrive wrong."""
    made = answer(options, "bench", "--rounds", str(options.rounds), *asked)["contestants"][0]
    if made["wrong"]:
        sys.exit(f"{asked}: {made['wrong']} wrong")
    return made["seconds"]


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("tool")
    asked.add_argument("--mpirun", default="")
    asked.add_argument("--turns", type=int, default=4)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--machine", default="laptop")
    asked.add_argument("--details", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.machine == "calibrated":
            options.machine = calibrated(options, f"{folder}/machine")
            with open(options.machine, encoding="utf-8") as text:
                print(text.read(), end="", flush=True)
        sys.exit(compared(options))


def compared(options):
    """Returns 0 if the price is right for 90% of the pairs whose times the noise does not hide."""
    right = {statistics.median: [0, 0, 0], min: [0, 0, 0]}  # of all; of those told apart; how many those are
    ratios = []
    for form in FORMS:
        for c in INNERMOST:
            source, target, *firsts = (part.format(a=ELEMENTS // 64 // c // 4 * 4, b=64, c=c) for part in form)
            plans = [question(source, target, first, options.machine) for first in firsts]
            prices = [answer(options, "plan", *plan)["picoseconds_estimate"] for plan in plans]
            times = [[], []]
            for turn in range(options.turns):
                for which in ((0, 1), (1, 0))[turn % 2]:
                    times[which] += measured(options, plans[which])
            took = {way: way(times[1]) / way(times[0]) for way in right}
            for way, ratio in took.items():
                says = prices[0] != prices[1] and (prices[0] < prices[1]) == (ratio > 1)
                apart = max(ratio, 1 / ratio) > 1 + NOISE
                right[way] = [count + one for count, one in zip(right[way], (says, says and apart, apart))]
            ratios.append(prices[1] / prices[0])
            if options.details:
                print(f"inner over outer: priced {ratios[-1]:.2f}x, median {took[statistics.median]:.2f}x, fastest "
                      f"{took[min]:.2f}x  {source} -> {target}  by {firsts[0]} or {firsts[1]}", flush=True)
    for name, (count, told, apart) in zip(("median", "fastest round"), right.values()):
        print(f"{len(ratios)} pairs: by the {name} the plan priced cheaper is the faster one in {count} "
              f"({100 * count / len(ratios):.0f}%), and in {told} of {apart} ({100 * told / max(apart, 1):.0f}%) "
              f"whose times differ by more than {100 * NOISE:.0f}%", flush=True)
    _, told, apart = right[statistics.median]
    return 0 if told >= 0.9 * apart else 1


if __name__ == "__main__":
    main()
