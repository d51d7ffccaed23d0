"""reshard.load and reshard.save on four ranks, compared with the `safetensors` package. This file starts itself under the
launcher."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import four_ranks
import reshard

SHAPES = {"embed": (1000, 64), "l.0.q": (64, 64), "l.0.k": (16, 64), "l.0.v": (16, 64), "l.0.o": (64, 64), "norm": (64,),
          "steps": ()}
TP = "{} tp=4\nembed = [tp, -]\nl.{{n}}.q = [tp, -]\nl.{{n}}.k = [tp, -]\nl.{{n}}.v = [tp, -]\nl.{{n}}.o = [-, tp]\notherwise = -\n"
FUSED = ("target tp=2,dp=2\nembed = [-, tp]\nl.{n}.qkv = [tp, -] <- l.{n}.q + l.{n}.k + l.{n}.v\nl.{n}.o = [(tp,dp), -]\n"
         "norm = -\nsteps = -\n")


def tensors():
    rng = numpy.random.default_rng(3)
    whole = {name: rng.integers(-99, 99, shape).astype(numpy.float32) for name, shape in SHAPES.items()}
    whole["steps"] = numpy.array(12345, numpy.int64)
    return whole


def band(array, dim, index, count):
    return numpy.split(array, count, dim)[index]


class Ranks(unittest.TestCase):
    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.folder = self.comm.bcast(tempfile.mkdtemp() if self.rank == 0 else None)
        self.whole = tensors()

    def tearDown(self):
        self.comm.Barrier()
        if self.rank == 0:
            subprocess.run(["rm", "-r", self.folder], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def tp_tiles(self):
        cut = {"embed": 0, "l.0.q": 0, "l.0.k": 0, "l.0.v": 0, "l.0.o": 1}
        return {name: band(array, cut[name], self.rank, four_ranks.RANKS) if name in cut else array
                for name, array in self.whole.items()}

    def same(self, tiles, wanted):
        self.assertEqual(sorted(tiles), sorted(wanted))
        for name, tile in tiles.items():
            self.assertEqual((tile.dtype, tile.shape), (wanted[name].dtype, wanted[name].shape), name)
            numpy.testing.assert_array_equal(tile, wanted[name], name)

    def test_from_the_package_s_file_to_tiles_and_back(self):
        from safetensors.numpy import load_file, save_file
        if self.rank == 0:
            save_file(self.whole, self.path("m.safetensors"))
        self.comm.Barrier()
        self.same(reshard.load(self.comm, self.path("m.safetensors")), self.whole)
        tiles = reshard.load(self.comm, self.path("m.safetensors"), TP.format("target"))
        self.same(tiles, self.tp_tiles())
        for memory in (1 << 28, 1 << 20):
            reshard.save(self.comm, self.path(f"s{memory}.safetensors"), tiles, TP.format("source"), shapes=SHAPES, memory=memory)
            back = load_file(self.path(f"s{memory}.safetensors"))
            self.same(back, self.whole)
        self.comm.Barrier()

    def test_scales_that_ranks_share(self):
        """192 columns a rank, and a scale for each 128: loaded, saved and moved to ranks of 384 and 256 columns."""
        whole = {"down": numpy.arange(2 * 768, dtype=numpy.uint16).reshape(2, 768),
                 "scale": numpy.arange(12, dtype=numpy.float32).reshape(2, 6)}
        lines = "{} tp={}\ndown = [-, tp]\nscale = blocks 1,128 of down\n"
        shapes = {name: array.shape for name, array in whole.items()}

        def tiles(ranks):
            begin, end = (768 * rank // ranks for rank in (self.rank, self.rank + 1))
            return {"down": whole["down"][:, begin:end], "scale": whole["scale"][:, begin // 128:-(-end // 128)]}

        path = self.path("whole.safetensors")
        reshard.save(self.comm, path, whole, "source p=4\notherwise = -\n")
        own = reshard.load(self.comm, path, lines.format("target", 4))
        self.same(own, tiles(4))
        again = self.path("again.safetensors")
        reshard.save(self.comm, again, own, lines.format("source", 4), shapes=shapes)
        self.same(reshard.load(self.comm, again), whole)
        listed = [(name, array.dtype.name, array.shape) for name, array in whole.items()]
        for ranks in (2, 3):
            moved = reshard.move_tensors(self.comm, own, lines.format("source", 4) + lines.format("target", ranks), listed)
            if self.rank < ranks:
                self.same(moved, tiles(ranks))

    def test_what_the_page_shows(self):
        from safetensors.numpy import save_file
        page = (pathlib.Path(os.environ["RESHARD_ROOT"]) / "docs/checkpoints.md").read_text(encoding="utf-8")
        lines, = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
        if self.rank == 0:
            save_file(self.whole, self.path("model.safetensors"))
        self.comm.Barrier()
        os.chdir(self.folder)
        names = {"reshard": reshard, "comm": self.comm}
        exec(lines, names)
        again = reshard.load(self.comm, self.path("again"))
        self.assertEqual([names["tiles"][name].shape for name in ("embed", "l.0.o", "norm")], [(250, 64), (64, 16), (64,)])
        for name, array in self.whole.items():
            self.assertEqual(again[name].shape, array.shape)
            numpy.testing.assert_array_equal(again[name].astype(array.dtype), array, name)
        os.chdir("/")

    def test_a_fused_tensor_a_cast_and_replicas(self):
        reshard.save(self.comm, self.path("m"), self.tp_tiles(), TP.format("source"), shapes=SHAPES)
        tiles = reshard.load(self.comm, self.path("m"), FUSED, cast={"l.*": "bf16"})
        tp, dp = divmod(self.rank, 2)
        qkv = numpy.concatenate([band(self.whole[f"l.0.{part}"], 0, tp, 2) for part in "qkv"])
        numpy.testing.assert_array_equal(tiles["l.0.qkv"].astype(numpy.float32), qkv)
        self.assertEqual(tiles["l.0.qkv"].dtype.name, "bfloat16")
        numpy.testing.assert_array_equal(tiles["embed"], band(self.whole["embed"], 1, tp, 2))
        numpy.testing.assert_array_equal(tiles["l.0.o"].astype(numpy.float32), band(self.whole["l.0.o"], 0, 2 * tp + dp, 4))
        # Each rank writes its own file, as servers read them. Both files have the replica on dp.
        saved = {"qkv": tiles["l.0.qkv"], "norm": tiles["norm"]}
        reshard.save(self.comm, self.path("served"), saved, "source tp=2,dp=2\nqkv = [tp, -]\nnorm = -\n"
                     "target tp=2,dp=2\nqkv = [tp, -]\nnorm = -\n", shapes={"qkv": (96, 64)}, form="ranks")
        from safetensors import safe_open
        with safe_open(self.path(f"served/model-rank-{self.rank}-part-0.safetensors"), framework="np") as opened:
            self.assertEqual(opened.get_slice("qkv").get_shape(), [48, 64])
            numpy.testing.assert_array_equal(opened.get_tensor("norm"), self.whole["norm"])
        again = reshard.load(self.comm, self.path("served"), "source tp=2,dp=2\nqkv = [tp, -]\nnorm = -\ntarget x=4\n"
                             "otherwise = -\n")
        self.assertEqual(again["qkv"].shape, (96, 64))
        numpy.testing.assert_array_equal(band(again["qkv"], 0, tp, 2), tiles["l.0.qkv"])

    def test_ranks_without_elements(self):
        """A tensor with fewer rows than ranks: its tiles have the shapes of the layout, and can be moved."""
        whole = {"row": numpy.arange(17.0).reshape(1, 17), "column": numpy.arange(3.0).reshape(3, 1),
                 "none": numpy.zeros((0, 5))}
        shapes = {name: array.shape for name, array in whole.items()}
        rules = "{} x=4\nrow = [x, -]\ncolumn = [x, -]\nnone = [-, x]\n"
        reshard.save(self.comm, self.path("m"), whole, "source x=4\notherwise = -\n")
        tiles = reshard.load(self.comm, self.path("m"), rules.format("target"))
        mesh = reshard.Mesh({"x": 4})
        for name, array in whole.items():
            cut = ("x", None) if name != "none" else (None, "x")
            by_rows = reshard.Layout(mesh, "f64", array.shape, cut)
            self.assertEqual(tiles[name].shape, by_rows.tile_shape(self.rank), name)
            everywhere = reshard.Layout(mesh, "f64", array.shape, (None, None))
            moved = reshard.mpi.redistribute(self.comm, tiles[name], by_rows, everywhere)
            numpy.testing.assert_array_equal(moved, array, name)
        reshard.save(self.comm, self.path("again"), tiles, rules.format("source"), shapes=shapes)
        self.same(reshard.load(self.comm, self.path("again")), whole)

    def test_flattened_tiles(self):
        """The optimizer states of veScale: a tile over tp that is flattened and dealt out over dp in units."""
        rules = "{} tp=2,dp=2\nembed = [(-, tp)@dp[1,3]]\nl.{{n}}.o = [(tp, -)@dp]\notherwise = -\n"
        if self.rank == 0:
            from safetensors.numpy import save_file
            save_file(self.whole, self.path("m.safetensors"))
        self.comm.Barrier()
        tp, dp = divmod(self.rank, 2)
        wanted = {**self.whole, "embed": numpy.split(band(self.whole["embed"], 1, tp, 2).ravel(), (8000,))[dp],
                  "l.0.o": band(band(self.whole["l.0.o"], 0, tp, 2).ravel(), 0, dp, 2)}
        for memory in (1 << 28, 1 << 20):
            tiles = reshard.load(self.comm, self.path("m.safetensors"), rules.format("target"), memory=memory)
            self.same(tiles, wanted)
            reshard.save(self.comm, self.path(f"again{memory}"), tiles, rules.format("source"), shapes=SHAPES, memory=memory)
            self.same(reshard.load(self.comm, self.path(f"again{memory}")), self.whole)
        layout = reshard.parse_layout("tp=2,dp=2", "f32[(1000,64@tp)@dp[1,3]]")
        self.assertEqual(tiles["embed"].shape, layout.tile_shape(self.rank))
        halves = reshard.load(self.comm, self.path("m.safetensors"), rules.format("target"), cast={"embed": "bf16"})
        numpy.testing.assert_array_equal(halves["embed"].astype("f4"), wanted["embed"])
        reshard.save(self.comm, self.path("own"), tiles, rules.format("source") + rules.format("target"), shapes=SHAPES,
                     form="ranks")
        listed = "".join(f"{name} {'i64' if name == 'steps' else 'f32'}[{','.join(map(str, shape))}]\n"
                         for name, shape in SHAPES.items())
        self.same(reshard.load(self.comm, self.path("own"), rules.format("source") + rules.format("target"), list=listed),
                  wanted)

    def test_checksums_before_a_load(self):
        rules = TP.format("target")
        reshard.save(self.comm, self.path("m"), self.tp_tiles(), TP.format("source"), shapes=SHAPES, verify=True)
        self.same(reshard.load(self.comm, self.path("m"), rules, verify=True), self.tp_tiles())
        self.comm.Barrier()
        if self.rank == 1:
            with open(self.path("m/model-00001-of-00001.safetensors"), "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"?")
        self.comm.Barrier()
        with self.assertRaises(reshard.Error) as caught:
            reshard.load(self.comm, self.path("m"), rules, verify=True)
        self.assertIn("other bytes", str(caught.exception))
        reshard.load(self.comm, self.path("m"), rules)  # nobody asked
        if self.rank == 0:
            os.remove(self.path("m/reshard.json"))
        self.comm.Barrier()
        with self.assertRaises(reshard.Error) as caught:
            reshard.load(self.comm, self.path("m"), rules, verify=True)
        self.assertIn("reshard.json' is missing", str(caught.exception))

    def test_errors_are_those_of_all_ranks_and_leave_nothing(self):
        begin = time.monotonic()
        cases = [(reshard.Error, "nowhere", lambda: reshard.load(self.comm, self.path("nowhere" if self.rank == 2 else "m"))),
                 (reshard.InputError, "", lambda: reshard.load(self.comm, self.path("m"), "no rules" if self.rank else "")),
                 (reshard.InputError, "bytes", lambda: reshard.save(
                     self.comm, self.path("new"), {"a": numpy.zeros(7 + self.rank)}, "source x=4\na = [x]\n", shapes={"a": (28,)})),
                 (reshard.InputError, "source", lambda: reshard.save(self.comm, self.path("new"), {}, ""))]
        reshard.save(self.comm, self.path("m"), self.tp_tiles(), TP.format("source"), shapes=SHAPES)
        for kind, words, call in cases:
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        self.comm.Barrier()
        if self.rank == 3:  # keeps the header and drops the end
            os.truncate(self.path("m/model-00001-of-00001.safetensors"), 100_000)
        self.comm.Barrier()
        with self.assertRaises(reshard.Error):
            reshard.load(self.comm, self.path("m"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["m"])
        self.assertLess(time.monotonic() - begin, 60)  # far below the timeout of five minutes
        # The communicator still works.
        reshard.save(self.comm, self.path("m2"), self.tp_tiles(), TP.format("source"), shapes=SHAPES)
        self.same(reshard.load(self.comm, self.path("m2"), TP.format("target")), self.tp_tiles())


# Saves 8 MiB in eight rounds or so. Rank 2 is killed when it writes behind byte LIMIT of a file.
SAVING = """
import resource, signal, sys
from mpi4py import MPI
import numpy, reshard
path, limit = sys.argv[1], int(sys.argv[2])
comm = MPI.COMM_WORLD
if comm.rank == 2 and limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
rows = numpy.arange(2 << 20, dtype=numpy.float32).reshape(1024, 2048)[256 * comm.rank:256 * (comm.rank + 1)]
reshard.save(comm, path, {"t": rows}, "source x=4\\nt = [x, -]\\n", shapes={"t": (1024, 2048)}, memory=1 << 20, jobs=1,
             resume=True, verify=True)
