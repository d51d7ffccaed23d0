#!/usr/bin/env python3
"""`reshard convert` against `cp` and `sync -f` of the same bytes: files.py TOOL [--size 1] [--memory 1GiB] [--rounds 3]
[--limited 0] [--folder .]

A synthetic checkpoint of a Llama's shape and of --size GB is made in torch DCP's form over 64 ranks, then converted from
form to form. Caches are dropped before each run if that is allowed, else the files' pages are given up one by one;
copy and conversion take turns, and medians are printed. Then numpy compares each pair's bytes, and the
files that came back with the first ones. Anonymous memory is the largest RssAnon that was seen. --limited GB more are converted
once, in a control group of --memory and 64 MiB. There is room for three times --size, and for twice --limited."""

import argparse
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "files"))
import llama  # noqa: E402
import watch  # noqa: E402

GOAL = 1.15


def all_columns(name):
    return llama.cut_dim(name, columns=True)


def pairs(tensors):
    """(source, target, form of the target, lines of the rules)."""
    return [("fsdp64", "tp8", "ranks", llama.rules("target", 8, tensors)),
            ("tp8", "tp4", "ranks", llama.rules("source", 8, tensors) + llama.rules("target", 4, tensors)),
            ("fsdp64", "columns16", "dcp", llama.rules("target", 16, tensors, all_columns)),
            ("columns16", "rows16", "dcp", llama.rules("target", 16, tensors, lambda name: 0)),
            ("rows16", "one.safetensors", "single", []),
            ("one.safetensors", "tp8again", "ranks", llama.rules("target", 8, tensors))]


def ranks_of(name):
    return {"tp8": 8, "tp4": 4, "tp8again": 8}.get(name, 1)


class Bench:
    def __init__(self, tool, memory, folder):
        self.tool, self.memory, self.folder = os.path.abspath(tool), memory, folder
        self.above = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, source, target, form, lines):
        with open(self.path("rules"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return [self.tool, "convert", self.path(source), self.path(target), "--to", form, "--memory", self.memory,
                *(["--rules", self.path("rules")] if lines else [])]

    def check(self, source, target, tensors):
        read = lambda name: llama.boxes(self.path(name), tensors, ranks_of(name))
        wrong = llama.differences(read(source), read(target), tensors, ranks_of(target))
        if wrong:
            raise SystemExit("\n".join([f"{source} -> {target}:"] + wrong))

    def pair(self, source, target, form, lines, tensors, rounds):
        command = self.command(source, target, form, lines)
        copies, converts, anonymous, line = [], [], 0, ""
        for _ in range(rounds):
            watch.remove(self.path("copy"))
            how = watch.drop_caches(self.folder)
            copies.append(watch.watched(["sh", "-c", 'cp -r "$0" "$1" && sync -f "$1"', self.path(source),
                                         self.path("copy")])[0])
            watch.remove(self.path("copy"))
            watch.remove(self.path(target))
            watch.drop_caches(self.folder)
            seconds, most, line = watch.watched(command)
            converts.append(seconds)
            anonymous = max(anonymous, most)
        self.check(source, target, tensors)
        copy, convert = statistics.median(copies), statistics.median(converts)
        if convert > GOAL * copy:
            self.above.append(f"{source} -> {target}")
        print(f"{source} -> {target}: cp {copy:.2f} s, convert {convert:.2f} s = {convert / copy:.2f}x   anonymous "
              f"{anonymous / 2**20:.0f} MiB of {self.memory}   caches {how}, bytes right, load {os.getloadavg()[0]:.1f}")
        print("    " + line.strip())
        print("    cp " + " ".join(f"{s:.2f}" for s in copies) + "   convert "
              + " ".join(f"{s:.2f}" for s in converts), flush=True)

    def timed(self, gigabytes, rounds):
        tensors = llama.shapes(gigabytes)
        llama.make_dcp(self.path("fsdp64"), tensors, 64)
        todo = pairs(tensors)
        for number, (source, target, form, lines) in enumerate(todo):
            self.pair(source, target, form, lines, tensors, rounds)
            for one in (source, target):  # tp8 stays, to be compared
                if one != "tp8" and not any(one == later for later, *_ in todo[number + 1:]):
                    if one == "tp8again":
                        self.compare("tp8", one, tensors)
                    watch.remove(self.path(one))
        watch.remove(self.path("tp8"))
        print(f"above {GOAL}x: " + (", ".join(self.above) or "none"), flush=True)

    def compare(self, one, other, tensors):
        for a, b in ((one, other), (other, one)):
            self.check(a, b, tensors)
        print(f"{other} has what {one} has", flush=True)

    def limited(self, gigabytes, memory_bytes):
        """Runs to its end although the system grants at most M + 64 MiB, including pages of files."""
        tensors = llama.shapes(gigabytes)
        with watch.group_of(memory_bytes + (64 << 20)) as (join, name):
            if join is None:
                print(f"not run under a limit: {name}")
                return
            llama.make_dcp(self.path("fsdp64"), tensors, 64)
            source, target, form, lines = pairs(tensors)[0]
            watch.drop_caches(self.folder)
            seconds, most, line = watch.watched(self.command(source, target, form, lines), join)
        self.check(source, target, tensors)
        print(f"{source} -> {target}, {gigabytes:g} GB in a {name} of {self.memory} + 64 MiB: {seconds:.1f} s, anonymous "
              f"{most / 2**20:.0f} MiB, bytes right\n    {line.strip()}", flush=True)
        if most > memory_bytes:
            raise SystemExit("more anonymous memory than was stated")


def bytes_of(text):
    for unit, power in (("KiB", 10), ("MiB", 20), ("GiB", 30)):
        if text.endswith(unit):
            return int(float(text[:-3]) * 2**power)
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("--size", type=float, default=1, help="GB of the checkpoint that is timed; 0: none")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limited", type=float, default=0, help="GB of the one that is converted under a limit; 0: none")
    parser.add_argument("--folder", default=".")
    asked = parser.parse_args()
    folder = tempfile.mkdtemp(dir=asked.folder)
    try:
        bench = Bench(asked.tool, asked.memory, folder)
        if asked.limited > 0:
            bench.limited(asked.limited, bytes_of(asked.memory))
            watch.remove(bench.path("fsdp64"))
            watch.remove(bench.path("tp8"))
        if asked.size > 0:
            bench.timed(asked.size, asked.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
