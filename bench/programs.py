#!/usr/bin/env python3
"""programs.py MPIEXEC RESHARD PROGRAMS_OVER_LINKS: schedules that run over links of a known rate, with computing asleep.

Network namespaces with one rank each are the devices, and their links have known rates (two_nodes.py makes them). A task
sleeps, as where an accelerator computes; moves carry real bytes, and each task checks all that it gets. The contestants
of a problem take turns in one launch:

two      a pipeline of two stages whose messages take as long as a forward task: senders held (MPI_Ssend, by hand), 1F1B
         beside its moves, and the schedule with one activation more.
four     the same with four stages: senders held, eager 1F1B, and the schedule in the memory of eager 1F1B.
uneven   a stage on four devices and a stage on two: 1F1B beside its moves, and the schedule.
refit    sixteen buckets from two trainers to two engines: lock step, and the schedule with one and two buckets a device.

Prints rows of the table in bench/README.md. --check judges them. Exits 77 if the tools or the privileges are missing."""

import argparse
import json
import os
import statistics
import sys
import tempfile

from two_nodes import Nodes, Skip, end_on_signals, need, run

# Rates are of each device's card, each way.
MACHINE = "machine links\nlevel link devices all message 100us bandwidth {rate}B/s\ncopy 5GB/s\n"
WITHIN = 0.1  # of the prediction
ACTIVATION = 2**24  # bytes


class Links(Nodes):
    """Cards that let no burst pass: a message takes bytes / rate however long the card was idle before."""

    def limit(self, node, card, rate):
        need(*self.inside(node), "tc", "qdisc", "add", "dev", card, "root", "tbf", "rate", f"{8 * rate}bit", "burst", "24kb",
             "latency", "200ms")


def generated(asked, words):
    done = run(asked.reshard, "schedule", "--generate", words, "--print-program")
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def pipeline(asked, kind, stages, activations=None, width=1, share=1):
    """A device sends its message in a `share` of a forward task. `activations`: that each stage may hold; it has room for
    six messages, too."""
    message = round(asked.task * asked.rate * share)
    lines = generated(asked, f"{kind} stages={stages} width={width} microbatches={asked.microbatches} "
                             f"forward={1e3 * asked.task:g}ms backward={2e3 * asked.task:g}ms message={message}B "
                             f"activation={ACTIVATION}B")
    mesh_of = {line["task"]: line["mesh"] for line in lines}
    return lines + [{"limit": count * ACTIVATION + 6 * message, "mesh": mesh_of[f"F{stage}.0"]}
                    for stage, count in enumerate(activations or ())]


def two(asked):
    return 2, 1.25, [("senders held", "held", pipeline(asked, "1f1b", 2)),
                     ("1F1B beside its moves", "written", pipeline(asked, "1f1b", 2, (2, 1))),
                     ("schedule, 1F1B's memory", "scheduled", pipeline(asked, "1f1b", 2, (2, 1))),
                     ("schedule, one activation more", "scheduled", pipeline(asked, "1f1b", 2, (3, 1)))]


def four(asked):
    return 4, 1.3, [("senders held", "held", pipeline(asked, "1f1b", 4)),
                    ("eager 1F1B", "written", pipeline(asked, "eager", 4, (7, 5, 3, 1))),
                    ("schedule, eager's memory", "scheduled", pipeline(asked, "eager", 4, (7, 5, 3, 1)))]


def uneven(asked):
    """The second stage has half of the devices: messages go from quarters to halves, and gradients back."""
    def narrowed(activations):
        lines = pipeline(asked, "1f1b", 2, activations, width=4, share=0.5)
        for line in lines:
            if line["mesh"] == "d=4[4-7]":
                line["mesh"] = "d=2[4,5]"
                if "limit" in line:
                    line["limit"] *= 2
        return lines
    return 6, 1.0, [("1F1B beside its moves", "written", narrowed((2, 1))),
                    ("schedule, one activation more", "scheduled", narrowed((3, 1)))]


