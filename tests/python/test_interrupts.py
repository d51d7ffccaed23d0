"""Ctrl-C ends a wait for other ranks. This file starts itself on four ranks. One rank stays away from a call, a rank that waits
in it gets SIGINT, and all others end with an error. Then calls work again."""

import functools
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest

import numpy

import four_ranks
import reshard

PROMPTLY = 100  # seconds: less than any timeout of a wait for a rank
PACKAGE = (str(pathlib.Path(reshard.__file__).parent),)


def place_of_main_thread():
    """The instruction of the package at which the thread is, or None."""
    frame = sys._current_frames()[threading.main_thread().ident]
    return (frame.f_code, frame.f_lasti) if frame.f_code.co_filename.startswith(PACKAGE) else None


class Interrupter(threading.Thread):
    """Sends SIGINT to this process once its main thread waits within a call of the package. It must have been seen at one
    instruction many times, each time after no thread held the interpreter."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.sent = None

    def run(self):
        seen, before = 0, None
        while not self.over.wait(0.01):
            place = place_of_main_thread()
            seen = seen + 1 if place and place == before else 0
            before = place
            if seen == 40:
                self.sent = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
                return


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        mesh = reshard.Mesh({"x": 2, "y": 2})
        self.source, self.target = (reshard.parse_layout(mesh, f"f32[{end}]") for end in ("48@(x,y),32", "48,32@(y,x)"))
        whole = numpy.arange(48 * 32, dtype="f4").reshape(48, 32)
        self.tile = reshard.split(whole, self.source)[self.rank]
        self.wanted = reshard.split(whole, self.target)[self.rank]
        self.plan = reshard.synthesize(self.source, self.target, capabilities=reshard.mpi.capabilities(self.comm))

    def folder(self):
        """One that all ranks see."""
        made = tempfile.TemporaryDirectory() if self.rank == 0 else None
        if made:
            self.addCleanup(made.cleanup)
        return self.comm.bcast(made and made.name)

    def goes_on(self, comm=None):
        moved = reshard.mpi.redistribute(comm or self.comm, self.tile, self.source, self.target)
        self.assertEqual(moved.tobytes(), self.wanted.tobytes())

    def is_interrupted(self, call, away, interrupted, first=False, run=False):
        """`away` comes to the call when the others have left it. In a `first` call, which joins them, it comes when
        `interrupted` has left. Its run may succeed if it already has everything it needs."""
        with self.subTest(away=away, interrupted=interrupted):
            begun, caught = time.monotonic(), None
            left = [interrupted] if first else [rank for rank in range(four_ranks.RANKS) if rank != away]
            for rank in left if self.rank == away else ():
                self.comm.recv(source=rank, tag=7)
            interrupter = Interrupter()
            if self.rank == interrupted:
                interrupter.start()
            try:
                call()
            except BaseException as error:
                caught = error
            interrupter.over.set()
            if self.rank in left:
                self.comm.send(None, away, tag=7)
            if self.rank == interrupted:
                self.assertIsInstance(caught, KeyboardInterrupt)
                self.assertLess(time.monotonic() - interrupter.sent, PROMPTLY)
            else:
                kinds = (reshard.BackendError, type(None)) if run and self.rank == away else reshard.BackendError
                self.assertIsInstance(caught, kinds)
                self.assertLess(time.monotonic() - begun, PROMPTLY)
            self.comm.barrier()

    def test_in_an_agreement(self):
        path = os.path.join(self.folder(), "model")
        text = "{} x=2,y=2\nw = [(x,y), -]"
        save = functools.partial(reshard.save, self.comm, path, {"w": self.tile}, text.format("source"),
                                 shapes={"w": (48, 32)})
        save()
        calls = {"redistribute": functools.partial(reshard.mpi.redistribute, self.comm, self.tile, self.source, self.target),
                 "Executor": functools.partial(reshard.mpi.Executor, self.comm, self.plan),
                 "load": functools.partial(reshard.load, self.comm, path, text.format("target")), "save": save}
        for number, (name, call) in enumerate(calls.items()):
            for away, interrupted in ((3, 0), (0, 2)) if number == 0 else (((2, 1), (1, 0))[number % 2],):
                with self.subTest(call=name):
                    self.is_interrupted(call, away, interrupted)
                    self.goes_on()
        if self.rank == 0:
            self.assertTrue(os.path.exists(path))

    def test_in_a_run(self):
        out = reshard.empty_tile(self.target, self.rank)
        for away, interrupted, run in ((2, 0, lambda executor: executor.run(self.tile, out)),
                                       (0, 3, lambda executor: executor.start(self.tile, out).wait())):
            executor = reshard.mpi.Executor(self.comm, self.plan)
            self.is_interrupted(lambda: self.in_package(lambda: run(executor)), away, interrupted, run=True)
            self.goes_on()

    def test_in_a_run_that_is_dropped(self):
        def drop():
            run = executor.start(self.tile, out)
            if self.rank == 1:
                del run
                for _ in range(100 * PROMPTLY):  # the interpreter raises it as soon as it runs again
                    time.sleep(0.01)
            else:
                run.wait()

        out = reshard.empty_tile(self.target, self.rank)
        executor = reshard.mpi.Executor(self.comm, self.plan)
        self.is_interrupted(lambda: self.in_package(drop), 0, 1, run=True)
        self.goes_on()

    def in_package(self, call):
        """A call during which this file counts as the package, because methods of a run are called from here."""
        global PACKAGE
        before, PACKAGE = PACKAGE, (*PACKAGE, os.path.abspath(__file__))
        try:
            call()
        finally:
            PACKAGE = before

    def test_in_the_first_call_on_a_communicator(self):
        comm = self.comm.Dup()
        self.is_interrupted(lambda: reshard.mpi.capabilities(comm), 2, 1, first=True)
        self.goes_on(comm)
        self.is_interrupted(lambda: reshard.mpi.redistribute(comm, self.tile, self.source, self.target), 1, 2)
        comm.Free()

    def test_another_handler_of_a_signal(self):
        """A handler that raises ends a wait with its exception. A handler that returns does not end it."""
        came = []

        def handler(number, frame):
            came.append(number)
            if len(came) == 2:
                raise ZeroDivisionError("from the handler")
            Interrupter().start()

        signal.signal(signal.SIGINT, handler)
        with self.assertRaises(ZeroDivisionError if self.rank == 1 else reshard.BackendError):
            if self.rank == 0:
                self.comm.recv(source=1, tag=7)
            if self.rank == 1:
                Interrupter().start()
            try:
                reshard.mpi.redistribute(self.comm, self.tile, self.source, self.target)
            finally:
                if self.rank == 1:
                    self.comm.send(None, 0, tag=7)
        self.comm.barrier()
        self.assertEqual(len(came), 2 * (self.rank == 1))
        self.goes_on()


Launched = four_ranks.launched(seconds=500)

if __name__ == "__main__":
    four_ranks.main()
