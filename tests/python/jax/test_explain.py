"""reshard.jax.explain on a transformer that scans over its layers, with three bad reshards, one of them there and back. It must
find exactly these, and its lines, pasted into the program, must end XLA's warnings."""

import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

import devices
import jax
import jax.numpy as jnp
import numpy
import reshard.jax
from reshard.jax import _hlo
from reshard.jax._quiet import without_complaints

MESH = devices.mesh_of(x=2, y=4)
PROGRAM = '''import jax
import jax.numpy as jnp
import reshard.jax
from jax.sharding import PartitionSpec as P


def layer(h, weights):
    query, up, down = weights
    scores = jnp.einsum("bsd,btd->bst", h @ query, h)
    scores = jax.lax.with_sharding_constraint(scores, P(None, "x", "y"))  # bad
    scores = jax.lax.with_sharding_constraint(scores * 2, P(("x", "y"), None, None))  # and back
    h = h + jnp.einsum("bst,btd->bsd", jax.nn.softmax(scores, axis=-1), h)
    return h + jnp.tanh(h @ up) @ down, None


def model(tokens, weights, table):
    h = table[tokens]
    h = jax.lax.with_sharding_constraint(h, P("y", None, "x"))
    h = jax.lax.with_sharding_constraint(jnp.sin(h), P(None, ("x", "y"), None))  # bad
    h = jax.lax.with_sharding_constraint(h + 1, P(("x", "y"), None, None))
    h = jax.lax.scan(layer, h, weights)[0]
    h = jax.lax.with_sharding_constraint(jnp.cos(h), P(None, "x", "y"))  # bad
    return jax.lax.with_sharding_constraint(h * 3, P("y", "x"))
'''
LAYERS, BATCH, LENGTH, WIDTH = 3, 16, 32, 64


def loaded(text, folder, name):
    """The program as a module in its own file, so that JAX can name its lines."""
    path = pathlib.Path(folder) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    scope = {}
    exec(compile(text, str(path), "exec"), scope)  # pylint: disable=exec-used
    return scope["model"]


def arguments():
    draw = numpy.random.default_rng(1)
    values = lambda *shape: jnp.asarray(draw.standard_normal(shape) / 8, jnp.float32)
    weights = (values(LAYERS, WIDTH, WIDTH), values(LAYERS, WIDTH, 2 * WIDTH), values(LAYERS, 2 * WIDTH, WIDTH))
    tokens = jax.device_put(draw.integers(0, 50, (BATCH, LENGTH)), devices.named(MESH, ("x", "y")))
    return tokens, jax.device_put(weights, devices.named(MESH)), jax.device_put(values(50, WIDTH), devices.named(MESH))


def warned(program, values):
    """The number of XLA's warnings, and the result."""
    with jax.set_mesh(MESH), devices.complaints() as said:
        result = jax.jit(program)(*values)
        return said().count("Involuntary full rematerialization"), numpy.asarray(result)


