"""Compressed arrays of zarr v3 and v2, compared with the `zarr` package: every codec, chunks, shards, fill values and
element types. RESHARD_LONG=1 reads and writes five hundred random stores each way; RESHARD_SEED repeats them."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import suite
from suite import np

try:
    import numcodecs
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def can(codec):
    """True if the tool was built with the codec's library."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        np.save(path, np.zeros(3, np.float32))
        done = subprocess.run([suite.TOOL, "convert", path, os.path.join(folder, "x.zarr"), "--codec", codec],
                              capture_output=True, text=True, check=False)
        return done.returncode == 0


CODECS = ["zstd", "gzip", "blosc"]
MISSING = [codec for codec in CODECS if not can(codec)]
if MISSING:
    print(f"skipped: the tool was built without {', '.join(MISSING)}")
    sys.exit(77)

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128", "datetime64[ns]", "datetime64[D]", "timedelta64[s]"]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def write_v3(path, array, chunks, shards, compressors, filters, fill, order="little"):
    made = zarr.create_array(path, shape=array.shape, dtype=array.dtype, chunks=chunks, shards=shards, fill_value=fill,
                             compressors=compressors, filters=filters, attributes={"units": "K"},
                             serializer=zarr.codecs.BytesCodec(endian=order))
    made[...] = array
    return made


def write_v2(path, array, chunks, compressor, fill, order="C", separator="."):
    made = zarr.create_array(path, shape=array.shape, dtype=array.dtype, chunks=chunks, fill_value=fill, zarr_format=2,
                             compressors=compressor, order=order, attributes={"units": "K"},
                             chunk_key_encoding={"name": "v2", "separator": separator})
    made[...] = array
    return made


