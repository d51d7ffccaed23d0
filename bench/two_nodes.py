#!/usr/bin/env python3
"""two_nodes.py MPIEXEC RESHARD: a plan for two nodes against the direct exchange, over a real link of a known rate.

Network namespaces with a host name each are the nodes; each has a virtual card on one bridge with a token bucket (tc
tbf) at either end; Open MPI runs TCP over it, and shared memory inside. The problem is f32[N@(x,y),M] -> f32[N,M@x]
on two nodes: the target replicates inside a node, so that a plan can fetch each element into a node once. Prints, and
with --check judges, two ratios: the plan's time over bytes / rate of the link, and its speed over the direct exchange's,
measured and predicted. Exits 77 if the tools or the privileges are missing.

--case NAME runs one of CASES instead, moves between meshes and a sum. It prints the plan beside programs written by hand
in MPI, against the predicted time, step by step, and against bytes / rate of its busiest card.
--cases runs all of CASES and prints a row of bench/README.md's table for each.
--list N moves a list of N arrays of rows x columns with that layout, all together and array by array.

The namespaces live as long as the processes in them, which end with this one: on SIGTERM, SIGINT and SIGHUP it ends
them itself, and a launcher whose script was killed is told by the system."""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

MESSAGE_SECONDS = 300
NODES = 2


def owing(*loads):
    """The question in which sender i owes receiver j the given number of parts of the rows; one rank a node."""
    senders, receivers = len(loads), len(loads[0])
    part = 1.0 / sum(map(sum, loads))

    def asked(rows, columns):
        source, target, end = [], [], 0.0
        for i, of_one in enumerate(loads):
            for j, parts in enumerate(of_one):
                end += parts * part
                if parts > 0:
                    source.append(f"{round(rows * end)}:{i}")
                    target.append(f"{round(rows * end)}:{j}")
        return (f"--mesh a={senders}[0-{senders - 1}] --target-mesh c={receivers}[{senders}-{senders + receivers - 1}] "
                f"f32[{rows}@a[{','.join(source)}],{columns}] f32[{rows}@c[{','.join(target)}],{columns}]")
    return senders + receivers, 1, asked


# Nodes, ranks of each, and the question. "case" as in Alpa's suite (cross_mesh.py), N rows.
CASES = {
    "1": (4, 2, "--mesh a=2,b=2[0-3] --target-mesh c=2,d=2[4-7] f32[N@a,M] f32[N@c,M]"),
    "6": (5, 2, "--mesh a=2,b=2[0-3] --target-mesh c=3,d=2[4-9] f32[N@a,M] f32[N@c,M]"),
    "1to2x2": (3, 2, "--mesh a=1[0] --target-mesh c=2,d=2[2-5] f32[N,M] f32[N,M]"),
    "1to4x2": (5, 2, "--mesh a=1[0] --target-mesh c=4,d=2[2-9] f32[N,M] f32[N,M]"),
    "sum": (2, 4, "--mesh x=2,y=4 f32[N,M]{U:(x,y)} f32[N,M]"),
    "scatter": (2, 4, "--mesh x=2,y=4 f32[N,M]{U:(x,y)} f32[N@(x,y),M]"),
    "busy-peer": owing((8, 1, 1, 1)),
    "two-meet": owing((8, 1, 1, 1), (3, 8, 0, 0)),
    "all-meet": owing((2, 3, 0, 8), (3, 1, 3, 5)),
}
TIMES_BOUND = 1.3  # the plan against bytes / rate
FACTOR_BOUND = 0.25  # predicted factor against measured

AGENT = """#!/bin/sh
# What Open MPI starts a node's daemon with: host, then the command in words.
host=$1
shift
exec nsenter --target "$(cat {folder}/"$host")" --net --uts sh -c "$*"
"""

MACHINE = """machine two-nodes
level node devices {per_node} message 2us bandwidth 2GB/s
level link devices all message 100us bandwidth {rate}B/s shared
copy 5GB/s
"""

# The link alone: nothing inside a node takes time, so that a plan costs bytes / rate of its busiest card.
LINK_ALONE = """machine link-alone
level node devices {per_node} message 0us bandwidth 1000000GB/s
level link devices all message 0us bandwidth {rate}B/s shared
copy 1000000GB/s
"""

