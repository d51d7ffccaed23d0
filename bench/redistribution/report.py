#!/usr/bin/env python3
"""Tables and plots of the output of `redistribution`: report.py [--svg PLOT.svg] [--details] RUN.json...

Prints the README table in Markdown. A run is one launch; several runs of the same ranks are joined round by round.
A ratio between two contestants is the median of the ratios of their times in the same round, with the ends of its 95%
confidence interval from the order statistics of the rounds (no assumption about their distribution)."""

import json
import math
import sys

PLANS = ("plan, allocated memory", "plan, caller's memory", "plan, registered memory",
         "plan, registered memory at an offset", "plan, MPI_Alloc_mem", "plan, caller's memory, untuned",
         "plan, MPI_Alloc_mem, untuned")


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def interval(values):
    """Ends of the 95% confidence interval of the median: the widest order statistics that a fair coin leaves out at most
    2.5% of the time on each side."""
    values = sorted(values)
    rounds = len(values)
    below, tail = 0, 0.0
    for k in range(rounds):
        tail += math.comb(rounds, k) / 2**rounds
        if tail > 0.025:
            break
        below = k + 1
    return values[max(below - 1, 0)], values[min(rounds - below, rounds - 1)]


def ratios(slow, fast):
    return [a / b for a, b in zip(slow["seconds"], fast["seconds"]) if a is not None and b is not None]


def times(one):
    return [second for second in one["seconds"] if second is not None]


def join(runs):
    """{(ranks, problem): problem with the rounds of all runs}"""
    joined = {}
    for run in runs:
        for problem in run["problems"]:
            key = (run["ranks"], problem["problem"])
            if key not in joined:
                joined[key] = problem
                continue
            for mine, theirs in zip(joined[key]["contestants"], problem["contestants"]):
                mine["seconds"] += theirs["seconds"]
                mine["wrong"] += theirs["wrong"]
                mine["verified"] += theirs["verified"]
    return joined


def row(ranks, problem):
    by_name = {one["name"]: one for one in problem["contestants"]}
    peers = [one for one in problem["contestants"] if one["kind"] == "mpi"]
    best = min(peers, key=lambda one: median(times(one)))
    result = {"ranks": ranks, "problem": problem["problem"], "best": best["name"],
              "best_seconds": median(times(best)), "roofline_seconds": median(times(by_name["roofline"])),
              "wrong": sum(one["wrong"] for one in problem["contestants"]), "bytes": problem["target_bytes"],
              "all": {one["name"]: (median(times(one)), one["processor_seconds"]) for one in problem["contestants"]}}
    for name in PLANS:
        plan = by_name[name]
        against = {one["name"]: ratios(one, plan) for one in peers}
        ends = {peer: interval(values)[0] for peer, values in against.items() if len(values) >= 20}
        result[name] = {"seconds": median(times(plan)), "speedup": median(against[best["name"]]),
                        "low": min(ends.values()) if ends else float("nan"),
                        "roofline": median(ratios(by_name["roofline"], plan)),
                        "of_allocated": median(ratios(by_name[PLANS[0]], plan))}
    return result


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g} ms"


def table(rows):
    print("| ranks | problem | roofline | fastest of MPI | plan, allocated | x | lowest | of roofline | plan, caller's | x | lowest | plan, registered | x | of allocated | wrong |")
    print("|" + "---|" * 15)
    for one in rows:
        own, callers, registered = (one[name] for name in PLANS[:3])
        print(f"| {one['ranks']} | {one['problem']} | {milliseconds(one['roofline_seconds'])} "
              f"| {milliseconds(one['best_seconds'])} {one['best']} "
              f"| {milliseconds(own['seconds'])} | {own['speedup']:.2f} | {own['low']:.2f} | {own['roofline']:.2f} "
              f"| {milliseconds(callers['seconds'])} | {callers['speedup']:.2f} | {callers['low']:.2f} "
              f"| {milliseconds(registered['seconds'])} | {registered['speedup']:.2f} | {registered['of_allocated']:.2f} "
              f"| {one['wrong']} |")


