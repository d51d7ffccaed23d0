"""Two moves over 12 and 40 devices at which XLA of JAX 0.12 ends the process: they move by plans, right and without gathers."""

import math
import os
import sys

import devices
import jax
import numpy
import reshard.jax
from jax.sharding import AxisType
from reshard.jax import _hlo

PAIRS = (({"a": 2, "b": 3, "c": 2}, (24,), ((("a", "b"),), ("c",))),
         ({"x": 4, "y": 10}, (80, 80), ((None, "x"), (("x", "y"), None))))


def main():
    jax.config.update("jax_num_cpu_devices", 40)
    failed = 0
    for axes, shape, (source, target) in PAIRS:
        mesh = jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes),
                             devices=jax.devices()[:math.prod(axes.values())])
        ends = [devices.named(mesh, *spec) for spec in (source, target)]
        x = numpy.arange(math.prod(shape), dtype=numpy.float32).reshape(shape)
        held = jax.device_put(x, ends[0])
        for move in (lambda x: reshard.jax.reshard(x, ends[1]), lambda x: reshard.jax.reshard(x, ends[1], source=ends[0])):
            with devices.complaints() as said:
                program = jax.jit(move).lower(held).compile()
                complained = "rematerialization" in said()
            moved = program(held)
            right = all((numpy.asarray(shard.data) == x[shard.index]).all() for shard in moved.addressable_shards)
            gathered = any(one.bytes >= x.nbytes for one in _hlo.collectives(program.as_text()))
            if complained or not right or gathered or not moved.sharding.is_equivalent_to(ends[1], x.ndim):
                failed += 1
                print(f"{axes}: {source} -> {target}: right {right}, gathered {gathered}, complained {complained}")
    print(f"{2 * len(PAIRS)} programs, {failed} faults, jax {jax.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # the number of devices is JAX's to say
    sys.exit(main())
