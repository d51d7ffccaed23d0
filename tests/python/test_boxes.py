"""reshard.mpi.Boxes and reshard.mpi.rebuild on four ranks, and the programs of docs/boxes.md and docs/elastic.md."""

import unittest

import numpy

import four_ranks
import reshard


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.whole = numpy.arange(48.0).reshape(8, 6) + 1
        self.rows = [(slice(2 * self.rank, 2 * self.rank + 2), slice(None))]

    def raises(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(words, str(caught.exception))

    def test_overlapping_wants(self):
        want = [((0, 8), (self.rank, self.rank + 2)), ((1, 7), (0, 6)), ((3, 3), (0, 0))]
        boxes = reshard.mpi.Boxes(self.comm, (8, 6), "f64", self.rows, want)
        own, wanted = boxes.allocate()
        boxes.owned(own)[0][...] = self.whole[self.rows[0]]
        self.assertIs(boxes.run(own, wanted), wanted)
        for part, ((top, bottom), (left, right)) in zip(boxes.wanted(wanted), want, strict=True):
            numpy.testing.assert_array_equal(part, self.whole[top:bottom, left:right])
        touched = numpy.zeros((8, 6), bool)
        for (top, bottom), (left, right) in want:
            touched[top:bottom, left:right] = True
        touched[self.rows[0]] = False
        self.assertEqual(boxes.received_bytes, 8 * int(touched.sum()))
        self.assertIn(f"rank {self.rank} receives", boxes.describe())

    def test_several_arrays_of_the_caller(self):
        columns = [(slice(None), slice(6 * self.rank // 4, 6 * (self.rank + 1) // 4))]
        boxes = reshard.mpi.Boxes(self.comm, self.whole.shape, numpy.int32, self.rows, columns, arrays=2)
        own = [numpy.ascontiguousarray(self.whole[self.rows[0]] * (i + 1), "i4").reshape(-1) for i in range(2)]
        wanted = [numpy.zeros(self.whole[columns[0]].size, "i4") for _ in range(2)]
        run = boxes.start(own, wanted)
        run.wait()
        self.assertTrue(run.test())
        for i in range(2):
            numpy.testing.assert_array_equal(boxes.wanted(wanted[i])[0], self.whole[columns[0]] * (i + 1))
        self.raises(reshard.InputError, "1 and 2 buffers", lambda: boxes.start(own[:1], wanted))

    def test_boxes_of_one_dimension_and_ranks_without_any(self):
        have = [slice(0, 5)] if self.rank == 3 else []
        want = [slice(1, None)] if self.rank == 0 else []
        boxes = reshard.mpi.Boxes(self.comm, (5,), "uint8", have, want)
        own, wanted = boxes.allocate()
        own[...] = numpy.arange(own.size)
        boxes.run(own, wanted)
        self.assertEqual(wanted.tolist(), [1, 2, 3, 4] if self.rank == 0 else [])
        self.assertEqual(boxes.sent_bytes, 4 if self.rank == 3 else 0)

    def test_errors_on_all_ranks(self):
        def boxes(have, want, shape=(8, 6), dtype="f64"):
            return lambda: reshard.mpi.Boxes(self.comm, shape, dtype, have, want)
        twice = [*self.rows, ((0, 1), (5, 6))] if self.rank == 2 else self.rows
        self.raises(reshard.InputError, "element [0, 5] is owned twice", boxes(twice, []))
        missing = self.rows if self.rank != 1 else []
        want = [((0, 8), (4, 6))] if self.rank == 3 else []
        self.raises(reshard.InputError, "no rank owns element [2, 4], which rank 3 wants", boxes(missing, want))
        outside = [((0, 9), (0, 6))] if self.rank == 1 else []
        self.raises(reshard.InputError, "outside of the shape [8, 6]", boxes(self.rows, outside))
        self.raises(reshard.InputError, "no element type 'f9'", boxes(self.rows, [], dtype="f9"))
        short = [((0, 8),)] if self.rank == 0 else []
        self.raises(reshard.InputError, "a box of 1 dimensions", boxes(self.rows, short))
        steps = [(slice(0, 8, 2), slice(None))] if self.rank == 2 else []
        self.raises(reshard.InputError, "the step 2", boxes(self.rows, steps))
        self.raises(reshard.InputError, "rank 1", boxes([], [], shape=(8, 7 if self.rank == 1 else 6)))
        if self.rank == 2:
            self.raises(TypeError, "", boxes(self.rows, [(1.5, 2)]))
        else:
            self.raises(reshard.InputError, "rank 2", boxes(self.rows, []))

    def test_errors_before_a_start(self):
        boxes = reshard.mpi.Boxes(self.comm, (8, 6), "f64", self.rows, self.rows)
        own, wanted = boxes.allocate()
        own[...] = self.whole[self.rows[0]].reshape(-1)
        self.raises(reshard.InputError, "(11,)", lambda: boxes.run(own[:11], wanted))
        self.raises(reshard.InputError, "f64", lambda: boxes.run(own.astype("f4"), wanted))
        self.raises(reshard.InputError, "overlap", lambda: boxes.run(own, own))
        self.raises(reshard.InputError, "12 elements", lambda: boxes.owned(own[:11]))
        boxes.run(own, wanted)
        numpy.testing.assert_array_equal(wanted, own)


    def test_rebuilds_on_fewer_ranks_and_in_place_of_lost_ones(self):
        before = reshard.Mesh({"copy": 2, "x": 2})
        source = reshard.Layout(before, "f64", (8, 6), ("x", None))
        columns = reshard.Layout(reshard.Mesh({"x": 4}), "f64", (8, 6), (None, "x"))
        tile = None if self.rank == 2 else reshard.split(self.whole, source)[self.rank]
        rebuilt = reshard.mpi.rebuild(self.comm, [tile, tile], [source, source], [source, columns], [2])
        numpy.testing.assert_array_equal(rebuilt[0], reshard.split(self.whole, source)[self.rank])
        numpy.testing.assert_array_equal(rebuilt[1], reshard.split(self.whole, columns)[self.rank])
        named = reshard.mpi.rebuild(self.comm, tile if tile is None else {"rows": tile, "columns": tile},
                                    {"rows": source, "columns": source}, {"columns": columns, "rows": source}, [2])
        for array, name in zip(rebuilt, ("rows", "columns")):
            numpy.testing.assert_array_equal(named[name], array)
        team = self.comm.Split(self.rank == 2, self.rank)
        if self.rank != 2:
            left = [0, 1, 3]
            rows = reshard.Layout(reshard.Mesh({"x": 3}, devices=left), "f64", (8, 6), ("x", None))
            tile = reshard.mpi.rebuild(team, tile, source, rows, [2], devices=left)
            numpy.testing.assert_array_equal(tile, self.whole[3 * team.rank:3 * team.rank + 3])
        team.Free()

    def test_rebuilds_by_rules(self):
        """Experts with owners and cut, a renamed tensor and a scalar: rank 2 is lost, and three ranks go on."""
        tensors = "e.{e:2}.w f64[8,6]\nsteps i64[]\nnorm f64[6]\n"
        source = "source copy=2,ep=2\ne.{e:2}.w = [{e}@ep, -, -]\nsteps = -\nnorm = [ep]\n"
        target = "target x=3[0,1,3]\ne.{e:2}.w = [-, x]\nsteps = -\nlast = - <- norm\n"
        whole = {"e.0.w": self.whole, "e.1.w": -self.whole, "steps": numpy.array(7), "norm": numpy.arange(6.0)}
        expert = self.rank % 2
        tiles = {f"e.{expert}.w": whole[f"e.{expert}.w"], "steps": whole["steps"],
                 "norm": numpy.split(whole["norm"], 2)[expert]}
        traffic = reshard.rebuild_traffic(source + target, tensors, [2])
        self.assertEqual([one.sent_bytes == 0 for one in traffic], [False, False, True, False])
        self.assertEqual(sum(one.received_bytes for one in traffic), sum(one.sent_bytes for one in traffic))
        # Rank 0 holds expert 0 and half of norm: it lacks its columns of expert 1, and three numbers.
        self.assertEqual(traffic[0], (8 * 2 * 8 + 24, traffic[0].sent_bytes, 8 * 2 * 8 + 24 + 8))
        team = self.comm.Split(self.rank == 2, self.rank)
        if self.rank != 2:
            left = [0, 1, 3]
            rebuilt = reshard.move_tensors(team, tiles, source + target, tensors, lost=[2], devices=left)
            columns = slice(2 * team.rank, 2 * team.rank + 2)
            for name, wanted in (("e.0.w", whole["e.0.w"][:, columns]), ("e.1.w", whole["e.1.w"][:, columns]),
                                 ("steps", whole["steps"]), ("last", whole["norm"])):
                self.assertEqual(rebuilt[name].shape, wanted.shape, name)
                numpy.testing.assert_array_equal(rebuilt[name], wanted)
        team.Free()

        def rebuild(rules, lost=(2,), given=tiles, **named):
            return lambda: reshard.move_tensors(self.comm, given, rules, tensors, lost=lost, **named)
        parts = source + "target x=3[0,1,3]\nw = - <- e.{e:2}.w\notherwise = -\n"
        self.raises(reshard.UnsupportedError, "'w' is made of parts", rebuild(parts))
        self.raises(reshard.UnsupportedError, "a rebuild casts nothing", rebuild(source + target, cast="f32"))
        self.raises(reshard.InfeasibleError, "only lost devices held", rebuild(source + target, (0, 2)))
        self.raises(reshard.InputError, "no tensor of the target is made of 'other'",
                    rebuild(source + target, given={**tiles, "other": self.whole}))
        home = source + "target ep=2\ne.{e:2}.w = [{e}@ep, -, -]\notherwise = -\n"
        owned = rebuild(home, ())()
        self.assertEqual([owned[f"e.{e}.w"].shape for e in range(2)],
                         [(8, 6) if self.rank == e else (0, 0) for e in range(2)])
        if self.rank < 2:
            numpy.testing.assert_array_equal(owned[f"e.{expert}.w"], whole[f"e.{expert}.w"])

    def test_traffic_of_rebuilds(self):
        layout = reshard.Layout(reshard.Mesh({"copy": 2, "x": 2}), "f64", (8, 6), ("x", None))
        one, = {(each.received_bytes, each.sent_bytes, each.kept_bytes) for each in reshard.rebuild_traffic(layout, layout, [])}
        self.assertEqual(one, (0, 0, 192))
        named = reshard.rebuild_traffic({"a": layout, "b": layout}, {"b": layout, "a": layout}, [1])
        self.assertEqual([(each.received_bytes, each.sent_bytes) for each in named], [(0, 0), (384, 0), (0, 0), (0, 384)])
        self.assertEqual(named, reshard.rebuild_traffic([layout, layout], [layout, layout], [1]))
        self.raises(reshard.InfeasibleError, "held [4:8, 0:6]", lambda: reshard.rebuild_traffic(layout, layout, [1, 3]))
        self.raises(reshard.InputError, "1 sources and 2 targets", lambda: reshard.rebuild_traffic(layout, [layout] * 2, [1]))

    def test_errors_of_rebuilds(self):
        layout = reshard.Layout(reshard.Mesh({"copy": 2, "x": 2}), "f64", (8, 6), ("x", None))
        tile = reshard.split(self.whole, layout)[self.rank]

        def rebuild(lost, given=tile, devices=None):
            return lambda: reshard.mpi.rebuild(self.comm, given, layout, layout, lost, devices)
        self.raises(reshard.InfeasibleError, "only lost devices held [4:8, 0:6]", rebuild([1, 3]))
        self.raises(reshard.InputError, "3 devices", rebuild([1], devices=[0, 1, 2]))
        self.raises(reshard.InputError, "both device 1", rebuild([1], devices=[0, 1, 1, 3]))
        self.raises(reshard.InputError, "(0, 0)" if self.rank == 3 else "no rank is this device", rebuild([], devices=[0, 1, 2, 9]))
        wide = reshard.Layout(reshard.Mesh({"x": 5}), "f64", (8, 6), (None, "x"))
        self.raises(reshard.InputError, "device 4 wants a tile",
                    lambda: reshard.mpi.rebuild(self.comm, tile, layout, wide, [0]))
        self.raises(reshard.InputError, "do not name the same arrays",
                    lambda: reshard.mpi.rebuild(self.comm, {"a": tile}, {"a": layout}, {"b": layout}, [0]))
        wrong = tile[:1] if self.rank == 2 else tile
        self.raises(reshard.InputError, "(4, 6)" if self.rank == 2 else "rank 2", rebuild([0], wrong))
        numpy.testing.assert_array_equal(rebuild([0])(), tile)


class Launched(four_ranks.launched()):
    def test_programs_of_the_pages(self):
        four_ranks.run_page(self, "boxes.md")
        four_ranks.run_page(self, "elastic.md")


if __name__ == "__main__":
    four_ranks.main()
