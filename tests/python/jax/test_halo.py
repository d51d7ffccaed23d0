"""reshard.jax.halo in shard_map on eight devices: every cell, every gradient, and the bytes of the compiled program."""

import itertools
import unittest

import devices
import jax
import numpy
import reshard
import reshard.jax
from jax.sharding import PartitionSpec as P
from reshard.jax import _hlo

MESH = devices.mesh_of(x=2, y=4)
SPECS = [P("x", "y"), P("y", "x"), P(("x", "y"), None), P(None, ("y", "x")), P(None, None)]
WIDTHS = [1, [(2, 0), (0, 1)], [(0, 0), 3], [(5, 7), (9, 4)], [(16, 17), 1]]
PERIODS = [(False, False), (True, True), (True, False)]
SHAPE = (8, 16)


def shards(spec, dim):
    axes = spec[dim] if isinstance(spec[dim], tuple) else (spec[dim],) if spec[dim] else ()
    return int(numpy.prod([MESH.shape[axis] for axis in axes], dtype=int))


def pairs(width):
    each = [width] * 2 if isinstance(width, int) else width
    return [(one, one) if isinstance(one, int) else one for one in each]


def cells(extent, count, before, after, wraps):
    """For each cell of all blocks, one after another, the index that it holds, or -1."""
    block = extent // count
    found = [begin + cell for begin in range(0, extent, block) for cell in range(-before, block + after)]
    return numpy.array([cell % extent if wraps else cell if 0 <= cell < extent else -1 for cell in found])


def blocks(spec, width, periodic):
    """The function whose shards are the blocks with their halos."""
    return jax.shard_map(lambda block: reshard.jax.halo(block, spec, width, periodic), mesh=MESH, in_specs=spec, out_specs=spec)


class Halos(unittest.TestCase):
    def test_every_cell_and_its_gradient(self):
        whole = numpy.arange(1, 1 + SHAPE[0] * SHAPE[1], dtype=numpy.float32).reshape(SHAPE)
        for number, (spec, width) in enumerate(itertools.product(SPECS, WIDTHS)):
            periodic = PERIODS[number % len(PERIODS)]
            with self.subTest(spec=spec, width=width, periodic=periodic):
                rows, columns = (cells(SHAPE[dim], shards(spec, dim), *pairs(width)[dim], periodic[dim]) for dim in (0, 1))
                held = (rows[:, None] >= 0) & (columns >= 0)
                filled, back = jax.vjp(jax.jit(blocks(spec, width, list(periodic))), whole)
                numpy.testing.assert_array_equal(filled, numpy.where(held, whole[numpy.ix_(rows, columns)], 0))
                slope = numpy.random.default_rng(3).integers(-9, 10, filled.shape).astype(numpy.float32)
                wanted = numpy.zeros(SHAPE, numpy.float32)
                for (row, column), value in numpy.ndenumerate(slope):
                    if held[row, column]:
                        wanted[rows[row], columns[column]] += value
                numpy.testing.assert_array_equal(back(slope)[0], wanted)

    def test_permutes_and_bytes(self):
        whole = jax.ShapeDtypeStruct((64, 64), numpy.float32)
        for width, permutes in ((1, 4), ([(2, 0), 0], 1), ([0, 20], 4)):
            with self.subTest(width=width):
                text = jax.jit(blocks(P("x", "y"), width, True)).lower(whole).compile().as_text()
                self.assertEqual([one.kind for one in _hlo.collectives(text)], ["collective-permute"] * permutes)
                (up, down), (left, right) = pairs(width)
                self.assertEqual(_hlo.received(text), 4 * ((32 + up + down) * (16 + left + right) - 32 * 16))

    def test_errors(self):
        whole = numpy.zeros(SHAPE, numpy.float32)
        for spec, width, words in ((P("x", "y"), -1, "-1"), (P("x", "y"), [1, 1, 1], "3 entries"), (P("x", "y"), [1, (1, 2, 3)], "3 numbers")):
            with self.assertRaises(reshard.InputError) as caught:
                blocks(spec, width, False)(whole)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(reshard.InputError) as caught:
            jax.shard_map(lambda block: reshard.jax.halo(block, ("x", "y", "z")), mesh=MESH, in_specs=P("x"), out_specs=P("x"))(whole)
        self.assertIn("2 dimensions", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
