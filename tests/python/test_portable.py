"""Tile programs from Python: every field of every kind of operation, and the meaning of a program in numpy."""

import unittest

import numpy

import reshard

NEUTRAL = {"sum": 0, "prod": 1, "max": -numpy.inf, "min": numpy.inf}
REDUCE = {"sum": numpy.sum, "prod": numpy.prod, "max": numpy.max, "min": numpy.min}


def program_of(mesh, source, target, **options):
    ends = reshard.parse_layout(mesh, source), reshard.parse_layout(mesh, target)
    return reshard.portable(reshard.synthesize(*ends, vocabulary="collectives", objective="bytes", **options))


def combined(tiles, reduction):
    return REDUCE[reduction](numpy.stack(tiles), axis=0)


def gathered(one, blocks, member):
    """The part of a group member if dimension 0 of every tile is cut into one block for each member."""
    if one.kind == "all_gather":
        return numpy.concatenate([tile.reshape((-1,) + tile.shape[2:]) for tile in blocks])
    if one.kind == "all_to_all":
        return numpy.concatenate([tile[member] for tile in blocks])
    return combined([tile[member] for tile in blocks], one.reduction)


def run(one, tiles):
    """Applies an operation to the tiles of all positions, by the documentation of its fields."""
    if one.groups:
        after = [None] * len(tiles)
        for group in one.groups:
            for member, position in enumerate(group):
                if one.kind == "all_reduce":
                    after[position] = combined([tiles[peer] for peer in group], one.reduction)
                    continue
                count = 1 if one.kind == "all_gather" else len(group)
                blocks = [tiles[peer].reshape((count, -1) + tiles[peer].shape[1:]) for peer in group]
                after[position] = gathered(one, blocks, member)
        return after
    if one.kind == "permute":
        after = [None] * len(tiles)
        for source, target in one.pairs:
            after[target] = tiles[source]
        return after
    return [run_locally(one, tile, position) for position, tile in enumerate(tiles)]


def run_locally(one, tile, position):
    if one.kind == "reshape":
        return tile.reshape(one.output_shape)
    if one.kind == "transpose":
        return tile.transpose(one.permutation)
    if one.kind == "reorder":
        return numpy.concatenate([tile[:, begin:end] for begin, end in one.runs], axis=1)
    if one.kind == "cast":
        return tile.astype(reshard.parse_layout("", f"{one.dtype}[]").numpy_dtype)
    if one.kind == "scale":
        return tile * one.times / one.over
    if one.kind == "reduce":
        return REDUCE[one.reduction](tile, axis=0)
    if one.kind == "mask":
        return tile if position in one.keeps else numpy.full(one.output_shape, NEUTRAL[one.reduction])
    part = one.output_shape if one.kind == "slice" else one.input_shape
    place = tuple(slice(start, start + extent) for start, extent in zip(one.starts[position], part))
    if one.kind == "slice":
        return tile[place]
    whole = numpy.full(one.output_shape, float(NEUTRAL[one.reduction]))
    whole[place] = tile
    return whole


