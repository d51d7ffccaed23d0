"""Random programs, with everywhere() and without: values and gradients equal; over all programs fewer bytes received and no
more held (arguments and temp). One program may be worse: a constraint fixes the sharding of what makes the value, where the
operand of a move takes it by propagation; how many are, and by how much, is printed and bounded. Free producers, pinned
ends, elementwise operations, sums, products with weights, transposes, scans, several constraints, grad and vmap. Twelve of
them; 200 with RESHARD_LONG=1. RESHARD_SEED draws other ones."""

import math
import random
import sys
import time

import devices
import jax
import jax.numpy as jnp
import numpy
import reshard.jax
from reshard.jax import _hlo

ARRAY = (16, 32, 24)
MESHES = ({"x": 2, "y": 4}, {"x": 4, "y": 2}, {"x": 2, "y": 2, "z": 2}, {"x": 8})


class Program:
    """One of them, drawn: `trace` is what jit is given; `text` says what it does."""

    def __init__(self, seed):
        draw = random.Random(f"programs {seed}")
        self.mesh = devices.mesh_of(**draw.choice(MESHES))
        self.draw = draw
        self.argument = draw.choice([self.spec(), None])
        self.steps = [draw.choice(["pin", "pin", "pin", "wave", "scale", "matmul", "turn", "add", "scan", "made"])
                      for _ in range(draw.randint(4, 9))] + ["pin", "wave"]
        self.specs = [(self.spec(), self.spec()) for _ in self.steps]
        self.result = draw.choice([self.spec(), None])
        self.form = draw.choice(["plain", "plain", "grad", "vmap", "vmap of grad"])
        self.text = f"{dict(self.mesh.shape)} {self.argument} {list(zip(self.steps, self.specs))} {self.result} {self.form}"

    def spec(self):
        """A sharding of the array that JAX takes: axes that divide."""
        while True:
            dims = [[] for _ in ARRAY]
            for axis in self.draw.sample(list(self.mesh.shape), self.draw.randint(0, len(self.mesh.shape))):
                self.draw.choice(dims).append(axis)
            if all(extent % math.prod(self.mesh.shape[axis] for axis in dim) == 0 for extent, dim in zip(ARRAY, dims)):
                return tuple(tuple(dim) or None for dim in dims)

    def pin(self, x, spec):
        """As a user writes it."""
        return jax.lax.with_sharding_constraint(x, devices.named(self.mesh, *spec))

    def step(self, kind, x, spec, other, weights):
        """x after one step; the shape stays."""
        if kind == "pin":
            return self.pin(x, spec)
        if kind == "wave":
            return jnp.sin(x)
        if kind == "scale":
            return x * (1 + jnp.mean(x, axis=-1, keepdims=True))
        if kind == "matmul":
            return jnp.einsum("abc,cd->abd", x, weights)
        if kind == "turn":
            return self.pin(x, spec).transpose(0, 2, 1).reshape(ARRAY[0], ARRAY[2], ARRAY[1]).transpose(0, 2, 1)
        if kind == "add":
            return self.pin(x, spec) + self.pin(x * 2, other)
        if kind == "made":
            return x + self.pin(jnp.outer(jnp.arange(16.0) / 16, jnp.ones(32 * 24)).reshape(ARRAY), spec)
        return jax.lax.scan(lambda x, _: (self.pin(jnp.cos(self.pin(x, spec)), other), None), x, None, length=2)[0]

    def trace(self, x, weights):
        """The program, to be traced anew with everywhere() and without."""
        def body(x):
            for kind, (spec, other) in zip(self.steps, self.specs):
                x = self.step(kind, x, spec, other, weights)
            return x
        of_one = jax.grad(lambda x: (body(x) ** 2).sum()) if "grad" in self.form else body
        return jax.vmap(of_one)(x) if "vmap" in self.form else of_one(x)

    def compiled(self):
        """With its arguments."""
        draw = numpy.random.default_rng(7)
        shape = ((2,) if "vmap" in self.form else ()) + ARRAY
        x = draw.standard_normal(shape, numpy.float32)
        weights = draw.standard_normal((24, 24), numpy.float32) / 5
        held = None if self.argument is None else devices.named(
            self.mesh, *((None,) if "vmap" in self.form else ()), *self.argument)
        end = None if self.result is None else devices.named(
            self.mesh, *((None,) if "vmap" in self.form else ()), *self.result)
        x = x if held is None else jax.device_put(x, held)
        program = jax.jit(lambda x, weights: self.trace(x, weights), out_shardings=end).lower(x, weights).compile()
        return program, program(x, weights)


def both(program):
    """(bytes held, bytes received) with everywhere() and without. Raises AssertionError where values differ."""
    theirs, wanted = program.compiled()
    with reshard.jax.everywhere():
        ours, result = program.compiled()
    numpy.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-4 * float(numpy.abs(wanted).max()), err_msg=program.text)
    def costs(compiled):
        held = compiled.memory_analysis()
        return held.argument_size_in_bytes + held.temp_size_in_bytes, _hlo.received(compiled.as_text())
    return costs(ours), costs(theirs)


def main():
    begin, count = time.monotonic(), 200 if devices.LONG else 12
    totals, worse = numpy.zeros((2, 2)), [[], []]
    for seed in range(devices.SEED * 1000, devices.SEED * 1000 + count):
        costs = numpy.array(both(Program(seed)), float)
        totals += costs
        for what, bad in enumerate(worse):
            if costs[0, what] > costs[1, what] * 1.01 + 1024:  # XLA rounds buffers up
                bad.append((costs[0, what] / max(costs[1, what], 1), seed))
    failed = 0
    for what, name in enumerate(("held", "received")):
        ratio = totals[0, what] / max(totals[1, what], 1)
        worst = max(worse[what], default=(1, "none"))
        print(f"{name}: {ratio:.3f} of what it is without, over {count} programs; more in {len(worse[what])}, at most "
              f"{worst[0]:.2f}x (program {worst[1]})")
        failed += ratio > 1 or worst[0] > 1.6 or len(worse[what]) > count // 4
    print(f"{count} programs, {time.monotonic() - begin:.0f} s ({time.process_time():.0f} of CPU)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
