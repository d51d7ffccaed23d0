"""reshard.jax.reshard and device_put as a part of JAX: transformed, traced, exported, in every mode, on every device."""

import itertools
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import devices
import jax
import jax._src.compiler
import jax.numpy as jnp
import numpy
import reshard.jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from reshard.jax import _fallback, _hlo, _program
from reshard.jax._shardings import named_layout

MESH = devices.mesh_of(x=2, y=4)
X = numpy.arange(16 * 8 * 16, dtype=numpy.float32).reshape(16, 8, 16)
SOURCE, TARGET = devices.named(MESH, None, "x", "y"), devices.named(MESH, ("x", "y"))  # XLA replicates between these


def kinds(function, *arrays):
    """Collectives of the compiled program, by kind."""
    return sorted(one.kind for one in _hlo.collectives(function.lower(*arrays).compile().as_text()))


def square(x, source=None):
    return (reshard.jax.reshard(x, TARGET, source=source) ** 2).sum()


def received_by_both(source, target):
    """The bytes that a device receives in our program and in XLA's, for an array of 256 x 64 x 256."""
    held = jax.ShapeDtypeStruct((256, 64, 256), X.dtype, sharding=source)
    return [_hlo.received(jax.jit(lambda x, move=move: move(x, target)).lower(held).compile().as_text())
            for move in (reshard.jax.reshard, jax.lax.with_sharding_constraint)]


