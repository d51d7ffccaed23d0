#!/usr/bin/env python3
"""live.py [--mpiexec MPIEXEC] [--cases M+N,...] [--sizes MIB,...] [--rounds N] [--transport NAME,...]: versions from a job to another.

Two network namespaces are the nodes, with a link of 62.5 MB/s each way (two_nodes.py). A publisher of m processes on
the first node commits versions of f32[rows@x,columns]; a subscriber of n processes on the second one takes them as
f32[rows,columns@x]. A round is one version and then one plain TCP stream of as many bytes, in writes of 1 MiB, between
the same nodes. A version takes from the first begin of commit to the last return of update, with the copy of the
commit, the digests and the votes; *after commit* is its part after the last return of commit, which a busy machine may
delay beyond the update. *Processors* is the time of processors in commit and update, of all ranks. *Two passes* is the
least time that one processor needs to copy and digest the array twice. With --mpiexec both jobs are on one machine and
use shared memory, and a version takes turns with reshard.mpi.redistribute of the same pair on m + n ranks. Prints
medians (and least times), and the ratio of the other's time to the version's. Run it with the Python that has reshard;
it needs root. --llama VERSIONS instead publishes a layer of a Llama (bench/files/llama.py) on 4 ranks in f32, and 2
ranks read it in bf16 all the time. With arguments that begin with a role this file is one process of a run."""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import reshard

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "files"))
import llama  # noqa: E402
from two_nodes import Nodes, Skip, end_on_signals

RATE = 62_500_000
MIB = 1 << 20
PORT = 7411
LIMIT = 600  # seconds of a wait


def layouts(mib, m, n):
    """The array of so many MiB at both ends."""
    columns = 1024
    rows = mib * MIB // 4 // columns
    return (reshard.parse_layout(f"x={m}", f"f32[{rows}@x,{columns}]"),
            reshard.parse_layout(f"x={n}", f"f32[{rows},{columns}@x]"))


def say(**values):
    print(json.dumps(values), flush=True)


def hear():
    """Waits for the next line of the parent."""
    return sys.stdin.readline()


def publisher(folder, endpoint, mib, m, n, rank, transport):
    source, _ = layouts(int(mib), int(m), int(n))
    job = reshard.live.join_group(f"{folder}/trainer", int(rank), int(m))
    tile = numpy.ones(source.tile_shape(int(rank)), "f4")
    with reshard.live.publish(job, endpoint, {"w": (source, tile)}, transport=transport) as out:
        say(endpoint=out.endpoint)
        version = 0
        while hear():
            version += 1
            tile[...] = version
            begin, before = time.monotonic(), time.thread_time()
            out.commit(version)
            say(begin=begin, end=time.monotonic(), used=time.thread_time() - before)


def subscriber(folder, endpoint, mib, m, n, rank):
    _, target = layouts(int(mib), int(m), int(n))
    job = reshard.live.join_group(f"{folder}/engine", int(rank), int(n))
    with reshard.live.subscribe(job, endpoint, {"w": target}) as into:
        say(ready=True)
        while hear():
            before = time.thread_time()
            version = into.update(LIMIT)
            end = time.monotonic()
            say(end=end, used=time.thread_time() - before, right=bool((into["w"] == version).all()))


def sink(_, mib):
    """Takes streams, and says when each has come."""
    memory = memoryview(bytearray(MIB))
    with socket.create_server(("0.0.0.0", PORT)) as server:
        say(ready=True)
        while hear():
            left = int(mib) * MIB
            with server.accept()[0] as one:
                while left > 0:
                    left -= one.recv_into(memory)
            say(end=time.monotonic())


def stream(address, mib):
    """Sends streams."""
    memory = bytes(MIB)
    say(ready=True)
    while hear():
        with socket.create_connection((address, PORT)) as one:
            begin = time.monotonic()
            for _ in range(int(mib)):
                one.sendall(memory)
            say(begin=begin)
            one.shutdown(socket.SHUT_WR)


