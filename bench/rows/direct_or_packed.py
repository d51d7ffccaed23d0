#!/usr/bin/env python3
"""Holds choose_transfers against both ways of a move: direct_or_packed.py TRANSPORT [--pairs 30] [--rounds 5] [--first 0].

A transport leads to another process of this machine. `memory` writes blocks into its memory by process_vm_writev, 1,024
blocks a call. `link` sends one message for each block over TCP, between two network namespaces with a link of 62.5 MB/s
(bench/two_nodes.py; it needs root). The receiver puts each block in its place, and answers when all have arrived. `nixl`
writes through NIXL, over the transports in UCX_TLS. The costs of the transport are measured first. Then random moves run
directly and packed, in turn. A packed move packs, sends and unpacks each bucket. Every result is compared. Times are medians.
The last line counts the moves whose chosen way takes at most 1.1x of the better way. Run it with the Python that has reshard."""

import argparse
import ctypes
import mmap
import os
import random
import socket
import statistics
import sys
import tempfile
import time

import numpy

import reshard
from reshard import rows as of_rows

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from two_nodes import Nodes, Skip, end_on_signals  # noqa: E402

TILE = 1 << 25
STAGING = 1 << 20
RATE = 62_500_000
system = ctypes.CDLL(None, use_errno=True)
system.process_vm_writev.restype = ctypes.c_ssize_t


def failed():
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Memory:
    """A tile and staging for the sender, and both for the receiver, at one address in this process and its children."""

    def __init__(self):
        self.whole = numpy.frombuffer(mmap.mmap(-1, 2 * (TILE + STAGING)), numpy.uint8)
        self.sender, self.receiver = self.whole[:TILE + STAGING], self.whole[TILE + STAGING:]
        self.source, self.target = self.sender[:TILE], self.receiver[:TILE]
        self.sender[:] = numpy.random.default_rng(1).integers(0, 256, len(self.sender), numpy.uint8)
        self.receiver[:] = 0


class ToMemory:
    """process_vm_writev."""

    def __init__(self, memory, _):
        self.ours, self.theirs = socket.socketpair()
        self.receiver = memory.whole.ctypes.data  # the child has it at the same address

    def serve(self):
        self.ours.close()
        self.theirs.recv(1)

    def connect(self, pid):
        self.pid = pid
        self.theirs.close()

    def transfer(self, local, remote):
        here, there = of_rows.blocks(local), of_rows.blocks(remote)
        for first in range(0, len(here), 1024):
            ours, theirs = here[first:first + 1024], there[first:first + 1024]
            vectors = [number for end in (ours, theirs)
                       for number in (ctypes.c_void_p(end.ctypes.data), ctypes.c_ulong(len(end)))]
            moved = system.process_vm_writev(self.pid, *vectors, ctypes.c_ulong(0))
            if moved != int(ours[:, 1].sum()):
                raise failed()


def made_in(network, make):
    """Calls `make` in the network namespace of the process `network`. Its sockets stay there."""
    with open("/proc/self/ns/net", "rb") as own, open(f"/proc/{network}/ns/net", "rb") as other:
        if system.setns(other.fileno(), 0) != 0:
            raise failed()
        try:
            return make()
        finally:
            system.setns(own.fileno(), 0)


class OverLink:
    """One message for each block. The addresses and lengths of the blocks go before them."""

    def __init__(self, memory, nodes):
        sender, receiver = (holder.pid for holder in nodes.holders[:2])
        listening = made_in(receiver, lambda: socket.create_server((nodes.address(1), 0)))
        self.ours = made_in(sender, lambda: socket.create_connection(listening.getsockname()))
        self.theirs, _ = listening.accept()
        listening.close()
        for end in (self.ours, self.theirs):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.base, self.view = memory.whole.ctypes.data, memoryview(memory.whole)

    def serve(self):
        self.ours.close()
        while count := self.theirs.recv(8, socket.MSG_WAITALL):
            places = bytearray(16 * int.from_bytes(count, "little"))
            self.theirs.recv_into(places, len(places), socket.MSG_WAITALL)
            for place, size in numpy.frombuffer(places, numpy.uint64).reshape(-1, 2).tolist():
                self.theirs.recv_into(self.view[place - self.base:][:size], size, socket.MSG_WAITALL)
            self.theirs.sendall(b"a")

    def connect(self, _):
        self.theirs.close()

    def transfer(self, local, remote):
        self.ours.sendall(len(places := of_rows.blocks(remote)).to_bytes(8, "little") + places.tobytes())
        for start, size in of_rows.blocks(local).tolist():
            self.ours.sendall(self.view[start - self.base:start - self.base + size])
        if self.ours.recv(1) != b"a":
            raise ConnectionError("the receiver is gone")


class ThroughNixl:
    """Two agents of NIXL. The lists are prepared for each transfer, since every move is another one."""

    def __init__(self, memory, _):
        self.ours, self.theirs = socket.socketpair()
        self.memory = memory

    def agent(self, name):
        from nixl_cu12._api import nixl_agent, nixl_agent_config
        agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))
        agent.register_memory([(self.memory.whole.ctypes.data, len(self.memory.whole), 0, "")], "DRAM")
        return agent

    def serve(self):
        self.ours.close()
        agent = self.agent("receiver")
        self.theirs.sendall(agent.get_agent_metadata())
        self.theirs.shutdown(socket.SHUT_WR)
        self.theirs.recv(1)  # a thread of the agent does the rest

    def connect(self, _):
        self.theirs.close()
        self.own = self.agent("sender")
        self.peer = self.own.add_remote_agent(b"".join(iter(lambda: self.ours.recv(1 << 16), b"")))

    def transfer(self, local, remote):
        here = self.own.prep_xfer_dlist("NIXL_INIT_AGENT", local, "DRAM")
        there = self.own.prep_xfer_dlist(self.peer, remote, "DRAM")
        every = numpy.arange(int(local[:, 4].sum()), dtype=numpy.int32)
        handle = self.own.make_prepped_xfer("WRITE", here, every, there, every)
        state = self.own.transfer(handle)
        while state == "PROC":
            state = self.own.check_xfer_state(handle)
        for one in (handle, here, there):
            one.release()
        if state != "DONE":
            raise ConnectionError(state)


