"""Runs the output of `reshard emit` unchanged: the JAX and StableHLO modules on eight host devices must move the array right.
Skipped if jax is not installed."""

import ast
import json
import os
import random
import subprocess
import sys
import unittest

import numpy

import reshard
from emitted import (CHANGED, LONG, QUESTIONS, SEED, TOOL, array_of, changed_ends, combined, emitted, periodic_question, random_question,
                     summands_of)

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
except ImportError:
    print("skipped: no jax here")
    sys.exit(77)

if not TOOL:
    print("skipped: this build has no tool")
    sys.exit(77)
def shards_of(array, sharding):
    """The tile of each device, by device number."""
    places = sharding.devices_indices_map(array.shape)
    return {device.id: array[index] for device, index in places.items()}


class Emitted(unittest.TestCase):
    def check(self, mesh, source, target):
        with self.subTest(mesh=mesh, source=source, target=target):
            module = {}
            exec(compile(emitted("jax", mesh, source, target), "emitted.py", "exec"), module)
            values, unreduced = array_of(source)
            wanted, made_unreduced = array_of(target)
            spec = module["source"].spec
            sizes = dict(module["mesh"].shape)
            names = spec[0] if unreduced else ()
            names = (names,) if isinstance(names, str) else names or ()
            stack = summands_of(values, unreduced, int(numpy.prod([sizes[name] for name in names], dtype=int)))
            moved = module["reshard"](jax.device_put(stack, module["source"]))
            whole = combined(numpy.asarray(moved), made_unreduced)
            numpy.testing.assert_array_equal(whole, values.reshape(wanted.shape))
            self.assertTrue(moved.sharding.is_equivalent_to(module["target"], moved.ndim))
            self.check_stablehlo(module, stack, numpy.asarray(moved), (mesh, source, target), unreduced, made_unreduced)

    def check_stablehlo(self, module, stack, moved, question, unreduced, made_unreduced):
        """Replica i has the tile of position i in the mesh, before and after."""
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
            self.check(*random_question(drawn))

    def test_cuts_in_pieces(self):
        """Each device gets its own tile. The tool says why if it makes no program."""
        drawn, ran = random.Random(SEED), 0
        while ran < 50:
            mesh, source, target = periodic_question(drawn)
            result = subprocess.run([TOOL, "emit", "--to", "jax", "--mesh", mesh, source, target], capture_output=True,
                                    text=True)
            if result.returncode != 0:
                self.assertIn("no sequence of collectives", result.stderr)
                continue
            with self.subTest(mesh=mesh, source=source, target=target):
                module = {}
                exec(compile(result.stdout, "emitted.py", "exec"), module)
                layouts = [reshard.parse_layout(mesh, end) for end in (source, target)]
                array = numpy.arange(numpy.prod(layouts[0].shape), dtype=numpy.float32).reshape(layouts[0].shape)
                tiles, wanted = (numpy.concatenate(reshard.split(array, layout)) for layout in layouts)
                spec = PartitionSpec(module["mesh"].axis_names)
                move = jax.shard_map(module["move"], mesh=module["mesh"], in_specs=spec, out_specs=spec,
                                     check_vma=False)
                numpy.testing.assert_array_equal(numpy.asarray(jax.jit(move)(tiles)), wanted)
                ran += 1

    def test_casts_and_transpositions(self):
        """Each element is that of numpy and ml_dtypes, to the bit, and replicas run the same operations."""
        for question in CHANGED:
            with self.subTest(question=question):
                module = {}
                exec(compile(emitted("jax", *question), "emitted.py", "exec"), module)
                array, wanted = changed_ends(*question)
                moved = module["reshard"](jax.device_put(array, module["source"]))
                self.assertTrue(moved.sharding.is_equivalent_to(module["target"], moved.ndim))
                self.assertEqual(moved.dtype, wanted.dtype)
                self.assertEqual(numpy.asarray(moved).tobytes(), wanted.tobytes())
                order = [device.id for device in module["mesh"].devices.flat]
                before, after = shards_of(array, module["source"]), shards_of(wanted, module["target"])
                found = run_stablehlo(emitted("stablehlo", *question), [before[device] for device in order])
                for tile, device in zip(found, order, strict=True):
                    self.assertEqual(tile.tobytes(), after[device].tobytes())

    def test_the_array_of_a_cut_in_pieces_has_a_dimension_for_each_digit(self):
        module = {}
        exec(compile(emitted("jax", "x=8", "f32[64@x,4]", "f32[64@x/2,4]"), "emitted.py", "exec"), module)
        array = numpy.arange(256, dtype=numpy.float32).reshape(64, 4)
        moved = module["reshard"](jax.device_put(array, module["source"]))
        numpy.testing.assert_array_equal(numpy.asarray(moved), array.reshape(4, 8, 2, 4))
        self.assertTrue(moved.sharding.is_equivalent_to(module["target"], moved.ndim))

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
    """Runs the module with one replica per tile, on jax's own client."""
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