"""


class Launched(four_ranks.launched(600)):
    def save(self, path, limit=0):
        # A copy of the environment, since MPI adds variables for this process to the environment itself.
        return subprocess.run([four_ranks.MPIEXEC, "-n", "4", sys.executable, "-c", SAVING, path, str(limit)],
                              env=dict(os.environ), capture_output=True, text=True, timeout=300)

    def test_a_killed_save_is_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.safetensors")
            partial = path + ".reshard-partial"
            killed = self.save(path, 5 << 20)
            self.assertNotEqual(killed.returncode, 0)
            self.assertEqual(os.listdir(folder), [os.path.basename(partial)], killed.stderr)
            with open(os.path.join(partial, "journal"), encoding="ascii") as journal:
                self.assertGreater(journal.read().count("batch"), 2)

            def change_an_early_byte():
                with open(os.path.join(partial, "files/m.safetensors"), "r+b") as file:
                    file.seek(1 << 20)
                    byte = file.read(1)[0]
                    file.seek(1 << 20)
                    file.write(bytes([byte ^ 1]))

            # The rounds that were written stay, so a byte that changes in them stays, too, and is found.
            change_an_early_byte()
            damaged = self.save(path)
            self.assertIn("other bytes than were written", damaged.stderr)
            self.assertEqual(os.listdir(folder), [os.path.basename(partial)])
            change_an_early_byte()
            resumed = self.save(path)
            self.assertEqual(resumed.returncode, 0, resumed.stderr)
            from safetensors.numpy import load_file
            wanted = numpy.arange(2 << 20, dtype=numpy.float32).reshape(1024, 2048)
            numpy.testing.assert_array_equal(load_file(path)["t"], wanted)
            self.assertEqual(sorted(os.listdir(folder)), ["m.safetensors", "m.safetensors.reshard.json"])


if __name__ == "__main__":
    try:
        import ml_dtypes  # noqa: F401
        import safetensors  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    if not hasattr(reshard.mpi._mpi, "load"):
        print("skipped: this build of reshard reads no files")
        sys.exit(77)
    four_ranks.main()
