"""A bound that no protocol beats on two levels: `python bench/boxes/flow_bound.py 120 build/dev/tool/reshard` draws so many pairs
of each shuffled set of tests/differential/levels_test.cpp and prints means over the simple bound of that test. With the path of
the tool it also prints how the cheaper of our plan and our move through nodes compares. Needs numpy and scipy.

flow: for each part of the array, each device that lacks it needs a flow of it from the devices that hold it. A link
carries at least the largest of these flows. The linear program minimizes 8 x the busiest device between nodes + the
busiest device within nodes. No protocol beats it, since it ignores the order of messages and lets devices mix elements.
steps: the same for moves through nodes, with elements divided as finely as one likes: first devices of a node pass parts
on, then nodes fetch, then devices share."""

import itertools
import json
import random
import subprocess
import sys
import tempfile

import numpy
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

OUTSIDE = 8
FINER = 4
SHUFFLED_8 = (0, 3, 5, 6, 1, 7, 2, 4)
SHUFFLED_12 = (7, 2, 10, 0, 5, 9, 3, 11, 1, 8, 4, 6)
SETS = {"2 nodes of 2x2": ((2, 2, 2), SHUFFLED_8, 8, 4), "2x2 nodes of 2": ((2, 2, 2), SHUFFLED_8, 8, 2),
        "2 nodes of 3x2": ((2, 3, 2), SHUFFLED_12, 12, 6), "2x3 nodes of 2": ((2, 3, 2), SHUFFLED_12, 12, 2)}


def layouts(axes):
    """Each dimension is cut by some axes, major to minor."""
    for count in range(len(axes) + 1):
        for order in itertools.permutations(range(len(axes)), count):
            for cut in range(count + 1):
                yield order[:cut], order[cut:]


