"""A synthetic checkpoint of a Llama's shape, and an independent reader that holds one form of it against another: numpy,
and JSON of Python's own."""

import json
import os
import re
import struct

import numpy

HIDDEN, INNER, WORDS, KEYS = 4096, 14336, 128256, 1024
LAYER = {"q_proj": (HIDDEN, HIDDEN), "k_proj": (KEYS, HIDDEN), "v_proj": (KEYS, HIDDEN), "o_proj": (HIDDEN, HIDDEN),
         "gate_proj": (INNER, HIDDEN), "up_proj": (INNER, HIDDEN), "down_proj": (HIDDEN, INNER)}
ENDS = ("model.embed_tokens.weight", "lm_head.weight")


def shapes(gigabytes):
    """A Llama-3 8B has 32 layers and 16 GB; fewer layers have less."""
    ends = 4 * WORDS * HIDDEN if gigabytes > 2 else 0  # bytes of the first tensor and the last
    layers = max(1, round((gigabytes * 1e9 - ends) / (2 * sum(a * b for a, b in LAYER.values()))))
    tensors = {ENDS[0]: (WORDS, HIDDEN)} if ends else {}
    for i in range(layers):
        tensors.update({f"model.layers.{i}.{name}.weight": shape for name, shape in LAYER.items()})
        tensors.update({f"model.layers.{i}.{name}.weight": (HIDDEN,) for name in ("input_norm", "post_norm")})
    if ends:
        tensors[ENDS[1]] = (WORDS, HIDDEN)
    return tensors


def make_dcp(folder, tensors, ranks, dim=0):
    """torch DCP's form, bf16, cut along one dimension (vectors along their only one). Each file is a stream of
    random numbers of its own, so that no two files are equal."""
    os.makedirs(folder)
    for rank in range(ranks):
        header, offsets, at = {}, {}, 0
        for name, shape in tensors.items():
            cut = min(dim, len(shape) - 1)
            share = -(-shape[cut] // ranks)
            begin, end = min(share * rank, shape[cut]), min(share * (rank + 1), shape[cut])
            box = [*shape[:cut], end - begin, *shape[cut + 1:]]
            size = 2 * int(numpy.prod(box))
            header[name] = {"dtype": "BF16", "shape": box, "data_offsets": [at, at + size]}
            offsets[name] = {"saved_offsets": [begin if k == cut else 0 for k in range(len(shape))]}
            at += size
        header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}
        text = json.dumps(header).encode()
        numbers = numpy.random.default_rng(rank)
        with open(os.path.join(folder, f"shard-{rank + 1:05}-model-00001-of-00001.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for begin in range(0, at, 1 << 26):
                file.write(numbers.bytes(min(1 << 26, at - begin)))


def cut_dim(name, columns=False):
    """The dimension that vLLM cuts, or the last one; None: replicated."""
    if name.endswith("_norm.weight"):
        return None
    if name in ENDS:
        return 0
    return 1 if columns or name.split(".")[-2] in ("o_proj", "down_proj") else 0


def rules(end, ranks, tensors, cut=cut_dim):
    """One line for the tensors of each name."""
    lines = [f"{end} tp={ranks}"]
    for name, shape in tensors.items():
        pattern = re.sub(r"layers\.\d+\.", "layers.*.", name)
        dim = cut(name)
        layout = "-" if dim is None else "[" + ", ".join("tp" if k == dim else "-" for k in range(len(shape))) + "]"
        if f"{pattern} = {layout}" not in lines:
            lines.append(f"{pattern} = {layout}")
    return lines


def boxes(path, tensors, ranks=1, cut=cut_dim):
    """name -> [(first index in each dimension, array)] of a file or a folder; `ranks` and `cut` say where tiles of ranks
    belong."""
    files = [path] if os.path.isfile(path) else sorted(
        os.path.join(path, name) for name in os.listdir(path) if name.endswith(".safetensors"))
    found = {name: [] for name in tensors}
    for file in files:
        raw = numpy.memmap(file, numpy.uint8, "r")
        length = int(raw[:8].view(numpy.uint64)[0])
        header = json.loads(raw[8:8 + length].tobytes())
        saved = json.loads((header.pop("__metadata__", None) or {}).get("DCP_SHARDING_INFO", "{}"))
        rank = re.search(r"model-rank-(\d+)-part", os.path.basename(file))
        for name, entry in header.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            array = raw[begin:end].view(numpy.uint16).reshape(entry["shape"]) if begin % 2 == 0 else \
                numpy.frombuffer(raw[begin:end].tobytes(), numpy.uint16).reshape(entry["shape"])
            first = saved.get(name, {}).get("saved_offsets", [0] * array.ndim)
            if rank and ranks > 1 and cut(name) is not None:
                first = [int(rank.group(1)) * array.shape[k] if k == cut(name) else 0 for k in range(array.ndim)]
            found[name].append((first, array))
    return found


def differences(source, target, tensors, replicas=1, whole=True):
    """The faults of the target, in words. `replicas`: copies of each tensor that is not cut, in all files together. If not
    `whole`, the target has only a part of each tensor."""
    wrong = []
    for name, shape in tensors.items():
        held = sum(array.size for _, array in target[name])
        parts = {(tuple(first), array.shape): (first, array) for first, array in source[name]}.values()  # a replica once
        times = replicas if cut_dim(name) is None else 1
        if whole and held != times * numpy.prod(shape):
            wrong.append(f"{name} has {held} elements")
        same = 0
        for first, array in target[name]:
            for other, theirs in parts:
                low = [max(a, b) for a, b in zip(first, other)]
                high = [min(a + n, b + m) for a, n, b, m in zip(first, array.shape, other, theirs.shape)]
                if any(a >= b for a, b in zip(low, high)):
                    continue
                mine = array[tuple(slice(a - f, b - f) for a, b, f in zip(low, high, first))]
                that = theirs[tuple(slice(a - f, b - f) for a, b, f in zip(low, high, other))]
                same += mine.size if numpy.array_equal(mine, that) else 0
        if same != held:
            wrong.append(f"{name}: {held - same} elements or more are not the source's")
    return wrong
