"""A process is forked while threads of its parent move. It refuses inherited objects at once and frees them without a wait;
objects that it makes itself work. This file starts itself on four ranks."""

import gc
import os
import signal
import sys
import threading
import time
import traceback
import unittest

import numpy

import four_ranks
import reshard

LONGEST = 100  # seconds that a child may take


def in_a_child(body):
    """True if the body succeeds in a forked child. A child that hangs is ended."""
    child = os.fork()
    if child == 0:
        try:
            body()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def refused(call):
    """Expects that the call names the owner of its object."""
    try:
        call()
    except reshard.InputError as error:
        assert f"belong to process {os.getppid()}" in str(error), error
    else:
        raise AssertionError("it was not refused")


class Mover:
    """A thread that moves until it is asked to end."""

    def __init__(self, move):
        self.over, self.moves = threading.Event(), threading.Semaphore(0)
        self.thread = threading.Thread(target=self.run, args=(move,))
        self.thread.start()

    def run(self, move):
        while not self.over.is_set():
            move()
            self.moves.release()

    def __enter__(self):
        self.moves.acquire(timeout=LONGEST)
        return self

    def __exit__(self, *exception):
        self.over.set()
        self.thread.join()


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self.rank = self.comm.rank
        mesh = reshard.Mesh({"x": 2, "y": 2})
        self.source, self.target = (reshard.parse_layout(mesh, f"f32[{end}]") for end in ("48@(x,y),32", "48,32@(y,x)"))
        self.whole = numpy.arange(48 * 32, dtype="f4").reshape(48, 32)
        self.tile = reshard.split(self.whole, self.source)[self.rank]
        self.wanted = reshard.split(self.whole, self.target)[self.rank]

    def makes_its_own(self):
        moved = reshard.local(4).redistribute(reshard.split(self.whole, self.source), self.source, self.target)
        assert (reshard.join(moved, self.target) == self.whole).all()

    def test_local_ranks(self):
        source, target = (reshard.parse_layout("x=2", f"f32[{end}]") for end in ("2048@x,1024", "2048,1024@x"))
        tiles = [numpy.zeros(source.tile_shape(rank), "f4") for rank in range(2)]
        ranks = [reshard.local(2)]

        def child():
            refused(lambda: ranks[0].redistribute(tiles, source, target))
            ranks.clear()
            gc.collect()
            self.makes_its_own()

        with Mover(lambda: ranks[0].redistribute(tiles, source, target)) as mover:
            for _ in range(5):
                mover.moves.acquire(timeout=LONGEST)
                self.assertTrue(in_a_child(child))

    def test_ranks_of_a_communicator(self):
        """Another thread waits for a rank that comes later, if MPI supports several threads."""
        comm = self.comm.Dup()
        plan = reshard.synthesize(self.source, self.target, capabilities=reshard.mpi.capabilities(self.comm))
        reshard.mpi.capabilities(comm)
        out, memory = reshard.empty_tile(self.target, self.rank), reshard.mpi.allocate(self.comm, self.target)
        held = {"executor": reshard.mpi.Executor(self.comm, plan), "idle": reshard.mpi.Executor(self.comm, plan),
                "memory": memory, "registration": reshard.mpi.registered(self.comm, numpy.zeros(1 << 20, "f4"))}
        del memory

        def child():
            move = lambda where: reshard.mpi.redistribute(where, self.tile, self.source, self.target)
            refused(lambda: move(self.comm))
            refused(lambda: move(comm))
            refused(lambda: reshard.mpi.Executor(self.comm, plan))
            refused(lambda: reshard.mpi.allocate(self.comm, 5, "f4"))
            refused(lambda: reshard.mpi.capabilities(self.comm))
            refused(lambda: reshard.mpi.clear(self.comm))
            refused(lambda: held["idle"].run(self.tile, out))
            for call in (held["run"].test, held["run"].arrived, held["run"].wait, lambda: held["run"].offer(0)):
                refused(call)
            held.clear()
            gc.collect()
            self.makes_its_own()

        def main_thread():
            if self.rank > 0:
                held["run"] = held["executor"].start(self.tile, out)  # waits for rank 0
            else:
                held["run"] = held["idle"].start(self.tile, out)
            well = in_a_child(child)
            if self.rank == 0:
                held["executor"].run(self.tile, reshard.empty_tile(self.target, 0))
                held["idle"] = None
            else:
                held["run"].wait()
                held["idle"].run(self.tile, out)
            held["run"].wait()
            return well

        if self.threads and self.rank > 0:
            waiting = threading.Thread(target=reshard.mpi.redistribute, args=(comm, self.tile, self.source, self.target))
            waiting.start()
        well = main_thread()
        if self.threads and self.rank > 0:
            waiting.join()
        else:
            reshard.mpi.redistribute(comm, self.tile, self.source, self.target)
        self.assertTrue(well)
        self.assertEqual(out.tobytes(), self.wanted.tobytes())
        held["registration"].end()
        comm.Free()
        self.assertEqual(reshard.mpi.redistribute(self.comm, self.tile, self.source, self.target).tobytes(),
                         self.wanted.tobytes())


Launched = four_ranks.launched(seconds=500)

if __name__ == "__main__":
    four_ranks.main()
