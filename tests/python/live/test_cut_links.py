"""reshard.live over a link that is cut: a publisher of 2 processes and a subscriber of 3, in two network namespaces. Every
rank of the subscriber has an error that names the publisher, all keep one whole version, the publisher goes on, and the
subscriber connects again. With arguments this file is one process of a job. It needs root, and the tools ip and tc."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
sys.path.insert(0, str(ROOT / "bench"))
from two_nodes import Nodes, Skip, need  # noqa: E402

LEASE = 2.0  # seconds; a busy machine seldom breaks it, and then an engine names a process that is slow
HANG = 240  # seconds, far above any wait that is right
CUTS = 100 if os.environ.get("RESHARD_LONG") else 2
RATE = 20_000_000  # bytes a second, so that a version takes a while
SOURCE = reshard.parse_layout("x=2", "i64[6000@x,20]")
TARGET = reshard.parse_layout("x=3", "i64[6000,20@x]")


def say(line):
    os.write(1, (line + "\n").encode())


def trainer(folder, rank, endpoint, transport):
    """Commits versions, all elements alike, until its parent ends it."""
    rank = int(rank)
    job = reshard.live.join_group(f"{folder}/trainer", rank, 2)
    array = numpy.zeros(SOURCE.tile_shape(rank), "i8")
    with reshard.live.publish(job, endpoint, {"w": (SOURCE, array)}, lease=LEASE, transport=transport) as out:
        say(f"P{out.endpoint}")
        for version in range(1, 1 << 40):
            array[...] = version
            out.commit(version)
            say(f"C{version}")
            time.sleep(0.02)


def engine(folder, rank, endpoint):
    """Takes versions. After an error it says which version it still has, and connects again when its parent says so."""
    rank, last = int(rank), 0
    job = reshard.live.join_group(f"{folder}/engine", rank, 3)
    with reshard.live.subscribe(job, endpoint, {"w": TARGET}, lease=LEASE, connect_timeout=HANG) as into:
        while True:
            try:
                version = into.update(HANG)
                if version <= last or not (into["w"] == version).all():
                    say(f"Wversion {version} after {last}, or a mixed one")
                last = version
                say(f"V{version}")
            except reshard.BackendError as error:
                kept = into.version
                if kept and (kept < last or not (into["w"] == kept).all()):
                    say(f"Wversion {kept} is kept after {last}, or a mixed one")
                say(f"E{error}")
                say(f"S{kept}")
                name = sys.stdin.readline().strip()
                if not name:
                    return
                job = reshard.live.join_group(f"{folder}/{name}", rank, 3)
                into.reconnect(job)


class Process:
    def __init__(self, inside, *arguments):
        self.child = subprocess.Popen([*inside, sys.executable, "-B", os.path.abspath(__file__), *map(str, arguments)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def next(self, kind):
        for line in self.child.stdout:
            if line[0] == "W":
                raise AssertionError(line)
            if line[0] == kind:
                return line[1:].strip()
        raise AssertionError(f"{self.child.args[-3:]} has ended")


def pull(nodes, way):
    """Takes the cable of a node out of the bridge, or puts it back: `way` is down or up. No end is told."""
    need(*nodes.inside(2), "ip", "link", "set", "port1", way)


def cut(transport):
    seed = int(os.environ.get("RESHARD_SEED", "1"))
    choose = random.Random(seed)
    started = []
    with tempfile.TemporaryDirectory() as folder, Nodes(folder, RATE, 2) as nodes:
        try:
            trainers = [Process(nodes.inside(0, True), "trainer", folder, rank, f"{nodes.address(0)}:0", transport) for rank in range(2)]
            started += trainers
            endpoint = [one.next("P") for one in trainers][0]
            engines = [Process(nodes.inside(1, True), "engine", folder, rank, endpoint) for rank in range(3)]
            started += engines
            longest = 0.0
            for number in range(CUTS):
                for _ in range(choose.randint(1, 3)):
                    engines[0].next("V")
                time.sleep(choose.random() * 0.05)
                pull(nodes, "down")
                start = time.monotonic()
                errors = [one.next("E") for one in engines]
                longest = max(longest, time.monotonic() - start)
                for error in errors:
                    assert "of the publisher" in error or "has not voted" in error, error  # the latter if one is slow
                kept = {one.next("S") for one in engines} - {"0"}
                assert len(kept) <= 1, kept
                for one in trainers:  # they go on
                    one.next("C")
                pull(nodes, "up")
                for one in engines:
                    one.child.stdin.write(f"again{number}\n")
                    one.child.stdin.flush()
            for one in engines:
                one.next("V")
            print(f"{transport}: {CUTS} cuts from RESHARD_SEED={seed}; the last error came at most {longest:.1f} s after the cut, "
                  f"with leases of {LEASE:.0f} s")
        finally:
            for one in started:
                one.child.kill()
                one.child.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("trainer", "engine"):
        {"trainer": trainer, "engine": engine}[sys.argv[1]](*sys.argv[2:])
    elif not reshard.live.available():
        print("skipped: reshard.live needs Linux")
        sys.exit(77)
    else:
        os.environ.setdefault("UCX_LOG_FILE", "stderr")  # its words are no lines of a process
        try:
            cut("tcp")
            reshard.live.publish(None, "127.0.0.1:0", {"w": reshard.parse_layout("x=1", "i64[1]")}, transport="ucx").close()
            cut("ucx")
        except reshard.UnsupportedError as why:
            print(f"not over UCX: {why}")
        except Skip as why:
            print(f"skipped: {why}")
            sys.exit(77)
