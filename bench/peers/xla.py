"""Counts the collectives of XLA's partitioner and of Shardy's pass for each pair, from jaxlib. The first compiles an
identity with both shardings on forced host devices, and the collectives are read from its final HLO. The second is run by
itself, and the bytes follow from its shardings. Pairs come on stdin and counts go to stdout, a line of JSON each.

A pair may end the whole process (a failed CHECK of XLA's): it is printed before it is tried."""

import json
import math
import os
import re
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=128"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import numpy
from jax._src.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir, passmanager

from pairs import NAMES, cuts

BYTES = {"f32": 4, "u32": 4, "s32": 4, "pred": 1}
KIND = re.compile(r"= (\([^)]*\)|\S+) (all-gather|all-to-all|all-reduce|reduce-scatter|collective-permute)(?:-start)?\(")
SHAPE = re.compile(r"(f32|u32|s32|pred)\[([\d,]*)\]")


def bytes_of(text):
    return sum(BYTES[kind] * math.prod(int(one) for one in extents.split(",") if one)
               for kind, extents in SHAPE.findall(text))


def group_of(line):
    explicit = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if explicit:
        return explicit.group(1).count(",") + 1
    iota = re.search(r"replica_groups=\[\d+,(\d+)\]", line)
    if iota:
        return int(iota.group(1))
    sizes, axes = re.search(r"replica_groups=mesh\[([^\]]*)\].*?\{([^}]*)\}", line).groups()
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", sizes))
    return math.prod(int(part or sizes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", axes))


def partitioner(one):
    devices = numpy.array(jax.devices()[:math.prod(one["sizes"])]).reshape(one["sizes"])
    mesh = Mesh(devices, tuple(NAMES[:devices.ndim]))
    source, target = (NamedSharding(mesh, PartitionSpec(*(tuple(axes) or None for axes in cuts(one, one[end]))))
                      for end in ("source", "target"))
    array = jax.ShapeDtypeStruct(tuple(one["shape"]), numpy.float32, sharding=source)
    compiled = jax.jit(lambda x: x, in_shardings=source, out_shardings=target).lower(array).compile()
    received, collectives, largest = 0, [], 0
    for line in compiled.as_text().splitlines():
        largest = max([largest, *(bytes_of(match.group(0)) for match in SHAPE.finditer(line))])
        found = KIND.search(line)
        if not found:
            continue
        out, kind = bytes_of(found.group(1)), found.group(2)
        collectives.append(kind)
        if kind == "collective-permute":
            moves = re.findall(r"\{(\d+),(\d+)\}", line.partition("source_target_pairs=")[2])
            received += out if any(a != b for a, b in moves) else 0
            continue
        group = group_of(line)
        received += {"all-gather": out * (group - 1) // group, "all-to-all": out * (group - 1) // group,
                     "all-reduce": 2 * out * (group - 1) // group, "reduce-scatter": out * (group - 1)}[kind]
    return {"received": received, "collectives": collectives, "peak": largest}


def attribute(one, end):
    return "[" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in cuts(one, end)) + "]"


AXIS = re.compile(r'"(\w)"(?::\(\d+\)(\d+))?')
COLLECTIVE = re.compile(r"sdy\.(all_gather|all_slice|all_to_all|collective_permute) (.*?)%\S+ out_sharding=<@mesh, (\[.*?\])>")


def product(one, text):
    sizes = dict(zip(NAMES, one["sizes"]))
    return math.prod(int(part) if part else sizes[axis] for axis, part in AXIS.findall(text))


def tile_bytes(one, sharding):
    """The bytes of the largest tile. Extents that do not divide are padded."""
    return 4 * math.prod(-(-extent // product(one, axes))
                         for extent, axes in zip(one["shape"], re.findall(r"\{([^}]*)\}", sharding)))


def shardy(one):
    shape = "x".join(map(str, one["shape"]))
    mesh = ", ".join(f'"{NAMES[i]}"={size}' for i, size in enumerate(one["sizes"]))
    text = (f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main(%arg0: tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, "
            f"{attribute(one, one['source'])}>}}) -> tensor<{shape}xf32> {{\n %0 = sdy.reshard %arg0 <@mesh, "
            f"{attribute(one, one['target'])}> : tensor<{shape}xf32>\n return %0 : tensor<{shape}xf32>\n}}\n")
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse("builtin.module(func.func(sdy-reshard-to-collectives),canonicalize)").run(
            module.operation)
        made = str(module)
    local = tile_bytes(one, attribute(one, one["source"]))
    received, collectives, peak = 0, [], local
    for kind, what, sharding in COLLECTIVE.findall(made):
        after = tile_bytes(one, sharding)
        if kind == "all_gather":
            received += after - local
        elif kind == "all_to_all":
            group = product(one, what)
            received += local * (group - 1) // group
        elif kind == "collective_permute":
            received += after
        if kind != "all_slice":
            collectives.append(kind)
        local, peak = after, max(peak, after)
    if "sdy.reshard" in made:
        raise RuntimeError("the pass left a reshard")
    return {"received": received, "collectives": collectives, "peak": peak}


def main():
    for line in sys.stdin:
        one = json.loads(line)
        print(json.dumps({"id": one["id"], "begun": True}), flush=True)
        answer = {"id": one["id"]}
        for peer, plan in (("shardy", shardy), ("xla", partitioner)):
            try:
                answer[peer] = plan(one)
            except Exception as error:  # of many libraries'
                answer[peer] = {"refused": (str(error).splitlines() or [type(error).__name__])[0][:100]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print(jax.lib.__version__)
    else:
        main()
