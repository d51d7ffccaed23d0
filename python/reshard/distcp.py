"""Converts .distcp files of torch.distributed.checkpoint to the safetensors that `reshard convert` and `reshard.load`
read. It needs torch, whose own reader opens the checkpoint:

    import reshard.distcp
    reshard.distcp.to_safetensors("step_1000", "step_1000.st")   # then: reshard convert step_1000.st OUT --rules RULES

`.metadata` is a pickle, as in torch itself. A program that opens it runs its code. Use only checkpoints that you trust."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import tempfile
from typing import Any

from .dtypes import ROWS
from .errors import UnsupportedError

_NAMES = {row["long_name"]: row["safetensors"] for row in ROWS if row["safetensors"]}


def _torch() -> Any:
    try:
        import torch
        import torch.distributed.checkpoint
    except ImportError as error:
        raise UnsupportedError(f".distcp files are read by torch, which is not here ({error}); `pip install torch`, or save "
                               "with torch's HuggingFaceStorageWriter, whose files need no torch", "unsupported") from error
    return torch


def _boxes(metadata: Any) -> dict[str, list[tuple[str, Any, Any, Any]]]:
    """For each file, its boxes: the name of the tensor, its metadata, the place in the tensor, and the place in the file."""
    files: dict[str, list[tuple[str, Any, Any, Any]]] = {}
    for index, place in metadata.storage_data.items():
        tensor = metadata.state_dict_metadata[index.fqn]
        if not hasattr(tensor, "chunks"):
            continue  # a plain Python object
        if getattr(place, "transform_descriptors", None):
            raise UnsupportedError(f"'{index.fqn}' is stored transformed ({place.transform_descriptors})", "unsupported")
        box = next(box for box in tensor.chunks if tuple(box.offsets) == tuple(index.offset))
        files.setdefault(place.relative_path, []).append((index.fqn, tensor, box, place))
    for boxes in files.values():
        boxes.sort(key=lambda box: box[3].offset)
    return files


def _apart(boxes: list[tuple[str, Any, Any, Any]]) -> list[list[tuple[str, Any, Any, Any]]]:
    """Splits boxes into lists that have no name twice, as a safetensors file requires."""
    lists: list[list[tuple[str, Any, Any, Any]]] = []
    seen: dict[str, int] = {}
    for box in boxes:
        number = seen.get(box[0], 0)
        seen[box[0]] = number + 1
        if number == len(lists):
            lists.append([])
        lists[number].append(box)
    return lists


def _write(torch: Any, source: str, target: str, boxes: list[tuple[str, Any, Any, Any]]) -> None:
    header: dict[str, Any] = {}
    at = 0
    for name, tensor, box, _ in boxes:
        dtype = tensor.properties.dtype
        if str(dtype).removeprefix("torch.") not in _NAMES:
            raise UnsupportedError(f"'{name}' has elements of {dtype}, which safetensors has not", "unsupported")
        size = dtype.itemsize * box.sizes.numel()
        header[name] = {"dtype": _NAMES[str(dtype).removeprefix("torch.")], "shape": list(box.sizes),
                        "data_offsets": [at, at + size]}
        at += size
    saved = {name: {"saved_offsets": list(box.offsets)} for name, _, box, _ in boxes}
    header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(saved), "DCP_VERSION": "1.0", "format": "pt"}
    text = json.dumps(header).encode()
    with open(source, "rb") as stored, open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, tensor, box, place in boxes:
            stored.seek(place.offset)
            values = torch.load(io.BytesIO(stored.read(place.length)), map_location="cpu", weights_only=True)
            if values.dtype != tensor.properties.dtype or values.shape != box.sizes:
                raise UnsupportedError(f"'{name}' in '{source}' is {values.dtype}{list(values.shape)}, and the metadata "
                                       f"has {tensor.properties.dtype}{list(box.sizes)}", "unsupported")
            file.write(values.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        file.flush()
        os.fsync(file.fileno())


def to_safetensors(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[str]:
    """Writes a folder of safetensors in the form of torch DCP, with the same boxes. Returns the names of the skipped
    entries, which are not tensors.

    Each .distcp file becomes one file, and one more for each further box of the same tensor.
    path: the folder that torch.distributed.checkpoint.save wrote. out: must not exist; it gets its name when it is
    complete. Memory: twice the largest box. Errors: UnsupportedError (no torch, element types that safetensors lacks,
    boxes that were stored transformed), FileExistsError, and the errors of torch for a checkpoint that it cannot read.
    """
    torch = _torch()
    source, target = os.fspath(path), os.fspath(out).rstrip("/")
    if os.path.lexists(target):
        raise FileExistsError(f"'{target}' is there already")
    metadata = torch.distributed.checkpoint.FileSystemReader(source).read_metadata()
    files = _boxes(metadata)
    # A name that nobody can guess; only the owner can read the folder.
    partial = tempfile.mkdtemp(prefix="reshard-", suffix=".partial", dir=os.path.dirname(target) or ".")
    try:
        made = os.path.join(partial, "files")
        os.mkdir(made)
        written = 0
        for name in sorted(files):
            for boxes in _apart(files[name]):
                written += 1
                _write(torch, os.path.join(source, name),
                       os.path.join(made, f"shard-{written:05}-model-00001-of-00001.safetensors"), boxes)
        os.rename(made, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return sorted(name for name, one in metadata.state_dict_metadata.items() if not hasattr(one, "chunks"))


__all__ = ["to_safetensors"]