def refit(asked):
    bucket = 2 * round(asked.task * asked.rate)  # two devices send it together
    words = (f"refit buckets=16 trainer=2 rollout=2 pack={1e3 * asked.task:g}ms load={1e3 * asked.task:g}ms bucket={bucket}B"
             " hold={}")
    lock_step = generated(asked, words.format(1))
    last = None
    for line in lock_step:
        if line.get("task", "").startswith("pack") and last:
            line["after"] = [last]
        last = line.get("task", last)
    return 4, 1.6, [("lock step", "written", lock_step),
                    ("schedule, one bucket", "scheduled", generated(asked, words.format(1))),
                    ("schedule, two buckets", "scheduled", generated(asked, words.format(2)))]


PROBLEMS = {"two": two, "four": four, "uneven": uneven, "refit": refit}


def measured(asked, ranks, contestants):
    with tempfile.TemporaryDirectory() as folder, Links(folder, asked.rate, ranks) as nodes:
        machine, listed = os.path.join(folder, "links.machine"), os.path.join(folder, "contestants")
        with open(machine, "w", encoding="utf-8") as file:
            file.write(MACHINE.format(rate=asked.rate))
        with open(listed, "w", encoding="utf-8") as file:
            for number, (_, how, lines) in enumerate(contestants):
                path = os.path.join(folder, f"program{number}")
                file.write(f"{how} {path}\n")
                with open(path, "w", encoding="utf-8") as program:
                    program.write("".join(json.dumps(line) + "\n" for line in lines))
        done = nodes.launch(asked.mpiexec, 1, asked.programs_over_links, machine, listed, str(asked.rounds))
        if done.returncode != 0:
            sys.exit(f"wrong: the run over {ranks} nodes failed\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def report(name, asked):
    """Prints a row for each contestant, and yields the faults."""
    ranks, least_ratio, contestants = PROBLEMS[name](asked)
    found = measured(asked, ranks, contestants)
    if found["wrong"] != 0:
        sys.exit(f"wrong: {found['wrong']} bytes of {name} did not arrive as they should")
    base = min(found["contestants"][0]["seconds"]) if asked.check else statistics.median(found["contestants"][0]["seconds"])
    for (words, how, _), one in zip(contestants, found["contestants"]):
        seconds = sorted(one["seconds"])
        taken = seconds[0] if asked.check else statistics.median(seconds)  # others may use the machine
        over = taken / one["seconds_predicted"]
        counts = [f"{held / 2**20:.1f}/{printed / 2**20:.1f}"
                  for held, printed in zip(one["bytes_held"], one["bytes_printed"]) if how != "held"]
        print(f"| {name} | {words} | {one['seconds_predicted']:.3f} s | {statistics.median(seconds):.3f} s [{seconds[0]:.3f}, "
              f"{seconds[-1]:.3f}] | {over:.3f} | {base / taken:.3f}x | {', '.join(counts)} |", flush=True)
        print(f"{name}, {words}: a move takes {one['move_seconds']:.3f} s in the mean", file=sys.stderr)
        if how != "held" and any(held > printed for held, printed in zip(one["bytes_held"], one["bytes_printed"])):
            yield f"{name}, {words}: a device held more than is printed"
    if abs(over - 1) > WITHIN * asked.slack:
        yield f"{name}: the schedule took {over:.3f} of the prediction"
    if base / taken < least_ratio / asked.slack:
        yield f"{name}: the schedule is {base / taken:.3f}x as fast, {least_ratio}x is wanted"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpiexec")
    parser.add_argument("reshard")
    parser.add_argument("programs_over_links")
    parser.add_argument("problems", nargs="*", choices=[[], *PROBLEMS], default=[])
    parser.add_argument("--rate", type=int, default=3_125_000, help="of a card, bytes a second each way")
    parser.add_argument("--task", type=float, default=0.16, help="seconds of a forward task, a pack and a load")
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="fail unless the fastest rounds keep the bounds")
    parser.add_argument("--slack", type=float, default=1, help="the bounds are so many times as wide")
    asked = parser.parse_args()
    end_on_signals()
    asked.reshard, asked.programs_over_links = os.path.abspath(asked.reshard), os.path.abspath(asked.programs_over_links)
    faults = []
    try:
        print("| problem | contestant | predicted | measured, median [least, most] | measured over predicted | times the first "
              "| MiB that each rank held, of those printed |\n|---|---|---|---|---|---|---|")
        for name in asked.problems or PROBLEMS:
            faults += report(name, asked)
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    if asked.check and faults:
        sys.exit(f"wrong: {'; '.join(faults)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