def details(rows):
    """Every contestant: median of the wall time, and processor time of all ranks together."""
    for one in rows:
        print(f"\n{one['problem']}, {one['ranks']} ranks")
        for name, (wall, processor) in one["all"].items():
            print(f"  {name:32} {milliseconds(wall):>10}  processor {milliseconds(processor):>10}")


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def summary(rows):
    print()
    for name in PLANS:
        speedups = [one[name]["speedup"] for one in rows]
        rooflines = [one[name]["roofline"] for one in rows]
        lows = [one[name]["low"] for one in rows if one[name]["low"] == one[name]["low"]]
        lowest = f"{min(lows):.2f}" if lows else "-"
        shares = [one[name]["of_allocated"] for one in rows]
        print(f"{name}: {mean(speedups):.2f}x the fastest of MPI (geometric mean of {len(rows)} problems), "
              f"{mean(rooflines):.2f} of the roofline's speed; lowest end of a 95% interval against any contestant {lowest}; "
              f"{mean(shares):.2f} of the speed on allocated memory, at least {min(shares):.2f}")


def svg(rows, path):
    """Bars a problem: speed as a share of the roofline's, of the fastest MPI contestant and of the plan."""
    bar, gap, left, width = 11, 12, 230, 420
    height = len(rows) * (3 * bar + gap) + 50
    kinds = (("fastest of MPI", "#9aa5b1"), ("plan, caller's memory", "#7fb3d5"), ("plan, allocated memory", "#1f6f9f"))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
             f'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for i, (name, colour) in enumerate(kinds):
        lines.append(f'<rect x="{left + i * 160}" y="6" width="10" height="10" fill="{colour}"/>'
                     f'<text x="{left + i * 160 + 14}" y="15">{name}</text>')
    scale = width / 1.2
    top = 30
    for index, one in enumerate(rows):
        y = top + index * (3 * bar + gap)
        lines.append(f'<text x="{left - 8}" y="{y + 2 * bar}" text-anchor="end">{one["problem"]}, {one["ranks"]} ranks</text>')
        seconds = (one["best_seconds"], one[PLANS[1]]["seconds"], one[PLANS[0]]["seconds"])
        for i, second in enumerate(seconds):
            share = one["roofline_seconds"] / second
            lines.append(f'<rect x="{left}" y="{y + i * bar}" width="{min(share, 1.3) * scale:.1f}" height="{bar - 1}" '
                         f'fill="{kinds[i][1]}"/><text x="{left + min(share, 1.3) * scale + 4:.1f}" '
                         f'y="{y + (i + 1) * bar - 2}" font-size="9">{milliseconds(second)}</text>')
    lines.append(f'<line x1="{left + scale}" y1="{top - 4}" x2="{left + scale}" y2="{height - 16}" stroke="#c0392b" '
                 f'stroke-dasharray="4 3"/><text x="{left + scale}" y="{height - 4}" text-anchor="middle" '
                 f'fill="#c0392b">the roofline</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main(arguments):
    plot = None
    if len(arguments) > 1 and arguments[0] == "--svg":
        plot, arguments = arguments[1], arguments[2:]
    more = bool(arguments) and arguments[0] == "--details"
    arguments = arguments[1:] if more else arguments
    if not arguments:
        print(__doc__)
        return 2
    runs = []
    for path in arguments:
        with open(path, encoding="utf-8") as file:
            runs += [json.loads(line) for line in file if line.strip()]
    joined = join(runs)
    for problem in joined.values():
        if not {"mpi", "roofline"} <= {one["kind"] for one in problem["contestants"]}:
            sys.exit(f"{problem['problem']}: some contestants alone are compared with nothing")
    rows = [row(ranks, problem) for (ranks, _), problem in joined.items()]
    table(rows)
    summary(rows)
    if more:
        details(rows)
    if plot:
        svg(rows, plot)
    return 1 if any(one["wrong"] for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