def random_rows(draw):
    """Rows of one move: 64 KiB to 16 MiB, in runs of 32 bytes to 256 KiB."""
    run = int(2 ** draw.uniform(5, 18))
    runs = max(1, int(2 ** draw.uniform(16, 24) / run))
    text = (f"u8[{runs},{2 * run}]", f"u8[{runs},{2 * run}@x]") if draw.random() < 0.5 else \
        (f"u8[{2 * runs},{run}]", f"u8[{2 * runs}@x/1,{run}]")
    rows = reshard.schedule_rows(reshard.parse_layout("x=1", text[0]), reshard.parse_layout("x=2[1,2]", text[1]), 0)
    return rows[rows["peer"] == 1]


class Ways:
    """Both ways of a move."""

    def __init__(self, transfer, memory):
        self.transfer, self.memory = transfer, memory
        self.staging = [numpy.array([[end.ctypes.data + TILE, 0, 0, 0, 1]], numpy.uint64)
                        for end in (memory.sender, memory.receiver)]

    def direct(self, rows):
        self.transfer(*of_rows.addressed(rows, self.memory.source.ctypes.data, {1: [self.memory.target.ctypes.data]}))

    def packed(self, rows):
        for bucket in of_rows.buckets(rows, STAGING):
            of_rows.pack(bucket, self.memory.source, self.memory.sender[TILE:])
            for end in self.staging:
                end[0, 1] = end[0, 3] = of_rows.packed_bytes(bucket)
            self.transfer(*self.staging)
            of_rows.unpack(bucket, self.memory.receiver[TILE:], self.memory.target)

    def seconds(self, rows, rounds):
        """Medians of both."""
        end = int((rows["target_offset"] + (rows["runs"] - 1) * rows["target_stride"] + rows["run_bytes"]).max())
        target, wanted = self.memory.target[:end], numpy.zeros(end, numpy.uint8)
        of_rows.unpack(rows, of_rows.pack(rows, self.memory.source), wanted)
        times = {self.direct: [], self.packed: []}
        for _ in range(rounds):
            for way, spent in times.items():
                target[:] = 0
                begin = time.perf_counter()
                way(rows)
                spent.append(time.perf_counter() - begin)
                if not (target == wanted).all():
                    sys.exit("wrong: other bytes")
        return [statistics.median(spent) for spent in times.values()]


def compare(asked, transfer, memory):
    """Returns for each move the time of the chosen way, divided by the time of the better way."""
    draw = random.Random(asked.seed)
    costs = of_rows.measure_costs(transfer, memory.sender, memory.receiver.ctypes.data)
    for name, way in costs._asdict().items():
        print(f"{asked.transport}, {name}: a message {way.seconds_per_message * 1e6:.1f} us, a run "
              f"{way.seconds_per_run * 1e6:.3f} us, {1e-9 / max(way.seconds_per_byte, 1e-15):.3f} GB/s")
    ways, ratios = Ways(transfer, memory), []
    for number in range(asked.first + asked.pairs):
        rows = random_rows(draw)
        if number < asked.first:
            continue
        chosen, = of_rows.choose_transfers(rows, 0, costs, STAGING)
        direct, packed = ways.seconds(rows, asked.rounds)
        ratios.append((packed if chosen.packed else direct) / min(direct, packed))
        print(f"{number}: {chosen.bytes} bytes in {chosen.blocks} runs, direct {direct * 1e3:.3f} ms ("
              f"{chosen.direct_seconds * 1e3:.3f} predicted), packed {packed * 1e3:.3f} ms ("
              f"{chosen.packed_seconds * 1e3:.3f}), {'packed' if chosen.packed else 'direct'}, {ratios[-1]:.2f}x of the better")
    return ratios


def over(transport, asked, nodes=None):
    memory = Memory()
    way = transport(memory, nodes)
    pid = os.fork()
    if pid == 0:
        way.serve()
        os._exit(0)
    way.connect(pid)
    ratios = compare(asked, way.transfer, memory)
    way.ours.close()
    os.waitpid(pid, 0)
    near = sum(ratio <= 1.1 for ratio in ratios)
    print(f"{asked.transport}: the chosen way takes at most 1.1x of the better way on {near} of {len(ratios)} moves, at most "
          f"{max(ratios):.2f}x on all")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("transport", choices=("memory", "link", "nixl"))
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the number of the first move")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    end_on_signals()
    if asked.transport != "link":
        over(ToMemory if asked.transport == "memory" else ThroughNixl, asked)
        sys.stdout.flush()
        os._exit(0)  # NIXL 1.5.1 crashes while Python ends
    try:
        with tempfile.TemporaryDirectory() as folder, Nodes(folder, RATE, 2) as nodes:
            over(OverLink, asked, nodes)
    except Skip as reason:
        print(f"skipped: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
