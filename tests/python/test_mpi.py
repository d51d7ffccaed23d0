"""reshard.mpi on four ranks. This file starts itself under the launcher."""

import os
import shutil
import sys
import tempfile
import threading
import time
import unittest

import numpy

import four_ranks
import reshard

def whole(layout):
    return (numpy.arange(int(numpy.prod(layout.shape))) % 120).reshape(layout.shape).astype(layout.numpy_dtype)


def tile_of(layout, rank):
    tiles = reshard.split(whole(layout), layout)
    return tiles[rank] if rank < len(tiles) else reshard.empty_tile(layout, rank)


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.mesh = reshard.Mesh({"x": 2, "y": 2})

    def ends(self, dtype="f64", source="50@x,30", target="50,30@(y,x)"):
        return tuple(reshard.parse_layout(self.mesh, f"{dtype}[{end}]") for end in (source, target))

    def holds(self, out, target):
        wanted = tile_of(target, self.rank)
        self.assertEqual((out.shape, out.dtype), (wanted.shape, wanted.dtype))
        self.assertEqual(out.tobytes(), wanted.tobytes())

    def raises(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(words, str(caught.exception))

    def test_dtypes_and_shapes(self):
        for dtype in ("bool", "i8", "u64", "f16", "f32", "bf16", "f8_e4m3fn", "c128"):
            for source, target in (("50@x,30", "50,30@(y,x)"), ("7@(x,y)", "7@y"), ("0@x,3", "0,3@x"), ("", "")):
                source, target = self.ends(dtype, source, target)
                self.holds(reshard.mpi.redistribute(self.comm, tile_of(source, self.rank), source, target), target)

    def test_the_recipe_for_puts_of_rows(self):
        from mpi4py import MPI
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "rows"))
        import test_rows
        for dtype in ("i8", "f64"):
            source, target = self.ends(dtype, "50@x/3,30", "50@(y,x)/4,30")
            out = reshard.empty_tile(target, self.rank)
            window = MPI.Win.Create(out, comm=self.comm)
            rows = reshard.schedule_rows(source, target, self.rank)
            test_rows.recipe("puts.py")["put"](window, rows, tile_of(source, self.rank))
            window.Free()
            self.holds(out, target)

    def test_orders_strides_and_allocated_memory(self):
        for dtype in ("f32", "bf16"):
            source, target = self.ends(dtype)
            tile = tile_of(source, self.rank)
            for change in (numpy.asfortranarray, lambda array: numpy.repeat(array, 2, 1)[:, ::2]):
                out = change(reshard.empty_tile(target, self.rank))
                self.assertIs(reshard.mpi.redistribute(self.comm, change(tile), source, target, out), out)
                self.holds(out, target)
            array, out = (reshard.mpi.allocate(self.comm, layout) for layout in (source, target))
            array[...] = tile
            reshard.mpi.redistribute(self.comm, array, source, target, out)
            del array
            self.holds(out, target)
        self.assertEqual(reshard.mpi.allocate(self.comm, (3, 0), "f4").shape, (3, 0))
        self.assertEqual(reshard.mpi.allocate(self.comm, (), "i2").shape, ())
        self.assertEqual(reshard.mpi.allocate(self.comm, 5, "c8").dtype, numpy.complex64)

    def test_memory_that_the_machine_does_not_have_is_refused_at_once(self):
        with self.assertRaisesRegex(reshard.BackendError, r"bytes of memory are wanted, and .* has \d+ bytes available"):
            reshard.mpi.allocate(self.comm, (1 << 50,), "u1")
        self.assertEqual(reshard.mpi.allocate(self.comm, 5, "u1").shape, (5,))  # no memory is lost

    def test_an_executor_runs_again_and_where_arrays_are(self):
        source, target = self.ends("f32")
        can = reshard.mpi.capabilities(self.comm)
        plan = reshard.synthesize(source, target, capabilities=can)
        for change in (lambda array: array, numpy.asfortranarray):
            array, out = change(tile_of(source, self.rank)), change(reshard.empty_tile(target, self.rank))
            executor = reshard.mpi.Executor(self.comm, plan, array, out)
            for _ in range(3):
                out[...] = 0
                executor.run(array, out)
                self.holds(out, target)
            other = change(reshard.empty_tile(target, self.rank))
            run = executor.start(array, other)
            while not run.test():
                pass
            run.wait()
            self.holds(other, target)
            self.assertGreaterEqual(executor.footprint_bytes, array.nbytes + out.nbytes + executor.workspace_bytes)
            self.assertTrue(executor.describe())
            self.assertEqual(executor.staging_bytes, executor.staging_bytes)
            if change is numpy.asfortranarray:
                self.raises(reshard.InputError, "strides of", lambda: executor.run(tile_of(source, self.rank), out))

    def test_a_list_and_a_donated_source(self):
        source, target = self.ends("f32")
        planned = reshard.synthesize_list([(source, target), (target, source)],
                                          capabilities=reshard.mpi.capabilities(self.comm))
        out = [reshard.empty_tile(layout, self.rank) for layout in (target, source)]
        executor = reshard.mpi.Executor(self.comm, planned)
        executor.run([tile_of(source, self.rank), tile_of(target, self.rank)], out)
        self.holds(out[0], target)
        self.holds(out[1], source)
        self.raises(reshard.InputError, "`source` are 1 arrays, the plan has 2", lambda: executor.run(out[:1], out))
        source, target = self.ends("f32", "48@x,32", "48,32@(y,x)")  # sizes divide, so collectives have a plan
        out = [reshard.empty_tile(target, self.rank)]
        donated = reshard.synthesize(source, target, donate=True, vocabulary="collectives")
        reshard.mpi.Executor(self.comm, donated).run(tile_of(source, self.rank), out[0])
        self.holds(out[0], target)

    def test_reshapes(self):
        source, target = self.ends("i32", "24@(x,y)", "4@x,6@y")
        tile, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
        self.holds(reshard.mpi.redistribute(self.comm, tile, source, target), target)
        executor = reshard.mpi.Executor(self.comm, reshard.synthesize(source, target))
        executor.run(tile, out)
        self.holds(out, target)
        self.raises(reshard.InputError, "holds a tile of shape", lambda: executor.run(tile, out.reshape(-1)))

    def test_wrong_arguments_of_all_ranks_and_of_one(self):
        source, target = self.ends("f32")
        tile = tile_of(source, self.rank)
        move = lambda array, out=None: reshard.mpi.redistribute(self.comm, array, source, target, out)
        self.raises(reshard.InputError, "the elements of `array` are f64", lambda: move(tile.astype("f8")))
        self.raises(reshard.InputError, f"rank {self.rank} holds a tile of shape", lambda: move(tile[1:]))
        self.raises(reshard.InputError, "`out` has shape", lambda: move(tile, tile))
        self.raises(TypeError, "an intracommunicator of mpi4py is wanted, not int",
                    lambda: reshard.mpi.redistribute(3, tile, source, target))
        self.raises(TypeError, "`array` is a list", lambda: move([1]))
        if self.rank == 2:
            self.raises(reshard.InputError, "rank 2 holds", lambda: move(tile[:1]))
        else:
            self.raises(reshard.Error, "rank 2", lambda: move(tile))
        wide = reshard.parse_layout("x=9", "f32[9@x]")
        self.raises(reshard.InputError, "ranks",
                    lambda: reshard.mpi.redistribute(self.comm, tile_of(wide, self.rank), wide, wide))
        self.holds(move(tile), target)  # it still works
        # A move prepared on all ranks stays prepared if an executor is not made.
        plan = reshard.synthesize(source, target)
        make = lambda: reshard.mpi.Executor(self.comm, reshard.synthesize(wide, wide) if self.rank == 2 else plan)
        self.raises(reshard.Error, "", make)
        self.holds(move(tile), target)
        self.raises(reshard.Error, "rank 2", lambda: move(tile[:1] if self.rank == 2 else tile))
        self.holds(move(tile), target)

    def test_communicators_come_and_go(self):
        from mpi4py import MPI
        source, target = self.ends("f32")
        tile = tile_of(source, self.rank)
        mine = self.comm.Dup()
        memory = reshard.mpi.allocate(mine, source)
        memory[...] = tile
        self.holds(reshard.mpi.redistribute(mine, memory, source, target), target)
        executor = reshard.mpi.Executor(mine, reshard.synthesize(source, target))
        reshard.mpi.clear(mine)
        self.holds(reshard.mpi.redistribute(mine, memory, source, target), target)
        mine.Free()
        del executor
        self.assertEqual(memory.tobytes(), tile.tobytes())
        self.raises(reshard.BackendError, "MPI_COMM_NULL",
                    lambda: reshard.mpi.redistribute(MPI.COMM_NULL, tile, source, target, tile))
        half = self.comm.Split(self.rank // 2, self.rank)
        between = half.Create_intercomm(0, self.comm, 2 if self.rank < 2 else 0)
        self.raises(TypeError, "wanted, not Intercomm", lambda: reshard.mpi.redistribute(between, tile, source, target))
        between.Free()
        pair = reshard.parse_layout("z=2", "f32[6@z,4]"), reshard.parse_layout("z=2", "f32[6,4@z]")
        out = reshard.mpi.redistribute(half, tile_of(pair[0], half.rank), *pair)
        self.assertEqual(out.tobytes(), tile_of(pair[1], half.rank).tobytes())

    def together(self, *calls):
        """The result or exception of each call, with all calls made at once in separate threads."""
        start, found = threading.Barrier(len(calls)), [None] * len(calls)

        def work(place, call):
            start.wait()
            try:
                found[place] = call()
            except Exception as error:  # pylint: disable=broad-except
                found[place] = error
        threads = [threading.Thread(target=work, args=each) for each in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def test_threads_that_use_one_run_or_one_registration(self):
        source, target = self.ends("f32", "40000@x,30", "40000,30@(y,x)")
        tile, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
        executor = reshard.mpi.Executor(self.comm, reshard.synthesize(source, target))
        for _ in range(30):
            run = executor.start(tile, out)
            for said in self.together(run.wait, run.wait, run.test, run.arrived, lambda: run.offer(0), run.wait):
                self.assertTrue(said is None or isinstance(said, (bool, int, reshard.InputError)), said)
            run.wait()
            self.holds(out, target)
            held = reshard.mpi.registered(self.comm, tile, out)
            self.assertEqual(self.together(*[held.end] * 4), [None] * 4)
            out[...] = 0
        run = executor.start(tile, out)
        box = [run]
        del run
        self.comm.Barrier()
        self.together(box.clear, lambda: reshard.mpi.capabilities(self.comm))
        self.holds(out, target)

    def test_memory_that_is_not_writable_and_memory_in_common(self):
        source, target = self.ends("f32", "48@x,30", "48,30@x")
        tile, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
        frozen = out.view()
        frozen.flags.writeable = False
        self.raises(reshard.InputError, "`out` is read-only",
                    lambda: reshard.mpi.redistribute(self.comm, tile, source, target, frozen))
        memory = numpy.zeros((4 * tile.size,), "f4")
        inner = memory[:2 * tile.size].reshape(*tile.shape[:-1], 2 * tile.shape[-1])[:, ::2]
        inner[...] = tile
        self.raises(reshard.InputError, "`array` and `out` overlap", lambda: reshard.mpi.redistribute(
            self.comm, inner, source, target, memory[:out.size].reshape(out.shape)))
        self.assertTrue((inner == tile).all())

    def test_the_short_way_takes_every_type_of_numpy(self):
        from mpi4py import MPI
        of_ml_dtypes = ("bf16", "f8_e4m3fn", "f8_e5m2")
        for dtype in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128",
                      *of_ml_dtypes):
            source, target = self.ends(dtype)
            tile, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
            reshard.mpi.redistribute(self.comm, tile, source, target, out)
            out.fill(0)
            taken = reshard.mpi._mpi.redistribute_plain(MPI._addressof(self.comm), tile, source, target, out)
            self.assertEqual(taken, dtype not in of_ml_dtypes)
            if taken:
                self.holds(out, target)

    def test_the_short_way_takes_plain_arrays_alone(self):
        from mpi4py import MPI
        source, target = self.ends("f32", "48@x,30", "48,30@x")
        tile, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
        mine = self.comm.Dup()
        short = lambda array, to, ends=(source, target): reshard.mpi._mpi.redistribute_plain(
            MPI._addressof(mine), array, *ends, to)
        move = lambda array, to: reshard.mpi.redistribute(mine, array, source, target, to)
        self.assertFalse(short(tile, out))  # the communicator is new
        move(tile, out)
        for _ in range(3):
            out.fill(0)
            self.assertTrue(short(tile, out))
            self.holds(out, target)
        frozen, memory = out.view(), numpy.zeros(tile.size + out.size - 1, "f4")
        frozen.flags.writeable = False
        inner, outer = memory[:tile.size].reshape(tile.shape), memory[tile.size - 1:].reshape(out.shape)
        swapped, subclass = tile.astype(">f4"), tile.view(type("Own", (numpy.ndarray,), {}))
        out.fill(0)
        for array, to in ((numpy.asfortranarray(tile), out), (tile[:, ::-1], out), (swapped, out), (subclass, out),
                          (tile.astype("i4"), out), (tile[1:], out), (tile.reshape(-1), out), (tile.tolist(), out),
                          (memoryview(tile), out), (None, out), (tile, None), (tile, frozen), (inner, outer),
                          (tile, numpy.asfortranarray(out)), (tile, out[:, :-1])):
            self.assertFalse(short(array, to))
        for ends in ((str(source), target), (source, None), (reshard.Layout.__new__(reshard.Layout), target)):
            self.assertFalse(short(tile, out, ends))
        self.assertFalse(out.any() or memory.any())
        others = numpy.asfortranarray if self.rank == 2 else lambda array: array  # one rank goes the long way
        for _ in range(3):
            out.fill(0)
            self.assertIs(move(others(tile), out), out)
            self.assertIs(reshard.mpi.redistribute(mine, others(tile), source, target, out=out), out)
            self.holds(out, target)
            out.fill(0)
            reshard.mpi.redistribute(self.comm, tile, source, target, out)  # communicators in turn
            self.holds(out, target)
        out.fill(0)
        self.raises(reshard.Error, "rank 2", lambda: move(tile[:1] if self.rank == 2 else tile, out))
        self.assertFalse(out.any())
        self.holds(move(tile, out), target)  # prepares anew
        elsewhere = (tile.copy(), (source, source)) if self.rank == 2 else (out, (source, target))
        self.raises(reshard.Error, "", lambda: short(tile, *elsewhere))  # the ranks bring different layouts
        self.holds(move(tile, out), target)
        reshard.mpi.clear(mine)
        self.assertFalse(short(tile, out))
        self.holds(move(tile, out), target)
        mine.Free()
        self.assertFalse(short(tile, out))
        self.raises(reshard.BackendError, "MPI_COMM_NULL", lambda: move(tile, out))

    def test_other_threads_run_while_a_rank_waits(self):
        """Rank 0 comes to the move after a thread of each other rank has run while that rank waited for rank 0."""
        source, target = self.ends("f32")
        tile = tile_of(source, self.rank)
        reshard.mpi.redistribute(self.comm, tile, source, target)
        folder = self.comm.bcast(tempfile.mkdtemp() if self.rank == 0 else None)
        waits = threading.Event()

        def run():
            waits.wait()
            for _ in range(100):
                time.sleep(0.001)  # takes the interpreter each time
            open(os.path.join(folder, f"rank-{self.rank}"), "w", encoding="utf-8").close()

        if self.rank == 0:
            deadline = time.monotonic() + 60
            while len(os.listdir(folder)) < self.comm.size - 1 and time.monotonic() < deadline:
                time.sleep(0.01)
            ran = len(os.listdir(folder))
            reshard.mpi.redistribute(self.comm, tile, source, target)
            shutil.rmtree(folder)
            self.assertEqual(ran, self.comm.size - 1)
        else:
            other = threading.Thread(target=run)
            other.start()
            waits.set()
            reshard.mpi.redistribute(self.comm, tile, source, target)
            other.join()


Launched = four_ranks.launched(300)


if __name__ == "__main__":
    four_ranks.main()
