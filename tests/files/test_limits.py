"""The tool checks numbers of files, chunks, boxes and ranks before it uses them. It refuses too many at once."""

import os
import subprocess

import numpy as np

import suite

import checkpoints as files

LARGEST = 2**63 - 1
BYTES = 200 << 20  # resident; without a check it would be gigabytes
SECONDS = 5  # CPU time


class Limits(suite.Case):
    def setUp(self):
        super().setUp()
        files.write(self.path("bytes.safetensors"), {"a": np.zeros(16, np.int8)})
        files.write(self.path("two.safetensors"), {"a": np.zeros((16, 16), np.float32)})
        files.write(self.path("empty.safetensors"), {"a": np.zeros((0, 4), np.float32)})

    def at_once(self, said, *arguments):
        process = subprocess.Popen([suite.TOOL, "convert", *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        told = process.stdout.read()
        process.stdout.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (1, 2), f"{arguments}: {told}")
        self.assertIn(said, told, arguments)
        if os.environ.get("RESHARD_SANITIZED") != "1":
            self.assertLess(used.ru_maxrss * 1024, BYTES, arguments)
        self.assertLess(used.ru_utime + used.ru_stime, SECONDS, arguments)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("out")], [])

    def test_chunks_and_shards(self):
        def zarr(said, source, chunks, shards=None):
            options = ["--chunks", chunks] + ([] if shards is None else ["--shards", shards])
            self.at_once(said, f"{source}.safetensors", "out.zarr", *options)

        zarr("at most 4194304 chunks are written", "bytes", "1", str(LARGEST))
        zarr("at most 4194304 chunks are written", "bytes", "1", str(2**40))
        zarr("at most 4194304 chunks are written", "bytes", "1", str(2**22 + 1))
        zarr("at most 4194304 chunks are written", "two", "1,1", f"{2**19},1")  # 16 files of 2^19 chunks
        zarr("at most 4194304 chunks are written", "two", "1,1", f"{2**30},{2**30}")
        zarr("64 bits can count", "two", "1,1", f"{2**32},{2**32}")
        zarr("64 bits can count", "bytes", str(LARGEST))
        zarr("64 bits can count", "bytes", str(LARGEST), str(LARGEST))
        zarr("64 bits can count", "two", f"{2**57},1")  # 16 files of 2^59 bytes
        zarr("64 bits can count", "two", f"{2**62},4")
        zarr("no multiple of its chunks", "bytes", str(LARGEST), str(LARGEST - 1))
        zarr("of at least 1", "bytes", "0")
        zarr("of at least 1", "bytes", "-1")
        zarr("of at least 1", "bytes", "1", "0")
        zarr("of at least 1", "two", "1")
        self.runs("convert", "bytes.safetensors", "full.zarr", "--chunks", "1", "--shards", "65536")

    def test_ranks(self):
        devices = 2**26
        for number, layout in enumerate(("[tp, -]", "-", "[-, tp]")):
            rules = self.text(f"rules{number}", f"target tp={devices}\na = {layout}\n")
            for form in ("dcp", "ranks"):
                self.at_once("at most 65536 ranks", "two.safetensors", "out", "--to", form, "--rules", rules)
        rules = self.text("rules", "target tp=65536\na = -\n")
        self.at_once("boxes of tensors", "two.safetensors", "out", "--to", "ranks", "--rules", rules, "--memory", "40MiB")

    def test_sources_of_ranks(self):
        rules = self.text("rules", "target tp=2\na = [tp, -]\n")
        self.runs("convert", "two.safetensors", "ranks", "--to", "ranks", "--rules", rules)
        for devices in (2**26, 2**61):
            rules = self.text("many", f"source tp={devices}\na = [tp, -]\n")
            self.at_once("rules", "ranks", "out", "--rules", rules)

    def test_jobs(self):
        self.at_once("--jobs", "two.safetensors", "out", "--jobs", str(LARGEST))
        self.at_once("memory are too few", "two.safetensors", "out", "--memory", "0")


if __name__ == "__main__":
    suite.main()