def llama_trainer(folder, endpoint, rank, versions):
    """One layer of a Llama in f32, cut by rows on 4 ranks, as bf16. All elements of a version are its number."""
    rank, tensors = int(rank), llama.shapes(0.4)
    job = reshard.live.join_group(f"{folder}/trainer", rank, 4)
    rules = "source fsdp=4\n*_proj.weight = [fsdp, -]\n*_norm.weight = [fsdp]\n"
    arrays = {name: numpy.zeros((shape[0] // 4, *shape[1:]), "f4") for name, shape in tensors.items()}
    with reshard.live.publish(job, endpoint, arrays, rules=rules, shapes=tensors, cast="bf16") as out:
        say(endpoint=out.endpoint)
        for version in range(1, int(versions) + 1):
            for array in arrays.values():
                array[...] = version
            out.commit(version)
            time.sleep(0.2)  # a step of training
        hear()  # the engine reads the last one


def llama_engine(folder, endpoint, rank, versions):
    """The layer on 2 ranks, as vLLM cuts it. It reads all elements again and again, and takes versions in between."""
    rank, reads = int(rank), 0
    job = reshard.live.join_group(f"{folder}/engine", rank, 2)
    rules = "\n".join(llama.rules("target", 2, llama.shapes(0.4)))
    with reshard.live.subscribe(job, endpoint, rules=rules) as into:
        while into.version < int(versions):
            begin = time.monotonic()
            if into.poll() is not None:
                say(seconds=time.monotonic() - begin, bytes=sum(into[name].nbytes for name in into))
            if into.version > 0:
                right = int(numpy.float32(into.version).view("u4")) >> 16
                for name in into:
                    if not (into[name].view("u2") == right).all():
                        sys.exit(f"wrong: {name} has elements that are not of version {into.version}")
                reads += 1
    say(done=True, reads=reads)


def redistribute(folder, mib, m, n):
    """The same pair by MPI, on ranks of two disjoint meshes. A line in the pipe of each rank begins a round."""
    from mpi4py import MPI
    comm, m, n = MPI.COMM_WORLD, int(m), int(n)
    source, target = layouts(int(mib), m, n)
    source = reshard.parse_layout(f"x={m}[0-{m - 1}]", str(source))
    target = reshard.parse_layout(f"x={n}[{m}-{m + n - 1}]", str(target))
    tile = numpy.ones(source.tile_shape(comm.rank), "f4")
    into = numpy.empty(target.tile_shape(comm.rank), "f4")
    with open(f"{folder}/rank{comm.rank}", encoding="ascii") as rounds:
        for version, _ in enumerate(rounds, 1):
            tile[...] = version
            comm.Barrier()
            begin = time.monotonic()
            reshard.mpi.redistribute(comm, tile, source, target, out=into)
            end = comm.reduce(time.monotonic(), MPI.MAX)
            right = comm.reduce(bool((into == version).all()), MPI.LAND)
            if comm.rank == 0:
                say(seconds=end - begin, right=right)


ROLES = {role.__name__: role for role in (llama_trainer, llama_engine, publisher, subscriber, sink, stream, redistribute)}


class Process:
    def __init__(self, inside, *arguments):
        self.child = subprocess.Popen([*map(str, inside), sys.executable, "-B", os.path.abspath(__file__), *map(str, arguments)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def next(self):
        line = self.child.stdout.readline()
        if not line:
            sys.exit(f"wrong: {self.child.args[-6:]} ended with {self.child.wait()}")
        return json.loads(line)


class Jobs:
    """A publisher and a subscriber, as long as the context lasts."""

    def __init__(self, folder, asked, insides, mib, m, n, transport="auto"):
        self.all = []
        self.out = [self.start(insides[0], "publisher", folder, asked, mib, m, n, rank, transport) for rank in range(m)]
        endpoint = [one.next() for one in self.out][0]["endpoint"]
        self.into = [self.start(insides[1], "subscriber", folder, endpoint, mib, m, n, rank) for rank in range(n)]
        for one in self.into:
            one.next()

    def start(self, *arguments):
        self.all.append(Process(*arguments))
        return self.all[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.all:
            one.child.kill()
            one.child.communicate()

    def round(self):
        """Seconds of one version: from the first begin of commit, from the last return of commit, and of processors."""
        for one in [*self.into, *self.out]:
            one.go()
        commits, updates = [one.next() for one in self.out], [one.next() for one in self.into]
        if not all(one["right"] for one in updates):
            sys.exit("wrong: elements of another version")
        end = max(one["end"] for one in updates)
        return (end - min(one["begin"] for one in commits), end - max(one["end"] for one in commits),
                sum(one["used"] for one in commits + updates))


def between_nodes(transport, mib, m, n, rounds):
    """Rounds of a version and a stream: seconds of the version, as round() returns them, and of the stream."""
    with tempfile.TemporaryDirectory() as folder, Nodes(folder, RATE, 2) as nodes:
        insides = [nodes.inside(0, True), nodes.inside(1, True)]
        with Jobs(folder, f"{nodes.address(0)}:0", insides, mib, m, n, transport) as jobs:
            receives = jobs.start(insides[1], "sink", "-", mib)
            sends = jobs.start(insides[0], "stream", nodes.address(1), mib)
            for one in (receives, sends):
                one.next()

            def streamed():
                for one in (receives, sends):
                    one.go()
                begin = sends.next()["begin"]
                return receives.next()["end"] - begin

            return [(*jobs.round(), streamed()) for _ in range(rounds + 1)][1:]  # the first one warms up


def on_one_machine(mpiexec, mib, m, n, rounds):
    """The same in shared memory, with redistribute on m + n ranks in place of the stream."""
    with tempfile.TemporaryDirectory() as folder, Jobs(folder, f"{folder}/weights", [[], []], mib, m, n) as jobs:
        ranks = [f"{folder}/rank{rank}" for rank in range(m + n)]
        for path in ranks:
            os.mkfifo(path)
        moves = jobs.start([mpiexec, "-n", m + n], "redistribute", folder, mib, m, n)
        pipes = [open(path, "w", encoding="ascii") for path in ranks]

        def moved():
            for pipe in pipes:
                print(file=pipe, flush=True)
            one = moves.next()
            if not one["right"]:
                sys.exit("wrong: elements of redistribute")
            return one["seconds"]

        return [(*jobs.round(), moved()) for _ in range(rounds + 2)][2:]


def train_and_serve(versions, nodes, folder):
    """Versions of the layer from 4 ranks to 2: over the link of the nodes, or on one machine without nodes."""
    insides = [nodes.inside(0), nodes.inside(1)] if nodes else [[], []]
    asked = f"{nodes.address(0)}:0" if nodes else f"{folder}/weights"
    started = [Process(insides[0], "llama_trainer", folder, asked, rank, versions) for rank in range(4)]
    try:
        endpoint = [one.next() for one in started][0]["endpoint"]
        engines = [Process(insides[1], "llama_engine", folder, endpoint, rank, versions) for rank in range(2)]
        started += engines
        said = [[one.next()] for one in engines]
        for one, lines in zip(engines, said):
            while "done" not in lines[-1]:
                lines.append(one.next())
    finally:
        for one in started:
            one.child.kill()
            one.child.communicate()
    took = [line["seconds"] for line in said[0][:-1]]
    size = sum(lines[0]["bytes"] for lines in said)
    bound = f", {size / RATE:.2f} s at the rate of the link" if nodes else ""
    print(f"{'link' if nodes else 'one machine'}: {len(took)} of {versions} versions of {size / 1e6:.0f} MB taken, "
          f"{sum(lines[-1]['reads'] for lines in said)} reads, each of one whole version; an update takes "
          f"{statistics.median(took):.2f} s, least {min(took):.2f} s{bound}", flush=True)


def two_passes(mib):
    """Least seconds that one processor needs to copy and digest the array twice: to commit it, and to take it."""
    source, target = numpy.ones(mib * MIB, "u1"), numpy.ones(mib * MIB, "u1")
    keys, took = reshard.DigestKeys(), []
    for _ in range(10):
        begin = time.monotonic()
        keys.copy(source, target)
        keys.copy(target, source)
        took.append(time.monotonic() - begin)
    return min(took)


def row(name, transport, mib, m, n, rounds):
    """Prints medians, and least times in parentheses. The ratio is of both."""
    whole, after, used, other = zip(*rounds)

    def times(seconds):
        return f"{1e3 * statistics.median(seconds):.1f} ({1e3 * min(seconds):.1f}) ms"

    ratio = f"{statistics.median(other) / statistics.median(whole):.2f} ({min(other) / min(whole):.2f})"
    print(f"| {name} | {transport} | {m} + {n} | {mib} MiB | {times(whole)} | {1e3 * statistics.median(after):.1f} ms | "
          f"{1e3 * statistics.median(used):.1f} ms | {1e3 * two_passes(mib):.1f} ms | {times(other)} | {ratio} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", help="instead of the link: on one machine, against redistribute")
    parser.add_argument("--cases", default="2+3,4+6", help="processes of both jobs")
    parser.add_argument("--sizes", default="4,64", help="MiB of the array")
    parser.add_argument("--transport", default="auto", help="over the link: auto, tcp or ucx; several in turn: tcp,ucx")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--llama", type=int, metavar="VERSIONS", help="instead: a layer of a Llama, FSDP-4 to TP-2")
    asked = parser.parse_args()
    if asked.llama:
        with tempfile.TemporaryDirectory() as folder:
            train_and_serve(asked.llama, None, folder)
        with tempfile.TemporaryDirectory() as folder, Nodes(folder, RATE, 2) as nodes:
            train_and_serve(asked.llama, nodes, folder)
        return
    print("| other | transport | processes | array | version | after commit | processors | two passes | other | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for mib in map(int, asked.sizes.split(",")):
        for m, n in [tuple(map(int, case.split("+"))) for case in asked.cases.split(",")]:
            if asked.mpiexec:
                row("redistribute", "memory", mib, m, n, on_one_machine(asked.mpiexec, mib, m, n, asked.rounds))
            else:
                for transport in asked.transport.split(","):
                    row("TCP stream", transport, mib, m, n, between_nodes(transport, mib, m, n, asked.rounds))


if __name__ == "__main__":
    os.environ.setdefault("UCX_LOG_FILE", "stderr")  # its words are no answers
    end_on_signals()
    if sys.argv[1:2] and sys.argv[1] in ROLES:
        ROLES[sys.argv[1]](*sys.argv[2:])
    else:
        try:
            main()
        except Skip as why:
            print(f"skipped: {why}")
            sys.exit(77)
