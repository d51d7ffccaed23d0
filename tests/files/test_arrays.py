"""Arrays out of core: .npy and zarr v3, in chunks and in shards, compared with numpy and the `zarr` package.
RESHARD_LONG=1 runs two hundred random arrays; RESHARD_SEED repeats them."""

import fcntl
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import time

import suite
from suite import np

import checkpoints as files

try:
    import zarr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def write_zarr(path, array, chunks, shards=None, fill=0, written=None, separator="/", v2=False):
    """Writes an array with the package. `written`: only this box, so the other chunks do not exist."""
    encoding = {"name": "v2" if v2 else "default", "separator": separator}
    made = zarr.create_array(path, shape=array.shape, dtype=array.dtype, chunks=chunks, shards=shards, fill_value=fill,
                             compressors=None, chunk_key_encoding=encoding, attributes={"units": "K"})
    if written is None:
        made[...] = array
        return array
    made[written] = array[written]
    return made[...]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Arrays(suite.Case):
    def read(self, name):
        """Reads an array with numpy or with the package."""
        if name.endswith(".npy"):
            return np.load(self.path(name))
        return np.asarray(zarr.open_array(self.path(name), mode="r")[...])

    def test_time_major_to_space_major(self):
        """A climate array in little memory: chunks of one time become chunks of one region at all times."""
        array = self.rng.standard_normal((365, 90, 180)).astype(np.float32)  # 24 MB
        write_zarr(self.path("time.zarr"), array, (1, 90, 180))
        answer = json.loads(self.runs("convert", "time.zarr", "space.zarr", "--chunks", "365,30,30", "--memory",
                                      "32MiB", "--granule", "64KiB", "--verify", "--json"))
        self.assertGreater(answer["batches"], 1)
        self.assertTrue(same(self.read("space.zarr"), array))
        self.assertEqual(zarr.open_array(self.path("space.zarr")).attrs["units"], "K")
        self.runs("convert", "space.zarr", "one.npy", "--memory", "32MiB")
        self.assertTrue(same(self.read("one.npy"), array))
        self.runs("convert", "one.npy", "shards.zarr", "--chunks", "73,30,60", "--shards", "365,90,60", "--memory",
                  "32MiB")
        self.assertTrue(same(self.read("shards.zarr"), array))
        self.runs("convert", "shards.zarr", "time2.zarr", "--chunks", "1,90,180", "--memory", "32MiB")
        self.assertTrue(same(self.read("time2.zarr"), array))
        self.assertIn("zarr v3 with shards: 3 files", self.runs("inspect", "shards.zarr"))

    def test_the_bound_is_the_one_proved(self):
        """`granules_bound` of proofs/Granules.v for one array that is cut in one dimension on each side: all granules of
        all files."""
        def granules(name, granule):
            path = self.path(name)
            parts = [os.path.join(at, file) for at, _, found in os.walk(path) for file in found
                     if not file.endswith(".json")]
            return sum(-(-os.path.getsize(part) // granule) for part in parts or [path])

        array = self.rng.standard_normal((24, 36, 20)).astype(np.float32)
        np.save(self.path("whole.npy"), array)
        for granule in (129, 1000, 4096, int(self.rng.integers(129, 9000))):
            for source, target, chunks in (("whole.npy", "rows.zarr", "4,36,20"),
                                           ("rows.zarr", "columns.zarr", "24,12,20"),
                                           ("columns.zarr", "inner.zarr", "24,36,5"), ("inner.zarr", "back.npy", "")):
                options = ["--chunks", chunks] if chunks else []
                answer = json.loads(self.runs("convert", source, target, "--granule", str(granule), "--json", *options))
                self.assertEqual(answer["granules_bound"], granules(source, granule) + granules(target, granule))
                self.assertGreaterEqual(answer["granules"], answer["granules_bound"])
            for name in ("rows.zarr", "columns.zarr", "inner.zarr"):
                shutil.rmtree(self.path(name))
            os.remove(self.path("back.npy"))

    def test_fortran_order(self):
        array = np.asfortranarray(self.rng.integers(0, 1000, (300, 200, 5)).astype(np.int32))
        np.save(self.path("in.npy"), array)
        self.runs("convert", "in.npy", "out.npy")
        self.assertTrue(same(self.read("out.npy"), np.asarray(array, order="C")))
        large = np.asfortranarray(self.rng.integers(0, 255, (3000, 5000)).astype(np.uint8))
        np.save(self.path("large.npy"), large)
        self.runs("convert", "large.npy", "turned.npy", "--memory", "16MiB", "--granule", "4KiB", "--jobs", "1")
        self.assertTrue(same(self.read("turned.npy"), np.asarray(large, order="C")))

    def test_random_arrays(self):
        total = 200 if suite.LONG else 25
        kinds = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"]
        worst = 0.0
        for number in range(total):
            with self.subTest(repeat=f"RESHARD_SEED={suite.SEED}", number=number):
                rng = np.random.default_rng([suite.SEED, number])
                super().setUp()
                rank = int(rng.integers(0, 4))
                shape = tuple(int(n) for n in rng.integers(1, 30, rank))
                array = (rng.standard_normal(shape) * 10).astype(str(rng.choice(kinds)))
                array = np.asarray(array)
                sides = lambda: tuple(int(rng.integers(1, n + 3)) for n in shape)
                times = lambda chunks: tuple(c * int(rng.integers(1, 4)) for c in chunks)
                if rng.random() < 0.3:
                    np.save(self.path("in.npy"), np.asfortranarray(array) if rank and rng.random() < 0.5 else array)
                    source = "in.npy"
                else:
                    chunks, source = sides(), "in.zarr"
                    fill = {"b": True, "f": float("nan"), "c": 1 + 2j}.get(array.dtype.kind, 7)
                    part = tuple(slice(int(rng.integers(n))) for n in shape) if rank and rng.random() < 0.4 else None
                    array = np.asarray(write_zarr(self.path(source), array, chunks,
                                                  times(chunks) if rank and rng.random() < 0.5 else None, fill, part,
                                                  str(rng.choice(["/", "."])), bool(rng.random() < 0.3)))
                chunks = sides()
                options = ["--memory", "16MiB", "--granule", str(int(rng.integers(1, 3000)))]
                target = str(rng.choice(["out.npy", "out.zarr"]))
                if target == "out.zarr" and rank:
                    options += ["--chunks", ",".join(map(str, chunks))]
                    if rng.random() < 0.5:
                        options += ["--shards", ",".join(map(str, times(chunks)))]
                answer = json.loads(self.runs("convert", source, target, "--json", "--verify", *options))
                worst = max(worst, answer["granules"] / max(answer["granules_bound"], 1))
                found = self.read(target)
                self.assertTrue(same(found, np.asarray(array, order="C")), (source, options, shape, array.dtype))
        print(f"{total} random arrays, RESHARD_SEED={suite.SEED}: granules moved / bound at most {worst:.2f}")

    def test_what_lies(self):
        array = np.arange(24, dtype=np.float32).reshape(4, 6)
        write_zarr(self.path("in"), array, (2, 3))
        with open(self.path("in/zarr.json"), encoding="utf-8") as file:
            good = json.load(file)

        def refused(reason, **changes):
            with open(self.path("in/zarr.json"), "w", encoding="utf-8") as file:
                json.dump({**good, **changes}, file)
            self.assertIn(reason, self.refused("convert", "in", "out.npy"))

        bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
        refused("zarr_format is not 3", zarr_format=2)
        refused("no array", node_type="group")
        refused("no shape", shape=[-4, 6])
        refused("no shape", shape=[2**63, 6])
        refused("more than 4194304 chunks", shape=[2**61 - 1, 1], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1, 1]}})
        refused("more bytes than 64 bits", shape=[2**62, 6])
        refused("elements of type 'string'", data_type="string")
        refused("not regular", chunk_grid={"name": "rectilinear"})
        refused("is no list of 2 numbers", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}})
        refused("a side of 0", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 3]}})
        refused("the codec 'lzma' is not read", codecs=[bytes_codec, {"name": "lzma"}])
        refused("comes before bytes", codecs=[{"name": "crc32c"}, bytes_codec])
        refused("no codec bytes", codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}])
        refused("no order of 2 dimensions", codecs=[{"name": "transpose", "configuration": {"order": [1, 1]}}, bytes_codec])
        refused("an endian of little or big", codecs=[{"name": "bytes", "configuration": {"endian": "middle"}}])
        refused("no list of codecs", codecs=[])
        refused("fill_value", fill_value="x")
        refused("storage_transformers", storage_transformers=[{"name": "x"}])
        refused("separator", chunk_key_encoding={"name": "default", "configuration": {"separator": "../"}})
        refused("chunk_key_encoding", chunk_key_encoding={"name": "x"})
        refused("a chunk has 32", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 4]}})
        with open(self.path("in/zarr.json"), "w", encoding="utf-8") as file:
            file.write("{")
        self.assertIn("no JSON object", self.refused("inspect", "in"))
        self.assertEqual(os.listdir(self.folder), ["in"])

    def test_shards_that_lie(self):
        array = np.arange(48, dtype=np.int16).reshape(8, 6)
        write_zarr(self.path("in"), array, (2, 3), (4, 6))
        shard = self.path("in/c/0/0")
        with open(shard, "rb") as file:
            good = file.read()
        index = len(good) - 4 * 16 - 4

        def refused(reason, entries=None, raw=None):
            if entries is not None:
                text = b"".join(struct.pack("<QQ", *entry) for entry in entries)
                raw = good[:index] + text + struct.pack("<I", files.crc32c(text))
            with open(shard, "wb") as file:
                file.write(raw)
            self.assertIn(reason, self.refused("convert", "in", "out.npy"))

        refused("another crc32c", raw=good[:-1] + bytes([good[-1] ^ 1]))
        refused("shorter than its index", raw=good[-67:])
        refused("a chunk of 13 bytes", entries=[(0, 13)] * 4)
        refused("ends behind the file", entries=[(len(good) - 11, 12)] * 4)
        refused("ends behind the file", entries=[(2**63, 12)] * 4)
        refused("a chunk of -1 bytes", entries=[(0, 2**64 - 1)] * 4)
        with open(shard, "wb") as file:
            file.write(good)
        self.runs("convert", "in", "out.npy")
        self.assertTrue(same(self.read("out.npy"), array))

    def test_what_a_target_cannot_be(self):
        np.save(self.path("in.npy"), np.zeros((4, 6), np.float32))
        self.assertIn("dimensions", self.refused("convert", "in.npy", "out.zarr", "--chunks", "2"))
        self.assertIn("no multiple", self.refused("convert", "in.npy", "o.zarr", "--chunks", "2,2", "--shards", "3,2"))
        files.write_index(self.path("many"), {"a": np.zeros(3, np.float32), "b": np.zeros(3, np.float32)}, 1)
        self.assertIn("npy holds one array, and there are 2", self.refused("convert", "many", "out.npy"))
        self.text("rules", "target f=1\na = -\ndrop b\n")
        self.runs("convert", "many", "out.npy", "--rules", "rules")
        self.assertTrue(same(self.read("out.npy"), np.zeros(3, np.float32)))
        shutil.rmtree(self.path("many"))


    def test_two_passes(self):
        """With a scratch folder, little memory moves each byte twice and no more; the answer is the same."""
        array = self.rng.standard_normal((200, 64, 512)).astype(np.float32)  # 25 MiB, time-major
        np.save(self.path("in.npy"), array)
        os.mkdir(self.path("scratch"))
        memory = ("--memory", "11MiB", "--jobs", "1", "--granule", "256KiB", "--json")
        chunks = ("--chunks", "200,16,32")
        once = json.loads(self.runs("convert", "in.npy", "once.zarr", *chunks, *memory))
        twice = json.loads(self.runs("convert", "in.npy", "twice.zarr", *chunks, *memory, "--scratch", "scratch",
                                     "--verify"))
        self.assertEqual((once["passes"], twice["passes"]), (1, 2))
        self.assertGreater(once["read_bytes"], 2.5 * array.nbytes)
        self.assertLess(twice["read_bytes"], 2.2 * array.nbytes)
        self.assertTrue(same(self.read("twice.zarr"), array))
        self.assertEqual(os.listdir(self.path("scratch")), [])
        back = json.loads(self.runs("convert", "twice.zarr", "back.npy", *memory, "--scratch", "scratch"))
        self.assertTrue(same(self.read("back.npy"), array))
        self.assertLess(back["read_bytes"], 2.2 * array.nbytes)
        for reason, name, folder in (("make a folder in", "out.zarr", "missing"), ("is there already", "once.zarr", "scratch")):
            self.assertIn(reason, self.refused("convert", "in.npy", name, *chunks, *memory[:-1], "--scratch", folder))
        self.assertEqual(os.listdir(self.path("scratch")), [])
        planned = json.loads(self.runs("convert", "in.npy", "out.zarr", *chunks, *memory, "--scratch", "scratch",
                                       "--dry-run"))
        self.assertEqual(planned["passes"], 2)
        enough = json.loads(self.runs("convert", "in.npy", "out.zarr", *chunks, "--scratch", "scratch", "--json"))
        self.assertEqual(enough["passes"], 1)

    def test_scratch_of_killed_runs(self):
        """A run with a scratch folder removes what killed runs have left in it, and nothing else."""
        array = self.rng.standard_normal((200, 64, 512)).astype(np.float32)
        np.save(self.path("in.npy"), array)
        os.mkdir(self.path("scratch"))
        command = ("convert", "in.npy", "out.zarr", "--chunks", "200,16,32", "--memory", "11MiB", "--jobs", "1",
                   "--granule", "256KiB", "--scratch", "scratch")
        left = []
        while not left:
            shutil.rmtree(self.path("out.zarr"), ignore_errors=True)
            process = subprocess.Popen([suite.TOOL, *command], cwd=self.folder, stdout=subprocess.DEVNULL)
            while process.poll() is None and not glob.glob(self.path("scratch/reshard-scratch-*/made-by-reshard")):
                time.sleep(0.001)
            process.kill()
            process.wait()
            left = os.listdir(self.path("scratch"))  # none if the run ended before it was killed
        self.assertEqual([name[:16] for name in left], ["reshard-scratch-"])
        kept = ["notes", "reshard-scratch-of-mine", "reshard-scratch-runs"]
        for name in kept:
            os.mkdir(self.path("scratch/" + name))
            self.text(f"scratch/{name}/page", "mine")
        self.text("scratch/notes/made-by-reshard", "")
        with open(self.path("scratch/reshard-scratch-runs/made-by-reshard"), "w", encoding="ascii") as running:
            fcntl.flock(running, fcntl.LOCK_EX)
            self.runs(*command)
        self.assertEqual(sorted(os.listdir(self.path("scratch"))), kept)
        self.assertTrue(same(self.read("out.zarr"), array))


if __name__ == "__main__":
    suite.main()
