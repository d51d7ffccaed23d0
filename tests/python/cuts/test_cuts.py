"""Balanced cuts, flattened tiles, casts, transpositions and padding: moves on ranks of this process, against numpy."""

import unittest

import numpy

import drawn_cuts
import reshard

RANKS = 6


class Cuts(unittest.TestCase):
    def test_random_moves(self):
        ranks = reshard.local(RANKS)
        seen = dict.fromkeys(("balanced", "flattened", "fill", "cast", "permute", "all three", "ordered", "all"), 0)
        for move in drawn_cuts.moves("local", 20000 if drawn_cuts.LONG else 1000, RANKS):
            for end in (move.source, move.target):
                for rank, tile in enumerate(end.tiles):
                    self.assertEqual(end.layout.tile_shape(rank), tile.shape, (move.text, rank))
                seen["balanced"] += "balanced" in str(end.layout)
                seen["flattened"] += end.flattened
                self.assertEqual(reshard.parse_layout(end.layout.mesh, str(end.layout)), end.layout)
            for option in move.options:
                seen[option] += 1
            seen["all three"] += len(move.options) == 3
            seen["ordered"] += move.target.order is not None
            seen["all"] += len(move.options) == 3 and move.source.flattened | move.target.flattened
            tiles = [move.source.tile(rank) for rank in range(RANKS)]
            out = [move.target.blank(rank) for rank in range(RANKS)]
            found = ranks.redistribute(tiles, move.source.layout, move.target.layout, out, **move.options)
            for rank, tile in enumerate(move.target.tiles):
                self.assertEqual(numpy.asarray(found[rank]).tobytes(), tile.tobytes(), (move.text, rank))
        self.assertGreater(seen.pop("all"), 5, seen)
        self.assertGreater(seen.pop("all three"), 10)
        self.assertGreater(min(seen.values()), 100, seen)

    def test_a_padded_vocabulary_and_back(self):
        """1000 rows for 24 ranks of 42 rows each; the last rank holds 34 rows and 8 rows of zeros."""
        mesh, ranks = reshard.Mesh({"tp": 24}), reshard.local(24)
        whole = numpy.arange(16000).reshape(1000, 16).astype(reshard.Layout("", "bf16", ()).numpy_dtype)
        plain = reshard.Layout(mesh, "bf16", (1000, 16), (None, "tp"))
        padded = reshard.Layout(mesh, "bf16", (1008, 16), ("tp",))
        wanted = numpy.concatenate([whole, numpy.zeros((8, 16), whole.dtype)])
        tiles = ranks.redistribute(reshard.split(whole, plain), plain, padded, fill=0)
        self.assertEqual([tile.shape for tile in tiles], 24 * [(42, 16)])
        self.assertEqual(reshard.join(tiles, padded).tobytes(), wanted.tobytes())
        back = ranks.redistribute(tiles, padded, plain, fill=0)
        self.assertEqual(reshard.join(back, plain).tobytes(), whole.tobytes())

    def test_wrong_padding(self):
        ranks, small, large = reshard.local(2), *(reshard.Layout("x=2", "u8", (n,), ("x",)) for n in (4, 6))
        tiles = reshard.split(numpy.arange(4, dtype="u1"), small)
        for fill, words in ((300, "the fill value 300 is no u8"), ([1, 2], "one value is wanted"), ("a", "is no u8")):
            with self.assertRaisesRegex(reshard.InputError, words):
                ranks.redistribute(tiles, small, large, fill=fill)
        with self.assertRaisesRegex(reshard.InputError, "shapes differ|elements"):
            ranks.redistribute(tiles, small, large)
        with self.assertRaisesRegex(reshard.InputError, "element types differ"):
            ranks.redistribute(tiles, small, reshard.Layout("x=2", "i16", (6,), ("x",)), fill=0)
        with self.assertRaisesRegex(reshard.InputError, "ranks differ: 1 and 2"):
            ranks.redistribute(tiles, small, reshard.Layout("x=2", "u8", (4, 2), ("x",)), fill=0)
        sums = reshard.Layout("x=2", "u8", (6,), (), unreduced=("x",))
        with self.assertRaisesRegex(reshard.UnsupportedError, "the target has summands"):
            ranks.redistribute(tiles, small, sums, fill=0)
        found = ranks.redistribute(tiles, small, large, fill=9)  # the ranks still work
        self.assertEqual(reshard.join(found, large).tolist(), [0, 1, 2, 3, 9, 9])

    def test_cuts_of_a_layout(self):
        cut = lambda *cuts, spec=("x",): str(reshard.Layout("x=4", "f64", (10, 3), spec, cuts=cuts))
        self.assertEqual(cut("balanced"), "f64[10@x[balanced],3]")
        self.assertEqual(cut(None, "balanced", spec=(None, "x")), "f64[10,3@x]")
        self.assertEqual(cut(2), "f64[10@x/2,3]")
        self.assertEqual(cut([4, 0, 3, 3]), "f64[10@x[4,0,3,3],3]")
        self.assertEqual(cut([3, 3, 2, 2]), cut("balanced"))
        self.assertEqual(reshard.Layout("x=4", "f64", (10,), ("x",), cuts=("balanced",)).tile_indices(2), (((6, 8),),))
        for cuts, words in (((0,), "at least one index"), (("even",), "a share"), (([5, 5],), "2 shares for 4 shards"),
                            (([1, 1, 1, 1],), "the shares add up to 4, not 10"), ((None, 2), "a cut and no axes"),
                            ((None, None, 2), "more entries than the 2 dimensions")):
            with self.assertRaisesRegex(reshard.InputError, words):
                cut(*cuts)
        with self.assertRaisesRegex(TypeError, "an entry of cuts"):
            cut(1.5)


if __name__ == "__main__":
    unittest.main()
