#!/usr/bin/env python3
"""overlap.py MPIEXEC RESHARD OVERLAP_BENCH: transfers between nodes beside products of matrices, in several ways.

Network namespaces with one rank each are the nodes, and their links have known rates (two_nodes.py and links.py make
them). `reshard calibrate` measures the machine over those links; then, for each problem, contestants take turns in one
launch. --work chooses the problems:

products   a gather whose rows a product uses, or a product whose rows are added up and scattered: one after the other,
           a ring of shards (in whole shards, and in messages of 60 KiB: the faster counts), equal pieces of many
           numbers, and the pieces that choose_pieces chooses. A problem's ratio is the product's time over the
           transfer's. --per-pair gives each pair of nodes the rate, in place of each card. --asleep lets each core sleep
           for most of its product, as if an accelerator computed: more nodes than cores compute at once then.
layers     a list of layers: one is gathered while the one before it computes; and a list of gradients, whose sums are
           scattered while the next are made.
alike      the steps of a plan, one after the other and in the pieces that the synthesizer chooses: four nodes on two
           bridges whose link is so slow that both levels take as long.
nodes      the same on two nodes of four ranks.

Prints a line per problem and a summary; --json prints the measurements. Exits 77 if the tools or the
privileges are missing."""

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile

from links import PairNodes, TwoBridges
from two_nodes import Nodes, Skip, end_on_signals

RATIOS = (0.25, 0.5, 1, 2, 4)
# The levels inside a bridge and between bridges, and inside a node and between nodes. Ranks that share a core measure
# their wait for it as the latency of a message.
LEVELS = {
    "alike": "level bridge devices 2 message 100us bandwidth {rate}B/s\n"
             "level link devices all message 100us bandwidth {link}B/s shared\n",
    "nodes": "level node devices 4 message 2us bandwidth 2GB/s\n"
             "level link devices all message 100us bandwidth {rate}B/s shared\n",
}


def drawn(count, seed):
    """Problems that were never used for tuning."""
    source = random.Random(seed)
    for _ in range(count):
        width = source.choice((256, 512, 768, 1000, 1536, 2048))
        rows = source.randrange(1 << 20, 3 << 20) // width
        yield source.choice(("gather", "scatter")), rows, width, round(source.choice(RATIOS) * source.uniform(0.8, 1.25), 3)


def fixed(kinds, rows, width, ratios):
    for kind in kinds:
        for ratio in ratios:
            yield kind, rows, width, ratio


def problems_of(asked):
    if asked.work == "layers":
        return list(fixed(("layers", "gradients"), asked.layers, asked.width, asked.ratios))
    rows, width = asked.rows, asked.width
    if asked.work == "alike":
        return [("steps", "x=2,y=2", f"f32[{rows}@x,2,{width}]{{U:y}}", f"f32[{rows},2,{width}@x]")]
    if asked.work == "nodes":
        return [("steps", "x=2,y=4", f"f32[{rows}@(x,y),{width}]", f"f32[{rows},{width}@x]"),
                ("steps", "x=2,y=4", f"f32[{rows // 4},{width}]{{U:(x,y)}}", f"f32[{rows // 4},{width}]")]
    if asked.random:
        return list(drawn(asked.random, asked.seed))
    return list(fixed(("gather", "scatter"), rows, width, asked.ratios))


