"""What `reshard emit` writes runs as it stands: the JAX module and the StableHLO module on eight host devices, and move the
array right. Skipped where there is no jax."""

import ast
import json
import os
import random
import re
import subprocess
import sys
import unittest

import numpy

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ImportError:
    print("skipped: no jax here")
    sys.exit(77)

TOOL = os.environ.get("RESHARD_TOOL", "")
if not TOOL:
    print("skipped: this build has no tool")
    sys.exit(77)
LONG = os.environ.get("RESHARD_LONG", "") not in ("", "0")
SEED = int(os.environ.get("RESHARD_SEED", "20211203"))
DTYPES = {"f32": numpy.float32, "i32": numpy.int32, "bf16": jax.numpy.bfloat16, "u8": numpy.uint8, "f64": numpy.float64,
          "c64": numpy.complex64, "bool": numpy.bool_}
COMBINE = {"U": numpy.add, "max": numpy.maximum, "min": numpy.minimum, "prod": numpy.multiply, "avg": numpy.add}

# Everything that a program can hold: sub-axes, wide all_to_alls, every reduction, fills, other orders, reshapes, scalars.
QUESTIONS = [
    ("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(x,y),8,16]"),
    ("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(y,x),8,16]"),
    ("x=2,y=4", "f32[16@(x,y),8]", "f32[16@(y,x),8]"),
    ("x=2,y=4", "bf16[16@y:(2)2,8]", "bf16[16,8@y:(1)2]"),
    ("x=8", "f32[16@x:(1)2,8@x:(2)4]", "f32[16@x:(1)4,8@x:(4)2]"),
    ("x=2,y=4", "i32[16,8@y]", "i32[16@x,8]"),
    ("x=2,y=4", "f32[16,8]{U:x}", "f32[16@x,8@y]"),
    ("x=2,y=4", "f32[16,8]{U:(x,y)}", "f32[16,8@x]"),
    ("x=2,y=4", "f32[16,8]{U:x}", "f32[16,8]"),
    ("x=2,y=4", "i32[16,8]{max:y}", "i32[16,8@y]"),
    ("x=2,y=4", "f32[16,8]{min:y}", "f32[16@x,8]"),
    ("x=2,y=4", "f32[16,8]{prod:y}", "f32[16,8]"),
    ("x=2,y=4", "f32[3,7]{prod:y}", "f32[3,7]"),
    ("x=2,y=4", "f32[16,8]{avg:y}", "f32[16@x,8@y]"),
    ("x=2,y=4", "f32[16,8@y]", "f32[16@x,8]{U:y}"),
    ("x=2,y=4", "f32[16,8@y:(2)2]", "f32[16@y:(1)2,8]{max:x}"),
    ("x=2,y=4", "i32[16,8@y]", "i32[16@y,8]{min:x}"),
    ("x=2,y=4", "f32[16,8]", "f32[16@x,8]{prod:y}"),
    ("x=2,y=4", "f32[16,8]", "f32[16,8]{avg:(x,y)}"),
    ("x=2,y=4[1,3,5,7,0,2,4,6]", "f32[16,8@y]", "f32[16@(x,y),8]"),
    ("x=2,y=4", "f64[16,8@y]", "f64[16@y,8]"),
    ("x=2,y=4", "c64[16,8]{U:y}", "c64[16@y,8]"),
    ("x=2,y=4", "u8[16@x,8@y]", "u8[16@y,8@x]"),
    ("x=2,y=4", "bool[16@x,8@y]", "bool[16@y,8]"),
    ("x=2,y=4", "f32[]{U:x}", "f32[]"),
    ("x=2,y=4", "f32[16@x,8@y]", "f32[128@(x,y)]"),
    ("x=2,y=4", "f32[16]", "f32[16]"),
    ("", "f32[4]", "f32[4]"),
]


def emitted(to, mesh, source, target):
    result = subprocess.run([TOOL, "emit", "--to", to, "--mesh", mesh, source, target], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"{mesh} {source} {target}: {result.stderr}")
    return result.stdout


def array_of(layout):
    """Small values of a layout's shape and type, and how its summands combine: {max:x}, or None."""
    dtype, extents, unreduced = re.fullmatch(r"(\w+)\[(.*)\](\{.*\})?", layout).groups()
    shape = tuple(int(n) for n in re.findall(r"(?:^|,)(\d+)", re.sub(r"@(\([^)]*\)+|[^,]*)", "", extents)))
    return numpy.random.default_rng(7).integers(1, 4, shape).astype(DTYPES[dtype]), unreduced


def summands_of(values, unreduced, count):
    """So many summands that combine to the values, which an avg divides by their number."""
    if unreduced is None:
        return values
    kind = unreduced[1:].partition(":")[0].partition("/")[0]
    others = numpy.random.default_rng(8).integers(1, 3, (count - 1,) + values.shape).astype(values.dtype)
    if kind in ("U", "avg"):
        own = values * count - others.sum(0) if kind == "avg" else values - others.sum(0)
    elif kind == "prod":
        others = numpy.ones_like(others) * 2
        own = values / 2 ** (count - 1)
    else:
        others = values - others if kind == "max" else values + others
        own = values
    return numpy.concatenate([numpy.asarray(own, values.dtype)[None], others])


