"""Draws invalid checkpoints: a folder `in`, and the arguments for the tool. The generator alone decides, so its seed repeats
a case."""

import gzip
import json
import os
import socket
import struct
import zlib

NUMBERS = [0, 1, 2, 3, 4, 7, 16, -1, -2**63, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 0.5, -0.0, 1e308]
NAMES = ["a", "b", "model.layers.0.w", "", ".", "..", "/", "../up", "/etc/passwd", "a\nb", "a\tb", "\x1b[2J\x1b[31mred", "\x07\x08\r",
         "\u202egnp.exe", "\u2066x\u2069", "\u200b", "\x85\x9b", "\ufeffa", "a\0b", "n" * 5000, "\u00e9\u4e2d", "'", "{n}", "*",
         "__metadata__", "\U000e0041", "%s%n", "\\x1b"]
DEEP = [100, 10_000, 200_000]


class Raw(str):
    """Text that goes into JSON unchanged."""


def written(value):
    """JSON of a value. A list of pairs is an object, so a name may occur twice."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(written(str(key)) + ":" + written(one) for key, one in value.items()) + "}"
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "{" + ",".join(written(str(key)) + ":" + written(one) for key, one in value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(written(one) for one in value) + "]"
    return json.dumps(value)


def deep(rng):
    depth = rng.choice(DEEP)
    return Raw(rng.choice(["[" * depth + "]" * depth, "[" * depth, '{"a":' * depth + "1" + "}" * depth, '{"a":' * depth]))


def value(rng):
    """A value that a header does not expect."""
    kind = rng.randrange(10)
    if kind < 4:
        return rng.choice(NUMBERS)
    if kind == 4:
        return rng.choice([None, True, False, [], {}, "", [[]], [[1]], {"a": 1}, [None]])
    if kind == 5:
        return rng.choice(NAMES)
    if kind == 6:
        return deep(rng)
    if kind == 7:
        return Raw(rng.choice(["1e999", "-1e999", "1" * 5000, "1e-999", "0x10", "01", "NaN", "Infinity", "1.", "'a'", '"\\ud800"',
                               '"\\u0000"', '"\xff"', "//", "tru", '"a', "\0", "\ufeff"]))
    return [rng.choice(NUMBERS) for _ in range(rng.choice([0, 1, 2, 3, 300, 3000]))]


def places(tree, found=None):
    """Every list or object in a value, with one of its keys."""
    found = [] if found is None else found
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    for key in keys:
        found.append((tree, key))
        places(tree[key], found)
    return found


def bent(rng, tree):
    """The value with some places changed."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        found = places(tree)
        if not found:
            break
        holder, key = rng.choice(found)
        kind = rng.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice(NAMES)] = holder.pop(key)
        elif kind == 2 and isinstance(holder, dict):
            holder[rng.choice(["more", *NAMES])] = value(rng)
        else:
            holder[key] = value(rng)
    return tree


def spoilt(rng, text):
    """The bytes, unchanged or with a few changes."""
    for _ in range(rng.choice([0, 0, 0, 1, 1, 3])):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([1, 1, 2, 8, 100]))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + text[at:end] * 2 + text[end:]
        elif kind == 2:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        elif kind == 3:
            text = text[:at] + rng.choice([b"\0", b"\xef\xbb\xbf", b"\x1b[2J", b"\n", b'"', b"{", b"}", b"[", b",", b"-", b"9" * 30])
            text += text[at:]
        elif kind == 4:
            text += rng.choice([b"\0", b"\0garbage", b" ", b"\n\n", b"x", b"{}", b"\0" * 64])
        else:
            text = rng.choice([b"\xef\xbb\xbf", b" ", b"\0", b"\n"]) + text
    return text


def safetensors(rng, tensors, metadata=None, bend=True):
    """A file of f32 tensors {name: shape}. Its header or its bytes may be damaged."""
    header, end = {}, 0
    for name, shape in tensors.items():
        count = 4
        for extent in shape:
            count *= extent
        header[name] = {"dtype": rng.choice(["F32"] * 8 + ["I32"]), "shape": shape, "data_offsets": [end, end + count]}
        end += count
    if metadata is not None:
        header["__metadata__"] = metadata
    text = written(bent(rng, header) if bend else header).encode("utf-8", "surrogatepass")
    if bend:
        text = spoilt(rng, text)
    text += b" " * (-len(text) % 8)
    length = len(text)
    if bend and rng.random() < 0.1:
        length = rng.choice([0, 1, length - 1, length + 1, 10**8, 10**8 + 1, 2**63 - 1, 2**63, 2**64 - 1])
    body = b"\0" * end
    if bend and rng.random() < 0.2:
        body = rng.choice([body[:-1], body + b"\0", b"", body * 2])
    return struct.pack("<Q", length) + text + body