class Inside(unittest.TestCase):
    """Under jit, with axes of type Auto."""

    def setUp(self):
        self.x = jax.device_put(X, SOURCE)

    def test_one_collective_between_two_pinned_ends(self):
        def program(x):
            x = jnp.sin(jax.lax.with_sharding_constraint(x * 2, SOURCE))
            return jnp.cos(reshard.jax.reshard(x, TARGET))
        numpy.testing.assert_allclose(jax.jit(program)(self.x), numpy.cos(numpy.sin(X * 2)), atol=1e-5)
        self.assertEqual(kinds(jax.jit(program), self.x), ["all-to-all"])

    def test_on_cores_of_a_host_a_permute_spares_copies_where_xla_receives_as_much(self):
        mesh = devices.mesh_of(a=2, b=2, c=2)
        ends = [devices.named(mesh, "c", None, "b"), devices.named(mesh, None, "b", ("a", "c"))]
        layouts = [named_layout(end, (256, 64, 256), X.dtype) for end in ends]
        host, other = (_program.program(*layouts, hosted).plan for hosted in (True, False))
        self.assertEqual([step.kind for step in host.steps], ["slice", "permute", "all_to_all"])
        self.assertEqual([step.kind for step in other.steps], ["slice", "all_to_all", "all_to_all"])
        self.assertLess(other.received_bytes, host.received_bytes)
        ours, theirs = received_by_both(*ends)
        self.assertEqual(ours, host.received_bytes)
        self.assertLessEqual(ours, theirs)

    def test_a_permute_replaces_all_to_alls_that_split_a_dimension_too(self):
        mesh = devices.mesh_of(a=2, b=2, c=2)
        ends = [devices.named(mesh, None, ("b", "a")), devices.named(mesh, ("a", "b"), "c")]
        layouts = [named_layout(end, (6144, 1024), X.dtype) for end in ends]
        host, other = (_program.program(*layouts, hosted).plan for hosted in (True, False))
        self.assertEqual([step.kind for step in host.steps], ["slice", "permute", "all_to_all"])
        self.assertEqual([step.kind for step in other.steps], ["view", "slice", "all_to_all", "all_to_all", "view"])

    def test_a_plan_that_splits_a_dimension_receives_less_than_xla(self):
        mesh = devices.mesh_of(a=2, b=2, c=2)
        ends = [devices.named(mesh, "a", "b"), devices.named(mesh, "c", None, ("b", "a"))]
        plan = _program.program(*(named_layout(end, (256, 64, 256), X.dtype) for end in ends), True).plan
        self.assertEqual([step.kind for step in plan.steps], ["view", "slice", "all_to_all", "all_to_all", "view"])
        ours, theirs = received_by_both(*ends)
        self.assertEqual(ours, plan.received_bytes)
        self.assertLess(ours, theirs)

    def test_a_producer_that_nobody_pinned_takes_the_target(self):
        free = jax.jit(lambda k: reshard.jax.reshard(jnp.outer(jnp.arange(16.0) + k, jnp.arange(64.0)), P("x", "y")))
        with jax.set_mesh(MESH):
            self.assertEqual(kinds(free, 1.0), [])
            self.assertEqual(free(1.0).sharding.spec, P("x", "y"))

    def test_gradients_of_first_and_second_order(self):
        for source in (None, SOURCE):
            gradient = jax.jit(jax.grad(lambda x: square(x, source)))
            numpy.testing.assert_array_equal(gradient(self.x), 2 * X)
            again = jax.jit(jax.grad(lambda x: (jax.grad(lambda y: square(y, source))(x) ** 2).sum()))
            numpy.testing.assert_array_equal(again(self.x), 8 * X)
        self.assertTrue(jax.jit(jax.grad(lambda x: square(x, SOURCE)))(self.x).sharding.is_equivalent_to(SOURCE, 3))
        self.assertEqual(kinds(jax.jit(jax.grad(lambda x: square(x, SOURCE))), self.x), ["all-to-all", "all-to-all"])
        primal, tangent = jax.jvp(lambda x: reshard.jax.reshard(x, TARGET), (self.x,), (self.x,))
        numpy.testing.assert_array_equal(primal, tangent)

    def test_vmap_leaves_the_new_dimension_alone(self):
        stack = numpy.stack([X, -X, X + 1, X * 2], 1)
        held = jax.device_put(stack, devices.named(MESH, None, None, "x", "y"))
        for source in (None, SOURCE):
            many = jax.jit(jax.vmap(lambda x: reshard.jax.reshard(x, TARGET, source=source), in_axes=1, out_axes=1))
            numpy.testing.assert_array_equal(many(held), stack)
            self.assertEqual(kinds(many, held), ["all-to-all"])
            self.assertEqual(many(held).sharding.spec, P(("x", "y")))

    def test_vmap_over_an_axis_of_the_mesh(self):
        stack = jax.device_put(numpy.stack([X, X * 2]), devices.named(MESH, "x", None, "y"))
        many = jax.jit(jax.vmap(lambda x: reshard.jax.reshard(x, devices.named(MESH, None, "y")), spmd_axis_name="x"))
        numpy.testing.assert_array_equal(many(stack), stack)
        self.assertEqual(many(stack).sharding.spec, P("x", None, "y"))

    def test_scan_with_a_move_there_and_back_each_turn(self):
        def turn(x, _):
            return reshard.jax.reshard(reshard.jax.reshard(x, TARGET) * 2, SOURCE), None
        loop = jax.jit(lambda x: jax.lax.scan(turn, x, None, length=3)[0])
        numpy.testing.assert_array_equal(loop(self.x), 8 * X)
        received = _hlo.received(loop.lower(self.x).compile().as_text())
        self.assertEqual(received, 2 * 3 * (X.nbytes // 8) * 7 // 8)  # each turn receives 7/8 of a tile twice

    def test_checkpoint_and_conditionals(self):
        def branch(x):
            return jax.lax.cond(x[0, 0, 0] >= 0, lambda y: reshard.jax.reshard(y, TARGET), lambda y: y * 2, x).sum()
        numpy.testing.assert_array_equal(jax.jit(jax.grad(jax.checkpoint(branch)))(self.x), numpy.ones_like(X))

    def test_pytrees_and_prefixes_of_them(self):
        both = jax.jit(lambda tree: reshard.jax.reshard(tree, {"a": TARGET, "b": devices.named(MESH, "y")}))
        moved = both({"a": [self.x, self.x], "b": self.x})
        self.assertEqual([leaf.sharding.spec for leaf in jax.tree.leaves(moved)], [P(("x", "y"))] * 2 + [P("y")])

    def test_elements_of_every_size(self):
        for dtype in (bool, jnp.int8, jnp.bfloat16, jnp.float16, jnp.complex64):
            held = jax.device_put((X % 2).astype(dtype), SOURCE)
            numpy.testing.assert_array_equal(jax.jit(lambda x: reshard.jax.reshard(x, TARGET))(held), (X % 2).astype(dtype))

    def test_casts_and_transpositions_within_the_program(self):
        """Values of numpy and ml_dtypes, to the bit. The narrower type travels."""
        x = numpy.random.default_rng(3).standard_normal(X.shape).astype(numpy.float32)
        for order, kind in (((2, 0, 1), jnp.bfloat16), ((1, 0, 2), jnp.float8_e5m2), ((0, 2, -2), numpy.float32)):
            wanted = x.transpose(order).astype(numpy.dtype(kind))
            target = devices.named(MESH, *[("x", "y") if dim == order.index(2) else None for dim in range(3)])
            for source in (None, SOURCE):
                move = jax.jit(lambda x, source=source: reshard.jax.reshard(x, target, source, dtype=kind, permute=order))
                moved = move(jax.device_put(x, SOURCE))
                self.assertEqual(moved.dtype, wanted.dtype)
                self.assertEqual(numpy.asarray(moved).tobytes(), wanted.tobytes())
                self.assertTrue(moved.sharding.is_equivalent_to(target, 3))

    def test_the_narrower_type_travels(self):
        for held, kind in ((self.x, jnp.bfloat16), (self.x.astype(jnp.bfloat16), jnp.float32)):
            text = jax.jit(lambda x: reshard.jax.reshard(x, TARGET, SOURCE, dtype=kind)).lower(held).as_text()
            sent, = (line for line in text.splitlines() if "all_to_all" in line)
            self.assertIn("xbf16>", sent)

    def test_gradients_of_casts_and_transpositions(self):
        def loss(x, move):
            return (move(x).astype(jnp.float32) ** 2).sum()
        ours = jax.jit(jax.grad(lambda x: loss(x, lambda x: reshard.jax.reshard(x, TARGET, dtype=jnp.bfloat16,
                                                                                permute=(2, 0, 1)))))
        theirs = jax.grad(lambda x: loss(x, lambda x: x.transpose(2, 0, 1).astype(jnp.bfloat16)))
        numpy.testing.assert_array_equal(ours(self.x), theirs(jnp.asarray(X)))
        tree = reshard.jax.reshard({"a": self.x, "b": self.x}, TARGET, dtype=jnp.float16)
        self.assertEqual({leaf.dtype for leaf in jax.tree.leaves(tree)}, {numpy.dtype("f2")})
        outside = reshard.jax.reshard(self.x, TARGET, permute=(2, 0, 1), dtype=jnp.int32)
        numpy.testing.assert_array_equal(outside, X.transpose(2, 0, 1).astype("i4"))
        self.assertEqual(outside.sharding, TARGET)

    def test_sizes_that_do_not_divide_are_left_to_xla_and_that_is_said_once(self):
        x = numpy.arange(30.0, dtype=numpy.float32).reshape(5, 6)
        uneven = lambda x: reshard.jax.reshard(reshard.jax.reshard(x, devices.named(MESH, "y")) + 1, devices.named(MESH, None, "y"))
        _fallback._said.clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            numpy.testing.assert_array_equal(jax.jit(lambda x: uneven(x) * 1)(x), x + 1)
            numpy.testing.assert_array_equal(jax.jit(lambda x: uneven(x) * 2)(x), 2 * (x + 1))
        ours = [str(one.message) for one in said if one.category is reshard.jax.FallbackWarning]
        self.assertEqual(len(ours), len(set(ours)))
        self.assertIn("leaves an array to XLA", ours[0])

    def test_the_former_partitioner(self):
        with jax.enable_x64(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.config.update("jax_use_shardy_partitioner", False)
            try:
                move = jax.jit(lambda x: reshard.jax.reshard(x, TARGET))
                numpy.testing.assert_array_equal(move(self.x), X)
                self.assertEqual(kinds(move, self.x), ["all-to-all"])
            finally:
                jax.config.update("jax_use_shardy_partitioner", True)


class Elsewhere(unittest.TestCase):
    """Explicit axes, outside jit, other devices, and programs that are kept."""

    def test_explicit_axes(self):
        mesh = devices.mesh_of(AxisType.Explicit, x=2, y=4)
        with jax.set_mesh(mesh):
            x = jax.device_put(X, NamedSharding(mesh, SOURCE.spec))
            move = jax.jit(lambda x: reshard.jax.reshard(x, P(("x", "y"))))
            self.assertEqual(str(jax.typeof(move(x))), "float32[16@(x,y),8,16]")
            self.assertEqual(kinds(move, x), ["all-to-all"])
            gradient = jax.jit(jax.grad(lambda x: (reshard.jax.reshard(x, P(("x", "y"))) ** 2).sum()))(x)
            numpy.testing.assert_array_equal(gradient, 2 * X)
            self.assertEqual(jax.typeof(gradient).sharding.spec, SOURCE.spec)
            stack = jax.device_put(numpy.stack([X, -X]), NamedSharding(mesh, P(None, *SOURCE.spec)))
            numpy.testing.assert_array_equal(jax.jit(jax.vmap(move))(stack), numpy.stack([X, -X]))
            self.assertEqual(reshard.jax.reshard(x, P(("x", "y"))).sharding.spec, P(("x", "y"), None, None))

    def test_outside_jit(self):
        x = jax.device_put(X, SOURCE)
        moved = reshard.jax.reshard(x, TARGET)
        numpy.testing.assert_array_equal(moved, X)
        self.assertEqual(moved.sharding, TARGET)
        numpy.testing.assert_array_equal(jax.grad(square)(x), 2 * X)
        self.assertEqual(reshard.jax.device_put(X, TARGET).sharding, TARGET)  # from the host

    def test_other_devices_meshes_and_orders(self):
        x = jax.device_put(X, SOURCE)
        turned = Mesh(numpy.array(jax.devices())[[3, 1, 0, 2, 7, 6, 5, 4]].reshape(2, 4), ("p", "q"))
        flat = devices.mesh_of(z=8)
        six, two = (Mesh(numpy.array(some), ("a",)) for some in (jax.devices()[:6], jax.devices()[6:]))
        y = numpy.arange(36.0 * 8).reshape(36, 8)
        with devices.complaints() as said:
            for target in (devices.named(turned, "q", None, "p"), devices.named(flat, None, "z"), devices.named(two, "a")):
                moved = reshard.jax.device_put(x, target)
                numpy.testing.assert_array_equal(moved, X)
                self.assertEqual(moved.sharding, target)
            held = jax.device_put(y, devices.named(six, "a"))
            numpy.testing.assert_array_equal(reshard.jax.device_put(held, devices.named(two, None, "a")), held)
            self.assertNotIn("rematerialization", said())

    def test_no_whole_array_passes_through_the_host(self):
        six, two = (Mesh(numpy.array(some), ("a",)) for some in (jax.devices()[:6], jax.devices()[6:]))
        held = jax.device_put(numpy.ones((36, 8)), devices.named(six, "a"))
        kind = type(held)
        fetched, read = [], kind._value.fget  # jax.device_put reads this when it goes through the host
        with unittest.mock.patch.object(kind, "_value", property(lambda array: fetched.append(array.shape) or read(array))):
            moved = reshard.jax.device_put(held, devices.named(two, None, "a"))
            self.assertEqual(fetched, [])
            jax.device_put(held, devices.named(two, None, "a"))
            self.assertIn((36, 8), fetched)
        numpy.testing.assert_array_equal(moved, numpy.ones((36, 8)))

    def test_meshes_of_other_axes_over_the_same_devices(self):
        twin, square, eight = devices.mesh_of(c=2, d=4), devices.mesh_of(e=2, f=2, g=2), devices.mesh_of(z=8)
        pairs = [(SOURCE, devices.named(twin, "d", None, "c")), (SOURCE, devices.named(square, ("f", "e"), "g")),
                 (SOURCE, devices.named(eight, None, "z"))]
        for source, target in pairs:
            x = jax.device_put(X, source)
            for known in (None, source):
                move = lambda x: reshard.jax.reshard(x, target, source=known)
                with self.subTest(f"{source} to {target}, known {known is not None}"), warnings.catch_warnings():
                    warnings.simplefilter("error", reshard.jax.FallbackWarning)
                    moved = jax.jit(move, out_shardings=target)(x)
                    numpy.testing.assert_array_equal(moved, X)
                    self.assertTrue(moved.sharding.is_equivalent_to(target, X.ndim))
                    back = jax.jit(lambda x: reshard.jax.reshard(move(x * 2), source) / 2)
                    numpy.testing.assert_array_equal(back(x), X)
                    squares = jax.jit(jax.grad(lambda x: (move(x) ** 2).sum()))
                    numpy.testing.assert_array_equal(squares(x), 2 * X)
                    stack = jax.numpy.stack([x, -x])
                    numpy.testing.assert_array_equal(jax.jit(jax.vmap(move))(stack), stack)
        target = pairs[0][1]
        with reshard.jax.everywhere():
            there = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, target))
            numpy.testing.assert_array_equal(there(jax.device_put(X, SOURCE)), 2 * X)
        six = [Mesh(numpy.array(jax.devices()[:6]).reshape(shape), tuple(axes))
               for shape, axes in (((2, 3), "ab"), ((3, 2), "cd"))]
        y = numpy.arange(36.0 * 6).reshape(36, 6)
        source, target = devices.named(six[0], "a", "b"), devices.named(six[1], "c", "d")
        for known in (None, source):  # no mesh has both as axes
            move = jax.jit(lambda y: reshard.jax.reshard(y, target, source=known), out_shardings=target)
            numpy.testing.assert_array_equal(move(jax.device_put(y, source)), y)

    def test_exported_where_the_source_is_known(self):
        x = jax.device_put(X, SOURCE)
        try:
            import flatbuffers
        except ImportError:
            self.skipTest("no flatbuffers")
        del flatbuffers
        kept = jax.export.export(jax.jit(lambda x: reshard.jax.reshard(x, TARGET, source=SOURCE)))(x).serialize()
        numpy.testing.assert_array_equal(jax.export.deserialize(kept).call(x), X)
        with self.assertRaisesRegex(reshard.UnsupportedError, "source="):
            jax.export.export(jax.jit(lambda x: reshard.jax.reshard(x, TARGET)))(x)

    def test_a_spec_without_a_mesh_is_refused_as_jax_refuses_it(self):
        with self.assertRaises(RuntimeError):
            jax.jit(lambda x: reshard.jax.reshard(x, P("x")))(X)
        with self.assertRaises(ValueError):
            jax.jit(lambda x: reshard.jax.reshard(x, devices.named(MESH, "x", None, None, "y")))(X)


class Everywhere(unittest.TestCase):
    def test_three_names_move_by_plans_while_it_is_open(self):
        x = jax.device_put(X, SOURCE)
        theirs = (jax.lax.with_sharding_constraint, jax.reshard, jax.device_put)
        with reshard.jax.everywhere(), reshard.jax.everywhere():
            self.assertEqual(kinds(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, TARGET)), x), ["all-to-all"])
            self.assertEqual(jax.device_put(x, TARGET).sharding, TARGET)
            self.assertEqual(jax.device_put(1.0).shape, ())
            self.assertEqual(jax.device_put([x, X], [TARGET, TARGET])[1].sharding, TARGET)
        self.assertEqual((jax.lax.with_sharding_constraint, jax.reshard, jax.device_put), theirs)
        self.assertGreater(len(kinds(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, TARGET)), x)), 1)

    def names(self):
        return (jax.lax.with_sharding_constraint, jax.reshard, jax.sharding.reshard, jax.device_put,
                jax._src.compiler.compile_or_get_cached)

    def test_closed_in_any_order_it_leaves_jax_as_it_was(self):
        theirs = self.names()
        first, second, third = reshard.jax.everywhere(), reshard.jax.everywhere(compare=False), reshard.jax.everywhere()
        for order in itertools.permutations((first, second, third)):
            for each in (first, second, third):
                each.__enter__()
            for each in order:
                self.assertNotEqual(jax.device_put, theirs[3])
                each.__exit__(None, None, None)
            self.assertEqual(self.names(), theirs)

        def opened():
            with reshard.jax.everywhere():
                yield
        waiting, another = opened(), opened()
        next(waiting), next(another)
        del waiting
        self.assertNotEqual(jax.reshard, theirs[1])
        another.close()
        self.assertEqual(self.names(), theirs)
        with self.assertRaises(ZeroDivisionError), reshard.jax.everywhere(), first, first:
            1 / 0
        self.assertEqual(self.names(), theirs)
        with first:
            kept = jax.device_put
        self.assertEqual(kept(1.0).shape, ())

    def test_opened_by_many_threads_it_leaves_jax_as_it_was(self):
        theirs, together, wrong = self.names(), threading.Barrier(8), []

        def open_often(number):
            together.wait()
            for turn in range(200):
                with reshard.jax.everywhere(compare=(turn + number) % 3 > 0):
                    if jax.device_put is theirs[3]:
                        wrong.append((number, turn))
        threads = [threading.Thread(target=open_often, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(self.names(), theirs)

    def test_imported_again_while_it_is_open(self):
        again = """
import sys, jax, reshard.jax
theirs = jax.lax.with_sharding_constraint, jax.reshard, jax.device_put
with reshard.jax.everywhere():
    for name in [name for name in sys.modules if name.startswith("reshard.jax")]:
        del sys.modules[name]
    import reshard.jax
    assert reshard.jax._originals.put is theirs[2]
    second = reshard.jax.everywhere()
    second.__enter__()
assert jax.device_put(1.0).shape == () and jax.device_put is not theirs[2]
second.__exit__(None, None, None)
assert (jax.lax.with_sharding_constraint, jax.reshard, jax.device_put) == theirs
"""
        subprocess.run([sys.executable, "-c", again], check=True)

    def test_reshard_does_not_bring_jax_and_says_what_it_misses(self):
        look = "import sys, reshard; assert 'jax' not in sys.modules; reshard.jax.reshard; assert 'jax' in sys.modules"
        subprocess.run([sys.executable, "-c", look], check=True)
        with tempfile.TemporaryDirectory() as folder:
            hidden = f"import sys; sys.modules['jax'] = None\nimport reshard.jax"
            ran = subprocess.run([sys.executable, "-c", hidden], cwd=folder, capture_output=True, text=True, check=False)
        self.assertIn("ImportError: reshard.jax needs JAX: pip install jax", ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
