#!/usr/bin/env python3
"""`reshard live`: a checkpoint that one process publishes becomes the checkpoint of another. Waits are for events; a limit
is only there to end a test that hangs."""

import json
import math
import os
import queue
import signal
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tool  # noqa: E402

HANG = 240  # seconds, far above any wait that is right
SHAPES = {"embed": (50, 16), "l.0.q": (16, 16), "norm": (16,)}


def f32(value):
    return struct.pack("<f", value)


def bf16(value):
    """The element that is nearest to the value, ties to even."""
    bits, = struct.unpack("<I", f32(value))
    return struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)


def write_checkpoint(path, version):
    """Element i of each tensor is i + 1000 * version. The file takes the place of another in one step."""
    header, data = {}, b""
    for name, shape in SHAPES.items():
        raw = b"".join(f32(i + 1000 * version) for i in range(math.prod(shape)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path + ".new", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    os.rename(path + ".new", path)


def tensors_of(path):
    """The tensors of a .safetensors file: name -> (type, shape, bytes)."""
    with open(path, "rb") as file:
        raw = file.read()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    begin = 8 + length
    return {name: (one["dtype"], tuple(one["shape"]), raw[begin + one["data_offsets"][0]:begin + one["data_offsets"][1]])
            for name, one in header.items() if name != "__metadata__"}


class Started:
    """A command in the background. Its lines are read as they come."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([tool.TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.said = ""
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.complain)]
        for thread in self.threads:
            thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def complain(self):
        self.said = self.process.stderr.read()

    def line(self):
        """The next line; None: the command has ended."""
        return self.lines.get(timeout=HANG)

    def end(self):
        self.process.wait(HANG)
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def stop(self):
        self.process.kill()
        self.end()


class Live(tool.Case):
    def start(self, *arguments):
        started = Started("live", *arguments)
        self.addCleanup(started.stop)
        return started

    def checkpoint(self, version):
        path = self.path("model.safetensors")
        write_checkpoint(path, version)
        return path

    def wrong(self, *arguments, code, words):
        ran = tool.reshard("live", *arguments)
        self.assertEqual(ran.code, code, ran.out + ran.err)
        self.assertIn(words, ran.err)

    def take(self, endpoint, name, *options):
        return self.ran_well(tool.reshard("live", "subscribe", endpoint, self.path(name), *options))

    def test_a_checkpoint_on_one_machine(self):
        self.moves(self.path("weights"))

    def test_a_checkpoint_over_tcp(self):
        self.moves("127.0.0.1:0")

    def moves(self, asked):
        source = self.checkpoint(7)
        out = self.start("publish", source, asked, "--version", "7", "--readers", "4", "--json")
        said = json.loads(out.line())
        self.assertEqual((said["version"], said["tensors"], said["bytes"]), (7, 3, 4 * (50 * 16 + 16 * 16 + 16)))
        endpoint = said["endpoint"]
        self.assertIn("version 7: 3 tensors", self.take(endpoint, "same.safetensors").out)
        self.assertEqual(tensors_of(self.path("same.safetensors")), tensors_of(source))
        self.take(endpoint, "step-{version}")
        self.assertTrue(os.path.exists(self.path("step-7/model.safetensors.index.json")))
        self.take(endpoint, "half.safetensors", "--cast", "bf16")
        half = tensors_of(self.path("half.safetensors"))
        self.assertEqual(half["norm"], ("BF16", (16,), b"".join(bf16(i + 7000) for i in range(16))))
        rules = self.path("tp.rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("target tp=2\nembed = [tp, -]\notherwise = -\n")
        self.take(endpoint, "tp", "--to", "ranks", "--rules", rules)
        halves = [tensors_of(self.path(f"tp/model-rank-{rank}-part-0.safetensors"))["embed"] for rank in range(2)]
        self.assertEqual(halves[0][2] + halves[1][2], tensors_of(source)["embed"][2])
        self.assertEqual(out.end(), 0)  # four have read

    def test_each_checkpoint_is_a_version(self):
        source, endpoint = self.checkpoint(1), self.path("weights")
        out = self.start("publish", source, endpoint, "--watch", "--json")
        self.assertEqual(json.loads(out.line())["version"], 1)
        into = self.start("subscribe", endpoint, self.path("step-{version}.safetensors"), "--follow", "--json")
        self.assertEqual(json.loads(into.line())["version"], 1)
        for version in (2, 3):
            want = self.checkpoint(version)
            self.assertEqual(json.loads(out.line())["version"], version)
            self.assertEqual(json.loads(into.line())["version"], version)
            self.assertEqual(tensors_of(self.path(f"step-{version}.safetensors")), tensors_of(want))
        with open(source, "wb") as file:
            file.write(b"no checkpoint")
        rank, = json.loads(self.ran_well(tool.reshard("live", "status", endpoint, "--json")).out)["ranks"]
        self.assertEqual((rank["newest"], rank["reads"]), (3, 3))
        self.assertEqual([one["version"] for one in rank["versions"]], [2, 3])
        reader, = rank["readers"]
        self.assertEqual(reader["peer"], f"process {into.process.pid}")
        self.assertEqual((reader["reads"], reader["last"], reader["bytes"]), (0, 3, rank["bytes"]))
        self.assertEqual(reader["transport"], "memory")
        self.assertGreater(reader["seconds"], 0)
        told = self.ran_well(tool.reshard("live", "status", endpoint)).out
        self.assertRegex(told, r"version 3: 3 tensors, 4\.2 KiB on 1 rank\n rank  version  state\n    0        2  ready\n")
        self.assertRegex(told, r"\n    0  process \d+  memory      -     3  4\.2 KiB  .*/s\n")
        into.process.send_signal(signal.SIGINT)
        self.assertEqual(into.end(), 0)
        out.process.send_signal(signal.SIGTERM)
        self.assertEqual(out.end(), 0)
        self.assertIn("safetensors", out.said)  # the file that is no checkpoint

    def test_a_publisher_that_is_killed(self):
        endpoint = self.path("weights")
        out = self.start("publish", self.checkpoint(1), endpoint)
        self.assertEqual(out.line(), f"version 1: 3 tensors, 4.2 KiB, at {endpoint}")
        into = self.start("subscribe", endpoint, self.path("{version}.safetensors"), "--follow")
        self.assertIn("version 1", into.line())
        out.process.kill()
        self.assertEqual(into.end(), 3)
        self.assertIn("rank 0 of the publisher is lost: its connection is closed", into.said)

    def test_mistakes(self):
        endpoint = self.path("weights")
        self.wrong("status", endpoint, "--timeout", "0", code=3, words="cannot connect to")
        self.wrong("subscribe", endpoint, self.path("x"), "--timeout", "0", code=3, words="cannot connect to")
        self.wrong("subscribe", endpoint, self.path("x"), "--follow", code=2, words="wanted {version} in the path")
        self.wrong("publish", self.path("none"), endpoint, code=2, words="none")
        self.wrong("publish", self.checkpoint(1), "nothing", code=2, words="is no endpoint; wanted a path with a /")
        self.wrong("publish", self.checkpoint(1), "", code=2, words="wanted a path with a /")
        self.wrong("publish", self.checkpoint(1), endpoint, "--version", "0", code=2, words="--version")
        self.wrong("publish", self.checkpoint(1), endpoint, "--cast", "", code=2, words="--cast: its value is empty")
        self.wrong("publish", self.checkpoint(1), endpoint, "--readers", "1", "--timeout", "0", code=3,
                   words="0 of 1 readers have come in 0 s")
        self.wrong(code=2, words="subcommand")
        out = self.start("publish", self.checkpoint(1), endpoint)
        out.line()
        self.wrong("publish", self.checkpoint(1), endpoint, code=3, words="another process listens at")
        self.take(endpoint, "x.safetensors")
        self.wrong("subscribe", endpoint, self.path("x.safetensors"), code=2, words="x.safetensors")


if __name__ == "__main__":
    tool.main()
