"""Carries out rows with a loop of memory copies that does not use the library, and compares with slices of the whole array."""

import ctypes
import os
import pathlib
import random
import re
import socket
import threading
import unittest

import numpy

import reshard

ROOT = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
FIELDS = ("array", "peer", "source_offset", "target_offset", "run_bytes", "runs", "source_stride", "target_stride")


def recipe(file):
    """The names that a file in docs/rows.md defines."""
    page = (ROOT / "docs/rows.md").read_text(encoding="utf-8")
    text, = re.findall(rf"^```python file={re.escape(file)}\n(.*?)^```", page, re.S | re.M)
    names = {}
    exec(compile(text, file, "exec"), names)
    return names


def carried(problems, sources, targets, ranks, side):
    """Puts (or gets) the bytes of every rank's rows. Returns how often each byte of a target was written."""
    schedule = reshard.RowSchedule(problems)
    written = [[numpy.zeros(tile.size, int) for tile in tiles] for tiles in targets]
    for rank in range(ranks):
        for row in schedule.rows(rank, side):
            array, peer, start, end, size, runs, step, stride = (int(row[field]) for field in FIELDS)
            giver, taker = (rank, peer) if side == "send" else (peer, rank)
            for run in range(runs):
                begin, place = start + run * step, end + run * stride
                targets[array][taker][place:place + size] = sources[array][giver][begin:begin + size]
                written[array][taker][place:place + size] += 1
    return written


def raw(tiles):
    return [tile.reshape(-1).view(numpy.uint8) for tile in tiles]


