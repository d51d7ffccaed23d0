"""Checkpoints of random bytes, written and read with the `safetensors` package and numpy, without the library."""

import json
import os
import struct

import ml_dtypes
import numpy as np
from safetensors import safe_open

NUMPY = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16), "BF16": np.dtype(ml_dtypes.bfloat16),
         "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
         "I8": np.dtype(np.int8), "U8": np.dtype(np.uint8), "I16": np.dtype(np.int16), "I32": np.dtype(np.int32),
         "I64": np.dtype(np.int64), "F64": np.dtype(np.float64), "BOOL": np.dtype(np.bool_)}
RESHARD = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F8_E4M3": "f8_e4m3fn", "F8_E5M2": "f8_e5m2", "I8": "i8",
           "U8": "u8", "I16": "i16", "I32": "i32", "I64": "i64", "F64": "f64", "BOOL": "bool"}
NAMES = {dtype: name for name, dtype in NUMPY.items()}


def values(rng, name, shape):
    """Random elements with any bits except NaN, so that casts of them can be compared."""
    if name == "BOOL":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if NUMPY[name].kind in "iu":
        return rng.integers(-100 if NUMPY[name].kind == "i" else 0, 100, shape).astype(NUMPY[name])
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)).astype(NUMPY[name])


def write(path, tensors, metadata=None):
    """Writes one file by hand, which every reader of the format must accept. `tensors`: name -> array."""
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.asarray(order="C", a=array).tobytes())


def read(path):
    """Reads one file by its header, and compares names, types, shapes and metadata with the package."""
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = NUMPY[entry["dtype"]]
        assert begin % dtype.itemsize == 0, f"{path}: {name} is not aligned"
        tensors[name] = np.frombuffer(raw[begin:end], dtype).reshape(entry["shape"])
    with safe_open(path, framework="np") as opened:
        assert set(opened.keys()) == set(tensors) and opened.metadata() == metadata, path
        for name, array in tensors.items():
            said = opened.get_slice(name)
            assert said.get_shape() == list(array.shape) and said.get_dtype() == header[name]["dtype"], (path, name)
            if header[name]["dtype"] in ("F32", "F16", "I32", "U8"):
                assert same(opened.get_tensor(name), array), (path, name)
    return tensors, metadata or {}


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def write_index(folder, tensors, files):
    os.makedirs(folder, exist_ok=True)
    names = list(tensors)
    weight_map = {}
    for i in range(files):
        own = names[i::files]
        file = f"model-{i + 1:05}-of-{files:05}.safetensors"
        write(os.path.join(folder, file), {name: tensors[name] for name in own})
        weight_map.update({name: file for name in own})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": sum(a.nbytes for a in tensors.values())}, "weight_map": weight_map}, file)


def read_index(folder):
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        weight_map = json.load(file)["weight_map"]
    read_files = {name: read(os.path.join(folder, name))[0] for name in sorted(set(weight_map.values()))}
    assert {name for own in read_files.values() for name in own} == set(weight_map)
    return {name: read_files[file][name] for name, file in weight_map.items()}


def shares(extent, parts):
    """The interval of each part by JAX's rule."""
    block = -(-extent // parts) if extent else 0
    return [(min(extent, block * i), min(extent, block * (i + 1))) for i in range(parts)]


def write_dcp(folder, tensors, ranks, dims):
    """Writes torch DCP's safetensors: tensor `name` is cut over ranks along dims[name] (None: whole on rank 0)."""
    os.makedirs(folder, exist_ok=True)
    files = [({}, {}) for _ in range(ranks)]
    for name, array in tensors.items():
        dim = dims[name]
        for rank, (begin, end) in enumerate(shares(array.shape[dim], ranks) if dim is not None else [(0, 0)]):
            part = array if dim is None else array[(slice(None),) * dim + (slice(begin, end),)]
            if dim is not None and begin == end:
                continue
            files[rank][0][name] = part
            files[rank][1][name] = {"saved_offsets": [begin if k == dim else 0 for k in range(array.ndim)]}
    for rank, (own, offsets) in enumerate(files):
        write(os.path.join(folder, f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"), own,
              {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"})


def read_dcp(folder):
    parts = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            own, metadata = read(os.path.join(folder, file))
            offsets = json.loads(metadata["DCP_SHARDING_INFO"])
            assert set(offsets) == set(own)
            for name, array in own.items():
                parts.setdefault(name, []).append((offsets[name]["saved_offsets"], array))
    whole = {}
    for name, own in parts.items():
        shape = [max(begin[k] + array.shape[k] for begin, array in own) for k in range(own[0][1].ndim)]
        whole[name] = np.zeros(shape, own[0][1].dtype)
        filled = np.zeros(shape, np.int64)
        for begin, array in own:
            box = tuple(slice(b, b + n) for b, n in zip(begin, array.shape))
            whole[name][box] = array
            filled[box] += 1
        assert (filled == 1).all(), f"{name} is not there once"
    return whole


def read_ranks(folder):
    ranks = len([file for file in os.listdir(folder) if file.startswith("model-rank-")])
    return [read(os.path.join(folder, f"model-rank-{rank}-part-0.safetensors"))[0] for rank in range(ranks)]


def manifest(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def crc32c(raw, table=[]):
    """CRC-32C bit by bit, by the polynomial."""
    if not table:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
            table.append(byte)
    value = 0xFFFFFFFF
    for byte in raw:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