def elements_of(layout, axes, devices, extent):
    """The elements of each device of a square array."""
    elements = [set() for _ in devices]
    for device, place in zip(devices, itertools.product(*map(range, axes))):
        sides = []
        for cuts in layout:
            number, shards = 0, 1
            for axis in cuts:
                number, shards = number * axes[axis] + place[axis], shards * axes[axis]
            sides.append(range(number * extent // shards, (number + 1) * extent // shards))
        elements[device] = set(itertools.product(*sides))
    return elements


class Program:
    """A linear program over variables that are at least 0."""

    def __init__(self, costs):
        self.costs = list(costs)
        self.below, self.equal, self.right = [], [], []

    def variable(self):
        self.costs.append(0)
        return len(self.costs) - 1

    def least(self):
        def matrix(rows):
            entries = [(row, column, value) for row, terms in enumerate(rows) for column, value in terms]
            row, column, value = zip(*entries)
            return coo_matrix((value, (row, column)), shape=(len(rows), len(self.costs)))
        return linprog(self.costs, matrix(self.below), numpy.zeros(len(self.below)), matrix(self.equal), self.right,
                       method="highs").fun


def flow(parts, devices, node):
    """The bound by flows."""
    program = Program([OUTSIDE, 1])
    loads = {}
    for (holders, wanters), size in parts.items():
        links = {}
        for link in itertools.permutations(range(devices), 2):
            if link[1] in holders:
                continue
            links[link] = program.variable()
            outside = link[0] // node != link[1] // node
            for end in (0, 1):
                loads.setdefault((outside, end, link[end]), []).append((links[link], 1))
        for wanter in set(wanters) - set(holders):
            flows = {link: program.variable() for link in links}
            program.below += [[(flows[link], 1), (links[link], -1)] for link in links]
            for device in set(range(devices)) - set(holders):
                program.equal.append([(flows[link], 1) for link in links if link[1] == device] +
                                     [(flows[link], -1) for link in links if link[0] == device])
                program.right.append(size if device == wanter else 0)
    program.below += [terms + [(0 if outside else 1, -1)] for (outside, _, _), terms in loads.items()]
    return program.least()


def steps(parts, devices, node):
    """The least cost of moves through nodes."""
    program = Program([OUTSIDE, 1, 1])
    loads = {}

    def load(group, end, device, variable, times=1):
        loads.setdefault((group, end, device), []).append((variable, times))

    def carriers(holders, home):
        """Devices of the node that may pass a part on, each with a variable."""
        for holder in holders:
            if holder // node != home:
                continue
            for carrier in range(home * node, (home + 1) * node):
                if carrier != holder and carrier in holders:
                    continue
                variable = program.variable()
                if carrier != holder:
                    load(1, 0, holder, variable)
                    load(1, 1, carrier, variable)
                yield carrier, variable

    for (holders, wanters), size in parts.items():
        lacking = []
        for home in range(devices // node):
            mates = range(home * node, (home + 1) * node)
            receivers = [device for device in mates if device in wanters and device not in holders]
            if not receivers:
                continue
            stagers = list(carriers(holders, home))
            if not stagers:
                lacking.append(home)
                stagers = [(device, program.variable()) for device in mates]
                for device, variable in stagers:
                    load(0, 1, device, variable)
            for stager, variable in stagers:
                others = [device for device in receivers if device != stager]
                load(2, 0, stager, variable, len(others))
                for device in others:
                    load(2, 1, device, variable)
            program.equal.append([(variable, 1) for _, variable in stagers])
            program.right.append(size)
        if lacking:
            senders = [one for home in range(devices // node) for one in carriers(holders, home)]
            for device, variable in senders:
                load(0, 0, device, variable, len(lacking))
            program.equal.append([(variable, 1) for _, variable in senders])
            program.right.append(size)
    program.below += [terms + [(group, -1)] for (group, _, _), terms in loads.items()]
    return program.least()


def simple(held, wanted, node):
    """The bound of the test."""
    foreign = max(len(want - have) for have, want in zip(held, wanted))
    outside = max(len(set().union(*wanted[home:home + node]) - set().union(*held[home:home + node]))
                  for home in range(0, len(held), node)) / node
    return OUTSIDE * outside + max(0, foreign - outside)


def text_of(layout, axes, extent):
    names = "abcdef"[:len(axes)]
    sides = [f"{FINER * extent}" + (f"@({','.join(names[axis] for axis in cuts)})" if cuts else "") for cuts in layout]
    return f"i8[{','.join(sides)}]"


def ours(tool, source, target, axes, devices, extent, node):
    """The cheaper of the plan and the move through nodes, as in the test: only loads cost, and sides are FINER times as long."""
    with tempfile.NamedTemporaryFile("w") as machine:
        machine.write(f"machine loads\nlevel inside devices {node} message 0ps bandwidth 1MB/s\n"
                      f"level outside devices all message 0ps bandwidth {1000 // OUTSIDE}KB/s\ncopy 1EB/s\n")
        machine.flush()
        mesh = ",".join(f"{name}={size}" for name, size in zip("abcdef", axes)) + str(list(devices)).replace(" ", "")
        said = subprocess.run([tool, "plan", "--json", "--machine", machine.name, "--mesh", mesh,
                               text_of(source, axes, extent), text_of(target, axes, extent)],
                              check=True, capture_output=True, text=True).stdout
    plan = json.loads(said)
    return min(one["picoseconds_estimate"] for one in (plan, plan.get("through_nodes", plan))) / 1e6 / FINER ** 2


def main(pairs, tool=None):
    for name, (axes, devices, extent, node) in SETS.items():
        every = list(layouts(axes))
        drawn = random.Random(1).sample([pair for pair in itertools.permutations(every, 2)], pairs)
        flows, moves, made = [], [], []
        for source, target in drawn:
            held = elements_of(source, axes, devices, extent)
            wanted = elements_of(target, axes, devices, extent)
            parts = {}
            for element in set().union(*held):
                holders = tuple(device for device in devices if element in held[device])
                wanters = tuple(device for device in devices if element in wanted[device])
                if set(wanters) - set(holders):
                    parts[holders, wanters] = parts.get((holders, wanters), 0) + 1
            least = simple(held, wanted, node)
            if least > 0:
                flows.append(flow(parts, len(devices), node) / least)
                moves.append(steps(parts, len(devices), node) / least)
                if tool:
                    made.append(ours(tool, source, target, axes, devices, extent, node) / least)
        print(f"{name}, {len(flows)} pairs: flow {numpy.mean(flows):.3f}, steps {numpy.mean(moves):.3f}")
        if tool:
            over = [one / bound for one, bound in zip(made, flows)]
            print(f"    reshard {numpy.mean(made):.3f}; over the flow bound mean {numpy.mean(over):.3f}, worst {max(over):.3f}",
                  flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:3])
