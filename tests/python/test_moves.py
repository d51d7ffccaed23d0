"""Moves that cast and transpose, between ranks of this process, compared with numpy and ml_dtypes to the bit."""

import itertools
import random
import unittest

import ml_dtypes
import numpy

import reshard

FLOATS = ("f64", "f32", "f16", "bf16", "f8_e4m3fn", "f8_e5m2")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
ENDS = (("x=2,y=3", "13@x,7,4", "13@y,7,4@x"), ("x=2,y=3", "6,8@y,2@x", "6@(x,y),8,2"), ("x=6", "12@x/2,5,3", "12,5@x,3"))


def layout(mesh, dtype, text):
    return reshard.parse_layout(mesh, f"{dtype}[{text}]")


def drawn(dtype, shape, seed):
    """Random bits, half of them floats of moderate size."""
    generator = numpy.random.default_rng(seed)
    kind = layout("x=1", dtype, "1").numpy_dtype
    count = int(numpy.prod(shape))
    noise = numpy.frombuffer(generator.bytes(count * kind.itemsize), kind).copy()
    if dtype in FLOATS:
        with numpy.errstate(all="ignore"):
            some = (generator.standard_normal(count) * 2.0 ** generator.integers(-18, 16, count)).astype(kind)
        noise = numpy.where(generator.random(count) < 0.5, noise, some)
    return noise.reshape(shape)


def same(a, b):
    """Equal bits; any NaN equals any other."""
    wide = f"u{a.dtype.itemsize}"
    equal = numpy.ascontiguousarray(a).view(wide) == numpy.ascontiguousarray(b).view(wide)
    if a.dtype.kind not in "iu":
        with numpy.errstate(all="ignore"):
            equal |= numpy.isnan(a.astype("f8")) & numpy.isnan(b.astype("f8"))
    return a.dtype == b.dtype and a.shape == b.shape and bool(numpy.all(equal))


