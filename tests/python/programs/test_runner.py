"""Schedules that run with tasks in Python: ranks of this process, then four ranks. This file starts itself again."""

import pathlib
import sys
import unittest

import numpy

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import four_ranks
import reshard


def refit(buckets=3):
    """Two devices scale weights that are there from the beginning, two others keep them in columns."""
    rows = reshard.parse_layout("t=2[0,1]", "f32[16@t,6]")
    columns = reshard.parse_layout("r=2[2,3]", "f32[16,6@r]")
    program = reshard.Program()
    program.array("w", rows, kept=True)
    for i in range(buckets):
        program.task(f"pack{i}", "t=2[0,1]", 0.004, uses={"w": rows}, makes={f"w{i}": rows})
    for i in range(buckets):
        program.task(f"load{i}", "r=2[2,3]", 0.003, uses={f"w{i}": columns},
                     makes={f"out{i}": {"layout": columns, "kept": True}})
    return program, rows, columns


WHOLE = numpy.arange(96, dtype=numpy.float32).reshape(16, 6)


class Tasks:
    """The functions of a refit, and the tasks that ran on each rank."""

    def __init__(self, rows):
        self.ran = []
        self.tiles = reshard.split(WHOLE, rows)
        self.arrays = {"w": lambda rank: self.tiles[rank]}
        self.functions = {"pack": self.pack, "load": self.load}

    def pack(self, task):
        self.ran.append((task.rank, task.name))
        task.progress()
        task.makes["w" + task.name[4:]][...] = task.uses["w"] * (1 + int(task.name[4:]))

    def load(self, task):
        self.ran.append((task.rank, task.name))
        task.makes["out" + task.name[4:]][...] = task.uses["w" + task.name[4:]] + 0.5


def expect_kept(test, kept, columns, ranks):
    for name, tiles in kept.items():
        wanted = reshard.split(WHOLE * (1 + int(name[3:])) + 0.5, columns)
        for rank, tile in zip(ranks, tiles):
            if rank in (2, 3):
                numpy.testing.assert_array_equal(tile, wanted[rank])
            else:
                test.assertEqual(tile.size, 0)


def in_step():
    """Two devices make an array in rows, two others use it in columns, row by row, while it travels."""
    program = reshard.Program()
    program.task("make", "t=2[0,1]", 0.001, makes={"w": "f32[1024@t,512]"})
    program.task("use", "r=2[2,3]", 0.001, uses={"w": {"layout": "f32[1024,512@r]", "pieces": 0}},
                 makes={"more": {"layout": "f32[1024,512@r]", "kept": True}})
    return program


def use_in_step(test, runner, ranks):
    """Runs in_step, and compares what it keeps. Returns the calls of each rank."""
    whole = numpy.arange(1024 * 512, dtype=numpy.float32).reshape(1024, 512)
    calls = []

    def make(task):
        test.assertIsNone(task.piece)
        task.makes["w"][...] = whole[512 * task.rank:512 * (task.rank + 1)]

    def use(task):
        calls.append((task.rank, task.piece.place, task.piece.count))
        test.assertEqual((task.piece.array, task.piece.dim), ("w", 0))
        for part in task.piece.parts:
            task.makes["more"][part] = task.uses["w"][part] + 1

    kept = runner.run({"make": make, "use": use})
    for rank, tile in zip(ranks, kept["more"]):
        if rank >= 2:
            columns = slice(256 * (rank - 2), 256 * (rank - 1))
            numpy.testing.assert_array_equal(tile, whole[:, columns] + 1)
    for rank in set(ranks) & {2, 3}:
        count = calls[-1][2]
        test.assertGreater(count, 1)
        test.assertEqual([call for call in calls if call[0] == rank], [(rank, place, count) for place in range(count)])


