"""reshard.jax.program: scheduled HLO as tasks. One module is written here, with starts and dones; another is compiled."""

import pathlib
import unittest

import devices
import jax
import jax.numpy as jnp
import reshard
import reshard.jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

# XLA waits for the gather of the second layer before it computes the first.
TEXT = (pathlib.Path(__file__).resolve().parents[2] / "unit" / "program" / "step.hlo").read_text(encoding="utf-8")
SECONDS = {"ag0": 1.0, "ag1": 2.0, "dot0": 4.0, "dot1": 8.0}


class Scheduled(unittest.TestCase):
    def test_xla_order_and_the_bound(self):
        made = reshard.jax.program(TEXT, seconds=SECONDS)
        self.assertEqual((made.xla_seconds, made.hidden, made.blocking, len(made.program)), (15.0, 2, 0, 4))
        schedule = reshard.schedule(made.program)
        self.assertEqual((schedule.seconds, schedule.lower_bound_seconds), (13.0, 13.0))  # ag1 beside dot0
        self.assertEqual([one.name for one in schedule.order if one.start == 1.0], ["ag1", "dot0"])

    def test_hidden_collectives_are_as_xla_runs_them(self):
        # The second start moves before the first fusion, and its done behind it.
        lines = TEXT.splitlines()
        done = next(i for i, line in enumerate(lines) if "%got1 =" in line)
        lines.insert(done + 2, lines.pop(done))
        lines[done], lines[done + 1] = lines[done], lines[done + 1]
        made = reshard.jax.program("\n".join(lines), seconds=SECONDS)
        self.assertEqual(made.xla_seconds, 13.0)

    def test_memory_is_that_of_a_device(self):
        made = reshard.jax.program(TEXT, seconds=SECONDS)
        (device,) = reshard.schedule(made.program).devices
        # x, both shards, both gathered arrays and the first result; later the second result is kept.
        self.assertEqual(device.peak_bytes, 256 + 256 + 256 + 256 + 128)
        self.assertIn('"kept":true', str(made.program))

    def test_functions_get_the_instruction(self):
        seen = {}

        def seconds(one):
            seen[one.name] = (one.opcode, one.bytes, one.read_bytes, one.op)
            return SECONDS[one.name]

        reshard.jax.program(TEXT, seconds=seconds)
        self.assertEqual(seen["ag0"], ("all-gather-start", 256, 128, "jit(step)/gather"))
        self.assertEqual(seen["dot1"], ("fusion", 256, 512, ""))

    def test_a_machine_prices_what_has_no_time(self):
        made = reshard.jax.program(TEXT, machine="machine m\nlevel l devices all message 1us bandwidth 1GB/s\ncopy 1GB/s\n")
        self.assertGreater(made.xla_seconds, 2 * 1.128e-6 + 2 * 768e-9 - 1e-12)  # both gathers, and both fusions

    def test_errors(self):
        for text, arguments, words in (
                (TEXT.replace("is_scheduled=true", "x"), {"seconds": SECONDS}, "not scheduled"),
                (TEXT, {"seconds": {"ag0": 1.0}}, "ag1 .* has no time"),
                (TEXT, {"seconds": SECONDS, "computation": "body"}, "no computation body; it has main, region")):
            with self.assertRaisesRegex(reshard.InputError, words):
                reshard.jax.program(text, **arguments)

    def test_a_compiled_program(self):
        mesh = devices.mesh_of(x=2, y=4)
        weights = [jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("x", None))) for _ in range(3)]
        whole = NamedSharding(mesh, P())

        def step(x, weights):
            for one in weights:
                x = jnp.tanh(x @ jax.lax.with_sharding_constraint(one, whole))
            return x

        made = reshard.jax.program(step, jax.device_put(jnp.ones((8, 64)), whole), weights, seconds=lambda one: 0.001)
        self.assertGreaterEqual(made.blocking + made.hidden, 3)
        schedule = reshard.schedule(made.program)
        self.assertLessEqual(schedule.lower_bound_seconds, schedule.seconds)
        self.assertLess(schedule.seconds, made.xla_seconds)  # this backend waits for each gather at once


if __name__ == "__main__":
    unittest.main(verbosity=1)