class Moves(unittest.TestCase):
    def move(self, array, source, target, **options):
        ranks = reshard.local(max(source.ranks, target.ranks))
        tiles = reshard.split(array, source)
        tiles += [reshard.empty_tile(source, rank) for rank in range(len(tiles), ranks.size)]
        moved = ranks.redistribute(tiles, source, target, **options)
        return reshard.join(moved, target)

    def test_every_cast_of_floats_is_that_of_numpy(self):
        for seed, (source, target) in enumerate(itertools.permutations(FLOATS, 2)):
            if source == "f64" and target not in ("f32", "f16"):
                continue  # ml_dtypes rounds a double twice
            mesh, before, after = ENDS[seed % len(ENDS)]
            ends = layout(mesh, source, before), layout(mesh, target, after)
            array = drawn(source, ends[0].shape, seed)
            with numpy.errstate(all="ignore"):
                wanted = array.astype(ends[1].numpy_dtype)
            self.assertTrue(same(self.move(array, *ends, cast=True), wanted), (source, target))

    def test_a_double_is_rounded_once(self):
        values = numpy.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8])
        moved = self.move(values, layout("x=2", "f64", "4@x"), layout("x=2", "bf16", "4"), cast=True)
        self.assertEqual(moved.astype("f8").tolist(), [1 + 2.0**-7, 1, 1, 1 + 2.0**-6])

    def test_integers_become_types_that_hold_them(self):
        kinds = {name: numpy.iinfo(layout("x=1", name, "1").numpy_dtype) for name in INTEGERS}
        for source, target in itertools.permutations(INTEGERS, 2):
            mesh, before, after = ENDS[0]
            ends = layout(mesh, source, before), layout(mesh, target, after)
            array = drawn(source, ends[0].shape, 3)
            holds = kinds[target].min <= kinds[source].min and kinds[source].max <= kinds[target].max
            if holds:
                self.assertTrue(same(self.move(array, *ends, cast=True), array.astype(ends[1].numpy_dtype)))
            else:
                with self.assertRaisesRegex(reshard.UnsupportedError, f"{source} is not cast to {target}"):
                    self.move(array, *ends, cast=True)

    def test_casts_are_asked_for(self):
        ends = layout("x=2", "f32", "4@x"), layout("x=2", "bf16", "4")
        with self.assertRaisesRegex(reshard.InputError, "element types differ: f32 and bf16; .* option cast"):
            reshard.synthesize(*ends)
        for pair in (("f32", "i32"), ("c64", "c128"), ("bool", "i8")):
            with self.assertRaises(reshard.UnsupportedError):
                reshard.synthesize(layout("x=2", pair[0], "4@x"), layout("x=2", pair[1], "4"), cast=True)

    def test_a_trainer_sends_to_an_engine(self):
        source = reshard.parse_layout("fsdp=4", "f32[64@fsdp,32]")
        target = reshard.parse_layout("t=4[4-7]", "bf16[64,32@t]")
        array = (numpy.arange(2048, dtype="f4") / numpy.float32(7)).reshape(64, 32)
        plan = reshard.synthesize(source, target, cast=True)
        self.assertEqual(plan.received_bytes, 1024)
        self.assertEqual([step.kind for step in plan.steps][0], "cast")
        self.assertTrue(same(self.move(array, source, target, cast=True), array.astype(ml_dtypes.bfloat16)))

    def test_the_narrower_type_travels(self):
        half, full = layout("x=4", "bf16", "64@x,8"), layout("x=4", "f32", "64@x,8")
        for source, target in ((full, layout("x=4", "bf16", "64,8@x")), (half, layout("x=4", "f32", "64,8@x"))):
            plan = reshard.synthesize(source, target, cast=True)
            self.assertEqual(plan.received_bytes, 64 * 8 // 4 * 3 // 4 * 2)
        self.assertEqual([step.kind for step in reshard.synthesize(half, layout("x=4", "f32", "64,8@x"), cast=True).steps][-1],
                         "cast")

    def test_sums_are_reduced_in_the_wider_type(self):
        mesh = "x=4"
        for source, target in (("bf16", "f32"), ("f32", "bf16"), ("f16", "f32"), ("i8", "i32")):
            before = reshard.parse_layout(mesh, f"{source}[8,8]{{U:x}}")
            after = reshard.parse_layout(mesh, f"{target}[8@x,8]")
            most = {"bf16": 255, "f16": 2047, "i8": 100}.get(source, 2**20)
            tiles = [numpy.random.default_rng(rank).integers(0, most, (8, 8)) for rank in range(4)]
            moved = reshard.local(4).redistribute([tile.astype(before.numpy_dtype) for tile in tiles], before, after, cast=True)
            wanted = sum(tiles).astype("f4" if target != "i32" else "i4").astype(after.numpy_dtype)
            self.assertTrue(same(reshard.join(moved, after), wanted), (source, target))
            kinds = [step.kind for step in reshard.synthesize(before, after, cast=True).steps]
            reduces = [kind in ("reduce_scatter", "all_reduce") for kind in kinds].index(True)
            self.assertEqual(kinds.index("cast") < reduces, source != "f32")
        with self.assertRaisesRegex(reshard.UnsupportedError, "sums of f16 do not become bf16"):
            reshard.synthesize(reshard.parse_layout(mesh, "f16[8]{U:x}"), reshard.parse_layout(mesh, "bf16[8@x]"), cast=True)

    def test_every_order_of_dimensions(self):
        for seed, order in enumerate(itertools.permutations(range(3))):
            for mesh, before, after in ENDS:
                target = layout(mesh, "f32", after)
                source = layout(mesh, "bf16" if seed % 2 else "f32", before)
                source = source.permuted(numpy.argsort(order).tolist())
                self.assertEqual(source.permuted(order).shape, target.shape)
                array = drawn(source.dtype, source.shape, seed)
                moved = self.move(array, source, target, cast=True, permute=order)
                self.assertTrue(same(moved, array.transpose(order).astype(target.numpy_dtype)), (order, before, after))

    def test_orders_that_are_none(self):
        ends = layout("x=2", "f32", "4@x,2"), layout("x=2", "f32", "2,4@x")
        for order in ((0, 0), (0,), (0, 2), (-1, 0), (0, 1, 2)):
            with self.assertRaisesRegex(reshard.InputError, "does not name each of 0 to 1 once"):
                self.move(numpy.zeros((4, 2), "f4"), *ends, permute=order)
        with self.assertRaises(reshard.InputError):
            self.move(numpy.zeros((4, 3), "f4"), layout("x=2", "f32", "4@x,3"), layout("x=2", "f32", "4,3@x"), permute=(1, 0))

    def test_random_moves(self):
        generator = random.Random(7)
        for seed in range(60):
            mesh, before, after = generator.choice(ENDS)
            order = generator.sample(range(3), 3)
            source, target = generator.choice(FLOATS[1:]), generator.choice(FLOATS[1:])
            ends = (layout(mesh, source, before).permuted(numpy.argsort(order).tolist()), layout(mesh, target, after))
            array = drawn(source, ends[0].shape, seed)
            with numpy.errstate(all="ignore"):
                wanted = array.transpose(order).astype(ends[1].numpy_dtype)
            self.assertTrue(same(self.move(array, *ends, cast=True, permute=order), wanted), (seed, ends, order))


if __name__ == "__main__":
    unittest.main()
