"""Pairs on which XLA's partitioner of the newest JAX aborts the process. reshard.jax must move them with right values."""

import math
import os
import unittest

import devices  # sets the number of host devices before JAX starts
import jax
import numpy
import reshard.jax

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=40 --xla_backend_optimization_level=0"


def mesh_of(**axes):
    """A mesh over the first devices of the host."""
    found = numpy.array(jax.devices()[:math.prod(axes.values())])
    return jax.sharding.Mesh(found.reshape(tuple(axes.values())), tuple(axes))


class Hard(unittest.TestCase):
    def check(self, mesh, shape, source, target):
        x = numpy.arange(math.prod(shape), dtype=numpy.float32).reshape(shape)
        held, wanted = devices.named(mesh, *source), devices.named(mesh, *target)
        move = jax.jit(lambda v: reshard.jax.reshard(v, wanted))
        with devices.complaints() as said:
            moved = move(jax.device_put(x, held))
            self.assertNotIn("rematerialization", said())
        self.assertTrue(moved.sharding.is_equivalent_to(wanted, x.ndim))
        for shard in moved.addressable_shards:
            numpy.testing.assert_array_equal(shard.data, x[shard.index])

    def test_columns_of_four_to_rows_of_forty(self):
        self.check(mesh_of(x=4, y=10), (80, 80), (None, "x"), (("x", "y"), None))

    def test_six_tiles_to_two(self):
        self.check(mesh_of(a=2, b=3, c=2), (24,), (("a", "b"),), ("c",))


if __name__ == "__main__":
    print(f"jax {jax.__version__}")
    unittest.main(verbosity=1)
