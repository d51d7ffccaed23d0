"""Files that lie: each is refused with its reason, and nothing is written."""

import json
import os
import struct

import suite
from suite import np

import checkpoints as files


def entry(dtype="F32", shape=(2, 2), offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def raw(header, body=16, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + b"\0" * body


ONE = {"a": entry()}
BAD = [
    ("shorter than the length", b""),
    ("shorter than the length", b"\x01\0\0"),
    ("would have 18446744073709551615 bytes", b"\xff" * 8 + b"{}"),
    ("would have 9223372036854775808 bytes", struct.pack("<Q", 2**63) + b"{}"),
    ("would have 100000001 bytes", struct.pack("<Q", 100000001) + b"{}"),
    ("the file ends before", struct.pack("<Q", 3) + b"{}"),
    ("no JSON object", raw(b"[]", 0)),
    ("no JSON object", raw(b"{", 0)),
    ("no JSON object", raw(b"{}x", 0)),
    ("no JSON object", raw(b'{"\xff": 1}', 0)),
    ("no JSON object", raw(b"[" * 100000, 0)),
    ("has 'a' twice", raw(b'{"a": %s, "a": %s}' % ((json.dumps(entry()).encode(),) * 2))),
    ("has 'dtype' twice", raw(b'{"a": {"dtype": "F32", "dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}')),
    ("'a' is no object", raw({"a": 1})),
    ("'a' has no dtype", raw({"a": {"shape": [4], "data_offsets": [0, 16]}})),
    ("'a' has no shape", raw({"a": {"dtype": "F32", "data_offsets": [0, 16]}})),
    ("'a' has no data_offsets", raw({"a": {"dtype": "F32", "shape": [4]}})),
    ("another key", raw({"a": {**entry(), "more": 1}})),
    ("a dtype that is no text", raw({"a": {**entry(), "dtype": 4}})),
    ("elements of type 'F4'", raw({"a": entry("F4")})),
    ("a shape that is no list", raw({"a": {**entry(), "shape": 4}})),
    ("a shape that is no list", raw({"a": entry(shape=(-2, -2))})),
    ("a shape that is no list", raw({"a": entry(shape=(2.0, 2))})),
    ("a shape that is no list", raw({"a": entry(shape=(2**63,))})),
    ("more bytes than 64 bits", raw({"a": entry(shape=(2**62, 2))})),
    ("more bytes than 64 bits", raw({"a": entry(shape=(2**32, 2**32))})),
    ("not two numbers", raw({"a": entry(offsets=(0,))})),
    ("not two numbers", raw({"a": entry(offsets=(-16, 0))})),
    ("not two numbers", raw({"a": entry(offsets=(0, 2**64))})),
    ("ends before it begins", raw({"a": entry(offsets=(16, 0))})),
    ("16 bytes by its shape, 12 by its offsets", raw({"a": entry(offsets=(0, 12))}, 12)),
    ("within the one before", raw({"a": entry(), "b": entry(offsets=(8, 24))}, 24)),
    ("the one before ends at 16", raw({"a": entry(), "b": entry(offsets=(20, 36))}, 36)),
    ("the one before ends at 0", raw({"a": entry(offsets=(4, 20))}, 20)),
    ("the file has 15 bytes of tensors", raw(ONE, 15)),
    ("the file has 17 bytes of them", raw(ONE, 17)),
    ("ends at 9223372036854775804", raw({"a": entry(shape=(2**61 - 1,), offsets=(0, 2**63 - 4))})),
    ("__metadata__ is no object", raw({"__metadata__": 1, **ONE})),
    ("'k' in __metadata__ is no text", raw({"__metadata__": {"k": 1}, **ONE})),
    ("DCP_SHARDING_INFO is no JSON", raw({"__metadata__": {"DCP_SHARDING_INFO": "x"}, **ONE})),
    ("where 'a' begins", raw({"__metadata__": {"DCP_SHARDING_INFO": "{}"}, **ONE})),
] + [("where 'a' begins", raw({"__metadata__": {"DCP_SHARDING_INFO": json.dumps({"a": said})}, **ONE}))
     for said in (1, {}, {"saved_offsets": [0]}, {"saved_offsets": [-1, 0]}, {"saved_offsets": [2**63 - 1, 0]})] + [
    ("more bytes than 64 bits",
     raw({"__metadata__": {"DCP_SHARDING_INFO": json.dumps({"a": {"saved_offsets": [2**40, 2**40]}})}, **ONE}))]

INDICES = [
    ("no JSON object", "x"),
    ("no weight_map", "{}"),
    ("no weight_map", '{"weight_map": 1}'),
    ("names no .safetensors file", '{"weight_map": {"a": 1}}'),
    ("names no .safetensors file", '{"weight_map": {"a": "../x.safetensors"}}'),
    ("names no .safetensors file", '{"weight_map": {"a": "/etc/x.safetensors"}}'),
    ("names no .safetensors file", '{"weight_map": {"a": ".."}}'),
    ("names no .safetensors file", '{"weight_map": {"a": "x\\u0000.safetensors"}}'),
    ("names no .safetensors file", '{"weight_map": {"a": "config.json"}}'),
    ("No such file", '{"weight_map": {"a": "gone.safetensors"}}'),
    ("'b' should be in it", '{"weight_map": {"a": "x.safetensors", "b": "x.safetensors"}}'),
    ("the index does not say so", '{"weight_map": {}}'.replace("{}", '{"b": "x.safetensors"}')),
]


class Malformed(suite.Case):
    def test_headers(self):
        for reason, content in BAD:
            with self.subTest(reason=reason, content=content[:80]):
                with open(self.path("bad.safetensors"), "wb") as file:
                    file.write(content)
                for command in (("inspect", "bad.safetensors"), ("convert", "bad.safetensors", "out")):
                    self.assertIn(reason, self.refused(*command))
                self.assertEqual(os.listdir(self.folder), ["bad.safetensors"])

    def test_indices(self):
        os.mkdir(self.path("in"))
        files.write(self.path("in/x.safetensors"), {"a": np.zeros((2, 2), np.float32)})
        for reason, content in INDICES:
            with self.subTest(reason=reason, content=content):
                self.text("in/model.safetensors.index.json", content)
                self.assertIn(reason, self.refused("convert", "in", "out"))
                self.assertEqual(os.listdir(self.folder), ["in"])

    def test_folders(self):
        zeros = np.zeros((4, 2), np.float32)
        os.mkdir(self.path("empty"))
        self.assertIn("has no .safetensors file", self.refused("inspect", "empty"))
        files.write_index(self.path("same"), {"a": zeros}, 1)
        os.remove(self.path("same/model.safetensors.index.json"))
        files.write(self.path("same/model-2.safetensors"), {"a": zeros})
        self.assertIn("in another file, too", self.refused("inspect", "same"))
        os.mkdir(self.path("ranks"))
        files.write(self.path("ranks/model-rank-1-part-0.safetensors"), {"a": zeros})
        self.assertIn("files of 1 ranks, the last of them 1", self.refused("inspect", "ranks"))
        files.write(self.path("ranks/model-rank-0-part-0.safetensors"), {"a": zeros[:1]})
        self.assertIn("no line 'target'", self.refused("convert", "ranks", "out", "--to", "dcp"))
        self.text("rules", "source r=2\na = [r, -]\n")
        self.assertIn("the rules say [3,2]", self.refused("convert", "ranks", "out", "--rules", "rules"))
        self.text("rules", "source r=2\na = -\n")
        self.assertIn("the rules say [4,2]", self.refused("convert", "ranks", "out", "--rules", "rules"))

    def test_a_missing_list_is_named(self):
        """Parts that were cut by themselves: the tiles do not say the whole shape, and --list does."""
        os.mkdir(self.path("ranks"))
        for rank in range(2):
            files.write(self.path(f"ranks/model-rank-{rank}-part-0.safetensors"), {"a": np.zeros((6, 2), np.float32)})
        self.text("rules", "source r=2\na = [r{8,4}, -]\ntarget file=1\notherwise = -\n")
        refused = self.refused("convert", "ranks", "out.safetensors", "--rules", "rules")
        self.assertIn("the parts add up to 12, not 6", refused)
        self.assertIn("give one with --list", refused)
        self.text("list", "a f32[12,2]\n")
        self.runs("convert", "ranks", "out.safetensors", "--rules", "rules", "--list", "list")
        # A list that is there is not missing.
        self.text("list", "a f32[10,2]\n")
        self.assertNotIn("give one with --list",
                         self.refused("convert", "ranks", "out", "--rules", "rules", "--list", "list"))

    def test_a_source_that_becomes_shorter(self):
        """Short reads are errors: the header is right, the file was cut after it was looked at."""
        files.write(self.path("in.safetensors"), {"a": np.zeros((1 << 20,), np.float32)})
        size = os.path.getsize(self.path("in.safetensors"))
        with open(self.path("in.safetensors"), "r+b") as file:
            file.truncate(size - 1)
        self.assertIn("bytes of tensors", self.refused("convert", "in.safetensors", "out"))
        self.assertEqual(os.listdir(self.folder), ["in.safetensors"])


if __name__ == "__main__":
    suite.main()
