"""Runs the output of `reshard emit --to torch` unchanged on eight gloo processes, which must move every tile right. Skipped if
torch is not installed."""

import importlib.util
import os
import random
import re
import sys
import tempfile
import unittest

import numpy

import reshard
from emitted import (CHANGED, LONG, QUESTIONS, SEED, TOOL, array_of, changed_ends, combined, emitted, random_question,
                     summands_of)

try:
    import torch
    import torch.distributed
    import torch.multiprocessing
except ImportError:
    print("skipped: no torch here")
    sys.exit(77)
if not TOOL:
    print("skipped: this build has no tool")
    sys.exit(77)

RANKS = 8


class Ends:
    """The part of an array on each device, by counting through the mesh with named coordinates."""

    def __init__(self, mesh, layout):
        axes, _, listed = mesh.partition("[")
        self.sizes = {name: int(size) for name, size in (axis.split("=") for axis in axes.split(",") if axis)}
        count = int(numpy.prod(list(self.sizes.values()), dtype=int))
        self.devices = [int(one) for one in listed.rstrip("]").split(",")] if listed else list(range(count))
        _, extents, unreduced = re.fullmatch(r"(\w+)\[(.*)\](?:\{\w+:(.*)\})?", layout).groups()
        self.dims = []
        for dim in re.findall(r"(?:[^,(]|\((?:[^()]|\([^)]*\))*\))+", extents):
            extent, _, cut = dim.partition("@")
            self.dims.append((int(extent), self.parts(cut)))
        self.unreduced = self.parts(unreduced or "")

    def parts(self, text):
        """(axis, number of devices below the part within the axis, size) of each part: y:(2)2 of y=4 has 1 below."""
        found = re.findall(r"(\w+)(?::\((\d+)\)(\d+))?", re.sub(r"^\((.*)\)$", r"\1", text))
        return [(axis, self.sizes[axis] // (int(before or 1) * int(size or self.sizes[axis])), int(size or self.sizes[axis]))
                for axis, before, size in found]

    def value(self, parts, device):
        position, at = self.devices.index(device), {}
        for axis, size in reversed(self.sizes.items()):
            position, at[axis] = divmod(position, size)
        value = 0
        for axis, below, size in parts:
            value = value * size + at[axis] // below % size
        return value

    def count(self, parts):
        return int(numpy.prod([size for _, _, size in parts], dtype=int))

    def tile(self, stack, device):
        """The device's part of the array, or of its summand."""
        array = stack[self.value(self.unreduced, device), ...] if self.unreduced else stack
        place = []
        for extent, parts in self.dims:
            own = extent // self.count(parts)
            start = self.value(parts, device) * own
            place.append(slice(start, start + own))
        return array[(*place, ...)]


def to_torch(tile):
    bits = tile.dtype.name == "bfloat16"
    made = torch.from_numpy(numpy.array(tile.astype(numpy.float32) if bits else tile, order="C"))
    return made.to(torch.bfloat16) if bits else made


def work(rank, folder, questions):
    """Runs all problems one after the other on one rank, and writes its tiles to the folder."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS, init_method=f"file://{folder}/meeting")
    for number, (text, tiles) in enumerate(questions):
        module = {}
        exec(compile(text, f"emitted_{number}.py", "exec"), module)
        groups = module["connect"]("cpu") if "device=" in text else module["connect"]()
        moved = module["move"](to_torch(tiles[rank]), groups)
        moved = moved + 0 if moved.element_size() > 1 else moved.clone()
        moved = moved.float() if moved.dtype in (torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn) else moved
        numpy.save(f"{folder}/{number}.{rank}.npy", moved.numpy())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


class EmittedForTorch(unittest.TestCase):
    def test_all_questions_on_eight_processes(self):
        drawn = random.Random(SEED)
        asked = [one for one in QUESTIONS if one[0] and "bool" not in one[1]]
        asked += [random_question(drawn) for _ in range(100 if LONG else 15)]
        questions = []
        for mesh, source, target in asked:
            values, unreduced = array_of(source)
            ends = Ends(mesh, source)
            stack = summands_of(values, unreduced, ends.count(ends.unreduced))
            questions.append((emitted("torch", mesh, source, target), [ends.tile(stack, rank) for rank in range(RANKS)]))
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.start_processes(work, (folder, questions), nprocs=RANKS, start_method="fork")
            for number, (mesh, source, target) in enumerate(asked):
                with self.subTest(mesh=mesh, source=source, target=target):
                    self.check(target, Ends(mesh, target), array_of(source)[0],
                               [numpy.load(f"{folder}/{number}.{rank}.npy") for rank in range(RANKS)])

    def test_casts_and_transpositions(self):
        questions, wanted = [], []
        for question in CHANGED:
            mesh, source, target, _ = question
            if re.search(r"\b(f8_\w+|i16)\[", f"{source} {target}"):
                continue  # gloo of torch 2.15 has no collectives of these types
            array, changed = changed_ends(*question)
            ends = [reshard.parse_layout(mesh, end) for end in (source, target)]
            questions.append((emitted("torch", *question), reshard.split(array, ends[0])))
            wanted.append((question, reshard.split(changed, ends[1])))
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.start_processes(work, (folder, questions), nprocs=RANKS, start_method="fork")
            for number, (question, tiles) in enumerate(wanted):
                for rank, tile in enumerate(tiles):
                    found = numpy.load(f"{folder}/{number}.{rank}.npy")
                    numpy.testing.assert_array_equal(found, tile.astype(found.dtype), str(question))

    @unittest.skipUnless(importlib.util.find_spec("spmd_types"), "no spmd_types here")
    def test_typed_collectives(self):
        """Every plan that can be written, of random moves; one that needs two axes at once is refused."""
        drawn, asked, questions = random.Random(SEED), [], []
        cuts = [("", ""), ("@dp", ""), ("", "@tp"), ("@tp", "@dp"), ("@(dp,tp)", ""), ("", "@(dp,tp)"), ("@dp", "@tp")]
        for _ in range(40):
            (a, b), (c, d) = drawn.sample(cuts, 2)
            free = [axis for axis in ("dp", "tp") if axis not in a + b]
            sums = f"{{U:{drawn.choice(free)}}}" if free and drawn.random() < 0.4 else ""
            question = "dp=2,tp=4", f"f32[64{a},32{b}]{sums}", f"f32[64{c},32{d}]"
            try:
                text = emitted("spmd_types", *question)
            except AssertionError as error:
                self.assertIn("no typed collective", str(error))
                continue
            self.assertEqual(text.count("spmd.redistribute("), len(re.findall("^    tile =", text, re.MULTILINE)))
            values, unreduced = array_of(question[1])
            ends = Ends(question[0], question[1])
            stack = summands_of(values, unreduced, ends.count(ends.unreduced))
            asked.append(question)
            questions.append((text, [ends.tile(stack, rank) for rank in range(RANKS)]))
        self.assertGreater(len(asked), 15)
        self.assertLess(len(asked), 40)
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.start_processes(work, (folder, questions), nprocs=RANKS, start_method="fork")
            for number, (mesh, source, target) in enumerate(asked):
                with self.subTest(source=source, target=target):
                    self.check(target, Ends(mesh, target), array_of(source)[0],
                               [numpy.load(f"{folder}/{number}.{rank}.npy") for rank in range(RANKS)])

    def check(self, target, ends, values, tiles):
        """Every tile is its part of the array, or its summands combine to this part."""
        shape, unreduced = tuple(extent for extent, _ in ends.dims), array_of(target)[1]
        wanted = values.reshape(shape).astype(tiles[0].dtype)
        stack = numpy.zeros((ends.count(ends.unreduced),) + shape, tiles[0].dtype)
        whole = stack if ends.unreduced else stack[0, ...]
        for rank, tile in enumerate(tiles):
            self.assertEqual(tile.shape, ends.tile(whole, rank).shape)
            ends.tile(whole, rank)[...] = tile
        numpy.testing.assert_array_equal(combined(whole, unreduced), wanted)
        for rank, tile in enumerate(tiles):  # replicas too
            numpy.testing.assert_array_equal(ends.tile(whole, rank), tile)


if __name__ == "__main__":
    unittest.main()
