#!/usr/bin/env python3
"""reshard.nccl with ranks as processes that share one GPU, each with its own host id: one_gpu_python.py [RANKS]. Moves
arrays of torch between layouts, with casts, transposes and padding, behind a stream's work, and compares every element
with numpy's values. Prints the number of moves, and exits with 0 if all are right. Exits 77 if torch, reshard.nccl or a
GPU is missing."""

import ctypes
import os
import pathlib
import sys
import time

import one_gpu

try:
    import numpy
    import torch  # before reshard.nccl, which takes the NCCL that torch has loaded

    import reshard
except ImportError as reason:
    print(f"skipped: {reason}")
    sys.exit(one_gpu.SKIPPED)

SECONDS_MAX = 90
SEED = 20261127


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def loaded_library(name):
    """The library that this process has loaded already."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return ctypes.CDLL(min({line.split()[-1] for line in maps if f"/lib{name}.so" in line}))


def make_communicator(rank, ranks, meet):
    nccl = loaded_library("nccl")
    nccl.ncclCommInitRank.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int)
    nccl.ncclCommDestroy.argtypes = (ctypes.c_void_p,)
    unique, part = UniqueId(), meet.with_suffix(".part")
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
        part.write_bytes(bytes(unique))
        part.rename(meet)
    while not meet.exists():
        time.sleep(0.01)
    ctypes.memmove(ctypes.byref(unique), meet.read_bytes(), 128)
    communicator = ctypes.c_void_p()
    assert nccl.ncclCommInitRank(ctypes.byref(communicator), ranks, unique, rank) == 0
    return nccl, communicator


def questions(ranks):
    """(mesh, source, target, changes): fixed ones, then pairs drawn with one seed."""
    x, y = ("x", "y") if ranks > 2 else ("x", "x")
    mesh = "x=2,y=2" if ranks == 4 else f"x={ranks}"
    yield mesh, f"f32[60@{x},33]", f"bf16[60,33@{x}]", {"cast": True}
    yield mesh, f"bf16[64@{x},48]", f"f32[64,48@{y}]", {"cast": True}
    yield mesh, f"f32[34,10@{x}]", f"f32[10@{y},34]", {"permute": (1, 0)}
    yield mesh, f"f64[6,10@{x}]", f"f64[8,12@{y}]", {"fill": -1.5}
    yield mesh, f"f32[6@{x},10]", f"f16[12@{y},8]", {"cast": True, "permute": (1, 0), "fill": 7}
    rng = numpy.random.default_rng(SEED)
    for _ in range(60):
        shape = [int(rng.integers(1, 70)) for _ in range(int(rng.integers(1, 4)))]
        dtype = ("f32", "f64", "i32", "u8", "f16", "c64")[int(rng.integers(6))]
        ends = []
        for _ in range(2):
            dimensions = [str(extent) for extent in shape]
            axes = ["x"] if mesh == f"x={ranks}" else list(rng.permutation(["x", "y"]))
            for axis in axes[:int(rng.integers(0, len(axes) + 1))]:
                place = int(rng.integers(len(shape)))
                if "@" not in dimensions[place]:
                    dimensions[place] += f"@{axis}"
            ends.append(f"{dtype}[{','.join(dimensions)}]")
        yield mesh, *ends, {}


def run_rank(rank, ranks, meet):
    def bytes_of(tensor):
        host = tensor.contiguous().cpu()
        return (host.view(torch.int16) if host.dtype == torch.bfloat16 else host).numpy().tobytes()

    torch.cuda.set_device(0)
    torch.zeros(1, device="cuda")
    reshard.nccl.available()
    nccl, communicator = make_communicator(rank, ranks, meet)
    stream, wrong, moves = torch.cuda.Stream(), 0, 0
    rng = numpy.random.default_rng(SEED)
    for mesh, source, target, changes in questions(ranks):
        source, target = (reshard.parse_layout(mesh, end) for end in (source, target))
        whole = (rng.standard_normal(source.shape) * 100).astype(source.numpy_dtype)
        seen = whole.transpose(changes.get("permute", range(whole.ndim))).astype(target.numpy_dtype)
        filled = numpy.full(target.shape, changes.get("fill", 0), target.numpy_dtype)
        filled[tuple(map(slice, seen.shape))] = seen
        wanted = reshard.split(filled, target)[rank]
        bits = wanted.tobytes()
        tile = numpy.ascontiguousarray(reshard.split(whole, source)[rank])
        for behind in (False, True):
            there = torch.from_numpy(tile.view("i2")).cuda().view(torch.bfloat16) if source.dtype == "bf16" else \
                torch.from_numpy(tile).cuda()
            torch.cuda.synchronize()
            if behind:  # the move waits for what the stream does before
                with torch.cuda.stream(stream):
                    late = torch.zeros_like(there)
                    torch.cuda._sleep(2_000_000)
                    late.copy_(there)
                    moved = reshard.nccl.redistribute(communicator.value, late, source, target,
                                                      stream=stream.cuda_stream, **changes)
            else:
                moved = reshard.nccl.redistribute(communicator.value, there, source, target, **changes)
            back = torch.from_dlpack(moved)
            torch.cuda.synchronize()
            if bytes_of(back) != bits:
                wrong += 1
                print(f"rank {rank}: {source} to {target} {changes}, behind={behind}: wrong values", flush=True)
            moves += 1
    other = reshard.parse_layout(mesh, "f32[8]")
    try:
        reshard.nccl.redistribute(communicator.value, numpy.zeros(8, "f4"), other, other)
        wrong += 1
        print("an array of the host was accepted")
    except reshard.UnsupportedError:
        pass
    reshard.nccl.clear(communicator.value)
    nccl.ncclCommDestroy(communicator)
    print(f"rank {rank}: {moves} moves, {wrong} wrong", flush=True)
    return 1 if wrong else 0


def main(arguments):
    ranks = int(arguments[0]) if arguments else 2
    if "RESHARD_RANK" in os.environ:
        return run_rank(int(os.environ["RESHARD_RANK"]), ranks, pathlib.Path(os.environ["RESHARD_MEET"]))
    missing = "" if torch.cuda.is_available() else "no GPU"
    missing = missing or ("" if reshard.nccl.available() else "this reshard has no NCCL")
    if missing:
        print(f"skipped: {missing}")
        return one_gpu.SKIPPED
    code, said = one_gpu.ranks_as_processes(SECONDS_MAX, ranks, [sys.executable, "-B", __file__, ranks])
    print(said, end="")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
