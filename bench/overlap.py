#!/usr/bin/env python3
"""overlap.py MPIEXEC RESHARD OVERLAP_BENCH: a transfer between two nodes beside products of matrices, in several ways.

Two network namespaces with one rank each are the nodes, and their link has a known rate (two_nodes.py makes them).
`reshard calibrate` measures the machine over that link; then, for each problem, contestants take turns in one launch:
one after the other, a ring of shards, equal pieces of many numbers, and the pieces that choose_pieces chooses. A
problem is a gather whose rows a product uses, or a product whose rows are added up and scattered; its ratio is the
product's time over the transfer's. Prints a line per problem and a summary; --json prints what was measured. Exits 77
where there are no tools or privileges for it."""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile

from two_nodes import NODES, Nodes, Skip, end_on_signals

RATIOS = (0.25, 0.5, 1, 2, 4)


def drawn(count, seed):
    """Problems that nothing was tuned with."""
    source = random.Random(seed)
    for _ in range(count):
        width = source.choice((256, 512, 768, 1000, 1536, 2048))
        rows = source.randrange(1 << 20, 3 << 20) // width
        yield source.choice(("gather", "scatter")), rows, width, round(source.choice(RATIOS) * source.uniform(0.8, 1.25), 3)


def fixed(rows, width):
    for kind in ("gather", "scatter"):
        for ratio in RATIOS:
            yield kind, rows, width, ratio


def measured(asked, problems):
    with tempfile.TemporaryDirectory() as folder, Nodes(folder, asked.rate, NODES) as nodes:
        machine = os.path.join(folder, "link.machine")
        done = nodes.launch(asked.mpiexec, 1, asked.reshard, "calibrate", "--rounds", str(asked.rounds), "--output", machine)
        if done.returncode != 0:
            sys.exit(f"wrong: calibrate failed\n{done.stdout}\n{done.stderr}")
        with open(machine, encoding="utf-8") as file:
            print(file.read().strip(), flush=True)
        for problem in problems:
            path = os.path.join(folder, "problems")
            with open(path, "w", encoding="utf-8") as file:
                file.write(" ".join(map(str, problem)) + "\n")
            done = nodes.launch(asked.mpiexec, 1, asked.overlap_bench, machine, path, str(asked.rounds))
            if done.returncode != 0:
                sys.exit(f"wrong: {problem}\n{done.stdout}\n{done.stderr}")
            yield json.loads(done.stdout.splitlines()[-1])


def judged(one):
    """What is read off one problem's times."""
    seconds = one["seconds"]
    equal = {name: taken for name, taken in seconds.items() if name.startswith("equal")}
    best = min(equal, key=equal.get)
    chosen, serial = seconds["chosen"], seconds["serial"]
    return {"of_serial": serial / chosen, "of_best_equal": equal[best] / chosen, "best_equal": best,
            "predicted": one["predicted_seconds"] / chosen, "serial_again": serial / seconds["serial again"],
            "of_ring": seconds["ring"] / chosen if "ring" in seconds else None}


def line(one):
    found = judged(one)
    ring = f"{found['of_ring']:.2f}" if found["of_ring"] else "-"
    return (f"{one['work']:16} {one['rows']:6} x {one['width']:<5} ratio {one['ratio']:<5} "
            f"serial {1e3 * one['seconds']['serial']:6.0f} ms, chosen {1e3 * one['seconds']['chosen']:6.0f} ms in "
            f"{len(one['ends']):2}: {found['of_serial']:.2f}x serial, {ring} of ring, "
            f"{found['of_best_equal']:.2f} of {found['best_equal']}, predicted/measured {found['predicted']:.2f}")


def summary(all_judged):
    near = sum(one["of_best_equal"] >= 0.95 for one in all_judged)
    told = sum(abs(one["predicted"] - 1) <= 0.1 for one in all_judged)
    return (f"{len(all_judged)} problems: {statistics.geometric_mean(one['of_serial'] for one in all_judged):.2f}x serial "
            f"in the geometric mean, least {min(one['of_serial'] for one in all_judged):.2f} (serial against itself "
            f"{min(one['serial_again'] for one in all_judged):.2f} to {max(one['serial_again'] for one in all_judged):.2f}); "
            f"within 5% of the best equal pieces or better in {near}, predicted within 10% in {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpiexec")
    parser.add_argument("reshard")
    parser.add_argument("overlap_bench")
    parser.add_argument("--rate", type=int, default=62_500_000, help="of the link, bytes a second each way")
    parser.add_argument("--rows", type=int, default=4096, help="of a rank")
    parser.add_argument("--width", type=int, default=1024, help="elements of a row that is transferred")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--random", type=int, default=0, help="so many drawn problems in place of the fixed ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    end_on_signals()
    asked.reshard, asked.overlap_bench = os.path.abspath(asked.reshard), os.path.abspath(asked.overlap_bench)
    problems = list(drawn(asked.random, asked.seed) if asked.random else fixed(asked.rows, asked.width))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    found = []
    try:
        for one in measured(asked, problems):
            print(json.dumps(one) if asked.json else line(one), flush=True)
            if one["wrong"] != 0:
                sys.exit("wrong: elements are not what one after the other gives")
            found.append(judged(one))
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    print(f"{NODES} nodes, {asked.rate / 1e6:g} MB/s; {summary(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
