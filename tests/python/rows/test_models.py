"""reshard.move_tensors on four ranks: whole models by rules, in memory, against arrays that numpy cuts."""

import os
import pathlib
import sys
import unittest

import numpy

sys.path += [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), str(pathlib.Path(__file__).parents[2] / "files")]

import four_ranks
import reshard
import test_models_back as ways

LIST = ("l.0.q f32[128,6]\nl.0.k f32[32,6]\nl.0.up f32[4,5]\nl.0.e.{e:4} f32[3,4]\nembed f32[10,4]\nstate f32[8,6]\n"
        "norm f32[3]\nsteps i64[]\n")
RULES = ("source fsdp=2\nl.0.up = -\nl.0.e.{e:4} = [{e}@fsdp, -, -]\nnorm = -\nsteps = -\notherwise = [fsdp, -]\n"
         "target tp=2,dp=1[2,3]\nl.{n}.qk = [tp heads of 8, -] as bf16 <- l.{n}.q + l.{n}.k\n"
         "l.{n}.up = [-, tp] <- l.{n}.up[:, 1:5]\nl.{n}.experts = [-, tp, -] <- l.{n}.e.{e:4} permute(1,0)\n"
         "embed = [tp pad 0 to 12, -]\nstate = [(-, tp)@dp]\nnorm = -\nsteps = -\n")


class Ranks(unittest.TestCase):
    def setUp(self):
        from mpi4py import MPI
        self.comm, self.rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank

    def same(self, found, wanted, what=""):
        self.assertEqual(sorted(found), sorted(wanted), what)
        for name, array in wanted.items():
            self.assertEqual((found[name].dtype, found[name].shape), (array.dtype, array.shape), (what, name))
            self.assertEqual(found[name].tobytes(), numpy.ascontiguousarray(array).tobytes(), (what, name))

    def fails(self, error, words, *arguments, **named):
        with self.assertRaisesRegex(error, words):
            reshard.move_tensors(self.comm, *arguments, **named)

    def drawn(self):
        rng = numpy.random.default_rng(5)
        shapes = {"l.0.q": (128, 6), "l.0.k": (32, 6), "l.0.up": (4, 5), **{f"l.0.e.{e}": (3, 4) for e in range(4)},
                  "embed": (10, 4), "state": (8, 6), "norm": (3,)}
        whole = {name: rng.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
        whole["steps"] = numpy.array(7)
        kept = ("l.0.up", "norm", "steps")
        tiles = {name: array if name in kept else numpy.split(array, 2)[self.rank % 2] for name, array in whole.items()
                 if ".e." not in name}
        tiles |= {f"l.0.e.{e}": whole[f"l.0.e.{e}"] for e in (2 * (self.rank % 2), 2 * (self.rank % 2) + 1)}
        return whole, tiles if self.rank < 2 else {}

    def test_a_trainer_and_an_engine(self):
        """Ranks 0 and 1 have the model of a trainer, and ranks 2 and 3 get the model of an engine."""
        whole, tiles = self.drawn()
        found = reshard.move_tensors(self.comm, tiles, RULES, LIST)
        bf16 = reshard.Layout("", "bf16", ()).numpy_dtype
        part = lambda array, dim=0: numpy.split(array, 2, dim)[self.rank - 2]
        if self.rank < 2:
            self.assertEqual({array.size for name, array in found.items() if array.ndim}, {0})
            return
        experts = numpy.stack([whole[f"l.0.e.{e}"].T for e in range(4)])
        embed = numpy.concatenate([whole["embed"], numpy.zeros((2, 4), numpy.float32)])
        self.same(found, {"l.0.qk": numpy.concatenate([part(whole["l.0.q"]), part(whole["l.0.k"])]).astype(bf16),
                          "l.0.up": part(whole["l.0.up"][:, 1:], 1), "l.0.experts": part(experts, 1),
                          "embed": part(embed), "state": part(whole["state"], 1).ravel(), "norm": whole["norm"],
                          "steps": whole["steps"]})

    def test_the_models(self):
        """Rules in docs/models: from 4 ranks with parts of each tensor to 2 and to 4, and back."""
        for name in ("expert_parallel_qwen", "mxfp4", "megatron_mamba2"):
            way = ways.WAYS[name](numpy.random.default_rng(3))
            tensors = way.model.tensors
            cut = {key: array.ndim > 1 and array.shape[0] % 4 == 0 for key, array in tensors.items()}
            source = "source fsdp=4\n" + "".join(f"{key} = {'[fsdp' + ', -' * (array.ndim - 1) + ']' if cut[key] else '-'}\n"
                                                 for key, array in tensors.items())
            tiles = {key: numpy.split(array, 4)[self.rank] if cut[key] else array for key, array in tensors.items()}
            listed = ways.listed({key: array.shape for key, array in tensors.items()}, tensors)
            there = ways.edited(way.there, way.there_edits)
            for ranks in (2, 4):
                found = reshard.move_tensors(self.comm, tiles, source + ways.on_mesh(there, "target", way.mesh(ranks)), listed)
                found = {key: tile for key, tile in found.items() if tile.size}
                if self.rank < ranks:
                    self.same(found, way.model.of_rank(self.rank, ranks), name)
            back = ways.on_mesh(ways.edited(way.back, way.back_edits), "source", way.mesh(4))
            whole = "\n".join(sorted(ways.whole_list(way.model, 4, way.ep).splitlines()))  # in one order on all ranks
            again = reshard.move_tensors(self.comm, found, ways.on_mesh(back, "target", "file=4"), whole)
            self.same(again, tensors, name)

    def test_what_is_refused(self):
        whole, tiles = self.drawn()
        moved = lambda **named: ({**tiles, **named} if self.rank == 0 else tiles, RULES, LIST)
        self.fails(reshard.InputError, "the tile of 'embed' has 80 bytes by the rules, and 160 are given",
                   *moved(embed=whole["embed"]))
        self.fails(reshard.InputError, "embed.*f64.*f32", *moved(embed=numpy.zeros((5, 4))))
        self.fails(reshard.InputError, "the list has no tensor 'other'", *moved(other=numpy.zeros(3)))
        self.fails(reshard.InputError, "line `target` and a mesh", tiles, RULES[:RULES.index("target")], LIST)
        self.fails(reshard.InputError, "heads of 7", tiles, RULES.replace("heads of 8", "heads of 7"), LIST)
        self.fails(reshard.InputError, "differ from those on rank 0", tiles, RULES + "#" * self.rank, LIST)
        self.fails(reshard.InputError, "rules are of 9 ranks, and there are 4", tiles, RULES.replace("[2,3]", "[2,8]"), LIST)
        own = {"a": numpy.arange(3.0)} if self.rank == 0 else {}  # the ranks still work
        rules = "source x=1\na = -\ntarget x=4\na = -"
        self.same(reshard.move_tensors(self.comm, own, rules, [("a", "f64", (3,))]), {"a": numpy.arange(3.0)})


class Launched(four_ranks.launched()):
    def test_the_page(self):
        four_ranks.run_page(self, "rules.md")

if __name__ == "__main__":
    four_ranks.main()
