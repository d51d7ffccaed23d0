#!/usr/bin/env python3
"""Random pairs of layouts, planned by us and by the real planners of others: PyTorch's DTensor (greedy, its default, and
min-cost), XLA's partitioner and Shardy's pass. Compares the received bytes, and prints the pairs on which we receive more.

    python3 -m venv build/peers && build/peers/bin/pip install torch jax
    build/peers/bin/python bench/peers/peers.py --tool build/release/tool/reshard > results.jsonl
    bench/peers/peers.py --table results.jsonl

A peer that is not installed is left out, with its reason on stderr. Received bytes: of the busiest device, summed over
the steps of a plan; for DTensor of rank 0, with the tensors' padding."""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import pairs

HERE = pathlib.Path(__file__).parent
PEERS = {"dtensor.py": ("greedy", "min_cost"), "xla.py": ("shardy", "xla")}
NAMES = {"greedy": "DTensor, greedy", "min_cost": "DTensor, min-cost", "xla": "XLA's partitioner", "shardy": "Shardy's pass"}
SKIPPED = 77
VOCABULARIES = ("collectives", "all")


def ours(tool, asked):
    """For each pair and vocabulary: received bytes, steps that move, and why the search ended; or the error of
    a refused pair."""
    answers = {one["id"]: {} for one in asked}
    for vocabulary in VOCABULARIES:
        lines = "".join(json.dumps(pairs.question(one, vocabulary)) + "\n" for one in asked)
        ran = subprocess.run([tool, "plan", "--batch"], input=lines, capture_output=True, text=True, check=False)
        said = [json.loads(line) for line in ran.stdout.splitlines()]
        if len(said) != len(asked):
            sys.exit(f"peers: {tool} answered {len(said)} of {len(asked)} questions: {ran.stderr.strip()}")
        for one, answer in zip(asked, said):
            if "error" in answer:
                answers[one["id"]][vocabulary] = {"refused": answer["error"]["message"]}
                continue
            moving = [step["kind"] for step in answer["steps"] if step["received_bytes"] > 0]
            answers[one["id"]][vocabulary] = {"received": answer["received_bytes"], "collectives": moving,
                                              "peak": answer["peak_bytes"], "lower_bound": answer["lower_bound_bytes"],
                                              "complete": answer["search_complete"]}
    return answers


