#!/usr/bin/env python3
"""cp_sat.py ANSWERED_PROGRAMS COUNT [SEED [LEAST MOST]]: the search for orders against CP-SAT of OR-tools, which shares no code with it.

Every program is solved to its optimum there. The exact search must have found it, the lower bound must not exceed it, and
the local search alone must be close to it. Programs of more than 16 activities have a local search only; those that CP-SAT
does not solve in SECONDS_MAX are only counted."""

import json
import subprocess
import sys

try:
    from ortools.sat.python import cp_model
except ImportError:
    print("no OR-tools: ./dev check --peers installs it")
    sys.exit(77)

MEAN_MAX, WORST_MAX = 1.002, 1.08  # of the local search alone
MEDIUM_MEAN_MAX, MEDIUM_WORST_MAX = 1.01, 1.09  # with more than EXACT_MAX activities
EXACT_MAX = 16
SECONDS_MAX = 60


def optimum(program):
    """The least end of all schedules within the limits; None if CP-SAT takes too long. Memory is held from its maker's start to its last user's end."""
    model = cp_model.CpModel()
    activities = program["activities"]
    horizon = sum(time for time, _, _ in activities)
    starts = [model.new_int_var(0, horizon - time, "") for time, _, _ in activities]
    runs = [model.new_fixed_size_interval_var(start, one[0], "") for start, one in zip(starts, activities)]
    end = model.new_int_var(0, horizon, "")
    for start, (time, _, before) in zip(starts, activities):
        model.add(start + time <= end)
        for earlier in before:
            model.add(starts[earlier] + activities[earlier][0] <= start)
    for resource in range(program["resources"]):
        model.add_no_overlap([run for run, one in zip(runs, activities) if resource in one[1]])
    for place, limit in enumerate(program["limits"]):
        lives, sizes = [], []
        for where, size, maker, users in program["buffers"]:
            if where != place or limit is None:
                continue
            begin = starts[maker] if maker >= 0 else 0
            last = model.new_int_var(0, horizon + 1, "")
            for user in users:
                model.add(last >= starts[user] + activities[user][0])
            if not users:
                model.add(last == horizon + 1)  # never freed
            lives.append(model.new_interval_var(begin, model.new_int_var(0, horizon + 1, ""), last, ""))
            sizes.append(size)
        if lives:
            model.add_cumulative(lives, sizes, limit)
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = SECONDS_MAX
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL or len(activities) > EXACT_MAX, solver.status_name(status)
    return int(solver.objective_value) if status == cp_model.OPTIMAL else None


def main():
    driver, count, *seed = sys.argv[1:]
    printed = subprocess.run([driver, count, *seed], check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(printed) == int(count)
    wrong, ratios, limited, largest, unsolved = [], [], 0, 0, 0
    for number, line in enumerate(printed):
        program = json.loads(line)
        best = optimum(program)
        if best is None:
            unsolved += 1
            continue
        limited += any(limit is not None for limit in program["limits"])
        largest = max(largest, len(program["activities"]))
        exact = len(program["activities"]) > EXACT_MAX or (program["end"] == best and program["complete"])
        if not exact or program["searched"] < best or program["bound"] > best:
            wrong.append(f"program {number}: end {program['end']}, bound {program['bound']}, CP-SAT {best}")
        ratios.append(program["searched"] / best)
    mean, worst = sum(ratios) / len(ratios), max(ratios)
    print(f"{len(ratios)} programs of up to {largest} activities, {limited} with limits: {len(wrong)} differ from CP-SAT; "
          f"search alone: mean {mean:.5f}, worst {worst:.4f}, optimal {ratios.count(1.0)}, not solved by CP-SAT {unsolved}")
    print("\n".join(wrong))
    mean_max, worst_max = (MEAN_MAX, WORST_MAX) if largest <= EXACT_MAX else (MEDIUM_MEAN_MAX, MEDIUM_WORST_MAX)
    return 1 if wrong or mean > mean_max or worst > worst_max or limited < len(ratios) / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
