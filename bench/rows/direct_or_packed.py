#!/usr/bin/env python3
"""Holds choose_transfers against both ways of a move: direct_or_packed.py [--pairs 30] [--rounds 5]. Needs the package.

Two transports to another process of this machine. `memory` writes blocks into its memory by process_vm_writev, 1,024 blocks a
call. `tcp` sends one message for each block over loopback, and waits for the answer that all bytes have arrived. The costs of
each transport are measured first. Then random moves run directly and packed, in turn. A packed move packs, sends and unpacks
each bucket. Times are medians. The last lines print the ratio of the chosen way to the better way."""

import argparse
import ctypes
import mmap
import os
import random
import socket
import statistics
import sys
import time

import numpy

import reshard
from reshard import rows as of_rows

TILE = 1 << 25
STAGING = 1 << 20
write_to = ctypes.CDLL(None, use_errno=True).process_vm_writev
write_to.restype = ctypes.c_ssize_t


def memory_transport(pid):
    def transfer(local, remote):
        here, there = of_rows.blocks(local), of_rows.blocks(remote)
        for first in range(0, len(here), 1024):
            ours, theirs = here[first:first + 1024], there[first:first + 1024]
            moved = write_to(pid, ctypes.c_void_p(ours.ctypes.data), ctypes.c_ulong(len(ours)),
                             ctypes.c_void_p(theirs.ctypes.data), ctypes.c_ulong(len(theirs)), ctypes.c_ulong(0))
            if moved != int(ours[:, 1].sum()):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return transfer


def tcp_transport(connection, memory):
    def transfer(local, _):
        here = of_rows.blocks(local)
        connection.sendall(int(here[:, 1].sum()).to_bytes(8, "little"))
        base = memory.ctypes.data
        view = memoryview(memory)
        for start, size in here.tolist():
            connection.sendall(view[start - base:start - base + size])
        if connection.recv(1) != b"a":
            raise ConnectionError("the receiver is gone")
    return transfer


def receive(connection):
    """The other process: reads what is announced, and answers."""
    scratch = bytearray(1 << 20)
    while announced := connection.recv(8, socket.MSG_WAITALL):
        left = int.from_bytes(announced, "little")
        while left:
            left -= connection.recv_into(scratch, min(left, len(scratch)))
        connection.sendall(b"a")


def shared(size):
    """Memory at one address in this process and in a process that is forked off."""
    return numpy.frombuffer(mmap.mmap(-1, size), numpy.uint8)


def random_rows(draw):
    """Rows of one move: 64 KiB to 16 MiB, in runs of 32 bytes to 256 KiB."""
    run = int(2 ** draw.uniform(5, 18))
    runs = max(1, int(2 ** draw.uniform(16, 24) / run))
    text = (f"u8[{runs},{2 * run}]", f"u8[{runs},{2 * run}@x]") if draw.random() < 0.5 else \
        (f"u8[{2 * runs},{run}]", f"u8[{2 * runs}@x/1,{run}]")
    rows = reshard.schedule_rows(reshard.parse_layout("x=1", text[0]), reshard.parse_layout("x=2[1,2]", text[1]), 0)
    return rows[rows["peer"] == 1]


def compare(name, transfer, memory, draw, pairs, rounds):
    tile, staging = memory[:TILE], memory[TILE:]
    costs = of_rows.measure_costs(transfer, memory, memory.ctypes.data)
    print(f"{name}: a block {costs.seconds_per_block * 1e6:.2f} us, wire {1e-9 / costs.seconds_per_byte:.2f} GB/s, "
          f"packing {1e-9 / costs.seconds_per_packed_byte:.2f} GB/s")
    block = numpy.array([[staging.ctypes.data, 0, 0, 0, 1]], numpy.uint64)

    def by_address(rows):
        transfer(*of_rows.addressed(rows, tile.ctypes.data, {1: [tile.ctypes.data]}))

    def by_buckets(rows):
        for bucket in of_rows.buckets(rows, STAGING):
            of_rows.pack(bucket, tile, staging)
            block[0, 1] = block[0, 3] = of_rows.packed_bytes(bucket)
            transfer(block, block)
            of_rows.unpack(bucket, staging, tile)

    ratios = []
    for number in range(pairs):
        rows = random_rows(draw)
        chosen, = of_rows.choose_transfers(rows, 0, costs, STAGING)
        times = {by_address: [], by_buckets: []}
        for _ in range(rounds):
            for way, spent in times.items():
                begin = time.perf_counter()
                way(rows)
                spent.append(time.perf_counter() - begin)
        one, other = (statistics.median(spent) for spent in times.values())
        ratios.append((other if chosen.packed else one) / min(one, other))
        print(f"{name} {number}: {chosen.bytes} bytes in {chosen.blocks} runs, direct {one * 1e3:.3f} ms, packed "
              f"{other * 1e3:.3f} ms, {'packed' if chosen.packed else 'direct'}, {ratios[-1]:.2f}x of the better")
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    memory = shared(TILE + STAGING)
    memory[:] = 1
    ours, theirs = socket.create_server(("127.0.0.1", 0)), socket.socket()
    theirs.connect(ours.getsockname())
    connection, _ = ours.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pid = os.fork()
    if pid == 0:
        connection.close()
        receive(theirs)
        os._exit(0)
    theirs.close()
    ratios = compare("memory", memory_transport(pid), memory, draw, asked.pairs, asked.rounds)
    ratios += compare("tcp", tcp_transport(connection, memory), memory, draw, asked.pairs, asked.rounds)
    connection.close()
    os.waitpid(pid, 0)
    near = sum(ratio <= 1.1 for ratio in ratios)
    print(f"{len(ratios)} moves: the chosen way takes at most 1.1x of the better way on {near}, at most "
          f"{max(ratios):.2f}x on all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