def version_of(script):
    asked = subprocess.run([sys.executable, "-B", HERE / script, "--version"], capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return asked.stdout.strip()
    print(f"skipped {script}: {(asked.stderr.strip().splitlines() or ['it failed'])[-1]}", file=sys.stderr)
    return None


def theirs(script, asked):
    """A process that dies takes the pair with it that it had begun; another goes on after that."""
    answers, left = {}, list(asked)
    while left:
        lines = "".join(json.dumps(one) + "\n" for one in left)
        ran = subprocess.run([sys.executable, "-B", HERE / script], input=lines, capture_output=True, text=True, check=False)
        begun = None
        for line in ran.stdout.splitlines():
            answer = json.loads(line)
            begun = answer["id"] if "begun" in answer else None
            if begun is None:
                answers[answer["id"]] = answer
        if begun is not None:
            answers[begun] = {peer: {"refused": "the process was aborted"} for peer in PEERS[script]}
        before, left = len(left), [one for one in left if one["id"] not in answers]
        if left and len(left) == before:
            sys.exit(f"peers: {script}: {ran.stderr.strip().splitlines()[-1:]}")
        print(f"{script}: {len(answers)} pairs", file=sys.stderr)
    return answers


def planned(tool, count, seed):
    asked = [pairs.pair(seed, number) for number in range(count)]
    versions = {script: version_of(script) for script in PEERS}
    if not any(versions.values()):
        sys.exit(SKIPPED)
    results = {one["id"]: dict(one, ours=answer) for one, answer in zip(asked, ours(tool, asked).values())}
    # The identity of XLA and Shardy has sizes that divide and no sums.
    wanted = {"dtensor.py": sorted(asked, key=lambda one: one["sizes"]),
              "xla.py": [one for one in asked if not one["sums"] and not one["uneven"]]}
    for script in PEERS:
        if versions[script] is None:
            continue
        for identity, answer in theirs(script, wanted[script]).items():
            results[identity].update({peer: answer[peer] for peer in PEERS[script]})
    return {"versions": versions, "seed": seed, "pairs": count}, list(results.values())


def never_more(rows):
    """Lists the pairs on which a peer receives less. With every step allowed and no sums there should be no such pair."""
    wrong = [(one, peer) for one in rows if not one["sums"] for peer in NAMES if "received" in one.get(peer, {})
             and more_than(one["ours"]["all"]["received"], one[peer]["received"], math.prod(one["sizes"]))]
    for one, peer in wrong:
        print(f"pair {one['id']}: {NAMES[peer]} receives {one[peer]['received']} bytes, we {one['ours']['all']['received']}")
    compared = sum("received" in one.get(peer, {}) for one in rows for peer in NAMES)
    print(f"{compared} plans compared, {len(wrong)} wrong")
    return compared > 0 and not wrong


def more_than(ours_received, theirs_received, devices):
    """By more than the rounding of shares: a byte a device."""
    return ours_received > theirs_received + devices


def row(name, some, peer, vocabulary):
    both = [one for one in some if "received" in one.get(peer, {}) and "received" in one["ours"][vocabulary]]
    refused = sum("refused" in one.get(peer, {}) for one in some)
    none = sum("refused" in one["ours"][vocabulary] for one in some if peer in one)
    moving = [one for one in both if one[peer]["received"] > 0 and one["ours"][vocabulary]["received"] > 0]
    ratios = [one[peer]["received"] / one["ours"][vocabulary]["received"] for one in moving]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1
    less, equal, more, longer = 0, 0, [], 0
    for one in both:
        mine, other = one["ours"][vocabulary], one[peer]
        devices = math.prod(one["sizes"])
        if more_than(mine["received"], other["received"], devices):
            more.append(one)
        elif more_than(other["received"], mine["received"], devices):
            less += 1
        else:
            equal += 1
            longer += len(mine["collectives"]) > len(other["collectives"])
    held = sum(one[peer]["peak"] > pairs.floor_bytes(one) for one in more)
    worst = max((one["ours"][vocabulary]["received"] / max(one[peer]["received"], 1) for one in more), default=1)
    print(f"| {name} | {NAMES[peer]} | `{vocabulary}` | {len(both)} | {mean:.2f}x | {max(ratios, default=1):.0f}x | {less} | {equal} | "
          f"**{len(more)}** | {worst:.2f}x | {held} | {longer} | {refused} | {none} |")
    return more


def table(head, rows):
    print(f"{head['pairs']} pairs, seed {head['seed']}; " + ", ".join(f"{k} {v}" for k, v in head["versions"].items()) + "\n")
    print("| pairs | peer | ours | both plan | received, theirs / ours | most | less | equal | **more** | most | of these they hold more | equal, more collectives | they refuse | we have none |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    parts = {"dividing": lambda one: not one["sums"] and not one["uneven"],
             "dividing, sums": lambda one: one["sums"] and not one["uneven"],
             "uneven": lambda one: not one["sums"] and one["uneven"],
             "uneven, sums": lambda one: one["sums"] and one["uneven"]}
    behind = []
    for name, belongs in parts.items():
        some = [one for one in rows if belongs(one)]
        for peer in NAMES:
            for vocabulary in VOCABULARIES:
                if any(peer in one for one in some):
                    behind += [(one, peer, vocabulary) for one in row(name, some, peer, vocabulary)]
    print()
    for one, peer, vocabulary in behind:
        asked = pairs.question(one, vocabulary)
        mine = one["ours"][vocabulary]
        print(f"more than {NAMES[peer]} ({mine['received'] / max(one[peer]['received'], 1):.2f}x, "
              f"{'they hold more, ' if one[peer]['peak'] > pairs.floor_bytes(one) else ''}"
              f"{'complete' if mine['complete'] else 'incomplete'}): reshard plan --notation dtensor --objective bytes "
              f"--vocabulary {vocabulary} --mesh '{asked['mesh']}' --array '{asked['array']}' '{asked['source']}' '{asked['target']}'")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/release/tool/reshard")
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=pathlib.Path, help="of results that were printed before")
    parser.add_argument("--check", action="store_true", help="fail where a peer receives less without sums, with `all`")
    asked = parser.parse_args()
    if asked.table:
        head, *rows = map(json.loads, asked.table.read_text(encoding="utf-8").splitlines())
        table(head, rows)
        return
    head, rows = planned(asked.tool, asked.pairs, asked.seed)
    if asked.check:
        sys.exit(0 if never_more(rows) else 1)
    for line in (head, *rows):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
