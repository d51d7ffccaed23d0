"""Runs in pieces beside computation, on four ranks. This file starts itself under the launcher."""

import random
import unittest

import numpy

import four_ranks
import reshard

SLOW = "machine slow\nlevel link devices all message 10us bandwidth 1MB/s\ncopy 10GB/s\n"


def whole(layout):
    return (numpy.arange(int(numpy.prod(layout.shape))) % 120).reshape(layout.shape).astype(layout.numpy_dtype)


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.mesh = reshard.Mesh({"x": 2, "y": 2})

    def ends(self, source, target):
        return tuple(reshard.parse_layout(self.mesh, text) for text in (source, target))

    def tile(self, layout):
        """This rank's tile. If a layout is a sum over all ranks, all have the same summand."""
        return whole(layout) if layout.summands > 1 else reshard.split(whole(layout), layout)[self.rank]

    def executor(self, source, target, split):
        plan = reshard.synthesize(source, target, capabilities=reshard.mpi.capabilities(self.comm))
        return reshard.mpi.Executor(self.comm, plan, split=split)

    def arrive(self, run, split, target, out, wanted):
        """Polls until everything has arrived. Pieces that have arrived must be whole."""
        seen = 0
        while seen < len(split):
            arrived = run.arrived()
            self.assertGreaterEqual(arrived, seen)
            for place in range(seen, arrived):
                for part in split.slices(target, self.rank, split.order[place]):
                    part = (slice(None),) * split.dim + (part,)
                    self.assertEqual(out[part].tobytes(), wanted[part].tobytes())
            seen = arrived

    def raises(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(words, str(caught.exception))

    def test_what_has_arrived_is_whole(self):
        for source, target, split in (
                ("f32[48@(x,y),6]", "f32[48,6]", reshard.Split(0, [2, 5, 12])),
                ("f32[48@(x,y),6]", "f32[48,6]", reshard.Split(0, [2, 5, 12], order=[2, 0, 1])),
                ("f64[48@x,8]", "f64[48,8@y]", reshard.Split.even(0, 24, 5)),
                ("i16[48,8@y]", "i16[48,8@x]", reshard.Split.even(1, 4, 4)),
                ("f32[7@x,3]", "f32[7,3@y]", reshard.Split(0, [1, 4])),  # does not divide
                ("f32[48@x,4]", "f32[48,4@x]", reshard.Split(0, [6, 24], overlapped=False))):
            source, target = self.ends(source, target)
            executor = self.executor(source, target, split)
            tile, wanted = self.tile(source), self.tile(target)
            for _ in range(3):
                out = reshard.empty_tile(target, self.rank)
                run = executor.start(tile, out)
                if split.overlapped:
                    self.assertEqual(executor.arrival_count, len(split))
                    self.arrive(run, split, target, out, wanted)
                run.wait()
                self.assertEqual(run.arrived(), executor.arrival_count)  # the run is over
                self.assertEqual(out.tobytes(), wanted.tobytes())

    def test_sources_are_made_meanwhile(self):
        order = random.Random(7)
        for source, target in (("f32[48@(x,y),6]", "f32[48,6]"), ("f32[48,6]{U:(x,y)}", "f32[48@(x,y),6]")):
            source, target = self.ends(source, target)
            split = reshard.Split.even(0, 12, 4)
            executor = self.executor(source, target, split)
            tile, wanted = self.tile(source), self.tile(target) * source.summands
            for _ in range(5):
                made, out = numpy.zeros_like(tile), reshard.empty_tile(target, self.rank)
                run = executor.start(made, out, offers_withheld=True)
                offers = list(range(len(split)))
                order.shuffle(offers)  # the same on all ranks, which is not required
                for piece in offers:
                    self.raises(reshard.InputError, "has not been offered", run.wait)
                    self.assertFalse(run.test())
                    for part in split.slices(source, self.rank, piece):
                        made[part] = tile[part]
                    run.offer(piece)
                    self.raises(reshard.InputError, "offered before", lambda: run.offer(piece))
                self.raises(reshard.InputError, "4", lambda: run.offer(4))
                self.arrive(run, split, target, out, wanted)
                run.wait()
                self.raises(reshard.InputError, "is over", lambda: run.offer(0))
                self.assertEqual(out.tobytes(), wanted.tobytes())

    def test_buckets_of_a_list_arrive(self):
        source, target = self.ends("f32[2048@x,64]", "f32[2048,64@x]")

        def planned_within(limit):
            return reshard.synthesize_list([(source, target)] * 3, footprint_bytes_max=limit, donate=True,
                                           capabilities=reshard.mpi.capabilities(self.comm))

        # There are three sources and three targets of 256 KiB, and four exist at a time. Ranks also stage some bytes.
        tight, planned = planned_within(1024 << 10), planned_within(1152 << 10)
        self.raises(reshard.InfeasibleError, "staging needs", lambda: reshard.mpi.Executor(self.comm, tight))
        executor = reshard.mpi.Executor(self.comm, planned)
        self.assertEqual(len(planned.buckets), 3)
        self.assertEqual(executor.arrival_count, 3)
        outs = [reshard.empty_tile(target, self.rank) for _ in range(3)]
        run = executor.start([self.tile(source) for _ in range(3)], outs)
        while run.arrived() < executor.arrival_count:
            pass
        run.wait()
        for out in outs:
            self.assertEqual(out.tobytes(), self.tile(target).tobytes())
        self.raises(reshard.InputError, "list", lambda: reshard.mpi.Executor(self.comm, planned,
                                                                              split=reshard.Split(0, [24])))

    def test_splits_that_there_are_not(self):
        for ends in ([], [0, 4], [3, 3], [4, 2], [-1, 4]):
            self.raises(reshard.InputError, "the ends of pieces must ascend", lambda: reshard.Split(0, ends))
        for order in ([0], [0, 0], [1, 2], [0, 1, 2]):
            self.raises(reshard.InputError, "the order must name each", lambda: reshard.Split(0, [1, 4], order))
        self.raises(reshard.InputError, "is not cut into 5", lambda: reshard.Split.even(0, 4, 5))
        self.raises(reshard.InputError, "at most 1048576", lambda: reshard.Split.even(0, 2**62, 2**40))
        split = reshard.Split(0, [1, 4], [1, 0])
        self.assertEqual((split.dim, split.block, split.ends, split.order, len(split)), (0, 4, [1, 4], [1, 0], 2))
        self.assertEqual(split.text, "split dim 0 block 4 ends 1,4 order 1,0 overlapped")
        self.assertEqual({split: 1}[reshard.Split(0, [1, 4], [1, 0])], 1)
        self.assertNotEqual(split, reshard.Split(0, [1, 4]))
        layout = self.ends("f32[16@x]", "f32[16]")[0]
        self.assertEqual(split.slices(layout, 2, 1), [slice(1, 4), slice(5, 8)])
        self.raises(reshard.InputError, "there is no piece 2", lambda: split.slices(layout, 0, 2))
        self.raises(reshard.InputError, "has 1", lambda: reshard.Split(1, [4]).slices(layout, 0, 0))
        source, target = self.ends("f32[48@x,4]", "f32[48,4@x]")
        for wrong in (reshard.Split(2, [4]), reshard.Split(0, [49]), reshard.Split(0, [5, 7], overlapped=False)):
            self.raises(reshard.InputError, "dimension", lambda: self.executor(source, target, wrong))
        reshaped = self.ends("f32[48@x,4]", "f32[192@x]")
        self.raises(reshard.UnsupportedError, "reshaped", lambda: self.executor(*reshaped, reshard.Split(0, [1])))
        self.raises(TypeError, "a split is a Split", lambda: self.executor(source, target, 4))
        self.raises(TypeError, "a plan is a Plan", lambda: reshard.mpi.Executor(self.comm, source))

    def test_pieces_are_chosen(self):
        source, target = self.ends("f32[4096@(x,y),64]", "f32[4096,64]")
        plan = reshard.synthesize(source, target, machine=SLOW)
        choice = reshard.choose_pieces(plan, lambda begin, end: 1e-3 * (end - begin), dim=0, block=1024)
        self.assertGreater(len(choice.split), 1)
        self.assertEqual((choice.split.dim, choice.split.block), (0, 1024))
        self.assertLess(choice.seconds, 0.8 * choice.serial_seconds)
        self.assertAlmostEqual(choice.serial_seconds, plan.seconds + 1.024, delta=0.01)
        most = reshard.choose_pieces(plan, lambda begin, end: 1e-3 * (end - begin), dim=0, block=1024, pieces_max=2)
        self.assertEqual(len(most.split), 2)
        nothing = reshard.choose_pieces(plan, lambda begin, end: 0.0, dim=0, block=1024)
        self.assertIsNone(nothing.split)
        self.assertAlmostEqual(nothing.seconds, plan.seconds, delta=0.01 * plan.seconds)
        made = reshard.choose_pieces(plan, lambda begin, end: 1e-3 * (end - begin), dim=0, block=1024, makes_source=True,
                                     machine=reshard.Machine(SLOW))
        self.assertGreater(len(made.split), 1)
        for seconds in (-1.0, float("nan")):
            self.raises(reshard.InputError, "a number from 0 on",
                        lambda: reshard.choose_pieces(plan, lambda begin, end: seconds, dim=0, block=1024))
        for seconds in ("x", None, [1.0]):
            self.raises(reshard.InputError, "returns a number of seconds",
                        lambda: reshard.choose_pieces(plan, lambda begin, end: seconds, dim=0, block=1024))
        self.assertRaises(ZeroDivisionError, lambda: reshard.choose_pieces(plan, lambda begin, end: 1 / 0, dim=0,
                                                                           block=1024))

    def test_work_is_measured(self):
        asked = []
        times = reshard.measure_work(64, lambda begin, end: asked.append((begin, end)), places=8, rounds=1)
        self.assertEqual((times.lengths[0], times.lengths[-1]), (8, 64))
        self.assertTrue(all(0 <= begin < end <= 64 for begin, end in asked))
        self.assertTrue(all(seconds > 0 for seconds in times.seconds))
        times = reshard.WorkTimes([8, 16], [1.0, 3.0])
        self.assertEqual((times(0, 8), times(4, 16), times(0, 16)), (1.0, 2.0, 3.0))
        times.seconds = [2.0, 4.0]
        self.assertEqual(times(0, 12), 3.0)
        self.raises(reshard.InputError, "at least 1", lambda: reshard.measure_work(0, print))
        self.assertRaises(ZeroDivisionError, lambda: reshard.measure_work(8, lambda begin, end: 1 / 0))


Launched = four_ranks.launched(240)

if __name__ == "__main__":
    four_ranks.main()
