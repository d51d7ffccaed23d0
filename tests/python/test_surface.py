"""Wrong arguments never end the interpreter: half-made objects, invalid texts, threads that outlive it."""

import importlib
import subprocess
import sys
import textwrap
import unittest
import warnings

import numpy

import reshard

MESH = "x=2,y=3"
SOURCE, TARGET = reshard.parse_layout(MESH, "f32[12@x,4]"), reshard.parse_layout(MESH, "f32[12@y,4]")


def ran(code):
    """Runs a program in a separate interpreter: its exit code and its output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def classes():
    """The classes of the C++ modules in this installation."""
    found = []
    for name in ("_core", "_live", "_mpi"):
        try:
            module = importlib.import_module(f"reshard.{name}")
        except ImportError:
            continue
        found += [value for value in vars(module).values() if isinstance(value, type)]
    return found


def half(kind):
    return kind.__new__(kind)


class Surface(unittest.TestCase):
    def test_first_steps_that_are_none(self):
        class Bad:
            def __getitem__(self, at):
                raise ZeroDivisionError

            def __len__(self):
                return 2
        wrong = ([1], [("slice",)], [("slice", 1)], [(1, SOURCE)], [None], [("slice", SOURCE, 3)], ["slice"], [b"ab"], [Bad()],
                 [["slice", half(reshard.Layout)]])
        for steps in wrong:
            for call in (lambda: reshard.synthesize(SOURCE, TARGET, first_steps=steps),
                         lambda: reshard.explain(SOURCE, TARGET, first_steps=steps),
                         lambda: reshard.synthesize_list([(SOURCE, TARGET)], first_steps=steps)):
                with self.subTest(steps), self.assertRaises((TypeError, reshard.InputError)), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
        for call in (reshard.synthesize, reshard.explain):
            self.assertRaises(TypeError, call, SOURCE, TARGET, first_steps=1)
        steps = [("slice", reshard.parse_layout(MESH, "f32[12@(x,y),4]"))]
        self.assertEqual(reshard.synthesize(SOURCE, TARGET, first_steps=steps).steps[0].kind, "slice")

    def test_half_made_objects(self):
        kinds = classes()
        self.assertGreater(len(kinds), 15)
        for kind in kinds:
            for name in dir(kind):
                own = getattr(kind, name)
                if name == "__init__" or own in (getattr(base, name, None) for base in (object, type)) or isinstance(own, str):
                    continue  # members that every Python object has
                with self.subTest(f"{kind.__name__}.{name}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    one = half(kind)
                    try:
                        member = getattr(one, name)  # for a property its value
                        found = member() if callable(member) else member
                        self.assertTrue(found is NotImplemented or found is one or name in vars(object) or type(own).__name__ == "nb_func", found)
                    except (TypeError, reshard.InputError):
                        pass

    def test_half_made_arguments(self):
        halves = [half(kind) for kind in classes()]
        split = reshard.Split(0, [1])
        plan = reshard.synthesize(*[reshard.parse_layout("x=2", text) for text in ("f32[12@x]", "f32[12]")])
        local = reshard.local(6)
        calls = [lambda h: reshard.synthesize(h, TARGET), lambda h: reshard.synthesize(SOURCE, h),
                 lambda h: reshard.synthesize(SOURCE, TARGET, machine=h), lambda h: reshard.synthesize_list([(h, TARGET)]),
                 lambda h: reshard.synthesize(SOURCE, TARGET, capabilities=h), lambda h: reshard.Layout(h, "f32", (2,)),
                 lambda h: reshard.synthesize(SOURCE, TARGET, peak_bytes_max=h), lambda h: reshard.Layout(MESH, "f32", h),
                 lambda h: reshard.parse_layout(h, "f32[2]"), lambda h: reshard.portable(h), lambda h: split.slices(h, 0, 0),
                 lambda h: reshard.choose_pieces(h, lambda *_: 1.0, dim=0, block=1), lambda h: reshard.Machine(h),
                 lambda h: reshard.choose_pieces(plan, h, dim=0, block=4), lambda h: reshard.Mesh(h),
                 lambda h: reshard.RowSchedule([(h, TARGET)]), lambda h: reshard.schedule_rows(SOURCE, h, 0),
                 lambda h: reshard.CheckpointMapping(h, []), lambda h: reshard.CheckpointMapping("", [h]), lambda h: reshard.empty_tile(h, 0),
                 lambda h: reshard.split(numpy.zeros((12, 4)), h), lambda h: reshard.join([], h),
                 lambda h: local.redistribute([], h, TARGET), lambda h: local.redistribute([h] * 6, SOURCE, TARGET)]
        if reshard.mpi.available():
            from mpi4py import MPI
            one = reshard.parse_layout("x=1", "f32[4@x]")
            tile, alone = numpy.zeros(4, "f4"), reshard.synthesize(one, one)
            calls += [lambda h: reshard.mpi.Executor(MPI.COMM_SELF, h), lambda h: reshard.mpi.allocate(MPI.COMM_SELF, h, "f4"),
                      lambda h: reshard.mpi.Executor(MPI.COMM_SELF, alone, split=h),
                      lambda h: reshard.mpi.Executor(MPI.COMM_SELF, alone, h), lambda h: reshard.mpi.registered(MPI.COMM_SELF, h),
                      lambda h: reshard.mpi.Halo(MPI.COMM_SELF, h), lambda h: reshard.mpi.Halo(MPI.COMM_SELF, one, source=h),
                      lambda h: reshard.mpi.redistribute(MPI.COMM_SELF, tile, h, one),
                      lambda h: reshard.mpi.redistribute(MPI.COMM_SELF, h, one, one)]
        for number, call in enumerate(calls):
            for each in halves:
                with self.subTest(f"call {number}, {type(each).__name__}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.assertRaises(TypeError, call, each)

    def test_times_of_work_that_do_not_fit(self):
        for lengths, seconds in (([], []), ([1], []), ([], [1.0]), ([2, 1], [1.0, 1.0]), ([0], [1.0]), ([-1, 3], [1.0, 1.0])):
            self.assertRaises(reshard.InputError, reshard.WorkTimes, lengths, seconds)
        work = reshard.WorkTimes([1, 4], [1.0, 2.0])
        self.assertEqual((work(0, 1), work(2, 6), work(0, 8)), (1.0, 2.0, 4.0))
        for begin, end in ((5, 0), (-1, 3), (-2**63, 2**63 - 1)):
            self.assertRaises(reshard.InputError, work, begin, end)
        work.seconds = []
        self.assertRaises(reshard.InputError, work, 0, 1)
        work.lengths = []
        self.assertRaises(reshard.InputError, work, 0, 1)

    def test_sizes_without_end(self):
        big = reshard.Mesh({"x": 2**40})
        self.assertRaises(reshard.UnsupportedError, lambda: big.devices)
        for call in (lambda: reshard.local(2**40), lambda: reshard.local(1, float("nan")), lambda: reshard.local(1, -1.0),
                     lambda: reshard.measure_work(4, print, rounds=2**30),
                     lambda: reshard.choose_pieces(reshard.synthesize(SOURCE, TARGET), print, dim=0, block=4, places=2**40)):
            self.assertRaises(reshard.InputError, call)
        reshard.local(1, float("inf")).redistribute([numpy.zeros(1)], *[reshard.parse_layout("x=1", "f64[1]")] * 2)
        times = reshard.measure_work(2**63 - 1, lambda *_: None, places=3, rounds=1)
        self.assertEqual(times.lengths[-1], 2**63 - 1)
        self.assertLess(len(times.lengths), 5)

    def test_texts_that_are_none(self):
        for call in (lambda: reshard.Layout("x=2\ud800", "f32", (2,)), lambda: reshard.Layout("x=2", "f32\ud800", (2,)),
                     lambda: reshard.Machine("\ud800"), lambda: reshard.CheckpointMapping("", "\ud800"),
                     lambda: reshard.synthesize(SOURCE, TARGET, peak_bytes_max="1\ud800"), lambda: reshard.Mesh({"\ud800": 2}),
                     lambda: reshard.Mesh("96MiB"), lambda: reshard.parse_mesh("x\0=2"), lambda: reshard.Mesh({"x\0y": 2}),
                     lambda: reshard.Layout.from_placements("x=2", "f32", (2,), ["\ud800"])):
            self.assertRaises((ValueError, TypeError), call)
        with self.assertRaises(reshard.InputError) as caught:
            reshard.parse_layout(MESH, "f32[12@é,4]")
        self.assertEqual(caught.exception.text, "f32[12@é,4]")

    def test_threads_that_outlive_the_interpreter(self):
        code, out, said = ran("""
            import threading, numpy, reshard
            ends = [reshard.parse_layout("x=2", text) for text in ("f32[400@x,300]", "f32[400,300@x]")]
            world, tiles = reshard.local(2), reshard.split(numpy.zeros((400, 300), "f4"), ends[0])
            began = [threading.Event() for _ in range(6)]
            def move(event):
                while True:
                    world.redistribute(tiles, *ends)
                    event.set()
            def plan(event):
                while True:
                    try:
                        reshard.explain(ends[0], reshard.parse_layout("x=2", "f32[1@]"))
                    except reshard.Error:
                        event.set()
            for number, event in enumerate(began):
                threading.Thread(target=move if number % 2 else plan, args=(event,), daemon=True).start()
            for event in began:
                event.wait()
            print("ends", flush=True)
            """)
        self.assertEqual((code, out), (0, "ends\n"), said)

    def test_calls_after_mpi_was_finalized(self):
        if not reshard.mpi.available():
            self.skipTest("no MPI")
        code, out, said = ran("""
            from mpi4py import MPI
            import numpy, reshard
            ends = [reshard.parse_layout("x=1", text) for text in ("f32[9@x]", "f32[9]")]
            a, b, plan = numpy.ones(9, "f4"), numpy.zeros(9, "f4"), reshard.synthesize(*ends)
            comm = MPI.COMM_WORLD
            executor, memory, held = reshard.mpi.Executor(comm, plan), reshard.mpi.allocate(comm, ends[0]), reshard.mpi.registered(comm, a)
            run = executor.start(a, b)
            MPI.Finalize()
            wrong = 0
            for call in (lambda: reshard.mpi.redistribute(comm, a, *ends), lambda: reshard.mpi.allocate(comm, ends[0]),
                         lambda: reshard.mpi.Executor(comm, plan), lambda: reshard.mpi.registered(comm, b),
                         lambda: reshard.mpi.capabilities(comm), lambda: reshard.mpi.clear(comm)):
                try:
                    call()
                except reshard.BackendError:
                    wrong += 1
            memory.fill(3)
            print(wrong, int(memory.sum()), flush=True)
            """)
        self.assertEqual((code, out), (0, "6 27\n"), said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
