"""A mistake of one rank is an error on all ranks. This file starts itself on four ranks. It makes every collective call with
every kind of wrong argument on one rank; then a right move shows that all ranks are still in step."""

import os
import tempfile
import time
import unittest

import numpy

import four_ranks
import reshard

PROMPTLY = 100  # seconds: less than any timeout of a rank that waits for one that does not come


class NotRowMajor:
    """An array with DLPack and column-major elements."""

    def __init__(self, array):
        self.array = numpy.asfortranarray(array)
        self.shape = array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        mesh = reshard.Mesh({"x": 2, "y": 2})
        self.source, self.target = (reshard.parse_layout(mesh, f"f32[{end}]") for end in ("48@(x,y),32", "48,32@(y,x)"))
        self.wide = reshard.parse_layout("x=9", "f32[9@x]")
        whole = numpy.arange(48 * 32, dtype="f4").reshape(48, 32)
        self.tile = reshard.split(whole, self.source)[self.rank]
        self.wanted = reshard.split(whole, self.target)[self.rank]
        self.plan = reshard.synthesize(self.source, self.target, capabilities=reshard.mpi.capabilities(self.comm))
        self.other_plan = reshard.synthesize(self.target, self.source)
        line = reshard.Mesh({"x": 4})
        self.reshaped = [reshard.parse_layout(line, f"f32[{end}]") for end in ("48@x,32", "96@x,16")]

    def folder(self):
        """One that all ranks see."""
        made = tempfile.TemporaryDirectory() if self.rank == 0 else None
        if made:
            self.addCleanup(made.cleanup)
        return self.comm.bcast(made and made.name)

    def out(self):
        return reshard.empty_tile(self.target, self.rank)

    def goes_on(self, comm=None):
        moved = reshard.mpi.redistribute(comm or self.comm, self.tile, self.source, self.target)
        self.assertEqual(moved.tobytes(), self.wanted.tobytes())

    def fails_everywhere(self, what, call, culprit, kinds):
        """`kinds`: exceptions of the culprit. The other ranks raise an error of the library that names it and has its words."""
        with self.subTest(what=what, culprit=culprit):
            begun, caught = time.monotonic(), None
            try:
                call()
            except BaseException as error:
                caught = error
            self.assertIsInstance(caught, kinds if self.rank == culprit else reshard.Error)
            self.assertLess(time.monotonic() - begun, PROMPTLY)
            words = self.comm.bcast(str(caught).splitlines()[0], culprit)
            if self.rank != culprit:
                self.assertIn(f"rank {culprit}", str(caught))
                self.assertIn(words[:100], str(caught))
            self.goes_on()

    def right_arguments_or(self, right, wrong, culprit):
        return {**right, **(wrong if self.rank == culprit else {})}

    def table(self, call, right, rows, culprits=(0, 3)):
        for number, (wrong, kinds) in enumerate(rows):
            for culprit in culprits if len(culprits) > 1 else (culprits[0] * (number % 2),):
                arguments = self.right_arguments_or(right, wrong, culprit)
                if "only" in arguments:
                    arguments = {name: arguments[name] for name in arguments["only"]}
                self.fails_everywhere(f"{call.__qualname__}: {list(wrong)}, row {number}", lambda: call(**arguments),
                                      culprit, kinds)

    def test_redistribute(self):
        right = {"comm": self.comm, "array": self.tile, "source": self.source, "target": self.target}
        overlapping = numpy.zeros(4000, "f4")
        self.table(reshard.mpi.redistribute, right, [
            ({"array": self.tile.astype("f8")}, reshard.InputError),
            ({"array": self.tile[1:]}, reshard.InputError),
            ({"array": [1]}, TypeError),
            ({"array": None}, TypeError),
            ({"array": self.tile.astype("O")}, reshard.InputError),
            ({"array": NotRowMajor(self.tile)}, reshard.UnsupportedError),
            ({"source": None}, TypeError),
            ({"target": None}, (TypeError, AttributeError)),
            ({"target": "f32[48@x,32]"}, (TypeError, AttributeError)),
            ({"target": self.source}, reshard.InputError),
            ({"target": self.wide, "out": reshard.empty_tile(self.wide, self.rank)}, reshard.InputError),
            ({"out": self.out()[1:]}, reshard.InputError),
            ({"out": read_only(self.out())}, reshard.InputError),
            ({"out": 3}, TypeError),
            ({"array": overlapping[:self.tile.size].reshape(self.tile.shape),
              "out": overlapping[:self.wanted.size].reshape(self.wanted.shape)}, reshard.InputError),
            ({"only": ("comm", "array", "source")}, TypeError),
            ({"stream": 0}, TypeError),
        ])

    def test_executor(self):
        right = {"comm": self.comm, "plan": self.plan}
        self.table(reshard.mpi.Executor, right, [
            ({"plan": None}, TypeError),
            ({"plan": "exchange"}, TypeError),
            ({"plan": self.other_plan}, reshard.InputError),
            ({"plan": reshard.synthesize(self.wide, self.wide)}, reshard.InputError),
            ({"source": self.tile.astype("i2")}, reshard.InputError),
            ({"source": self.tile[1:]}, reshard.InputError),
            ({"source": [self.tile]}, TypeError),
            ({"source": self.tile[::-1]}, reshard.UnsupportedError),
            ({"target": self.tile}, reshard.InputError),
            ({"target": 3}, TypeError),
            ({"split": 3}, TypeError),
            ({"split": reshard.Split(dim=7, ends=[1, 2])}, reshard.InputError),
            ({"only": ("comm",)}, TypeError),
            ({"offers_withheld": True}, TypeError),
        ])
        planned = reshard.synthesize(*self.reshaped)
        tile = reshard.empty_tile(self.reshaped[0], self.rank)
        self.table(reshard.mpi.Executor, {"comm": self.comm, "plan": planned, "source": tile}, [
            ({"source": numpy.asfortranarray(tile)}, reshard.UnsupportedError),
            ({"split": reshard.Split(dim=0, ends=[1, 2])}, reshard.UnsupportedError),
        ])
        several = reshard.synthesize_list([(self.source, self.target), (self.target, self.source)])
        self.table(reshard.mpi.Executor, {"comm": self.comm, "plan": several}, [
            ({"plan": self.plan}, reshard.InputError),
            ({"source": self.tile}, reshard.InputError),
            ({"target": 3}, TypeError),
            ({"split": reshard.Split(dim=0, ends=[1, 2])}, reshard.InputError),
        ])

    def test_runs_of_an_executor(self):
        def run(withheld=None, **arguments):
            executor = reshard.mpi.Executor(self.comm, self.plan)
            if withheld is None:
                executor.run(**arguments)
            else:
                executor.start(offers_withheld=withheld, **arguments).wait()

        self.table(run, {"source": self.tile, "target": self.out()}, [
            ({"source": self.tile.astype("f8")}, reshard.InputError),
            ({"target": read_only(self.out())}, reshard.InputError),
            ({"target": [1]}, TypeError),
            ({"only": ("source",)}, TypeError),
            ({"withheld": "no"}, TypeError),
        ], culprits=(3,))

    def test_a_run_that_is_started_again_in_time_is_well(self):
        executor = reshard.mpi.Executor(self.comm, self.plan)
        out = self.out()
        if self.rank == 1:
            with self.assertRaises(reshard.InputError):
                executor.run(self.tile[1:], out)
        executor.run(self.tile, out)
        self.assertEqual(out.tobytes(), self.wanted.tobytes())

    def test_checkpoints(self):
        path = os.path.join(self.folder(), "model")
        rules = "{} x=2,y=2\nw = [{}]"
        right = {"comm": self.comm, "path": path, "tiles": {"w": self.tile}, "rules": rules.format("source", "(x,y), -"),
                 "shapes": {"w": (48, 32)}}
        reshard.save(**right)
        anew = {**right, "path": path + ".again"}
        self.table(reshard.save, anew, [
            ({"tiles": None}, TypeError),
            ({"tiles": {"w": 3}}, TypeError),
            ({"tiles": {"w": self.tile, "v": self.tile}}, reshard.InputError),
            ({"tiles": {"w": self.tile[1:]}}, reshard.InputError),
            ({"tiles": {"w": NotRowMajor(self.tile)}}, reshard.UnsupportedError),
            ({"tiles": {3: self.tile}}, (TypeError, RuntimeError)),
            ({"path": 3}, TypeError),
            ({"path": "/"}, reshard.Error),
            ({"rules": 3}, TypeError),
            ({"rules": "otherwise"}, reshard.InputError),
            ({"shapes": {"w": ("a", 3)}}, (TypeError, ValueError)),
            ({"shapes": 3}, TypeError),
            ({"form": 3}, TypeError),
            ({"form": "zip"}, reshard.InputError),
            ({"cast": 3}, (TypeError, reshard.InputError)),
            ({"memory": "much"}, TypeError),
            ({"jobs": None}, TypeError),
            ({"only": ("comm", "path", "tiles")}, TypeError),
        ])
        reading = {"comm": self.comm, "path": path, "rules": rules.format("target", "-, (y,x)")}
        self.table(reshard.load, reading, [
            ({"path": 3}, TypeError),
            ({"path": None}, TypeError),
            ({"path": path + ".nowhere"}, reshard.Error),
            ({"rules": 3}, TypeError),
            ({"rules": "otherwise"}, reshard.InputError),
            ({"list": 3}, TypeError),
            ({"list": "w f32"}, reshard.InputError),
            ({"cast": 3}, (TypeError, reshard.InputError)),
            ({"cast": "f99"}, reshard.InputError),
            ({"cast": {"w": 3}}, (TypeError, reshard.InputError)),
            ({"memory": "much"}, TypeError),
            ({"memory": 1}, reshard.InfeasibleError),
            ({"jobs": 1.5}, TypeError),
            ({"only": ("comm",)}, TypeError),
            ({"form": "npy"}, TypeError),
        ])
        self.assertEqual(reshard.load(**reading)["w"].tobytes(), self.wanted.tobytes())

    def test_models(self):
        moving = {"comm": self.comm, "tiles": {"w": self.tile}, "tensors": [("w", self.tile.dtype, (48, 32))],
                  "rules": "source x=2,y=2\nw = [(x,y), -]\ntarget x=2,y=2\nw = [-, (y,x)]"}
        self.table(reshard.move_tensors, moving, [
            ({"tiles": None}, TypeError),
            ({"tiles": {"w": 3}}, TypeError),
            ({"tiles": {}}, reshard.InputError),
            ({"tiles": {"w": self.tile, "v": self.tile}}, reshard.InputError),
            ({"tiles": {"w": self.tile[1:]}}, reshard.InputError),
            ({"tiles": {"w": NotRowMajor(self.tile)}}, reshard.UnsupportedError),
            ({"tiles": {3: self.tile}}, (TypeError, reshard.InputError)),
            ({"tensors": 3}, TypeError),
            ({"tensors": "w f32"}, reshard.InputError),
            ({"tensors": [("w", "i16", (48, 32))]}, reshard.InputError),
            ({"rules": 3}, TypeError),
            ({"rules": "source x=4\notherwise = -"}, reshard.InputError),
            ({"cast": "f99"}, reshard.InputError),
            ({"only": ("comm", "tiles")}, TypeError),
        ])
        self.assertEqual(reshard.move_tensors(**moving)["w"].tobytes(), self.wanted.tobytes())

    def test_the_first_call_on_a_communicator(self):
        rows = [(reshard.mpi.allocate, (self.source,), (3.5,)), (reshard.mpi.allocate, (self.source,), ()),
                (reshard.mpi.allocate, ((2, 3), "f4"), ((2, 3), "f99")),
                (reshard.mpi.registered, (numpy.zeros(1 << 14, "f4"),), ([1],)),
                (reshard.mpi.registered, (numpy.zeros(1 << 14, "f4"),), (3,)),
                (reshard.mpi.register_after, (1,), ("1",)), (reshard.mpi.register_after, (0,), (-1,))]
        for number, (call, right, wrong) in enumerate(rows):
            comm = self.comm.Dup()
            culprit = 3 * (number % 2)
            with self.subTest(call=call.__name__, wrong=wrong):
                try:
                    call(comm, *(wrong if self.rank == culprit else right))
                    failed = False
                except (TypeError, reshard.Error):
                    failed = True
                self.assertEqual(failed, self.rank == culprit)
                self.goes_on(comm)
            comm.Free()
        comm = self.comm.Dup()
        try:
            reshard.mpi.registered(comm, on_fork="never" if self.rank == 0 else "share")
        except reshard.InputError:
            self.assertEqual(self.rank, 0)
        self.goes_on(comm)
        comm.Free()

    def test_tiles_without_elements_are_row_major(self):
        """Ranks that hold nothing of a reshaped array pass an empty array, with any strides."""
        line = reshard.Mesh({"x": 4})
        ends = [reshard.parse_layout(line, f"i32[{end}]") for end in ("2@x,3,2", "2@x,6")]
        whole = numpy.arange(12, dtype="i4")
        tiles, wanted = (reshard.split(whole.reshape(end.shape), end) for end in ends)
        tile, out = tiles[self.rank], reshard.empty_tile(ends[1], self.rank)
        self.assertEqual(tile.size == 0, self.rank > 1)
        plan = reshard.synthesize(*ends)
        changes = (lambda array: numpy.lib.stride_tricks.as_strided(array, array.shape, (0,) * array.ndim),
                   numpy.asfortranarray, lambda array: array[..., ::-1])
        for change in changes:
            mine, to = (tile, out) if tile.size else (change(tile), change(out))
            executor = reshard.mpi.Executor(self.comm, plan, mine, to)
            executor.run(mine, to)
            self.assertEqual(to.tobytes(), wanted[self.rank].tobytes())
            moved = reshard.mpi.redistribute(self.comm, mine, *ends)
            self.assertEqual(moved.tobytes(), wanted[self.rank].tobytes())
        if not tile.size:
            tile = NotRowMajor(tile)
        reshard.mpi.Executor(self.comm, plan, tile, out).run(tile, out)
        self.assertEqual(out.tobytes(), wanted[self.rank].tobytes())


Launched = four_ranks.launched(seconds=500)

if __name__ == "__main__":
    four_ranks.main()