class Codecs(suite.Case):
    def read(self, name):
        if name.endswith(".npy"):
            return np.load(self.path(name))
        return np.asarray(zarr.open_array(self.path(name), mode="r")[...])

    def meta(self, name, file="zarr.json"):
        with open(os.path.join(self.path(name), file), encoding="utf-8") as text:
            return json.load(text)

    def compressors(self, rng, typesize):
        """Compressors of v3 as the package has them: none, one, or two with a checksum."""
        shuffle = str(rng.choice(["noshuffle", "shuffle", "bitshuffle"]))
        cname = str(rng.choice(["blosclz", "lz4", "lz4hc", "zlib", "zstd"]))
        one = [ZstdCodec(level=int(rng.integers(-3, 8)), checksum=bool(rng.random() < 0.5)),
               GzipCodec(level=int(rng.integers(0, 10))),
               BloscCodec(cname=cname, clevel=int(rng.integers(0, 10)), shuffle=shuffle, typesize=typesize)]
        made = [one[int(rng.integers(3))]]
        if rng.random() < 0.2:
            made.append(one[int(rng.integers(3))])
        if rng.random() < 0.3:
            made.append(Crc32cCodec())
        return made if rng.random() < 0.95 else [Crc32cCodec()]

    def test_the_default_store_of_the_package(self):
        array = np.arange(120000, dtype="f4").reshape(60, 40, 50)
        zarr.create_array(self.path("d.zarr"), shape=array.shape, chunks=(1, 40, 50), dtype="f4")[:] = array
        self.runs("convert", "d.zarr", "e.zarr", "--chunks", "60,10,10", "--verify")
        self.assertTrue(same(self.read("e.zarr"), array))
        self.assertEqual(self.meta("e.zarr")["codecs"], self.meta("d.zarr")["codecs"])

    def test_the_chosen_codec(self):
        array = np.repeat(np.arange(1000, dtype=np.int32), 50).reshape(250, 200)
        np.save(self.path("in.npy"), array)
        sizes = {}
        for codec in ("none", "zstd:3", "zstd:9:checksum", "gzip:6", "blosc:zstd:5:bitshuffle", "zstd:1,crc32c"):
            name = codec.replace(":", "-").replace(",", "-") + ".zarr"
            answer = json.loads(self.runs("convert", "in.npy", name, "--codec", codec, "--chunks", "50,50", "--verify",
                                          "--json"))
            self.assertTrue(same(self.read(name), array), codec)
            found = sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(self.path(name))
                        for file in files if file not in ("zarr.json", "reshard.json"))
            self.assertEqual(answer["target_bytes"], found)
            sizes[codec] = found
        self.assertLess(max(size for codec, size in sizes.items() if codec != "none"), sizes["none"] / 4)
        self.runs("convert", "zstd-3.zarr", "raw.zarr", "--codec", "none")
        self.assertEqual([codec["name"] for codec in self.meta("raw.zarr")["codecs"]], ["bytes"])
        self.runs("convert", "gzip-6.zarr", "two.zarr", "--to", "zarr2", "--chunks", "100,100")
        self.assertEqual(self.meta("two.zarr", ".zarray")["compressor"], {"id": "gzip", "level": 6})
        self.assertTrue(same(self.read("two.zarr"), array))

    def fill(self, rng, dtype):
        """A fill value, often one that has a text of its own in the metadata."""
        if dtype.kind in "iu":
            return dtype.type(rng.choice([0, 7, np.iinfo(dtype).min, np.iinfo(dtype).max]))
        if dtype.kind in "mM":
            return np.array(rng.choice([0, 1, -5, np.iinfo("i8").min]), "i8").astype(dtype)[()]  # the least is NaT
        if dtype.kind == "b":
            return np.bool_(rng.random() < 0.5)
        floats = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e-7]
        real = rng.choice(floats)
        return dtype.type(complex(real, rng.choice(floats)) if dtype.kind == "c" else real)

    def draw_array(self, rng):
        """An array and its fill value, which some boxes of the array have, so the package leaves chunks out."""
        rank = int(rng.integers(0, 4))
        shape = tuple(int(n) for n in rng.integers(1, 24, rank))
        numbers = rng.standard_normal(shape) * 10
        dtype = np.dtype(str(rng.choice(KINDS)))
        array = np.asarray(numbers.astype("i8").astype(dtype) if dtype.kind in "mM" else np.abs(numbers).astype(dtype))
        fill = self.fill(rng, dtype)
        if rank and rng.random() < 0.4:
            array[tuple(slice(int(rng.integers(n))) for n in shape)] = fill
        return array, fill

    def sides(self, rng, shape):
        return tuple(int(rng.integers(1, n + 3)) for n in shape)

    def times(self, rng, chunks):
        return tuple(c * int(rng.integers(1, 4)) for c in chunks)

    def write_drawn(self, rng, name):
        """Writes an array with the package, in v2 or v3. Returns it."""
        array, fill = self.draw_array(rng)
        chunks = self.sides(rng, array.shape)
        big = bool(rng.random() < 0.2)
        if rng.random() < 0.35:
            compressor = [None, numcodecs.Zstd(2), numcodecs.GZip(3), numcodecs.Zlib(4),
                          numcodecs.Blosc("lz4", 5, int(rng.integers(-1, 3)))][int(rng.integers(5))]
            stored = array.astype(array.dtype.newbyteorder(">")) if big else array
            write_v2(self.path(name), stored, chunks, compressor, fill, str(rng.choice(["C", "F"])), str(rng.choice([".", "/"])))
            return array
        filters = None
        if array.ndim > 1 and rng.random() < 0.4:
            filters = [TransposeCodec(order=tuple(int(k) for k in rng.permutation(array.ndim)))]
        shards = None
        if array.ndim and rng.random() < 0.5:
            shards = {"shape": self.times(rng, chunks), "index_location": str(rng.choice(["start", "end"]))}
        write_v3(self.path(name), array, chunks, shards, self.compressors(rng, array.dtype.itemsize), filters, fill,
                 "big" if big else "little")
        return array

    def options(self, rng, target, shape):
        """Options of a conversion to a target of that name."""
        options = ["--memory", "32MiB", "--granule", str(int(rng.integers(1, 3000))), "--verify"]
        if target == "out.npy":
            return options
        if target == "out.zarr2":
            options += ["--to", "zarr2", "--codec",
                        str(rng.choice(["zstd:2", "gzip:2", "zlib", "blosc:zlib:3:shuffle", "none"]))]
        elif rng.random() < 0.6:
            options += ["--codec", str(rng.choice(["zstd", "gzip", "blosc", "blosc:zstd:9:bitshuffle,crc32c", "zstd:5,crc32c",
                                                   "crc32c", "zlib", "none"]))]
        if shape:
            wanted = self.sides(rng, shape)
            options += ["--chunks", ",".join(map(str, wanted))]
            if target == "out.zarr" and rng.random() < 0.5:
                options += ["--shards", ",".join(map(str, self.times(rng, wanted)))]
        return options

    def test_random_stores(self):
        """Stores of the package are converted, and what is written is read back by the package."""
        total = 500 if suite.LONG else 25
        read = written = number = 0
        while min(read, written) < total:
            with self.subTest(repeat=f"RESHARD_SEED={suite.SEED}", number=number):
                rng = np.random.default_rng([suite.SEED, 7, number])
                number += 1
                super().setUp()
                target = str(rng.choice(["out.npy", "out.zarr", "out.zarr", "out.zarr2"]))
                read += 1
                written += target != "out.npy"
                array = self.write_drawn(rng, "in.zarr")
                options = self.options(rng, target, array.shape)
                self.runs("convert", "in.zarr", target, *options)
                found = self.read(target)
                self.assertTrue(same(found, np.asarray(array, order="C")), (options, array.shape, array.dtype))
                self.assertIn("1 tensor", self.runs("inspect", "in.zarr"))
        print(f"{read} random stores of the package were read, and it read {written}; RESHARD_SEED={suite.SEED}")

    def test_shards_in_several_batches(self):
        """A shard is larger than the memory, so its chunks come in several batches."""
        array = self.rng.integers(0, 9, (64, 256, 512)).astype(np.float32)  # 32 MiB
        write_v3(self.path("in.zarr"), array, (4, 64, 512), None, [ZstdCodec(level=1)], None, 0)
        answer = json.loads(self.runs("convert", "in.zarr", "out.zarr", "--chunks", "64,8,32", "--shards", "64,256,512",
                                      "--memory", "20MiB", "--verify", "--json"))
        self.assertGreater(answer["batches"], 1)
        self.assertEqual(answer["files"], 1)
        self.assertTrue(same(self.read("out.zarr"), array))
        self.assertIn("has 4194304 bytes", self.refused("convert", "in.zarr", "o.zarr", "--chunks", "64,32,512",
                                                        "--memory", "22MiB", "--codec", "zstd:1", "--jobs", "1", code=1))
        self.assertIn("of memory are too few", self.refused("convert", "in.zarr", "o.zarr", "--memory", "14MiB", code=1))

    def test_chunks_that_lie(self):
        array = np.arange(4096, dtype=np.float32).reshape(64, 64)
        for codec, compressor, pack in (("zstd", ZstdCodec(level=1), lambda b: numcodecs.Zstd(1).encode(b)),
                                        ("gzip", GzipCodec(level=1), lambda b: numcodecs.GZip(1).encode(b)),
                                        ("blosc", BloscCodec(cname="lz4", clevel=5, typesize=4),
                                         lambda b: numcodecs.Blosc("lz4", 5).encode(b))):
            name = f"{codec}.zarr"
            write_v3(self.path(name), array, (32, 64), None, [compressor], None, 0)
            chunk = os.path.join(self.path(name), "c/0/0")
            with open(chunk, "rb") as file:
                good = file.read()

            def refused(reason, raw):
                with open(chunk, "wb") as file:
                    file.write(raw)
                said = self.refused("convert", name, "out.npy")
                self.assertIn(reason, said)
                self.assertIn("c/0/0", said)

            whole = bytes(8192)
            refused("a chunk has 8192", pack(whole[:-4]))
            refused("more bytes", pack(whole + b"1234"))
            refused("more bytes", pack(bytes(1 << 24)))  # a bomb
            refused("", good[:-5])
            refused("", good[:3])
            refused("", b"")
            refused("", b"\0" * 100)
            with open(chunk, "wb") as file:
                file.write(good)
            self.runs("convert", name, "out.npy")
            os.remove(self.path("out.npy"))
            os.remove(self.path("out.npy.reshard.json"))
        write_v3(self.path("sum.zarr"), array, (64, 64), None, [Crc32cCodec()], None, 0)
        with open(os.path.join(self.path("sum.zarr"), "c/0/0"), "r+b") as file:
            file.write(b"x")
        self.assertIn("another crc32c", self.refused("convert", "sum.zarr", "out.npy"))

    def test_what_is_not_read_or_written(self):
        np.save(self.path("in.npy"), np.zeros((4, 6), np.float32))
        self.assertIn("is no codec", self.refused("convert", "in.npy", "o.zarr", "--codec", "lzma"))
        self.assertIn("is no level of zstd", self.refused("convert", "in.npy", "o.zarr", "--codec", "zstd:99"))
        self.assertIn("is no compressor of blosc", self.refused("convert", "in.npy", "o.zarr", "--codec", "blosc:xz"))
        self.assertIn("npy files are not compressed", self.refused("convert", "in.npy", "o.npy", "--codec", "zstd"))
        self.assertIn("one compressor", self.refused("convert", "in.npy", "o", "--to", "zarr2", "--codec", "zstd,crc32c"))
        self.assertIn("no shards", self.refused("convert", "in.npy", "o", "--to", "zarr2", "--chunks", "2,2", "--shards",
                                                "4,6"))
        self.runs("convert", "in.npy", "good", "--to", "zarr2", "--codec", "zlib")
        good = self.meta("good", ".zarray")
        for reason, changes in (("the filter 'delta' is not read", {"filters": [{"id": "delta"}]}),
                                ("the codec 'lzma' is not read", {"compressor": {"id": "lzma"}}),
                                ("zarr_format is not 2", {"zarr_format": 3}), ("no order", {"order": "A"}),
                                ("records", {"dtype": [["a", "<i4"]]}), ("not supported", {"dtype": "<U4"}),
                                ("numbers from 1", {"chunks": [0, 6]}), ("no shape", {"shape": [-1, 6]}),
                                ("separator", {"dimension_separator": "x"}), ("fill_value", {"fill_value": "x"})):
            with open(os.path.join(self.path("good"), ".zarray"), "w", encoding="utf-8") as file:
                json.dump({**good, **changes}, file)
            self.assertIn(reason, self.refused("convert", "good", "out.npy"))


if __name__ == "__main__":
    suite.main()