def shapes(rng):
    names = [rng.choice([name for name in NAMES if "__" not in name]) if rng.random() < 0.15 else f"model.{letter}"
             for letter in "abcd"]
    return {name: [rng.choice([1, 2, 4, 6]) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
            for name in names[:rng.randrange(1, 5)]}


class Place:
    """The folder of a case."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return name


def one_file(rng, place):
    return [place.put("in.safetensors", safetensors(rng, shapes(rng)))]


def index(rng, place):
    tensors = shapes(rng)
    place.put("in/x.safetensors", safetensors(rng, tensors, bend=rng.random() < 0.2))
    where = {name: "x.safetensors" for name in tensors}
    for name in list(where):
        if rng.random() < 0.2:
            where[name] = rng.choice(["../canary.safetensors", "/etc/passwd", "y.safetensors", "x.safetensors/", "./x.safetensors",
                                      "", "..", "sub/../x.safetensors", "link.safetensors", "\0.safetensors", "\x1b.safetensors"])
    text = written(bent(rng, {"metadata": {"total_size": 1}, "weight_map": where}))
    place.put("in/model.safetensors.index.json", spoilt(rng, text.encode("utf-8", "surrogatepass")))
    if rng.random() < 0.3:
        os.symlink(rng.choice(["../canary.safetensors", "link.safetensors", "/dev/zero", "x.safetensors", "gone"]),
                   place.path("in/link.safetensors"))
    return ["in"]


BOMB = gzip.compress(b"\0" * (1 << 26), 1)  # decodes to 64 MiB


def zarr(rng, place):
    sharded = rng.random() < 0.4
    shape = [rng.choice([1, 4, 5, 8]) for _ in range(rng.choice([0, 1, 2, 3]))]
    chunk = [rng.choice([1, 2, 4]) for _ in shape]
    inner = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if rng.random() < 0.4:
        inner = inner + [rng.choice([{"name": "gzip", "configuration": {"level": rng.choice([1, 9, -7, 10**9, "1"])}},
                                     {"name": "zstd", "configuration": {"level": 1, "checksum": rng.random() < 0.5}},
                                     {"name": "blosc", "configuration": {"cname": rng.choice(["lz4", "zstd", "xz"]), "clevel": 5,
                                                                         "shuffle": "shuffle", "typesize": 4, "blocksize": 0}},
                                     {"name": "crc32c"}])]
    codecs = inner
    files = chunk
    if sharded:
        files = [2 * side for side in chunk]
        codecs = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk, "codecs": inner, "index_location": rng.choice(["end", "start"]),
            "index_codecs": inner + [{"name": "crc32c"}]}}]
    array = {"zarr_format": 3, "node_type": rng.choice(["array"] * 9 + ["group"]), "shape": shape,
             "data_type": rng.choice(["float32"] * 5 + ["int8", "complex128", "bool", "r16"]),
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": files}},
             "chunk_key_encoding": {"name": rng.choice(["default", "v2"]), "configuration": {"separator": rng.choice(["/", "."])}},
             "fill_value": rng.choice([0, 0.0, "NaN", "-Infinity", "0x00", False, [0, 0]]), "codecs": codecs,
             "attributes": {"title": rng.choice(NAMES)}, "storage_transformers": []}
    if rng.random() < 0.2:
        array["shape"] = [rng.choice([0, -1, 2**20, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 1.5, "4"]) for _ in range(rng.randrange(1, 4))]
        array["chunk_grid"]["configuration"]["chunk_shape"] = [rng.choice([0, 1, 2**10, 2**40, 2**62]) for _ in array["shape"]]
        if not sharded or rng.random() < 0.5:
            array["codecs"] = inner
    text = written(bent(rng, array)).encode("utf-8", "surrogatepass")
    place.put("in.zarr/zarr.json", spoilt(rng, text))
    bytes_of = 4
    for side in chunk:
        bytes_of *= side
    for key in ("c", "c/0", "c/0/0", "c/0/1", "c.0", "0", "0.0", "c/0/0/0"):
        if rng.random() < 0.3 and not os.path.exists(place.path("in.zarr/" + key)):
            try:
                place.put("in.zarr/" + key, rng.choice([
                    b"", b"\0" * bytes_of, b"\xff" * (bytes_of + 20), b"\1" * 37, gzip.compress(b"\0" * bytes_of), BOMB,
                    b"\x28\xb5\x2f\xfd" + rng.randbytes(30), b"\x02\x01\x21\x04" + rng.randbytes(40)]))
            except (NotADirectoryError, IsADirectoryError, FileExistsError):
                pass
    return ["in.zarr"]


def blosc(raw):
    """The bytes as blosc stores what it cannot compress."""
    return struct.pack("<BBBBIII", 2, 1, 2, 4, len(raw), len(raw), len(raw) + 16) + raw


def zstd(raw):
    """A frame of raw blocks."""
    parts = [raw[at:at + 65536] for at in range(0, len(raw), 65536)] or [b""]
    blocks = [struct.pack("<I", (len(part) << 3) + (k == len(parts) - 1))[:3] + part for k, part in enumerate(parts)]
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(raw)) + b"".join(blocks)


ENCODERS = {"gzip": gzip.compress, "zlib": zlib.compress, "zstd": zstd, "blosc": blosc}
SETTINGS = {"gzip": {"level": 1}, "zlib": {"level": 1}, "zstd": {"level": 1, "checksum": False},
            "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "typesize": 4, "blocksize": 0}}


def damaged(rng, chunk, raw, encode):
    """A chunk, whole or not."""
    kind = rng.randrange(8)
    if kind < 2:
        return chunk
    if kind == 2:
        return chunk[:rng.randrange(len(chunk))]
    if kind == 3:  # another number of bytes, many at times
        return encode(rng.choice([raw[:-4], raw + b"1234", b"", b"\0" * (1 << rng.choice([3, 16, 25]))]))
    if kind == 4:  # a number near the start is another one
        at = rng.randrange(min(len(chunk), 24))
        return (chunk[:at] + struct.pack("<q", rng.choice([0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**62])))[:at + rng.choice([1, 4, 8])] + chunk[at + 8:]
    if kind == 5:
        return chunk + chunk
    return spoilt(rng, chunk)


def chunks(rng, place):
    """An array of zarr v3 or v2 whose metadata are right. Its chunks are whole or damaged."""
    side = rng.choice([4, 4, 64, 512])
    raw = rng.randbytes(4 * side) * side
    kind = rng.choice(sorted(ENCODERS))
    version = 2 if kind == "zlib" else rng.choice([2, 3])
    settings = SETTINGS[kind] if version == 3 or kind != "blosc" else {**SETTINGS[kind], "shuffle": 0}
    for x in range(2):
        for y in range(2):
            chunk = damaged(rng, ENCODERS[kind](raw), raw, ENCODERS[kind])
            place.put(f"in.zarr/{x}.{y}" if version == 2 else f"in.zarr/c/{x}/{y}", chunk)
    if version == 2:
        array = {"zarr_format": 2, "shape": [2 * side - 1, 2 * side], "chunks": [side, side], "dtype": "<f4", "order": "C",
                 "filters": None, "fill_value": 0, "compressor": {"id": kind, **settings}}
        place.put("in.zarr/.zarray", written(array))
        return ["in.zarr"]
    array = {"zarr_format": 3, "node_type": "array", "shape": [2 * side - 1, 2 * side], "data_type": "float32", "fill_value": 0,
             "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [side, side]}}, "attributes": {},
             "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "storage_transformers": [],
             "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": kind, "configuration": settings}]}
    place.put("in.zarr/zarr.json", written(array))
    return ["in.zarr"]


def npy(rng, place):
    shape = rng.choice(["(4,)", "()", "(2, 3)", "(0,)", "(-1,)", "(9223372036854775807, 4)", "(9223372036854775808,)", "(2,3", "(4)",
                        "(" + "1, " * 300 + ")", "(2L, 3L)", "((2,),)", "[4]"])
    descr = rng.choice(["'<f4'", "'|b1'", "'>f8'", "'|O'", "'<U4'", "[('a', '<f4')]", "'<f4\x1b[2J'", "''", "'<c16'", "'<f99999999999999999999'"])
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, rng.choice(["False", "True", "0", "None"]), shape)
    text = spoilt(rng, text.encode("utf-8", "surrogatepass")) + b"\n"
    version = rng.choice([b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\4\0", b"\0\0"])
    length = len(text) if rng.random() < 0.9 else rng.choice([0, 1, 65535, len(text) + 1])
    head = b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", length)
    return [place.put("in.npy", spoilt(rng, head + text + b"\0" * rng.choice([0, 16, 24, 17])))]


def ranks(rng, place):
    count = rng.choice([1, 2, 3])
    for rank in range(count):
        number = rank if rng.random() < 0.8 else rng.choice([0, 7, 2**40, 2**63 - 1, 2**63])
        content = safetensors(rng, {"a": [rng.choice([1, 2]), 2], "b": [3]}, bend=rng.random() < 0.3)
        place.put(f"in/model-rank-{number}-part-{rng.choice([0, 0, 1])}.safetensors", content)
    return ["in", "--rules", rules(rng, place)]


def dcp(rng, place):
    for number in range(rng.choice([1, 2])):
        offsets = {"a": {"saved_offsets": [2 * number, 0]}, "b": {"saved_offsets": [0]}}
        metadata = {"DCP_SHARDING_INFO": written(bent(rng, offsets)), "DCP_VERSION": "1.0"}
        place.put(f"in/shard-0000{number}-model-00001-of-00001.safetensors",
                  safetensors(rng, {"a": [2, 2], "b": [3]}, metadata, bend=rng.random() < 0.5))
    return ["in"]


RULE_WORDS = ["source", "target", "file=1", "x=2", "x=2,y=3", "ranks=4", "x=0", "x=9223372036854775807", "otherwise", "=", "-", "<-", "a", "b", "*",
              "{n}", "{n:3}", "{n:1048577}", "[x, -]", "[x]", "[x,y]", "[", "]", "drop", "also", "+", "++", "along", "0", "1", "256", "blocks", "2",
              "of", "a[0:1]", "a[{n}]", "a[5:2]", "a[-1]", "#", "\n", "\n", "\x1b[2J", "\u202e", "\0", "new.*", "9" * 40, "(", ")", "," * 300,
              "[" * 5000, "*" * 12]


def rules(rng, place):
    if rng.random() < 0.5:
        text = rng.choice(["source file=1\notherwise = -\n", "source r=2\na = [r, -]\notherwise = -\n"])
        text += rng.choice(["", "target x=2\na = [x, -]\notherwise = -\n", "target file=1\nc.* = - <- *\n", "target x=2\notherwise = [x]\n"])
    else:
        text = " ".join(rng.choice(RULE_WORDS) for _ in range(rng.randrange(30)))
    return place.put("rules", spoilt(rng, text.encode("utf-8", "surrogatepass")))


def with_rules(rng, place):
    place.put("in.safetensors", safetensors(rng, {"a": [4, 2], "b": [6]}, bend=False))
    more = ["--rules", rules(rng, place)]
    if rng.random() < 0.2:
        lines = [f"{name} f32[{rng.choice(['4,2', '', '-1', '9' * 30, '1,' * 300 + '1'])}]\n" for name in rng.sample(NAMES, 3)]
        more += ["--list", place.put("list", "".join(lines))]
    return ["in.safetensors", *more]


MAGIC = [b"PK\x03\x04" + b"\0" * 100, b"PK\x03\x04\x00\x00\x08\x08" + b"\0" * 18 + b"\x0e\0\0\0archive/data.pkl", b"\x80\x04\x95" + b"\0" * 50,
         b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + b"\0" * 50, b"GGUF\3\0\0\0" + b"\0" * 40, b"\x89HDF\r\n\x1a\n" + b"\0" * 99, b"",
         b"\x1f\x8b\x08" + b"\0" * 40, b"version https://git-lfs.github.com/spec/v1\n", b"<!DOCTYPE html>\n", b"\x93NUMPY\1\0v\0{", b"\0" * 4096]


def other(rng, place):
    return [place.put(rng.choice(["in.safetensors", "in.pt", "in.npy", "in"]), rng.choice(MAGIC))]


def special(rng, place):
    """Pipes, devices, sockets, links and folders where files are expected."""
    name = rng.choice(["in.safetensors", "in.npy", "in/model.safetensors.index.json", "in/x.safetensors", "in/zarr.json", "in"])
    path = place.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = rng.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        os.symlink(rng.choice(["/dev/zero", "/dev/full", "/dev/null", "/dev/tty", "/dev/random", "/proc/self/mem", "/proc/self/environ"]), path)
    elif kind == 2:
        os.symlink(os.path.basename(path), path)
    elif kind == 3:
        os.mkdir(path)
    elif kind == 4:
        with socket.socket(socket.AF_UNIX) as end:
            here = os.getcwd()
            os.chdir(os.path.dirname(path))  # a socket's path is short
            try:
                end.bind(os.path.basename(path))
            finally:
                os.chdir(here)
    else:
        os.symlink("/proc/self/fd", path)
    return [name.split("/")[0]]


def changing(rng, place):
    """A file that changes while it is read; see attack.py."""
    place.put("in.safetensors", safetensors(rng, {"a": [1 << 16], "b": [1 << 10]}, bend=False))
    return ["in.safetensors"]


KINDS = [one_file, one_file, index, index, zarr, zarr, chunks, chunks, npy, ranks, dcp, with_rules, other, special, changing]
