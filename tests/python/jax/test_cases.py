"""The rows of tests/cases over at most 40 devices that JAX can express, with the checks of test_pairs. Among them, also with
source=, are two moves at which XLA of JAX 0.12 ends the process."""

import json
import math
import os
import pathlib
import re
import sys

import devices
import jax
import numpy
import reshard.jax
import test_pairs
from jax.sharding import AxisType
from reshard.jax import _explain, _hlo

CASES = pathlib.Path(__file__).parents[2] / "cases"
DIMS = re.compile(r"mesh(<.*?>), (\[.*\])>")
ABORTS = tuple(map(int, jax.__version__.split(".")[:2])) > (0, 10)  # XLA's own program is then not compiled for comparison

PAIRS = (({"a": 2, "b": 3, "c": 2}, (24,), ((("a", "b"),), ("c",))),
         ({"x": 4, "y": 10}, (80, 80), ((None, "x"), (("x", "y"), None))))


def cases():
    """(id, both shardings, an array) for each row that divides."""
    for file in ("named", "shardy", "portable"):
        for row in map(json.loads, (CASES / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()):
            if not {"mesh", "source", "target"} <= row.keys() or "target_mesh" in row or row.get("device_ids"):
                continue
            try:
                source, target = (reshard.parse_layout(row["mesh"], row[end]) for end in ("source", "target"))
                (mesh, dims), (_, other) = (DIMS.search(end.format("sdy")).groups() for end in (source, target))
            except (reshard.Error, AttributeError):
                continue  # sums, intervals, pieces and reshapes have no NamedSharding
            ends = _explain.shardings(mesh, dims, other)
            if ends is None or source.shape != target.shape or not source.ndim or source.global_bytes > 64 << 20:
                continue
            try:
                tiles = [math.prod(end.shard_shape(source.shape)) * end.num_devices for end in ends]
            except ValueError:
                continue  # sizes that do not divide
            if min(tiles) and source.dtype in ("f32", "bf16", "u8", "i32"):
                yield row["id"], ends, numpy.arange(math.prod(source.shape), dtype=numpy.float32).reshape(source.shape)


def main():
    jax.config.update("jax_num_cpu_devices", 40)
    failed = ran = 0
    for name, ends, x in () if ABORTS else cases():
        ran += 1
        for fault in test_pairs.faults(ends, x):
            failed += 1
            print(f"{name}: {fault}")
    print(f"{ran} rows")
    if not ran and not ABORTS:
        return 1
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
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # JAX chooses the number of devices
    sys.exit(main())