def network(asked, folder):
    if asked.work == "alike":
        return TwoBridges(folder, asked.rate, asked.nodes, asked.rate // 2)
    return (PairNodes if asked.per_pair else Nodes)(folder, asked.rate, asked.nodes)


def told(asked, machine):
    """The measurements of calibrate, and the facts that it cannot know: levels that share no node, rates of a pair, and
    work that no transfer slows."""
    if asked.asleep:
        machine = re.sub(r"slowed \d+%", "slowed 100%", machine)
    if asked.work in LEVELS:
        levels = LEVELS[asked.work].format(rate=asked.rate, link=asked.rate // 2)
        kept = [line for line in machine.splitlines(keepends=True) if not line.startswith("level ")]
        return "".join([kept[0], levels, *kept[1:]])
    if asked.per_pair:
        return re.sub(r"^(level network .*)$", rf"\1 pair {asked.rate}B/s", machine, flags=re.MULTILINE)
    return machine


def measured(asked, problems):
    per_node = 4 if asked.work == "nodes" else 1
    with tempfile.TemporaryDirectory() as folder, network(asked, folder) as nodes:
        path = os.path.join(folder, "link.machine")
        done = nodes.launch(asked.mpiexec, per_node, asked.reshard, "calibrate", "--rounds", str(asked.rounds), "--output",
                            path)
        if done.returncode != 0:
            sys.exit(f"wrong: calibrate failed\n{done.stdout}\n{done.stderr}")
        with open(path, encoding="utf-8") as file:
            machine = told(asked, file.read())
        with open(path, "w", encoding="utf-8") as file:
            file.write(machine)
        print(machine.strip(), flush=True)
        for problem in problems:
            line_path = os.path.join(folder, "problems")
            with open(line_path, "w", encoding="utf-8") as file:
                file.write(" ".join(map(str, problem)) + (" asleep" if asked.asleep else "") + "\n")
            done = nodes.launch(asked.mpiexec, per_node, asked.overlap_bench, path, line_path, str(asked.rounds))
            if done.returncode != 0:
                sys.exit(f"wrong: {problem}\n{done.stdout}\n{done.stderr}")
            yield json.loads(done.stdout.splitlines()[-1])


def ring_of(seconds):
    """The faster of the two."""
    return min(taken for name, taken in seconds.items() if name.startswith("ring"))


def judged(one):
    """The figures that follow from one problem's times."""
    seconds = one["seconds"]
    if one["work"] == "steps":
        return {"of_serial": seconds["steps"] / seconds["chosen"], "serial_again": seconds["steps"] / seconds["steps again"],
                "predicted": one["predicted_seconds"] / seconds["chosen"]}
    serial = seconds["serial"]
    if one["work"] in ("layers", "gradients"):
        by_hand = seconds.get("MPI_Iallgather")
        return {"of_serial": serial / seconds["pipeline"], "serial_again": serial / seconds["serial again"],
                "of_by_hand": by_hand / seconds["pipeline"] if by_hand else None}
    equal = {name: taken for name, taken in seconds.items() if name.startswith("equal")}
    best = min(equal, key=equal.get)
    chosen = seconds["chosen"]
    return {"of_serial": serial / chosen, "of_best_equal": equal[best] / chosen, "best_equal": best,
            "predicted": one["predicted_seconds"] / chosen, "serial_again": serial / seconds["serial again"],
            "of_ring": ring_of(seconds) / chosen, "of_ring_alone": ring_of(one["transfers"]) / one["transfers"]["plan"]}


def milliseconds(seconds):
    return f"{1e3 * seconds:.0f} ms"


def line(one):
    found, seconds = judged(one), one["seconds"]
    if one["work"] == "steps":
        levels = ", ".join(milliseconds(level / 1e12) for level in one["levels_picoseconds"])
        return (f"{one['source']} -> {one['target']}: {', '.join(one['steps'])} (levels {levels}): steps "
                f"{milliseconds(seconds['steps'])}, chosen {milliseconds(seconds['chosen'])} in {one['pieces']}: "
                f"{found['of_serial']:.2f}x steps, predicted/measured {found['predicted']:.2f}, of steps "
                f"{one['predicted_steps_seconds'] / seconds['steps']:.2f}")
    serial = (f"({milliseconds(one['transfer_seconds'])} and {milliseconds(one['product_seconds'])}) serial "
              f"{milliseconds(seconds['serial'])}")
    if one["work"] in ("layers", "gradients"):
        by_hand = f", {found['of_by_hand']:.2f} of MPI_Iallgather" if found["of_by_hand"] else ""
        return (f"{one['work']:10} {one['layers']} x {one['width']:<5} ratio {one['ratio']:<5} {serial}, pipeline "
                f"{milliseconds(seconds['pipeline'])}: {found['of_serial']:.2f}x serial{by_hand}, "
                f"list first {milliseconds(seconds['list, then layers'])}")
    return (f"{one['work']:16} {one['rows']:6} x {one['width']:<5} ratio {one['ratio']:<5} {serial}, chosen "
            f"{milliseconds(seconds['chosen'])} in {len(one['ends']):2}: {found['of_serial']:.2f}x serial, "
            f"{found['of_ring']:.2f} of ring ({found['of_ring_alone']:.2f} in transfer alone), "
            f"{found['of_best_equal']:.2f} of {found['best_equal']}, predicted/measured {found['predicted']:.2f}")


def summary(all_judged):
    def mean(what):
        return statistics.geometric_mean(one[what] for one in all_judged)

    text = (f"{len(all_judged)} problems: {mean('of_serial'):.2f}x serial in the geometric mean, least "
            f"{min(one['of_serial'] for one in all_judged):.2f} (serial against itself "
            f"{min(one['serial_again'] for one in all_judged):.2f} to {max(one['serial_again'] for one in all_judged):.2f})")
    if "of_ring" not in all_judged[0]:
        return text
    near = sum(one["of_best_equal"] >= 0.95 for one in all_judged)
    right = sum(abs(one["predicted"] - 1) <= 0.1 for one in all_judged)
    return (f"{text}; {mean('of_ring'):.2f} of the ring, least {min(one['of_ring'] for one in all_judged):.2f}, and "
            f"{mean('of_ring_alone'):.2f} in transfer alone, least {min(one['of_ring_alone'] for one in all_judged):.2f}; "
            f"within 5% of the best equal pieces or better in {near}, predicted within 10% in {right}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpiexec")
    parser.add_argument("reshard")
    parser.add_argument("overlap_bench")
    parser.add_argument("--work", choices=("products", "layers", "alike", "nodes"), default="products")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--per-pair", action="store_true", help="the rate is of each pair of nodes, not of each card")
    parser.add_argument("--rate", type=int, default=62_500_000, help="of the link, bytes a second each way")
    parser.add_argument("--rows", type=int, default=4096, help="of a rank; of steps of all")
    parser.add_argument("--width", type=int, default=1024, help="elements of a row that is transferred")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS, help="product / transfer, in time")
    parser.add_argument("--asleep", action="store_true", help="cores sleep for most of a product")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--random", type=int, default=0, help="so many drawn problems in place of the fixed ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    end_on_signals()
    asked.reshard, asked.overlap_bench = os.path.abspath(asked.reshard), os.path.abspath(asked.overlap_bench)
    if asked.work == "alike":
        asked.nodes = 4
    return asked


def main():
    asked = arguments()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if asked.nodes > (os.cpu_count() or 1):
        # Ranks that share a core cannot know it, since each is alone on its node.
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    found = []
    try:
        for one in measured(asked, problems_of(asked)):
            print(json.dumps(one) if asked.json else line(one), flush=True)
            if one["wrong"] != 0:
                sys.exit("wrong: elements are not what they should be")
            found.append(judged(one))
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    rate = f"{asked.rate / 1e6:g} MB/s a {'pair' if asked.per_pair else 'card'}"
    print(f"{asked.nodes} nodes, {rate}; {summary(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
