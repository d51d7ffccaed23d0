"""The recipe of docs/rows.md for torch.distributed, on gloo ranks: every byte of every tile."""

import pathlib
import sys
import unittest

import numpy
import ranks
from ranks import torch

import reshard

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "rows"))

from test_rows import recipe

LISTS = {  # by ranks: the arrays that move together
    2: [("x=2", "f32[10@x,12]", "x=2", "f32[10,12@x]"), ("x=2", "bf16[7@x,3,5]", "x=2", "bf16[7,3,5@x]"),
        ("x=2", "u8[90@x,7]", "x=2", "u8[90@x/4,7]"), ("x=2", "i64[11@x]", "x=2", "i64[11]")],
    4: [("x=2", "f64[33@x,2]", "y=2[2,3]", "f64[33,2@y]"), ("x=2,y=2", "i16[30@x,8@y]", "x=2,y=2", "i16[30@(y,x),8]")],
}
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "u8": torch.uint8, "i64": torch.int64, "f64": torch.float64,
         "i16": torch.int16}


def tensor_of(layout, rank):
    """The tile of a rank. Its bytes are random, and the same for every layout of an array. A rank outside has no elements."""
    whole = numpy.random.default_rng(5).integers(0, 256, (*layout.shape, layout.numpy_dtype.itemsize), numpy.uint8)
    tiles = reshard.split(whole.view(layout.numpy_dtype)[..., 0], layout)
    if rank >= len(tiles) or tiles[rank].size == 0:
        return torch.empty(0, dtype=TYPES[layout.dtype])
    return torch.from_numpy(tiles[rank].view(numpy.uint8)).view(TYPES[layout.dtype]).reshape(tiles[rank].shape)


def work(rank, texts):
    problems = [(reshard.parse_layout(*one[:2]), reshard.parse_layout(*one[2:])) for one in texts]
    schedule = reshard.RowSchedule(problems)
    sources, wanted = ([tensor_of(pair[end], rank) for pair in problems] for end in (0, 1))
    targets = [torch.zeros_like(tensor) for tensor in wanted]
    recipe("torch_messages.py")["move"](schedule.rows(rank), schedule.rows(rank, "receive"), sources, targets)
    return [torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(targets, wanted)]


class Messages(unittest.TestCase):
    def test_the_recipe(self):
        for count, texts in LISTS.items():
            with self.subTest(ranks=count):
                self.assertEqual(ranks.run(count, work, texts), [[True] * len(texts)] * count)


if __name__ == "__main__":
    unittest.main()
