"""The part of an array that a device holds, from the layout's text. Written from the definition, for tests only."""

import re


def mesh_of(text):
    axes = [part.split("=") for part in text.split(",") if part]
    return [(name, int(size)) for name, size in axes]


def coordinate(mesh, axis, device):
    """Axes are digits of the device number, the first most major. y:(2)3 is the factor 3 below a factor 2 of y."""
    name, _, factor = axis.partition(":")
    stride = 1
    for other, size in reversed(mesh):
        if other == name:
            value = device // stride % size
            if not factor:
                return value, size
            before, part = map(int, re.fullmatch(r"\((\d+)\)(\d+)", factor).groups())
            return value // (size // before // part) % part, part
        stride *= size
    raise KeyError(name)


def interval(mesh, dim, device):
    extent, _, axes = dim.partition("@")
    extent = int(extent)
    shard, shards = 0, 1
    for axis in re.sub(r"^\(|\)$", "", axes).split(",") if axes.startswith("(") and not axes == "()" else [axes]:
        if axis:
            value, size = coordinate(mesh, axis, device)
            shard, shards = shard * size + value, shards * size
    tile = -(-extent // shards)
    return min(extent, shard * tile), min(extent, (shard + 1) * tile)


def split_dims(text):
    dims, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            dims.append("")
        else:
            dims[-1] += c
    return [dim for dim in dims if dim]


def tile(mesh_text, layout_text, device):
    """The half-open intervals that the device holds."""
    inside = layout_text[layout_text.index("[") + 1 : layout_text.index("]")]
    return [interval(mesh_of(mesh_text), dim, device) for dim in split_dims(inside)]