class Rows(unittest.TestCase):
    def test_random_lists(self):
        draw = random.Random(2)
        for number in range(100):
            mesh = reshard.Mesh({"x": draw.randint(1, 4), "y": draw.randint(1, 3)})
            problems = []
            for _ in range(draw.randint(1, 3)):
                extents = [draw.randint(0, 9) for _ in range(draw.randint(1, 3))]
                dtype = draw.choice(("i8", "bf16", "f32", "c128"))

                def end():
                    spec = [[] for _ in extents]
                    for axis in draw.sample(["x", "y"], 2):
                        if draw.random() < 0.7:
                            draw.choice(spec).append(axis)
                    return reshard.Layout(mesh, dtype, extents, spec)

                problems.append((end(), end()))
            arrays = [numpy.arange(int(numpy.prod(source.shape))).reshape(source.shape).astype(source.numpy_dtype)
                      for source, _ in problems]
            sources = [raw(reshard.split(array, source)) for array, (source, _) in zip(arrays, problems)]
            wanted = [raw(reshard.split(array, target)) for array, (_, target) in zip(arrays, problems)]
            for side in ("send", "receive"):
                targets = [[numpy.zeros_like(tile) for tile in tiles] for tiles in wanted]
                written = carried(problems, sources, targets, mesh.size, side)
                with self.subTest(f"{number}, {side}: {mesh} {[(str(a), str(b)) for a, b in problems]}"):
                    for array, tiles in enumerate(wanted):
                        for rank, tile in enumerate(tiles):
                            self.assertTrue((targets[array][rank] == tile).all())
                            self.assertTrue((written[array][rank] == 1).all())

    def test_an_array_of_eight_integers_without_copies(self):
        source, target = reshard.parse_layout("x=4", "f32[10@x,12]"), reshard.parse_layout("x=4", "f32[10,12@x]")
        rows = reshard.schedule_rows(source, target, 1)
        self.assertEqual(rows.dtype, reshard.row_dtype)
        self.assertEqual(rows.dtype.names, FIELDS)
        self.assertEqual(rows.tolist(), [(0, peer, 12 * peer, 36, 12, 3, 48, 12) for peer in range(4)])
        self.assertIsNotNone(rows.base)
        self.assertFalse(rows.flags.owndata)
        self.assertEqual(len(reshard.schedule_rows(source, target, 9)), 0)
        schedule = reshard.RowSchedule([(source, target)] * 3)
        self.assertEqual((len(schedule), schedule.ranks, len(schedule.rows(2))), (3, 4, 12))

    def test_fills_of_halos(self):
        for text, width, periodic in (("f64[12@x,10@y]", 1, True), ("i32[9@x,3]", [(2, 0), 0], [True, False]),
                                      ("u8[5@x,7@y]", [3, (1, 2)], False), ("i16[6@x,4]", [7, 1], True)):
            layout = reshard.parse_layout("x=2,y=2", text)
            widths = [(side, side) if isinstance(side, int) else side
                      for side in ([width] * 2 if isinstance(width, int) else width)]
            wraps = [periodic] * 2 if isinstance(periodic, bool) else periodic
            whole = 1 + numpy.arange(int(numpy.prod(layout.shape))).reshape(layout.shape).astype(layout.numpy_dtype)
            start, wanted = [], []
            for rank in range(4):
                offset, shape = layout.tile_offset(rank), layout.tile_shape(rank)
                block = whole[tuple(slice(begin, begin + extent) for begin, extent in zip(offset, shape))]
                start.append(numpy.pad(block, widths))
                sides = []  # of each dimension: the elements of the cells, or -1 beyond an open border
                for begin, extent, n, (before, after), wrap in zip(offset, shape, layout.shape, widths, wraps):
                    cells = numpy.arange(begin - before, begin + extent + after)
                    sides.append(cells % n if wrap else numpy.where((cells >= 0) & (cells < n), cells, -1))
                wanted.append(numpy.where((sides[0][:, None] >= 0) & (sides[1] >= 0), whole[numpy.ix_(*sides)], 0))
            for by_dimension in (False, True):
                arrays = [array.copy() for array in start]
                each = [reshard.halo_rows(layout, rank, width, periodic, side="receive", by_dimension=by_dimension)
                        for rank in range(4)]
                for rows_of_ranks in zip(*each, strict=True):
                    before = raw([array.copy() for array in arrays])
                    for cells, rows in zip(raw(arrays), rows_of_ranks):
                        for _, peer, source, target, size, runs, step, stride in rows.tolist():
                            for run in range(runs):
                                begin, end = source + run * step, target + run * stride
                                cells[end:end + size] = before[peer][begin:begin + size]
                with self.subTest(f"{text} {width} {periodic} {by_dimension}"):
                    for array, expected in zip(arrays, wanted):
                        self.assertTrue((array == expected).all())
        with self.assertRaises(reshard.InputError):
            reshard.halo_rows(layout, 0, [1, 2, 3])
        with self.assertRaises(reshard.InputError):
            reshard.halo_rows(layout, -1)

    def test_a_model_by_rules(self):
        rules = "source x=2\n*.norm = -\notherwise = [x, -]\ntarget x=2[2,3]\n"
        rules += "l.{n}.qkv = [x, -] <- l.{n}.q + l.{n}.k\notherwise = -\n"
        listed = [("l.0.q", "f32", (8, 4)), ("l.0.k", numpy.float32, (4, 4)), ("l.0.norm", "f32", (4,))]
        model = reshard.CheckpointMapping(rules, listed)
        self.assertEqual(model.ends, [("l.0.q", "l.0.qkv"), ("l.0.k", "l.0.qkv"), ("l.0.norm", "l.0.norm")])
        self.assertEqual((len(model), model.ranks, str(model.sources["l.0.q"])), (3, 4, "f32[8@x,4]"))
        held = {name: numpy.arange(int(numpy.prod(layout.shape)), dtype="f4").reshape(layout.shape) + 100 * number
                for number, (name, layout) in enumerate(model.sources.items())}
        sources = [raw(reshard.split(held[name], model.sources[name])) for name, _ in model.ends]
        made = {name: [numpy.zeros(4 * layout.tile_count(rank), numpy.uint8) for rank in range(4)]
                for name, layout in model.targets.items()}
        for rank in range(model.ranks):
            for row in model.rows(rank):
                for run in range(row["runs"]):
                    begin = row["source_offset"] + run * row["source_stride"]
                    place = row["target_offset"] + run * row["target_stride"]
                    tile = made[model.ends[row["array"]][1]][row["peer"]]
                    tile[place:place + row["run_bytes"]] = sources[row["array"]][rank][begin:begin + row["run_bytes"]]
        halves = [numpy.concatenate([held["l.0.q"][4 * half:4 * half + 4], held["l.0.k"][2 * half:2 * half + 2]])
                  for half in range(2)]  # each part is cut by itself
        for half in range(2):
            self.assertEqual(made["l.0.qkv"][2 + half].tobytes(), halves[half].tobytes())
            self.assertEqual(made["l.0.norm"][2 + half].tobytes(), held["l.0.norm"].tobytes())
        text = "l.0.q f32[8,4]\nl.0.k f32[4,4]\nl.0.norm f32[4]\n"
        self.assertEqual(reshard.CheckpointMapping(rules, text).targets, model.targets)
        with self.assertRaisesRegex(reshard.InputError, "line"):
            reshard.CheckpointMapping(rules + "lost = -\n", listed)

    def test_equal_layers_as_one_line(self):
        rules = "source x=2\n*.norm = -\notherwise = [x, -]\ntarget x=2[2,3]\n"
        rules += "l.{n}.qkv = [x, -] <- l.{n}.q + l.{n}.k\notherwise = -\n"
        short = reshard.CheckpointMapping(rules, "l.{n:7}.q f32[8,4]\nl.{n:7}.k f32[4,4]\nl.{n:7}.norm f32[4]\n")
        parts = (("q", (8, 4)), ("k", (4, 4)), ("norm", (4,)))
        long = reshard.CheckpointMapping(rules, [(f"l.{n}.{part}", "f32", shape) for n in range(7) for part, shape in parts])
        self.assertEqual((short.ends, short.ranks, len(short)), (long.ends, 4, 21))
        self.assertEqual({name: str(layout) for name, layout in short.targets.items()},
                         {name: str(layout) for name, layout in long.targets.items()})
        for rank in range(4):
            for side in ("send", "receive"):
                self.assertTrue((short.rows(rank, side) == long.rows(rank, side)).all())
        self.assertEqual(len(short.rows(0)), 7 * 3)

    def test_what_is_refused(self):
        layout, summed = reshard.parse_layout("x=2", "f32[4@x]"), reshard.parse_layout("x=2", "f32[4]{U:x}")
        with self.assertRaises(reshard.UnsupportedError):
            reshard.schedule_rows(summed, layout, 0)
        for call in (lambda: reshard.schedule_rows(layout, layout, 0, "both"),
                     lambda: reshard.schedule_rows(layout, layout, -1),
                     lambda: reshard.schedule_rows(layout, reshard.parse_layout("x=2", "f32[5@x]"), 0)):
            self.assertRaises(reshard.InputError, call)