# The ways that MPI programs are written by hand: the last columns of the table of cases.
BY_HAND = ("isend and irecv of boxes", "MPI_Bcast per unit task", "MPI_Alltoallw", "MPI_Allreduce",
           "MPI_Reduce_scatter")
END_SECONDS = 10  # in which a process that is told to end does so


class Skip(Exception):
    pass


def end_on_signals():
    """A signal ends the script as an exception does, so that what it started ends first. A second one changes nothing."""
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def ended(number, _):
        for one in signals:
            signal.signal(one, signal.SIG_IGN)
        sys.exit(128 + number)

    for one in signals:
        signal.signal(one, ended)


def run(*command, seconds=MESSAGE_SECONDS):
    """Ends a block after so many seconds, with the sentence that says what did not end; also when this script must end."""
    # A session of its own: what a terminal sends to all is for the script, which ends the command in order.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except BaseException as why:
            child.terminate()
            try:
                child.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            if isinstance(why, subprocess.TimeoutExpired):
                sys.exit(f"wrong: no end after {seconds} seconds of {' '.join(command)}")
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def need(*command):
    """Runs a command; its failure means that this machine cannot run the script."""
    done = run(*command)
    if done.returncode != 0:
        raise Skip(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Nodes:
    """Namespaces on a bridge, which has one of its own, while the context lasts."""

    def __init__(self, folder, rate, count):
        self.folder = folder
        self.rate = rate
        self.count = count
        self.holders = []

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end_inhabitants()
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()

    def end_inhabitants(self):
        """Ends the processes that a launcher left in the namespaces: the namespaces are ours, and so is all that runs there."""
        def network(pid):
            try:
                return os.readlink(f"/proc/{pid}/ns/net")
            except OSError:
                return None  # it has ended

        holders = {holder.pid for holder in self.holders}
        ours = {network(pid) for pid in holders} - {None, network("self")}
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            if pid not in holders and network(pid) in ours:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def build(self):
        for tool in ("ip", "tc", "nsenter", "unshare", "setpriv"):
            if shutil.which(tool) is None:
                raise Skip(f"there is no {tool} here")
        for node in range(self.count + 1):
            name = f"node{node}" if node < self.count else "bridge"
            hold = f"hostname {name} && echo held && read end"  # until the pipe closes
            self.holders.append(subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", hold], text=True,
                                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            if self.holders[-1].stdout.readline() != "held\n":
                raise Skip(f"no namespaces: {self.holders[-1].stderr.read().strip()}")
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(str(self.holders[-1].pid))
        self.wire()

    def wire(self):
        """All nodes on one bridge; links.py has other ways."""
        self.add_bridge("bridge")
        for node in range(self.count):
            self.plug(node, "bridge")
            self.shape(node)

    def add_bridge(self, name):
        bridge = self.inside(self.count)
        need(*bridge, "ip", "link", "add", name, "mtu", "9000", "type", "bridge")
        need(*bridge, "ip", "link", "set", name, "up")

    def plug(self, node, bridge):
        """The node's card, whose other end is on a bridge."""
        own, port = self.inside(node), f"port{node}"
        need(*own, "ip", "link", "add", "card", "mtu", "9000", "type", "veth", "peer", "name", port, "mtu", "9000",
             "netns", str(self.holders[-1].pid))
        need(*own, "ip", "address", "add", f"{self.address(node)}/24", "dev", "card")
        for card in ("lo", "card"):
            need(*own, "ip", "link", "set", card, "up")
        need(*self.inside(self.count), "ip", "link", "set", port, "master", bridge, "up")

    def shape(self, node):
        """A rate for the card, each way."""
        self.limit(node, "card", self.rate)
        self.limit(self.count, f"port{node}", self.rate)

    def limit(self, node, card, rate):
        need(*self.inside(node), "tc", "qdisc", "add", "dev", card, "root", "tbf", "rate", f"{8 * rate}bit",
             "burst", "128kb", "latency", "50ms")

    @staticmethod
    def address(node):
        return f"10.77.0.{node + 1}"

    def inside(self, node, own_sys=False):
        """What begins a command on a node. own_sys: its /sys has the devices of the node, as UCX needs."""
        mounted = ["unshare", "--mount", "sh", "-c", 'mount -t sysfs none /sys && exec "$@"', "sh"] if own_sys else []
        return ["nsenter", "--target", str(self.holders[node].pid), "--net", "--uts", *mounted]

    def launch(self, mpiexec, per_node, *command):
        """The command on all ranks of both nodes; what it prints."""
        agent = os.path.join(self.folder, "agent")
        if not os.path.exists(agent):
            with open(agent, "w", encoding="utf-8") as file:
                file.write(AGENT.format(folder=self.folder))
            os.chmod(agent, 0o755)
        hosts = ",".join(f"node{node}:{per_node}" for node in range(self.count))
        settings = {"plm_rsh_agent": agent, "oob_tcp_if_include": "card", "btl_tcp_if_include": "card",
                    "pml": "ob1", "btl": "self,vader,tcp"}
        words = [word for key, value in settings.items() for word in ("--mca", key, value)]
        # Open MPI takes each namespace for a machine of its own and would bind the first rank of each to the first core.
        cores = sorted(os.sched_getaffinity(0))
        if self.count * per_node <= len(cores) and shutil.which("taskset"):
            own = f"$(echo {' '.join(map(str, cores))} | cut -d ' ' -f $((OMPI_COMM_WORLD_RANK + 1)))"
            command = ("sh", "-c", f'exec taskset --cpu-list "{own}" "$@"', "sh", *command)
        # Open MPI's own limit ends the ranks of all nodes; the later one here is for a launcher that hangs itself.
        return run("setpriv", "--pdeathsig", "TERM", *self.inside(0), mpiexec, "--timeout", str(MESSAGE_SECONDS),
                   "-n", str(self.count * per_node), "--bind-to", "none", "--host", hosts, *words, *command,
                   seconds=MESSAGE_SECONDS + 30)


def question(asked):
    rows, columns = asked.rows, asked.columns
    if asked.case:
        words = CASES[asked.case][2]
        text = words.replace("N", str(rows)).replace("M", str(columns)) if isinstance(words, str) else words(rows, columns)
        return text.split()
    return ["--mesh", f"x={NODES},y={asked.per_node}", f"f32[{rows}@(x,y),{columns}]", f"f32[{rows},{columns}@x]"]


def predicted(asked, machine, *more):
    """The chosen plan, or one whose first step is given, as it runs between these nodes."""
    return planned(asked, machine, "--backend", "mpi", "--ranks-per-node", str(asked.per_node), *more)


def planned(asked, machine, *more):
    done = run(asked.reshard, "plan", "--json", "--machine", machine, *more, *question(asked))
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measured(asked, nodes, machine):
    done = nodes.launch(asked.mpiexec, asked.per_node, asked.reshard, "bench", "--json", "--rounds", str(asked.rounds),
                        "--machine", machine, *question(asked))
    if done.returncode != 0:
        sys.exit(f"wrong: the run over two nodes failed\n{done.stdout}\n{done.stderr}")
    contestants = json.loads(done.stdout.splitlines()[-1])["contestants"]
    return {one["contestant"]: one for one in contestants}


def measure(asked, folder):
    machine = os.path.join(folder, "two-nodes.machine")
    with open(machine, "w", encoding="utf-8") as file:
        file.write(MACHINE.format(per_node=asked.per_node, rate=asked.rate))
    plan = predicted(asked, machine)
    if asked.case:
        return measure_case(asked, folder, machine, plan)
    direct = predicted(asked, machine, "--first", f"exchange {question(asked)[-1]}")
    with Nodes(folder, asked.rate, NODES) as nodes:
        ran = measured(asked, nodes, machine)
    # A node already holds half of its columns: the half that lies in its own rows.
    least = asked.rows * asked.columns * 4 // NODES // NODES / asked.rate
    # A plan of one step is the direct exchange, which then does not run a second time.
    both = [ran["this plan"], ran.get("direct exchange", ran["this plan"])]
    ours, straight = (one["seconds_median"] for one in both)
    ours_least, straight_least = (min(one["seconds"]) for one in both)
    return {
        "ranks": NODES * asked.per_node,
        "link_bytes_per_second": asked.rate,
        "steps": [step["kind"] for step in plan["steps"]],
        "seconds_at_link_rate": least,
        "seconds": ours,
        "seconds_predicted": plan["seconds_estimate"],
        "over_link_rate": ours / least,
        "seconds_direct": straight,
        "seconds_direct_predicted": direct["seconds_estimate"],
        "faster": straight / ours,
        "faster_predicted": direct["seconds_estimate"] / plan["seconds_estimate"],
        "least": {"over_link_rate": ours_least / least, "faster": straight_least / ours_least},
        "seconds_of_all": {name: one.get("seconds_median") for name, one in ran.items()},
        "wrong": sum(one.get("wrong", 0) for one in ran.values()),
    }


def seconds_at_card(asked, folder, plan):
    """Bytes / rate of the plan's busiest card, step by step; None if the link alone leads to another plan."""
    machine = os.path.join(folder, "link-alone.machine")
    with open(machine, "w", encoding="utf-8") as file:
        file.write(LINK_ALONE.format(per_node=asked.per_node, rate=asked.rate))
    alone = planned(asked, machine)
    same = [(step["kind"], step["layout"]) for step in alone["steps"]] == [
        (step["kind"], step["layout"]) for step in plan["steps"]]
    return alone["seconds_estimate"] if same else None


def row(result):
    """A row of the table in bench/README.md, in milliseconds."""
    card = result["seconds_at_card"]
    others = result["seconds_of_all"]
    cells = [result["case"], ", ".join(result["steps"]), "-" if card is None else f"{1e3 * card:.0f}",
             f"{1e3 * result['seconds']:.0f}", "-" if card is None else f"{result['seconds'] / card:.2f}",
             f"{1e3 * result['seconds_predicted']:.0f}", f"{result['over_predicted']:.2f}"]
    cells += [f"{1e3 * others[name]:.0f}" if name in others else "no part" for name in BY_HAND]
    return f"| {' | '.join(cells)} |"


def measure_case(asked, folder, machine, plan):
    """A case's plan beside programs written by hand."""
    count, per_node, _ = CASES[asked.case]
    with Nodes(folder, asked.rate, count) as nodes:
        ran = measured(asked, nodes, machine)
    seconds = ran["this plan"]["seconds_median"]
    others = {name: one["seconds_median"] for name, one in ran.items() if "seconds_median" in one}
    return {
        "case": asked.case,
        "ranks": count * per_node,
        "link_bytes_per_second": asked.rate,
        "rule": plan["rule"],
        "steps": [step["kind"] for step in plan["steps"]],
        "seconds": seconds,
        "least": min(ran["this plan"]["seconds"]),
        "seconds_predicted": plan["seconds_estimate"],
        "seconds_at_card": seconds_at_card(asked, folder, plan),
        "over_predicted": seconds / plan["seconds_estimate"],
        "seconds_of_all": others,
        "no_part": {name: one["error"]["message"] for name, one in ran.items() if "error" in one},
        "wrong": sum(one.get("wrong", 0) for one in ran.values()),
    }


def measure_list(asked, folder):
    """Small arrays that share the messages of each step, and the same one after another: a limit that says nothing of
    staging leaves no room for workspaces side by side."""
    machine = os.path.join(folder, "two-nodes.machine")
    with open(machine, "w", encoding="utf-8") as file:
        file.write(MACHINE.format(per_node=asked.per_node, rate=asked.rate))
    path = os.path.join(folder, "arrays")
    mesh, source, target = question(asked)[1:]
    with open(path, "w", encoding="utf-8") as file:
        file.write(asked.list * (json.dumps({"mesh": mesh, "source": source, "target": target}) + "\n"))
    ways = {"together": (), "one by one": ("--footprint-bytes-max", "1GiB")}
    seconds, told = {way: [] for way in ways}, {}
    with Nodes(folder, asked.rate, NODES) as nodes:
        for _ in range(asked.rounds):
            for way, more in ways.items():
                done = nodes.launch(asked.mpiexec, asked.per_node, asked.reshard, "run", "--json", "--list", path, "--machine",
                                    machine, *more)
                if done.returncode != 0:
                    sys.exit(f"wrong: the list did not move\n{done.stdout}\n{done.stderr}")
                told[way] = json.loads(done.stdout.splitlines()[-1])
                seconds[way].append(told[way]["seconds_measured"])
    return {
        "arrays": asked.list,
        "link_bytes_per_second": asked.rate,
        "steps": [step["kind"] for step in told["together"]["arrays"][0]["steps"]],
        "run_together": {way: sum(map(len, one["together"])) for way, one in told.items()},
        "footprint_bytes": {way: one["footprint_bytes"] for way, one in told.items()},
        "seconds": {way: statistics.median(all_of) for way, all_of in seconds.items()},
        "least": {way: min(all_of) for way, all_of in seconds.items()},
        "wrong": sum(one["wrong"] for one in told.values()),
    }


def faults(result, slack):
    """By the fastest rounds: others may use the machine, and a link is never faster than its rate."""
    over, faster, expected = result["least"]["over_link_rate"], result["least"]["faster"], result["faster_predicted"]
    if over > TIMES_BOUND * slack:
        yield f"{over:.2f} times bytes / rate, {TIMES_BOUND * slack} are allowed"
    if not max(1, (1 - FACTOR_BOUND) * expected / slack) <= faster <= (1 + FACTOR_BOUND) * expected * slack:
        yield f"{faster:.2f} times faster than the direct exchange, predicted was {expected:.2f}"


def report_cases(asked):
    """All cases, a row as soon as it is there; the whole results go to stderr."""
    print("| case | steps | bytes / rate (ms) | the plan | over it | predicted | over predicted | "
          f"{' | '.join(BY_HAND)} |\n|{'---|' * (7 + len(BY_HAND))}", flush=True)
    for name, (_, per_node, _) in CASES.items():
        asked.case, asked.per_node = name, per_node
        with tempfile.TemporaryDirectory() as folder:
            result = measure(asked, folder)
        print(json.dumps(result), file=sys.stderr, flush=True)
        print(row(result), flush=True)
        if result["wrong"] != 0:
            sys.exit(f"wrong: elements of case {name} did not arrive as they should")


def report(asked):
    found = []
    for _ in range(asked.attempts):
        with tempfile.TemporaryDirectory() as folder:
            result = measure_list(asked, folder) if asked.list else measure(asked, folder)
        print(json.dumps(result), flush=True)
        if result["wrong"] != 0:
            sys.exit("wrong: elements did not arrive as they should")
        if asked.case or asked.list:
            return
        found = list(faults(result, asked.slack))
        if not found:
            break
    if asked.check and found:
        sys.exit(f"wrong: {'; '.join(found)}")


def over_a_link(ranks, rate, default):
    """For sys.argv = [script, MPIEXEC, PROGRAM, arguments ...]: runs the program on two nodes of so many ranks. Prints what it
    prints, and the time that the bytes it names ("receives [at least] N bytes") take at the rate. Returns the exit status."""
    end_on_signals()
    try:
        with tempfile.TemporaryDirectory() as folder, Nodes(folder, rate, 2) as nodes:
            done = nodes.launch(sys.argv[1], ranks, os.path.abspath(sys.argv[2]), *(sys.argv[3:] or default))
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    print(done.stdout + done.stderr, end="")
    received = re.search(r"receives (?:at least )?(\d+) bytes", done.stdout)
    if done.returncode or not received:
        return 1
    print(f"which take {int(received[1]) / rate * 1e3:.3f} ms at {rate / 1e6:.0f} MB/s")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpiexec")
    parser.add_argument("reshard")
    parser.add_argument("--per-node", type=int, default=2, help="ranks of a node")
    parser.add_argument("--rate", type=int, default=125_000_000, help="of the link, bytes a second each way")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--case", choices=list(CASES), help="a move between meshes or a sum, with nodes of its own")
    parser.add_argument("--cases", action="store_true", help="all cases, as rows of a table")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="so many arrays, together and one by one")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--check", action="store_true", help="fail where the bounds are not kept")
    parser.add_argument("--slack", type=float, default=1, help="the bounds are so many times as wide: where others run")
    parser.add_argument("--attempts", type=int, default=1, help="launches, until one keeps the bounds")
    asked = parser.parse_args()
    end_on_signals()
    if asked.case:
        asked.per_node = CASES[asked.case][1]
    asked.reshard = os.path.abspath(asked.reshard)
    try:
        if asked.cases:
            report_cases(asked)
        else:
            report(asked)
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
