"""The recipes of docs/rows.md for NIXL and Mooncake, between two processes: test_transports.py nixl.shm|nixl.tcp|mooncake.

Exits 77 if the library cannot be loaded, and prints why. It needs no GPU."""

import functools
import multiprocessing
import os
import sys
import traceback

import numpy

import reshard
from test_rows import recipe

TRANSPORT = sys.argv[1]
TLS = {"nixl.shm": "posix,sysv,cma,tcp,self", "nixl.tcp": "tcp,self"}
MOVES = [  # meshes and arrays of both ends: cut blocks, tokens in turn, rows to columns
    ("x=3", "i32[90@x/4,7,6]", "y=4", "i32[90@y/5,7,6]"),
    ("x=8", "u16[5,512@x/1,576]", "y=4", "u16[5,512@y/1,576]"),
    ("x=2", "u8[3000@x,1001]", "y=3", "u8[3000,1001@y]"),
]


class Skip(Exception):
    pass


def library():
    """The class that makes an end of the transport, or the reason why it cannot be loaded."""
    try:
        if TRANSPORT == "mooncake":
            from mooncake.engine import TransferEngine
            return TransferEngine
        from nixl_cu12._api import nixl_agent, nixl_agent_config
        return lambda name: nixl_agent(name, nixl_agent_config(backends=["UCX"]))
    except ImportError as why:
        raise Skip(f"{TRANSPORT}: {why}") from None


class End:
    """One process's end, with its tiles registered."""

    def __init__(self, name, tiles):
        self.regions = [(tile.ctypes.data, tile.nbytes) for tile in tiles]
        if TRANSPORT == "mooncake":
            self.engine = library()()
            if self.engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") != 0:
                raise Skip("mooncake: no engine over TCP on this machine")
            if self.engine.batch_register_memory(*map(list, zip(*self.regions))) != 0:
                raise RuntimeError("mooncake registers no memory")
            self.name = f"127.0.0.1:{self.engine.get_rpc_port()}"
        else:
            self.engine = library()(name)
            self.engine.register_memory([(*region, 0, "") for region in self.regions], "DRAM")
            self.name = self.engine.get_agent_metadata()

    def writes_to(self, name):
        """The recipe's `write` into the tiles of another end."""
        if TRANSPORT == "mooncake":
            return functools.partial(recipe("mooncake_writes.py")["write"], self.engine, name)
        return functools.partial(recipe("nixl_writes.py")["write"], self.engine, self.engine.add_remote_agent(name))


def whole_of(layout):
    return numpy.random.default_rng(7).integers(0, 256, (*layout.shape, layout.numpy_dtype.itemsize), numpy.uint8).view(
        layout.numpy_dtype)[..., 0]


def ends_of(move):
    return reshard.parse_layout(*move[:2]), reshard.parse_layout(*move[2:])


def receiver(pipe):
    """Holds the tiles of all targets, and compares them once the sender has written."""
    wanted = [tile for move in MOVES for tile in reshard.split(whole_of(ends_of(move)[1]), ends_of(move)[1])]
    tiles = [numpy.zeros_like(tile) for tile in wanted]
    end = End("receiver", tiles)
    pipe.send((end.name, [address for address, _ in end.regions]))
    pipe.recv()
    pipe.send([bool((tile == one).all()) for tile, one in zip(tiles, wanted)])
    pipe.recv()


def sender(pipe):
    sources = [reshard.split(whole_of(ends_of(move)[0]), ends_of(move)[0]) for move in MOVES]
    end = End("sender", [tile for tiles in sources for tile in tiles])
    name, addresses = pipe.recv()
    write, written, first = end.writes_to(name), 0, 0
    for move, tiles in zip(MOVES, sources):
        source, target = ends_of(move)
        peers = dict(enumerate([[address] for address in addresses[first:first + target.mesh.size]]))
        first += target.mesh.size
        for rank, tile in enumerate(tiles):
            sent = reshard.schedule_rows(source, target, rank)
            for peer in sorted(set(sent["peer"].tolist())):
                of_peer = sent[sent["peer"] == peer]
                write(of_peer, tile.ctypes.data, peers)
                written += int(of_peer["runs"].sum())
    pipe.send("written")
    right = pipe.recv()
    pipe.send("end")
    if not all(right) or len(right) != len(addresses):
        raise AssertionError(f"tiles with the right bytes: {right}")
    print(f"{TRANSPORT}: {written} blocks into {len(right)} tiles of another process, all bytes right")


def ended(work, pipe):
    """The exit status. The process does not unload its libraries: NIXL 1.5.1 crashes while Python ends."""
    status = 0
    try:
        work(pipe)
    except Skip as why:
        print(f"skipped: {why}")
        status = 77
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    os.environ.update(UCX_TLS=TLS.get(TRANSPORT, "all"), NIXL_LOG_LEVEL="ERROR", MC_LOG_LEVEL="ERROR", GLOG_minloglevel="2")
    ours, theirs = multiprocessing.Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        ended(receiver, theirs)
    theirs.close()
    ended(sender, ours)
