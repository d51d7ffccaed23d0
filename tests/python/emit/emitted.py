"""Shared by tests of emitted programs: problems of every kind, arrays for them, and the output of `reshard emit`."""

import os
import re
import subprocess

import ml_dtypes
import numpy

import reshard

TOOL = os.environ.get("RESHARD_TOOL", "")
LONG = os.environ.get("RESHARD_LONG", "") not in ("", "0")
SEED = int(os.environ.get("RESHARD_SEED", "20211203"))
DTYPES = {"f32": numpy.float32, "i32": numpy.int32, "bf16": ml_dtypes.bfloat16, "u8": numpy.uint8, "f64": numpy.float64,
          "c64": numpy.complex64, "bool": numpy.bool_}
COMBINE = {"U": numpy.add, "max": numpy.maximum, "min": numpy.minimum, "prod": numpy.multiply, "avg": numpy.add}

# Everything that a program can contain: sub-axes, wide all_to_alls, every reduction, fills, other orders, reshapes, scalars.
QUESTIONS = [
    ("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(x,y),8,16]"),
    ("x=2,y=4", "f32[16,8@x,16@y]", "f32[16@(y,x),8,16]"),
    ("x=2,y=4", "f32[16@(x,y),8]", "f32[16@(y,x),8]"),
    ("x=2,y=4", "bf16[16@y:(2)2,8]", "bf16[16,8@y:(1)2]"),
    ("x=8", "f32[16@x:(1)2,8@x:(2)4]", "f32[16@x:(1)4,8@x:(4)2]"),
    ("x=2,y=4", "i32[16,8@y]", "i32[16@x,8]"),
    ("x=2,y=4", "f32[16,8]{U:x}", "f32[16@x,8@y]"),
    ("x=2,y=4", "f32[16,8]{U:(x,y)}", "f32[16,8@x]"),
    ("x=2,y=4", "f32[16,8]{U:x}", "f32[16,8]"),
    ("x=2,y=4", "i32[16,8]{max:y}", "i32[16,8@y]"),
    ("x=2,y=4", "f32[16,8]{min:y}", "f32[16@x,8]"),
    ("x=2,y=4", "f32[16,8]{prod:y}", "f32[16,8]"),
    ("x=2,y=4", "f32[3,7]{prod:y}", "f32[3,7]"),
    ("x=2,y=4", "f32[16,8]{avg:y}", "f32[16@x,8@y]"),
    ("x=2,y=4", "f32[16,8@y]", "f32[16@x,8]{U:y}"),
    ("x=2,y=4", "f32[16,8@y:(2)2]", "f32[16@y:(1)2,8]{max:x}"),
    ("x=2,y=4", "i32[16,8@y]", "i32[16@y,8]{min:x}"),
    ("x=2,y=4", "f32[16,8]", "f32[16@x,8]{prod:y}"),
    ("x=2,y=4", "f32[16,8]", "f32[16,8]{avg:(x,y)}"),
    ("x=2,y=4[1,3,5,7,0,2,4,6]", "f32[16,8@y]", "f32[16@(x,y),8]"),
    ("x=2,y=4", "f64[16,8@y]", "f64[16@y,8]"),
    ("x=2,y=4", "c64[16,8]{U:y}", "c64[16@y,8]"),
    ("x=2,y=4", "u8[16@x,8@y]", "u8[16@y,8@x]"),
    ("x=2,y=4", "bool[16@x,8@y]", "bool[16@y,8]"),
    ("x=2,y=4", "f32[]{U:x}", "f32[]"),
    ("x=2,y=4", "f32[16@x,8@y]", "f32[128@(x,y)]"),
    ("x=2,y=4", "f32[16]", "f32[16]"),
    ("", "f32[4]", "f32[4]"),
]


# Moves that cast and transpose: the source's dimensions in the order of the target. The casts are to a type of each size.
CHANGED = [
    ("x=2,y=4", "f32[16@x,8,16@y]", "bf16[8@x,16,16@y]", (1, 2, 0)),
    ("x=8", "f32[16@x,24]", "f16[24@x,16]", (1, 0)),
    ("x=8", "bf16[16@x,24]", "f32[24,16@x]", (1, 0)),
    ("x=2,y=4", "f32[16,8@y]", "f8_e5m2[16@(x,y),8]", (0, 1)),
    ("x=2,y=4", "f16[16,8@y]", "f8_e4m3fn[8,16@y]", (1, 0)),
    ("x=2,y=4", "i16[16,8@y]", "i32[8@(x,y),16]", (1, 0)),
    ("x=2,y=4", "f64[16@x,8@y]", "f32[16@y,8@x]", (0, 1)),
    ("x=2,y=4", "u8[16@x,8,4]", "u8[4,8@x,16]", (2, 1, 0)),
]


