"""Element types that are only copied: F8_E8M0, F4 and F6 of safetensors, times and big-endian numbers of numpy."""

import json
import os
import struct
import sys

import suite
from suite import np

try:
    import zarr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BITS = {"F4": 4, "F6_E2M3": 6, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "NEW16": 16, "NEW40": 40, "F32": 32}


def write(path, tensors):
    """tensors: name -> (type, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        assert len(raw) * 8 == BITS[dtype] * int(np.prod(shape)), name
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values()))


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], tuple(entry["shape"]), raw[slice(*(8 + length + at for at in entry["data_offsets"]))])
            for name, entry in header.items()}


def cut(tensor, dim, part, parts):
    """The bytes of one part of a tensor, whose rows are whole bytes."""
    dtype, shape, raw = tensor
    rows = np.frombuffer(raw, np.uint8).reshape(*shape[:-1], -1)
    held = np.split(rows, parts, axis=dim)[part]
    shape = list(shape)
    shape[dim] //= parts
    return dtype, tuple(shape), held.tobytes()


class Types(suite.Case):
    def model(self):
        make = lambda dtype, *shape: (dtype, shape, self.rng.bytes(BITS[dtype] * int(np.prod(shape)) // 8))
        return {"blocks": make("F4", 64, 128), "six": make("F6_E2M3", 8, 64), "scales": make("F8_E8M0", 64, 4),
                "fnuz": make("F8_E4M3FNUZ", 4, 4), "new": make("NEW16", 4, 4), "wide": make("NEW40", 4, 4),
                "norm": make("F32", 64)}

    def test_there_and_back(self):
        model = self.model()
        write(self.path("in.safetensors"), model)
        told = self.runs("inspect", "in.safetensors")
        for text in ("F4[64,128]", "F6_E2M3[8,64]", "F8_E8M0[64,4]", "NEW16[4,4]", "NEW40[4,4]", "f32[64]"):
            self.assertIn(text, told)
        self.runs("convert", "in.safetensors", "one.safetensors", "--verify")
        self.assertEqual(read(self.path("one.safetensors")), model)
        self.runs("convert", "in.safetensors", "index", "--file-bytes", "2000", "--verify")
        self.assertIn("F4[64,128]", self.runs("inspect", "index"))
        self.runs("convert", "index", "two.safetensors")
        self.assertEqual(read(self.path("two.safetensors")), model)

    def test_cut_over_ranks(self):
        model = self.model()
        write(self.path("in.safetensors"), model)
        self.text("rules", "target tp=4\nblocks = [-, tp]\nsix = [-, tp]\nscales = [tp, -]\nfnuz = [tp, -]\n"
                           "new = [-, tp]\nwide = [-, tp]\nnorm = -\n")
        self.runs("convert", "in.safetensors", "ranks", "--to", "ranks", "--rules", "rules", "--verify")
        dims = {"blocks": 1, "six": 1, "scales": 0, "fnuz": 0, "new": 1, "wide": 1}
        for rank in range(4):
            found = read(self.path(f"ranks/model-rank-{rank}-part-0.safetensors"))
            for name, dim in dims.items():
                self.assertEqual(found[name], cut(model[name], dim, rank, 4), (name, rank))
        self.assertIn("F4[64,32]", self.runs("inspect", "ranks"))
        self.text("back", "source tp=4\nblocks = [-, tp]\nsix = [-, tp]\nscales = [tp, -]\nfnuz = [tp, -]\n"
                          "new = [-, tp]\nwide = [-, tp]\nnorm = -\ntarget file=1\notherwise = -\n")
        self.runs("convert", "ranks", "back.safetensors", "--rules", "back")
        self.assertEqual(read(self.path("back.safetensors")), model)

    def test_what_is_refused(self):
        model = self.model()
        write(self.path("in.safetensors"), model)
        self.assertIn("which are only copied", self.refused("convert", "in.safetensors", "out", "--cast", "bf16"))
        self.runs("convert", "in.safetensors", "out", "--cast", "norm=bf16")
        self.assertEqual(read(self.path("out/model-00001-of-00001.safetensors"))["norm"][0], "BF16")
        self.text("rules", "target tp=32\nsix = [-, tp]\notherwise = -\n")  # 48 bytes in 32 parts of 1.5
        self.assertIn("cut through an element", self.refused("convert", "in.safetensors", "cut", "--to", "ranks",
                                                             "--rules", "rules"))
        write(self.path("a.safetensors"), {"blocks": model["blocks"]})
        self.assertIn("which have 4 bits", self.refused("convert", "a.safetensors", "a.npy"))
        write(self.path("b.safetensors"), {"scales": model["scales"]})
        self.assertIn("no elements of type F8_E8M0", self.refused("convert", "b.safetensors", "b.zarr"))
        # The offsets of torch DCP count elements, and nothing says how it would count halves of bytes.
        self.text("dcp", "target tp=2\notherwise = -\n")
        self.assertIn("4 bits, and torch DCP cuts bytes", self.refused("convert", "a.safetensors", "dcp.out", "--to", "dcp",
                                                                       "--rules", "dcp"))
        self.runs("convert", "b.safetensors", "b.dcp", "--to", "dcp", "--rules", "dcp")
        self.runs("convert", "b.dcp", "b.back", "--to", "index")
        self.assertEqual(read(self.path("b.back/model-00001-of-00001.safetensors")), {"scales": model["scales"]})
        write(self.path("odd.safetensors"), {"odd": ("F4", (2, 3), b"abc")})
        self.assertIn("no whole bytes", self.refused("inspect", "odd.safetensors"))

    def test_times(self):
        for unit in ("ns", "25s", "D"):
            times = (self.rng.integers(-10**6, 10**6, (6, 5))).astype(f"M8[{unit}]")
            times[1, 2] = "NaT"
            spans = self.rng.integers(-99, 99, 7).astype(f"m8[{unit}]")
            for name, array in (("t", times), ("s", spans), ("big", times.astype(times.dtype.newbyteorder(">")))):
                np.save(self.path(name + ".npy"), array)
                sides = ",".join(str(-(-n // 2)) for n in array.shape)
                self.runs("convert", name + ".npy", name + ".zarr", "--chunks", sides, "--codec", "none")
                native = array.astype(array.dtype.newbyteorder("="))
                found = np.asarray(zarr.open_array(self.path(name + ".zarr"), mode="r")[...])
                self.assertEqual(found.dtype, native.dtype)
                self.assertEqual(found.tobytes(), native.tobytes())
                self.runs("convert", name + ".zarr", name + "2", "--to", "zarr2", "--chunks", sides)
                self.runs("convert", name + "2", name + "back.npy")
                back = np.load(self.path(name + "back.npy"))
                self.assertEqual(back.dtype, native.dtype)
                self.assertEqual(back.tobytes(), native.tobytes())
                self.assertIn("64[" + unit, self.runs("inspect", name + ".zarr"))
            self.assertIn("safetensors have no elements of type", self.refused("convert", "t.npy", "t.safetensors"))
            super().setUp()

    def test_big_endian(self):
        for kind in (">f4", ">i2", ">u8", ">c8", ">f8", ">f2"):
            array = (self.rng.standard_normal((37, 20)) * 100).astype(kind)
            if self.rng.random() < 0.5:
                array = np.asfortranarray(array)
            np.save(self.path("in.npy"), array)
            self.runs("convert", "in.npy", "out.npy", "--verify")
            back = np.load(self.path("out.npy"))
            self.assertEqual(back.dtype, np.dtype(kind).newbyteorder("<"))
            self.assertEqual(back.tobytes(), array.astype(back.dtype, order="C").tobytes())
            super().setUp()
        np.save(self.path("in.npy"), self.rng.standard_normal((9, 7)).astype(">f4"))
        self.runs("convert", "in.npy", "half.npy", "--cast", "f16")
        np.testing.assert_array_equal(np.load(self.path("half.npy")), np.load(self.path("in.npy")).astype(np.float16))

    def test_what_the_words_say(self):
        for name, start, words in (("a.gguf", b"GGUF\3\0\0\0", "GGUF"), ("a.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
                                   ("a.nc", b"CDF\1\0\0\0\0", "NetCDF"), ("a.nc4", b"CDF\5\0\0\0\0", "NetCDF"),
                                   ("a.parquet", b"PAR1\x15\4\x15\x10", "Parquet"), ("a.onnx", b"\x08\7\x12\7pytorch", "no safetensors file")):
            with open(self.path(name), "wb") as file:
                file.write(start + bytes(64))
            self.assertIn(words, self.refused("inspect", name))
        for name, words in (("__0_0.distcp", "reshard.distcp.to_safetensors"), ("_METADATA", "Orbax"),
                            ("_CHECKPOINT_METADATA", "Orbax"), ("ocdbt.process_0", "Orbax"), ("manifest.ocdbt", "OCDBT"),
                            ("x.gguf", "GGUF"), ("x.nc", "NetCDF"), (".zgroup", "group"), ("x.h5", "HDF5"),
                            ("x.msgpack", "Flax"), ("m.data-00000-of-00001", "TensorFlow")):
            folder = self.path("f" + name)
            os.mkdir(folder)
            self.assertIn("no zarr.json: it is empty", self.refused("inspect", folder))
            os.mkdir(os.path.join(folder, "below"))
            self.assertIn("no .safetensors file", self.refused("inspect", folder))
            for where in ("below", "."):
                with open(os.path.join(folder, where, name), "wb") as file:
                    file.write(b"x")
                self.assertIn(words, self.refused("inspect", folder))


if __name__ == "__main__":
    suite.main()