class Transport(unittest.TestCase):
    """Rows of a block-cyclic move between 3 and 4 ranks, as transports take them."""

    def setUp(self):
        source = reshard.parse_layout("x=3", "i32[90@x/4,7,6]")
        target = reshard.parse_layout("y=4", "i32[90@y/5,7,6]")
        whole = numpy.arange(90 * 7 * 6, dtype=numpy.int32).reshape(90, 7, 6)
        self.schedule = reshard.RowSchedule([(source, target)])
        self.sources, self.wanted = reshard.split(whole, source), reshard.split(whole, target)
        self.targets = [numpy.zeros_like(tile) for tile in self.wanted]

    def arrived(self):
        for tile, wanted in zip(self.targets, self.wanted):
            numpy.testing.assert_array_equal(tile, wanted)

    def pairs(self):
        """(sender, receiver, the sender's rows, the receiver's rows) of each pair."""
        for sender in range(3):
            for receiver in range(4):
                sent, received = self.schedule.rows(sender), self.schedule.rows(receiver, "receive")
                yield sender, receiver, sent[sent["peer"] == receiver], received[received["peer"] == sender]

    def test_pack_and_unpack(self):
        for threads in (1, 3):
            for target in self.targets:
                target[:] = 0
            for sender, receiver, sent, received in self.pairs():
                packed = reshard.rows.pack(sent, self.sources[sender], threads=threads)
                self.assertEqual(len(packed), reshard.rows.packed_bytes(sent))
                reshard.rows.unpack(received, packed, [self.targets[receiver]], threads)
            self.arrived()

    def test_buckets_of_any_buffers(self):
        for sender, receiver, sent, received in self.pairs():
            staging = bytearray(100)
            there = reshard.rows.buckets(received, 100)
            here = reshard.rows.buckets(sent, 100)
            self.assertEqual(len(here), len(there))
            for ours, theirs in zip(here, there):
                reshard.rows.pack(ours, bytes(self.sources[sender]), staging)
                reshard.rows.unpack(theirs, bytes(staging), self.targets[receiver])
        self.arrived()

    def test_addresses(self):
        bases = [tile.ctypes.data for tile in self.targets]
        for sender, source in enumerate(self.sources):
            rows = self.schedule.rows(sender)
            local, remote = reshard.rows.addressed(rows, source.ctypes.data, bases, device=2, peer_devices=[5, 6, 7, 8])
            self.assertEqual((local.shape, local.dtype, remote.shape), ((len(rows), 5), numpy.uint64, (len(rows), 5)))
            self.assertFalse(local.flags.owndata)
            self.assertEqual(set(local[:, 2].tolist()), {2})
            self.assertEqual(remote[:, 2].tolist(), (rows["peer"] + 5).tolist())
            self.assertTrue((local[:, 4] == rows["runs"]).all() and (local[:, 1] == remote[:, 1]).all())
            here, there = reshard.rows.blocks(local), reshard.rows.blocks(remote)
            for (start, size), (place, _) in zip(here.tolist(), there.tolist()):
                ctypes.memmove(place, start, size)
            peers = {rank: [base] for rank, base in enumerate(bases)}
            again = reshard.rows.addressed(rows, [source.ctypes.data], peers, device=2, peer_devices=[5, 6, 7, 8])
            numpy.testing.assert_array_equal(again[1], remote)
        self.arrived()
        for own, peers in ((0, bases), (1, bases[:2]), ([], bases), (1, {0: [7]})):
            with self.assertRaises(reshard.InputError):
                reshard.rows.addressed(rows, own, peers)

    def test_storages_and_nested_rows(self):
        source, target = reshard.parse_layout("x=2", "u8[2@x,3,4,5]"), reshard.parse_layout("x=2", "u8[2,3,4,5]")
        whole = numpy.arange(120, dtype=numpy.uint8).reshape(2, 3, 4, 5)
        sources = reshard.split(whole, source)
        schedule = reshard.RowSchedule([(source, target)], [(None, "order 0,2,1,3")])
        made = [numpy.zeros((2, 4, 3, 5), numpy.uint8) for _ in range(2)]
        for rank in range(2):
            for row in schedule.nested_rows(rank):
                runs = tuple(row["runs"]) + (int(row["run_bytes"]),)
                view = lambda tile, end: numpy.lib.stride_tricks.as_strided(
                    tile.reshape(-1)[row[f"{end}_offset"]:], runs, tuple(row[f"{end}_strides"]) + (1,))
                view(made[row["peer"]], "target")[...] = view(sources[rank], "source")
        for tile in made:
            numpy.testing.assert_array_equal(tile, whole.transpose(0, 2, 1, 3))
        rows = reshard.schedule_rows(source, target, 0, target_storage="order 0,2,1,3")
        self.assertEqual(rows.tolist(), schedule.rows(0).tolist())
        self.assertEqual(schedule.nested_rows(0).dtype, reshard.rows.nested_row_dtype)
        with self.assertRaisesRegex(reshard.InputError, "dimensions once"):
            reshard.schedule_rows(source, target, 0, source_storage="order 0")

    def test_direct_or_packed(self):
        rows = numpy.array([(0, 0, 0, 0, 9, 9, 9, 9), (0, 1, 0, 0, 1152, 1000, 2304, 1152), (0, 2, 0, 0, 1 << 22, 1, 0, 0)],
                           reshard.row_dtype)
        costs = reshard.rows.TransferCosts(reshard.rows.WayCosts(2e-5, 1e-5, 1e-9), reshard.rows.WayCosts(3e-5, 1e-8, 1.25e-9))
        chosen = reshard.rows.choose_transfers(rows, 0, costs)
        self.assertEqual([(one.peer, one.packed, one.blocks) for one in chosen], [(1, True, 1000), (2, False, 1)])
        self.assertAlmostEqual(chosen[0].direct_seconds, 2e-5 + 1e-2 + 1.152e-3)
        self.assertAlmostEqual(chosen[0].packed_seconds, 3e-5 + 1e-5 + 1.152e-3 * 1.25)

        for wrong in (float("nan"), -1e-9, float("inf")):
            with self.assertRaisesRegex(reshard.InputError, "at least 0"):
                reshard.rows.choose_transfers(rows, 0, costs._replace(packed=reshard.rows.WayCosts(0, 0, wrong)))
        with self.assertRaisesRegex(TypeError, "two WayCosts"):
            reshard.rows.choose_transfers(rows, 0, (1, 2))

    def test_measured_costs(self):
        memory, far = numpy.zeros(1 << 16, numpy.uint8), numpy.zeros(1 << 16, numpy.uint8)
        calls = []

        def transfer(local, remote):
            calls.append(int(local[0, 4]))
            for (start, size), (place, _) in zip(reshard.rows.blocks(local).tolist(), reshard.rows.blocks(remote).tolist()):
                ctypes.memmove(place, start, size)

        memory[:] = numpy.arange(1 << 16) % 251
        costs = reshard.rows.measure_costs(transfer, memory, far.ctypes.data, run_bytes=64, runs=100, staging_bytes=2048,
                                           rounds=3)
        buckets = 4  # of 100 short runs; the long runs fill one
        self.assertEqual(calls, 3 * [1] + 3 * [100] + 3 * [8] + 3 * [1] + 3 * buckets * [1] + 3 * [1])
        self.assertTrue(all(0 <= cost < 1 for way in costs for cost in way), costs)
        numpy.testing.assert_array_equal(memory[:-2048], numpy.arange((1 << 16) - 2048) % 251)
        with self.assertRaisesRegex(reshard.InputError, "twice their bytes"):
            reshard.rows.measure_costs(transfer, memory, 0, run_bytes=1 << 15)

    def test_the_recipe_for_sockets(self):
        names = recipe("sockets.py")
        received = self.schedule.rows(1, "receive")
        for rank, source in enumerate(self.sources):
            sent = self.schedule.rows(rank)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                sender = threading.Thread(target=names["send"], args=(ours, sent[sent["peer"] == 1], source))
                sender.start()
                names["receive"](theirs, received[received["peer"] == rank], self.targets[1])
                sender.join()
        numpy.testing.assert_array_equal(self.targets[1], self.wanted[1])
        ours, theirs = socket.socketpair()
        ours.close()
        with theirs, self.assertRaises(ConnectionError):
            names["receive"](theirs, received, self.targets[1])

    def test_wrong_buffers(self):
        rows = self.schedule.rows(0)
        small = numpy.zeros(3, numpy.uint8)
        for call in (lambda: reshard.rows.pack(rows, small), lambda: reshard.rows.pack(rows, self.sources[0], small),
                     lambda: reshard.rows.pack(rows, self.sources[0], bytes(100000)),
                     lambda: reshard.rows.pack(rows, self.sources[0], threads=0),
                     lambda: reshard.rows.pack(rows, []), lambda: reshard.rows.pack(rows["peer"], self.sources[0]),
                     lambda: reshard.rows.unpack(rows, numpy.zeros(100000, numpy.uint8), bytes(100000)),
                     lambda: reshard.rows.pack(rows, self.sources[0][::-1]),
                     lambda: reshard.rows.buckets(rows, 0)):
            self.assertRaises(reshard.InputError, call)


if __name__ == "__main__":
    unittest.main(verbosity=1)