def combined(stack, unreduced):
    if unreduced is None:
        return stack
    kind = unreduced[1:].partition(":")[0].partition("/")[0]
    whole = COMBINE[kind].reduce(stack, axis=0)
    return whole / len(stack) if kind == "avg" else whole


def shards_of(array, sharding):
    """The tile of each device, by its number."""
    places = sharding.devices_indices_map(array.shape)
    return {device.id: array[index] for device, index in places.items()}


class Emitted(unittest.TestCase):
    def check(self, mesh, source, target):
        with self.subTest(mesh=mesh, source=source, target=target):
            module = {}
            exec(compile(emitted("jax", mesh, source, target), "emitted.py", "exec"), module)
            values, unreduced = array_of(source)
            made_unreduced = array_of(target)[1]
            spec = module["source"].spec
            sizes = dict(module["mesh"].shape)
            names = spec[0] if unreduced else ()
            names = (names,) if isinstance(names, str) else names or ()
            stack = summands_of(values, unreduced, int(numpy.prod([sizes[name] for name in names], dtype=int)))
            moved = module["reshard"](jax.device_put(stack, module["source"]))
            whole = combined(numpy.asarray(moved), made_unreduced)
            numpy.testing.assert_array_equal(whole.reshape(-1), values.reshape(-1))
            self.assertTrue(moved.sharding.is_equivalent_to(module["target"], moved.ndim))
            self.check_stablehlo(module, stack, numpy.asarray(moved), (mesh, source, target), unreduced, made_unreduced)

    def check_stablehlo(self, module, stack, moved, question, unreduced, made_unreduced):
        """Replica i has the tile that position i of the mesh has, before and after."""
        text = emitted("stablehlo", *question)
        devices = list(module["mesh"].devices.flat)
        before = shards_of(stack, module["source"])
        after = shards_of(moved, module["target"])
        tiles = [before[device.id][0] if unreduced else before[device.id] for device in devices]
        wanted = [after[device.id][0] if made_unreduced else after[device.id] for device in devices]
        for found, right in zip(run_stablehlo(text, tiles), wanted, strict=True):
            numpy.testing.assert_array_equal(found, right)

    def test_questions_of_every_kind(self):
        for question in QUESTIONS:
            self.check(*question)

    def test_random_pairs(self):
        """Any two layouts of one array; RESHARD_LONG=1 runs many."""
        drawn = random.Random(SEED)
        for _ in range(400 if LONG else 25):
            mesh = drawn.choice(["x=2,y=4", "a=2,b=2,c=2", "x=8", "x=4,y=2"])
            axes = [axis.partition("=")[0] for axis in mesh.split(",")]
            ends = []
            for _ in range(2):
                dims = [[], [], []]
                order = drawn.sample(axes, len(axes))
                for axis in order:
                    place = drawn.randrange(4)
                    if place < 3:
                        dims[place].append(axis)
                ends.append("f32[" + ",".join("8" + (f"@({','.join(names)})" if names else "") for names in dims) + "]")
            self.check(mesh, *ends)

    def test_every_text_is_python(self):
        for question in QUESTIONS:
            for to in ("jax", "torch"):
                tree = ast.parse(emitted(to, *question))
                defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
                self.assertIn("move", defined)

    def test_json_counts_what_is_received(self):
        result = subprocess.run([TOOL, "emit", "--to", "jax", "--json", "--mesh", *QUESTIONS[0]], capture_output=True,
                                text=True, check=True)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["text"], emitted("jax", *QUESTIONS[0]))
        self.assertGreaterEqual(sum(one["received_elements"] for one in answer["operations"]), 224)


def run_stablehlo(text, tiles):
    """The module on as many replicas as there are tiles, by the client that jax has."""
    from jax._src.lib import xla_client
    devices = jax.devices()[:len(tiles)]
    options = xla_client.CompileOptions()
    options.num_replicas = len(devices)
    options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(numpy.arange(len(devices)).reshape(-1, 1))
    client = devices[0].client
    program = client.compile_and_load(text, xla_client.DeviceList(tuple(devices)), options)
    extents = tiles[0].shape
    replicas = NamedSharding(Mesh(numpy.array(devices), ("replica",)), PartitionSpec(*["replica"] if extents else []))
    arguments = jax.make_array_from_single_device_arrays(
        (len(tiles) * extents[0],) + extents[1:] if extents else (), replicas,
        [jax.device_put(tile, device) for tile, device in zip(tiles, devices)])
    outputs = program.execute_sharded([arguments]).disassemble_into_single_device_arrays()
    return [numpy.asarray(one) for one in outputs[0]]


if __name__ == "__main__":
    unittest.main()