class Programs(unittest.TestCase):
    def moved(self, mesh, source, target):
        program = program_of(mesh, source, target)
        array = numpy.arange(numpy.prod(program.source.shape), dtype=float).reshape(program.source.shape)
        tiles = reshard.split(array, program.source)
        tiles = [tiles[device] for device in program.source.mesh.devices]
        for one in program.operations:
            self.assertEqual({tile.shape for tile in tiles}, {one.input_shape})
            tiles = run(one, tiles)
            self.assertEqual({tile.shape for tile in tiles}, {one.output_shape})
        wanted = reshard.split(array.reshape(program.target.shape), program.target)
        for device, tile in zip(program.source.mesh.devices, tiles):
            numpy.testing.assert_array_equal(tile, wanted[device])
        return program

    def test_moves(self):
        for target in ("f64[16@(x,y),8,16]", "f64[16@(y,x),8,16]", "f64[16@x,8,16]", "f64[16,8@y:(2)2,16@x]",
                       "f64[128@y,16]"):
            self.moved("x=2,y=4", "f64[16,8@x,16@y]", target)
        self.moved("x=2,y=4[7,6,5,4,3,2,1,0]", "f64[16@(x,y),8]", "f64[16@y,8@x]")
        self.moved("x=2,y=4", "f64[16@(x,y),8]", "f64[16@(y,x),8]")

    def test_cuts_in_pieces(self):
        cyclic = self.moved("x=8", "f64[128@x,4]", "f64[128@x/2,4]")
        self.assertEqual([one.kind for one in cyclic.operations if one.groups], ["all_to_all"])
        zigzag = self.moved("cp=2", "f64[16@cp[4:0,8:1,12:1,16:0],8]", "f64[16,8@cp]").operations
        self.assertEqual([one.runs for one in zigzag if one.kind == "reorder"], [[(0, 4), (8, 16), (4, 8)]])
        self.moved("cp=2", "f64[16,8@cp]", "f64[16@cp[4:0,8:1,12:1,16:0],8]")

    def test_casts_and_transpositions(self):
        source, target = reshard.parse_layout("x=4", "f32[16@x,8,4]"), reshard.parse_layout("x=4", "bf16[4,16,8@x]")
        plan = reshard.synthesize(source.permuted((2, 0, 1)), target, cast=True, vocabulary="collectives")
        program = reshard.portable(plan, permute=(2, 0, 1))
        self.assertEqual((program.source, program.target), (source, target))
        casts = [one for one in program.operations if one.dtype is not None]
        self.assertEqual([(one.kind, one.dtype) for one in casts], [("cast", "bf16")])
        array = (numpy.arange(512, dtype="f4") / numpy.float32(7)).reshape(16, 8, 4)
        tiles = reshard.split(array, source)
        for one in program.operations:
            tiles = run(one, tiles)
        moved = reshard.join(tiles, target)
        numpy.testing.assert_array_equal(moved, array.transpose(2, 0, 1).astype(target.numpy_dtype))
        with self.assertRaisesRegex(reshard.InputError, "does not name each of 0 to 2 once"):
            reshard.portable(plan, permute=(0, 0, 1))
        with self.assertRaisesRegex(reshard.UnsupportedError, "round f64 to f32 first and then to bf16"):
            program_of("x=4", "f64[16@x]", "bf16[16]", cast=True)

    def test_a_wide_all_to_all_is_one_collective(self):
        program = program_of("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(x,y),8,16]")
        kinds = [one.kind for one in program.operations]
        self.assertEqual(kinds, ["all_to_all", "reshape", "transpose", "reshape"])
        self.assertEqual(program.operations[0].axes, ("x", "y"))
        self.assertEqual(program.operations[0].groups, [list(range(8))])
        self.assertEqual(program.operations[0].received_elements, 16 * 4 * 4 * 7 // 8)
        self.assertEqual(len(program), 4)
        self.assertIn("all_to_all [16,4,4] in [[0, 1, 2, 3, 4, 5, 6, 7]]", program.text)

    def test_a_transpose_stands_beside_the_collective_that_copies(self):
        program = self.moved("a=2,b=2,c=2", "f64[16@c,4,2,16@(a,b)]", "f64[16@(a,c),4,2,16@b]")
        self.assertEqual([one.kind for one in program.operations],
                         ["all_to_all", "reshape", "transpose", "permute", "reshape"])

    def test_fields_of_sums_and_fills(self):
        scatter = program_of("x=2,y=4", "f32[16,8]{avg:x}", "f32[16@x,8]").operations
        self.assertEqual([one.kind for one in scatter], ["reduce_scatter", "scale"])
        self.assertEqual((scatter[0].axes, scatter[0].reduction), (("x",), "sum"))
        self.assertEqual((scatter[1].times, scatter[1].over), (1, 2))
        largest = program_of("x=2,y=4", "f32[16,8]{max:x}", "f32[16@x,8]").operations
        self.assertEqual([one.kind for one in largest], ["all_to_all", "reshape", "reduce"])
        self.assertEqual(largest[2].reduction, "max")
        fill = program_of("x=2,y=4", "f32[16,8]", "f32[16,8]{U:y}").operations
        self.assertEqual([(one.kind, one.keeps, one.reduction) for one in fill], [("mask", [0, 4], "sum")])
        spread = program_of("x=2,y=4", "f32[16,8@y]", "f32[16,8]{U:y}").operations
        self.assertEqual([(one.kind, one.start_axes) for one in spread], [("update_slice", [(), ("y",)])])

    def test_it_is_written_for_each_framework(self):
        program = program_of("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(x,y),8,16]")
        self.assertIn('lax.all_to_all(tile, ("x", "y"), split_axis=0', program.write("jax"))
        self.assertIn('"stablehlo.all_to_all"(%tile)', program.write("stablehlo"))
        self.assertIn("funcol.all_to_all_single(tile, None, None, groups[0])", program.write("torch"))
        with self.assertRaisesRegex(reshard.InputError, "'tpu' is no framework"):
            program.write("tpu")

    def test_refusals(self):
        with self.assertRaisesRegex(reshard.UnsupportedError, "vocabulary 'collectives'"):
            ends = reshard.parse_layout("x=6", "f32[12@x]"), reshard.parse_layout("x=6", "f32[12@x:(2)3]")
            exchange = reshard.synthesize(ends[0], ends[1], first_steps=[("exchange", ends[1])])
            reshard.portable(exchange)
        with self.assertRaisesRegex(reshard.UnsupportedError, "do not divide"):
            program_of("x=3", "f32[8@x]", "f32[8]")


if __name__ == "__main__":
    unittest.main()