class Launched(four_ranks.launched(300)):
    """Ranks of this process. The class above it starts four ranks."""

    def test_pieces_are_used_as_they_arrive(self):
        made = reshard.schedule(in_step())
        move = next(one for one in made.order if one.is_move)
        self.assertGreater(move.pieces, 1)
        self.assertGreater(move.end, next(one.start for one in made.order if one.name == "use"))
        runner = reshard.Runner(made, reshard.local(4))
        for _ in range(2):
            use_in_step(self, runner, range(4))
        self.assertIn('"pieces":0', str(runner.measured))

    def test_values_order_and_measured_times(self):
        program, rows, columns = refit()
        runner = reshard.Runner(reshard.schedule(program), reshard.local(4))
        tasks = Tasks(rows)
        for _ in range(2):
            kept = runner.run(tasks.functions, tasks.arrays)
            self.assertEqual(sorted(kept), ["out0", "out1", "out2"])
            expect_kept(self, kept, columns, range(4))
        self.assertEqual(len(tasks.ran), 2 * 2 * 6)
        for rank in (0, 1):
            self.assertEqual([name for at, name in tasks.ran if at == rank], ["pack0", "pack1", "pack2"] * 2)
        measured = runner.measured
        self.assertEqual(measured.task_names, program.task_names)
        self.assertNotEqual(str(measured), str(program))
        self.assertGreater(reshard.schedule(measured).seconds, 0)
        self.assertGreater(min(runner.most_bytes), 0)

    def test_a_limit_holds(self):
        program, rows, columns = refit()
        limit = 16 * 6 * 4 // 2 * 5
        runner = reshard.Runner(reshard.schedule(program, footprint_bytes_max=limit), reshard.local(4))
        tasks = Tasks(rows)
        expect_kept(self, runner.run(tasks.functions, tasks.arrays), columns, range(4))
        self.assertLessEqual(max(runner.most_bytes), limit)

    def test_tiles_outlive_their_task(self):
        program, rows, _ = refit()
        runner = reshard.Runner(reshard.schedule(program), reshard.local(4))
        tasks, held = Tasks(rows), []

        def load(task):
            tasks.load(task)
            held.append((task.uses["w" + task.name[4:]], task.uses["w" + task.name[4:]].copy(), task.progress))

        runner.run({"pack": tasks.pack, "load": load}, tasks.arrays)
        del runner
        for tile, wanted, progress in held:
            numpy.testing.assert_array_equal(tile, wanted)
            with self.assertRaisesRegex(reshard.InputError, "a task that has ended"):
                progress()

    def test_an_exception_of_a_task_is_raised(self):
        program, rows, _ = refit()
        runner = reshard.Runner(reshard.schedule(program), reshard.local(4))
        tasks = Tasks(rows)

        def load(task):
            raise ZeroDivisionError("no loss")

        with self.assertRaisesRegex(ZeroDivisionError, "no loss"):
            runner.run({"pack": tasks.pack, "load": load}, tasks.arrays)
        with self.assertRaises(reshard.BackendError):
            runner.run(tasks.functions, tasks.arrays)

    def test_wrong_input(self):
        program, rows, _ = refit()
        schedule = reshard.schedule(program)
        tasks = Tasks(rows)
        two = reshard.local(2)
        for _ in range(2):
            with self.assertRaisesRegex(reshard.InputError, "the backend has 2 ranks"):
                reshard.Runner(schedule, two)
        with self.assertRaisesRegex(reshard.InputError, "array w is there from the beginning"):
            reshard.Runner(schedule, reshard.local(4)).run(tasks.functions)
        with self.assertRaisesRegex(reshard.InputError, "shape"):
            reshard.Runner(schedule, reshard.local(4)).run(tasks.functions, {"w": lambda rank: WHOLE})
        with self.assertRaisesRegex(reshard.InputError, "no function computes task"):
            reshard.Runner(schedule, reshard.local(4)).run({"pack": tasks.pack}, tasks.arrays)
        with self.assertRaisesRegex(reshard.InputError, "no run"):
            reshard.Runner(schedule, reshard.local(4)).measured


class Ranks(unittest.TestCase):
    """Each of four ranks runs every test, in the same order."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD

    def test_values(self):
        program, rows, columns = refit()
        runner = reshard.Runner(reshard.schedule(program), self.comm)
        tasks = Tasks(rows)
        for _ in range(2):
            expect_kept(self, runner.run(tasks.functions, tasks.arrays), columns, [self.comm.rank])
        self.assertEqual(len(tasks.ran), 6)
        texts = self.comm.allgather(str(runner.measured))
        self.assertEqual(len(set(texts)), 1)

    def test_pieces_are_used_as_they_arrive(self):
        use_in_step(self, reshard.Runner(reshard.schedule(in_step()), self.comm), [self.comm.rank])

    def test_an_exception_of_a_task_ends_all_ranks(self):
        program, rows, _ = refit()
        runner = reshard.Runner(reshard.schedule(program), self.comm)
        tasks = Tasks(rows)

        def load(task):
            if self.comm.rank == 3 and task.name == "load1":
                raise ZeroDivisionError("no loss")
            tasks.load(task)

        kind = ZeroDivisionError if self.comm.rank == 3 else reshard.BackendError
        with self.assertRaisesRegex(kind, "no loss"):
            runner.run({"pack": tasks.pack, "load": load}, tasks.arrays)


if __name__ == "__main__":
    four_ranks.main()