class Explain(unittest.TestCase):
    def test_what_it_finds_and_what_its_lines_do(self):
        values = arguments()
        with tempfile.TemporaryDirectory() as folder:
            model = loaded(PROGRAM, folder, "model")
            complaints, before = warned(model, values)
            self.assertGreater(complaints, 0)
            seconds = []
            for _ in range(3):  # the least of three, since other processes slow this one
                with jax.set_mesh(MESH), devices.complaints() as said:
                    begin = time.process_time()
                    jax.jit(lambda *values: model(*values)).lower(*values)
                    lowered = time.process_time()
                    found = reshard.jax.explain(jax.jit(lambda *values: model(*values)), *values)
                    seconds.append(time.process_time() - lowered - (lowered - begin))
                    self.assertNotIn("rematerialization", said())  # the rows say it instead
            print(f"explain: {min(seconds):.2f} s of CPU beyond lowering, its compilations included")
            self.assertLess(min(seconds), 3)  # half a second on a quiet machine
            wasteful = [row for row in found.rows if row.waste > 1]
            lines = PROGRAM.splitlines()
            self.assertEqual({(lines[int(row.place.rpartition(":")[2]) - 1].partition("# ")[2], row.times) for row in wasteful},
                             {("bad", LAYERS), ("and back", LAYERS), ("bad", 1)})
            self.assertEqual(len(wasteful), 4)
            text = PROGRAM
            for row in wasteful:
                old = lines[int(row.place.rpartition(":")[2]) - 1]
                self.assertIn("with_sharding_constraint", old)
                text = text.replace(old, old[:len(old) - len(old.lstrip())] + row.line)
            after = loaded(text, folder, "pasted")
            complaints_after, result = warned(after, values)
            self.assertEqual(complaints_after, 0)
            numpy.testing.assert_array_equal(result, before)
            with jax.set_mesh(MESH):
                again = reshard.jax.explain(jax.jit(after), *values)
            self.assertEqual([row for row in again.rows if row.waste > 1.05], [])
            self.assertLessEqual(again.received_bytes, found.received_bytes - found.saved_bytes * 0.9)

    def test_rows_in_three_forms_and_the_verdict(self):
        def program(x):
            def turn(x, _):
                x = jax.lax.with_sharding_constraint(x * 2, devices.named(MESH, ("x", "y")))
                return jax.lax.with_sharding_constraint(x + 1, devices.named(MESH, None, "x", "y")), None
            return jax.lax.scan(turn, x, None, length=5)[0]
        held = jax.ShapeDtypeStruct((16, 16, 16), jnp.float32, sharding=devices.named(MESH, None, "x", "y"))
        found = reshard.jax.explain(program, held)
        self.assertEqual([row.times for row in found.rows], [5, 5, 1])  # two in each turn of the loop, and the one before the loop
        whole, tile = 16 ** 3 * 4, 16 ** 3 * 4 // 8
        for row in found.rows:
            self.assertEqual((row.bytes, row.peak, row.xla_bytes), (tile * 7 // 8, tile, whole * 7 // 8))
            self.assertEqual(row.saved_bytes, row.times * (row.xla_bytes - row.bytes))
            self.assertRegex(row.place, r"test_explain\.py:\d+$")
        self.assertEqual(found.received_bytes, 11 * whole * 7 // 8)
        read = json.loads(found.json())
        self.assertEqual((read["schema"], len(read["rows"]), read["rows"][0]["waste"]), (1, 3, 8.0))
        page = found.html()
        self.assertEqual(re.findall(r"<script|https?:|src=|href=", page), [])
        self.assertEqual(page.count("<tr"), 4)
        self.assertIn("saves", str(found))
        with self.assertRaisesRegex(reshard.jax.WasteError, r"test_explain\.py:\d+: XLA receives 8x"):
            found.require(waste_max=1.1)
        found.require(waste_max=8)

    def test_only_complaints_are_kept_out_of_stderr(self):
        with devices.complaints() as said:
            with without_complaints():
                os.write(2, b"W1 spmd.cc:1] [SPMD] Involuntary full rematerialization. As ever\nanother line\n")
                print("of Python", file=sys.stderr)
                os.write(2, b"without an end")
            os.write(2, b", and after")
            self.assertEqual(said(), "another line\nof Python\nwithout an end, and after")

    def test_collectives_of_a_program_with_loops(self):
        def program(x):
            return jax.lax.scan(lambda x, _: (jax.lax.with_sharding_constraint(
                jax.lax.with_sharding_constraint(x + 1, devices.named(MESH, "y")), devices.named(MESH)), None), x, None, length=7)[0]
        held = jax.ShapeDtypeStruct((64, 8), jnp.float32, sharding=devices.named(MESH))
        got = _hlo.collectives(jax.jit(program).lower(held).compile().as_text())
        self.assertEqual([(one.kind, one.group, one.received, one.times) for one in got],
                         [("all-gather", 4, 64 * 8 * 4 * 3 // 4, 7)])


if __name__ == "__main__":
    unittest.main(verbosity=1)
