#!/usr/bin/env python3
"""reshard.nccl with ranks as processes that share one GPU, each with its own host id: one_gpu_python.py [RANKS]. Moves
arrays of torch between layouts, with casts, transposes and padding, behind a stream's work, and compares every element
with numpy's values. Prints the number of moves, and exits with 0 if all are right. Exits 77 if torch, reshard.nccl or a
GPU is missing."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

SECONDS_MAX = 90
SEED = 20261127
ENVIRONMENT = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0", "NCCL_MAX_CTAS": "2",
               "CUDA_DEVICE_MAX_CONNECTIONS": "32", "CUDA_MODULE_LOADING": "EAGER"}


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def loaded_library(name):
    """The library that this process has loaded already."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return ctypes.CDLL(min({line.split()[-1] for line in maps if f"/lib{name}.so" in line}))


def make_communicator(rank, ranks, folder):
    nccl = loaded_library("nccl")
    nccl.ncclCommInitRank.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int)
    nccl.ncclCommDestroy.argtypes = (ctypes.c_void_p,)
    unique, there = UniqueId(), folder / "id"
    if rank == 0:
        assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
        (folder / "part").write_bytes(bytes(unique))
        (folder / "part").rename(there)
    while not there.exists():
        time.sleep(0.01)
    ctypes.memmove(ctypes.byref(unique), there.read_bytes(), 128)
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


def run_rank(rank, ranks, folder):
    import torch

    import reshard

    def bytes_of(tensor):
        host = tensor.contiguous().cpu()
        return (host.view(torch.int16) if host.dtype == torch.bfloat16 else host).numpy().tobytes()

    torch.cuda.set_device(0)
    torch.zeros(1, device="cuda")
    reshard.nccl.available()
    nccl, communicator = make_communicator(rank, ranks, folder)
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
    if len(arguments) == 3:
        return run_rank(int(arguments[1]), ranks, pathlib.Path(arguments[2]))
    try:
        import torch

        import reshard
        missing = "" if torch.cuda.is_available() else "no GPU"
        missing = missing or ("" if reshard.nccl.available() else "this reshard has no NCCL")
    except ImportError as reason:
        missing = str(reason)
    if missing:
        print(f"skipped: {missing}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        processes = [subprocess.Popen([sys.executable, __file__, str(ranks), str(rank), folder],
                                      env={**os.environ, **ENVIRONMENT, "NCCL_HOSTID": f"rank{rank}"})
                     for rank in range(ranks)]
        end, worst = time.monotonic() + SECONDS_MAX, 0
        for process in processes:
            try:
                worst = max(worst, abs(process.wait(max(1, end - time.monotonic()))))
            except subprocess.TimeoutExpired:
                print("it did not come to an end")
                process.kill()
                worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