def emitted(to, mesh, source, target, permute=None):
    more = [] if permute is None else ["--cast", "--permute", ",".join(map(str, permute))]
    result = subprocess.run([TOOL, "emit", "--to", to, *more, "--mesh", mesh, source, target], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"{mesh} {source} {target}: {result.stderr}")
    return result.stdout


def array_of(layout):
    """Small values of a layout's shape and type, and how its summands combine: {max:x}, or None."""
    dtype, extents, unreduced = re.fullmatch(r"(\w+)\[(.*)\](\{.*\})?", layout).groups()
    shape = tuple(int(n) for n in re.findall(r"(?:^|,)(\d+)", re.sub(r"@(\([^)]*\)+|[^,]*)", "", extents)))
    return numpy.random.default_rng(7).integers(1, 4, shape).astype(DTYPES[dtype]), unreduced


def changed_ends(mesh, source, target, permute):
    """Random numbers as the source, and numpy's cast and transposition of them: normal ones, large and small, none a NaN."""
    ends = [reshard.parse_layout(mesh, end) for end in (source, target)]
    kinds = [end.numpy_dtype for end in ends]
    drawn = numpy.random.default_rng(9)
    if ends[0].dtype[0] in "iu":
        array = drawn.integers(0, 128, ends[0].shape).astype(kinds[0])
    else:
        array = (drawn.standard_normal(ends[0].shape) * 2.0 ** drawn.integers(-8, 8, ends[0].shape)).astype(kinds[0])
    return array, numpy.ascontiguousarray(array.transpose(permute)).astype(kinds[1])


def summands_of(values, unreduced, count):
    """`count` summands that combine to the values. An avg divides by their number."""
    if unreduced is None:
        return values
    kind = unreduced[1:].partition(":")[0].partition("/")[0]
    others = numpy.random.default_rng(8).integers(1, 3, (count - 1,) + values.shape).astype(values.dtype)
    if kind in ("U", "avg"):
        own = values * count - others.sum(0) if kind == "avg" else values - others.sum(0)
    elif kind == "prod":
        others = numpy.ones_like(others) * 2
        own = values / 2 ** (count - 1)
    else:
        others = values - others if kind == "max" else values + others
        own = values
    return numpy.concatenate([numpy.asarray(own, values.dtype)[None], others])


def combined(stack, unreduced):
    if unreduced is None:
        return stack
    kind = unreduced[1:].partition(":")[0].partition("/")[0]
    whole = COMBINE[kind].reduce(stack, axis=0)
    return whole / len(stack) if kind == "avg" else whole


def random_question(drawn):
    """Two layouts of one array of 8 x 8 x 8, whole axes in any order."""
    mesh = drawn.choice(["x=2,y=4", "a=2,b=2,c=2", "x=8", "x=4,y=2"])
    axes = [axis.partition("=")[0] for axis in mesh.split(",")]
    ends = []
    for _ in range(2):
        dims = [[], [], []]
        for axis in drawn.sample(axes, len(axes)):
            place = drawn.randrange(4)
            if place < 3:
                dims[place].append(axis)
        ends.append("f32[" + ",".join("8" + (f"@({','.join(names)})" if names else "") for names in dims) + "]")
    return mesh, *ends


def periodic_question(drawn):
    """Two layouts of one array; dimension 0 of one is cut in pieces of one length, one for each shard in every round."""
    axis, shards = drawn.choice([("x", 8), ("cp", 4), ("cp", 2)])
    rounds, block, kind = drawn.choice([1, 2, 4]), drawn.choice([1, 2]), drawn.randrange(4)
    order, pieces = list(range(shards)), []
    if kind == 1:
        drawn.shuffle(order)
    for _ in range(rounds):
        pieces += order
        if kind == 2:
            order = order[::-1]
        if kind == 3:
            drawn.shuffle(order)
    extent = len(pieces) * block
    cut = ",".join(f"{(i + 1) * block}:{shard}" for i, shard in enumerate(pieces))
    ends = [f"f32[{extent}@{axis}[{cut}],8]", drawn.choice([f"f32[{extent},8@{axis}]", f"f32[{extent}@{axis},8]",
                                                            f"f32[{extent},8]"])]
    if drawn.randrange(2):
        ends.reverse()
    return f"{axis}={shards}", *ends
