"""Carries out rows with a loop of memory copies that does not use the library, and compares with slices of the whole array."""

import random
import unittest

import numpy

import reshard

FIELDS = ("array", "peer", "source_offset", "target_offset", "run_bytes", "runs", "source_stride", "target_stride")


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


if __name__ == "__main__":
    unittest.main(verbosity=1)
