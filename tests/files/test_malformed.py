"""Invalid files: the tool refuses each with a reason, and writes nothing."""

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
    ("is an empty file", b""),
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
    ("a byte order mark", raw(b"\xef\xbb\xbf{}", 0)),
    ("at byte 3 is a NUL", raw(b"{}\0", 0)),
    ("at byte 3 is a NUL", raw(b"{}\0garbage", 0)),
    ("is no JSON object: parse error", raw(b"{} garbage", 0)),
    ("more than 64 deep", raw(b'{"a": ' + b"[" * 100000 + b"]" * 100000 + b"}", 0)),
    ("more than 64 deep", raw(b'{"a": ' * 100000 + b"1" + b"}" * 100000, 0)),
    ("more than 64 deep", raw({"__metadata__": {"DCP_SHARDING_INFO": '{"a": ' + "[" * 100000}, **ONE})),
    ("has 300 dimensions, and at most 255", raw({"a": entry(shape=[1] * 300, offsets=(0, 4))}, 4)),
    ("an archive of torch.save", b"PK\x03\x04" + b"\0" * 22 + b"\x10\0\0\0archive/data.pkl" + b"\0" * 100),
    ("a pickle of Python", b"\x80\x04\x95" + b"\0" * 50),
    ("an archive of torch.save before", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + b"\0" * 50),
    ("a GGUF file", b"GGUF\3\0\0\0" + b"\0" * 50),
    ("an HDF5 file", b"\x89HDF\r\n\x1a\n" + b"\0" * 50),
    ("has 'a' twice", raw(b'{"a": %s, "a": %s}' % ((json.dumps(entry()).encode(),) * 2))),
    ("has 'dtype' twice", raw(b'{"a": {"dtype": "F32", "dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}')),
    ("'a' is no object", raw({"a": 1})),
    ("'a' has no dtype", raw({"a": {"shape": [4], "data_offsets": [0, 16]}})),
    ("'a' has no shape", raw({"a": {"dtype": "F32", "data_offsets": [0, 16]}})),
    ("'a' has no data_offsets", raw({"a": {"dtype": "F32", "shape": [4]}})),
    ("another key", raw({"a": {**entry(), "more": 1}})),
    ("a dtype that is no text", raw({"a": {**entry(), "dtype": 4}})),
    ("2 bytes by its shape, 16 by its offsets", raw({"a": entry("F4")})),
    ("so their width is not known", raw({"a": entry("NEW", shape=(3,))})),
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
    ("a NUL", "{}\0"),
    ("a byte order mark", '\ufeff{"weight_map": {}}'),
    ("more than 64 deep", '{"weight_map": {"a": ' + "[" * 100000),
    ("more than 64 deep", '{"metadata": ' + "[" * 100000),
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

    def test_arrays(self):
        zarr = {"zarr_format": 3, "node_type": "array", "attributes": {}}
        for reason, content in (("more than 64 deep", json.dumps(zarr).replace("{}", "[" * 100000)), ("a NUL", json.dumps(zarr) + "\0x"),
                                ("a byte order mark", "\ufeff" + json.dumps(zarr))):
            os.makedirs(self.path("in.zarr"), exist_ok=True)
            self.text("in.zarr/zarr.json", content)
            self.assertIn(reason, self.refused("inspect", "in.zarr"))
        with open(self.path("a.npy"), "wb") as file:
            file.write(b"PK\x03\x04" + b"\0" * 22 + b"\x09\0\0\0arr_0.npy")
        self.assertIn("not an npy file but an .npz archive", self.refused("inspect", "a.npy"))

    def test_names_are_shown_and_not_acted_on(self):
        """Tables and errors escape control characters. JSON stays valid, and keeps the name unchanged."""
        name = "\x1b[2J\x1b[31mred\n\u202egnp\u009b\u200b"
        files.write(self.path("in.safetensors"), {name: np.zeros((2, 2), np.float32), "plain": np.zeros(1, np.float32)})
        shown = "\\x1b[2J\\x1b[31mred\\x0a\\u202egnp\\u009b\\u200b"
        table = self.runs("inspect", "in.safetensors")
        self.assertIn(shown, table)
        self.assertEqual(len(table.splitlines()), 4)
        self.assertIn(shown, self.runs("inspect", "in.safetensors", "--tensor", name))
        told = json.loads(self.runs("inspect", "in.safetensors", "--json"))
        self.assertIn(name, [tensor["name"] for tensor in told["tensors"]])
        said = self.refused("convert", "in.safetensors", "out.npy")
        said += self.refused("inspect", "in.safetensors", "--tensor", "\x1b[2J")
        said += self.refused("inspect", name.replace("\n", "") + "\n.safetensors")
        self.text("rules", "source file=1\n\x1b[2J\u202e = -\n")
        said += self.refused("convert", "in.safetensors", "out", "--rules", "rules")
        for hidden in "\x1b\u202e\u009b\u200b":
            self.assertNotIn(hidden, table + said)

    def test_folders(self):
        zeros = np.zeros((4, 2), np.float32)
        os.mkdir(self.path("empty"))
        self.assertIn("has no .safetensors file", self.refused("inspect", "empty"))
        os.mkdir(self.path("distcp"))
        self.text("distcp/.metadata", "x")
        self.assertIn("reshard.distcp.to_safetensors", self.refused("inspect", "distcp"))
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
        """Fused parts that were cut separately: the tiles do not show the whole shape, but --list does."""
        os.mkdir(self.path("ranks"))
        for rank in range(2):
            files.write(self.path(f"ranks/model-rank-{rank}-part-0.safetensors"), {"a": np.zeros((6, 2), np.float32)})
        self.text("rules", "source r=2\na = [r{8,4}, -]\ntarget file=1\notherwise = -\n")
        refused = self.refused("convert", "ranks", "out.safetensors", "--rules", "rules")
        self.assertIn("the parts add up to 12, not 6", refused)
        self.assertIn("give one with --list", refused)
        self.text("list", "a f32[12,2]\n")
        self.runs("convert", "ranks", "out.safetensors", "--rules", "rules", "--list", "list")
        # The list exists, so it is not reported as missing.
        self.text("list", "a f32[10,2]\n")
        self.assertNotIn("give one with --list",
                         self.refused("convert", "ranks", "out", "--rules", "rules", "--list", "list"))

    def test_a_source_that_becomes_shorter(self):
        """Short reads are errors: the header is right, but the file was cut after the check."""
        files.write(self.path("in.safetensors"), {"a": np.zeros((1 << 20,), np.float32)})
        size = os.path.getsize(self.path("in.safetensors"))
        with open(self.path("in.safetensors"), "r+b") as file:
            file.truncate(size - 1)
        self.assertIn("bytes of tensors", self.refused("convert", "in.safetensors", "out"))
        self.assertEqual(os.listdir(self.folder), ["in.safetensors"])


if __name__ == "__main__":
    suite.main()
