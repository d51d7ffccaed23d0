"""`run` with files: compares its output with the tiles that an independent reader cuts from the input."""

import json
import os
import random
import resource
import struct
import subprocess

import layout_of
import npy_file
import tool


def random_elements(descr, shape, seed=1):
    random_bytes = random.Random(seed)
    size = npy_file.item_bytes(descr)
    elements = {}
    for index in npy_file.indices(shape, False):
        element = random_bytes.randbytes(size)
        elements[index] = bytes([element[0] & 1]) if descr[1] == "b" else element
    return elements


class Files(tool.Case):
    ranks = 0  # the local backend

    def some(self, cases):
        """All cases in one process, the first and the last under a launcher: ranks only split the same reads and writes."""
        return cases[::len(cases) - 1] if self.ranks else cases

    def move(self, mesh, source, target, *more):
        return self.ran_well(
            tool.reshard("run", "--mesh", mesh, source, target, *more, folder=self.folder, ranks=self.ranks))

    def whole(self, descr, mesh, source, target, shape, fortran=False, version=(1, 0), more=()):
        elements = random_elements(descr, shape)
        npy_file.write(self.path("in.npy"), descr, shape, elements, fortran, version)
        self.move(mesh, source, target, "--input", "in.npy", "--output", "out.npy", "--tiles", "tiles", *more)
        out = npy_file.read(self.path("out.npy"))
        self.assertEqual(out.shape, shape)
        self.assertEqual(out.fortran, fortran)
        self.assertEqual(out.descr, descr.replace(">", "<").replace("=", "<"))
        self.assertEqual(out.elements, elements)
        self.check_tiles(mesh, source, target, elements, fortran)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.npy", "out.npy", "tiles"])

    def check_tiles(self, mesh, source, target, elements, fortran):
        devices = 1
        for _, size in layout_of.mesh_of(mesh):
            devices *= size
        self.assertEqual(len(os.listdir(self.path("tiles"))), 3 * devices)
        for rank in range(devices):
            with open(self.path("tiles/rank%d.json" % rank)) as file:
                told = json.load(file)
            self.assertEqual(told["rank"], rank)
            for end, layout in (("source", source), ("target", target)):
                intervals = layout_of.tile(mesh, layout, rank)
                stated = list(zip(told[end]["begin"], told[end]["end"]))
                self.assertEqual([(0, 0) if a == b else (a, b) for a, b in intervals], stated)
                cut = npy_file.read(self.path("tiles/" + told[end]["file"]))
                self.assertEqual(cut.fortran, fortran)
                self.assertEqual(cut.shape, tuple(b - a for a, b in intervals))
                for index, element in cut.elements.items():
                    place = tuple(a + i for (a, _), i in zip(intervals, index))
                    self.assertEqual(element, elements[place], (rank, end, place))

    def test_every_dtype(self):
        pairs = [("|b1", "bool"), ("|i1", "i8"), ("<i2", "i16"), ("<i4", "i32"), ("<i8", "i64"), ("|u1", "u8"),
                 ("<u2", "u16"), ("<u4", "u32"), ("<u8", "u64"), ("<f2", "f16"), ("<f4", "f32"), ("<f8", "f64"),
                 ("<c8", "c64"), ("<c16", "c128")]
        for descr, dtype in self.some(pairs):
            with self.subTest(dtype):
                self.setUp()
                self.whole(descr, "x=2,y=2", dtype + "[6@x,4@y]", dtype + "[6,4@(y,x)]", (6, 4))

    def test_raw_elements_by_dtype(self):
        for descr, dtype in self.some((("<V2", "bf16"), ("|V2", "bf16"), ("<u2", "bf16"), (">u2", "bf16"),
                                       ("|V1", "f8_e4m3fn"), ("|u1", "f8_e5m2"))):
            with self.subTest(descr):
                self.setUp()
                self.whole(descr, "x=2,y=2", dtype + "[6@x,4]", dtype + "[6@y,4@x]", (6, 4), more=("--dtype", dtype))

    def test_byte_orders(self):
        for descr, dtype in self.some(((">i2", "i16"), (">f4", "f32"), (">f8", "f64"), (">c8", "c64"), (">c16", "c128"),
                                       (">u8", "u64"), (">f2", "f16"))):
            with self.subTest(descr):
                self.setUp()
                self.whole(descr, "x=3", dtype + "[6@x,5]", dtype + "[6,5@x]", (6, 5))

    def test_versions(self):
        for version in self.some(((1, 0), (2, 0), (3, 0))):
            with self.subTest(version):
                self.setUp()
                self.whole("<f4", "x=2", "f32[6@x,5]", "f32[6,5@x]", (6, 5), version=version)

    def test_fortran_order(self):
        for shape, source, target in (((6, 5), "f64[6@x,5]", "f64[6,5@x]"), ((7,), "f64[7@x]", "f64[7]"),
                                      ((3, 4, 5), "f64[3,4@(x,y),5]", "f64[3@y,4,5@x]"),
                                      ((2, 3, 4, 5), "f64[2@x,3,4@y,5]", "f64[2,3@y,4,5@x]")):
            with self.subTest(source):
                self.setUp()
                self.whole("<f8", "x=2,y=2", source, target, shape, fortran=True)

    def test_padding_and_transposition(self):
        """Elements are kept, moved to the transposed place, or the fill value, -2; the others are dropped."""
        for fortran in (False, True):
            for order, shape in (("0,1", (8, 4)), ("1,0", (4, 9)), ("1,0", (7, 3))):
                with self.subTest(fortran=fortran, order=order, shape=shape):
                    self.setUp()
                    elements = random_elements("<i4", (6, 5))
                    npy_file.write(self.path("in.npy"), "<i4", (6, 5), elements, fortran)
                    target = "i32[%d,%d@(y,x)]" % shape
                    self.move("x=2,y=2", "i32[6@x,5@y]", target, "--input", "in.npy", "--output", "out.npy",
                              "--permute", order, "--pad", "-2", "--tiles", "tiles")
                    padding = struct.pack("<i", -2)
                    wanted = {index: elements.get(index if order == "0,1" else index[::-1], padding)
                              for index in npy_file.indices(shape, False)}
                    out = npy_file.read(self.path("out.npy"))
                    self.assertEqual((out.shape, out.fortran), (shape, fortran))
                    self.assertEqual(out.elements, wanted)

    def test_fortran_order_of_the_other_byte_order(self):
        self.whole(">f8", "x=2,y=2", "f64[6@x,5@y]", "f64[6@y,5@x]", (6, 5), fortran=True, version=(2, 0))

    def test_sizes_that_do_not_divide(self):
        self.whole("<f4", "x=2,y=3", "f32[7@(x,y),5]", "f32[7@x,5@y]", (7, 5))

    def test_trailing_tiles_are_empty(self):
        self.whole("<f4", "x=5", "f32[6@x,3]", "f32[6,3@x]", (6, 3))

    def test_ranks_of_arrays(self):
        for shape, source, target in (((), "f32[]", "f32[]"), ((1,), "f32[1]", "f32[1@x]"), ((0,), "f32[0@x]", "f32[0]"),
                                      ((3, 0, 2), "f32[3@x,0,2]", "f32[3,0,2@x]"),
                                      ((2, 3, 2, 3), "f32[2@x,3,2,3@y]", "f32[2,3@y,2@x,3]")):
            with self.subTest(source):
                self.setUp()
                self.whole("<f4", "x=2,y=3", source, target, shape)

    def test_sub_axes(self):
        self.whole("<i4", "x=12", "i32[24@x:(2)3,4@x:(1)2]", "i32[24@x:(1)4,4]", (24, 4))

    def test_replicas_are_written_once_and_read_by_all(self):
        self.whole("<i4", "x=2,y=3", "i32[6,4]", "i32[6,4]", (6, 4))

    def test_a_window_of_short_runs(self):
        # Runs of four bytes, close together and far apart.
        self.whole("<i4", "x=2,y=4", "i32[64,8@(x,y)]", "i32[64@x,8]", (64, 8))
        self.setUp()
        self.whole("<i4", "x=2,y=4", "i32[16,512@(y,x)]", "i32[16@x,512]", (16, 512))

    def test_summands_add_up_to_the_input(self):
        shape = (6, 4)
        elements = random_elements("<i4", shape)
        npy_file.write(self.path("in.npy"), "<i4", shape, elements)
        self.move("x=2,y=3", "i32[6@x,4]{U:y}", "i32[6,4@x]", "--input", "in.npy", "--output", "out.npy")
        self.assertEqual(npy_file.read(self.path("out.npy")).elements, elements)

    def test_generated_arrays_are_the_same_whatever_the_mesh(self):
        self.move("x=2,y=3", "f32[12@x,40]", "f32[12,40@y]", "--output", "a.npy")
        self.move("x=3,y=2", "f32[12@y,40@x]", "f32[12,40]", "--output", "b.npy")
        with open(self.path("a.npy"), "rb") as a, open(self.path("b.npy"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_output_replaces_what_was_there(self):
        with open(self.path("out.npy"), "wb") as file:
            file.write(b"old" * 1000)
        self.move("x=2", "f32[6@x]", "f32[6]", "--output", "out.npy")
        self.assertEqual(npy_file.read(self.path("out.npy")).shape, (6,))

    def test_a_disk_too_small_leaves_nothing(self):
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        with open(self.path("out.npy"), "wb") as file:
            file.write(b"old")
        done = subprocess.run([tool.TOOL, "run", "--backend", "local", "--mesh", "x=2", "f32[4096@x]", "f32[4096]",
                               "--output", "out.npy"], cwd=self.folder, capture_output=True, preexec_fn=small)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(b"out.npy", done.stderr)
        self.assertEqual(done.stdout, b"")
        self.assertEqual(os.listdir(self.folder), ["out.npy"])
        with open(self.path("out.npy"), "rb") as file:
            self.assertEqual(file.read(), b"old")

    def test_input_may_be_output(self):
        elements = random_elements("<f4", (6, 4))
        npy_file.write(self.path("a.npy"), "<f4", (6, 4), elements)
        self.move("x=2", "f32[6@x,4]", "f32[6,4@x]", "--input", "a.npy", "--output", "a.npy")
        self.assertEqual(npy_file.read(self.path("a.npy")).elements, elements)


class Sums(tool.Case):
    ranks = 0
    WAYS = (("[6@x,8]{K:y}", "[6@x,8]"), ("[6,8]{K:(x,y)}", "[6@x,8@y]"), ("[6,8]{K:(x,y)}", "[6@x,8]{K:y}"),
            ("[6@x,8]", "[6@x,8]{K:y}"))

    def ways(self, number):
        """All cases in one process, but only one case per launch, since the backends' own tests cover all."""
        return self.WAYS if self.ranks == 0 else (self.WAYS[number % len(self.WAYS)],)

    def move(self, kind, dtype, ways):
        for source, target in ways:
            with self.subTest(kind + " " + dtype + source + target):
                ran = tool.reshard("run", "--mesh", "x=2,y=4", dtype + source.replace("K", kind),
                                   dtype + target.replace("K", kind), ranks=self.ranks)
                self.ran_well(ran)
                self.assertRegex(ran.out, r"wrong 0 of (48|96|192|384)\n")

    def test_other_reductions(self):
        for i, (kind, dtype) in enumerate((("max", "i8"), ("min", "f64"), ("prod", "c64"), ("avg", "bf16"))):
            self.move(kind, dtype, self.ways(i))

    def test_an_avg_is_shown_as_a_sum_and_a_factor(self):
        for source, target, words in (("f32[]{avg:x}", "f32[]", "avg -x (sum, then / 2)"),
                                      ("f32[]", "f32[]{avg:y}", "avg +y (x 4)"),
                                      ("f32[]{max:x}", "f32[]", "max -x")):
            ran = tool.reshard("plan", "--mesh", "x=2,y=4", source, target)
            self.assertIn(words, ran.out)

    def test_sums_of_every_kind(self):
        dtypes = ("i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128")
        for i, dtype in enumerate(dtypes[::3] if self.ranks else dtypes):  # under a launcher each way once
            self.move("U", dtype, self.ways(i))


if __name__ == "__main__":
    tool.main()
