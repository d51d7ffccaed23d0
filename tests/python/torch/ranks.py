"""Tests of reshard.torch share this: processes of a gloo group, arrays, their tiles, and a count of received bytes."""

import contextlib
import datetime
import faulthandler
import logging
import math
import multiprocessing
import multiprocessing.connection
import os
import sys
import tempfile
import traceback
import warnings

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import torch.distributed as dist
import torch.distributed.tensor.placement_types as placement_types
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.utils._python_dispatch import TorchDispatchMode

LONG = os.environ.get("RESHARD_LONG", "") not in ("", "0")
SEED = int(os.environ.get("RESHARD_SEED", "20211203"))
HANG = datetime.timedelta(seconds=60)  # a collective that one rank does not enter fails on the others after it
GRACE = 5  # seconds
MESHES = {4: [(4,), (2, 2)], 6: [(6,), (2, 3), (3, 2)], 8: [(8,), (2, 4), (4, 2), (2, 2, 2)]}


def _work(rank, ranks, folder, function, arguments, writer):
    words = os.open(f"{folder}/words.{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(words, 2)
    faulthandler.enable(words)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    try:
        # a cache directory for each rank: torch's own programs name groups that differ from rank to rank
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/cache.{rank}"
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks, timeout=HANG)
        result = function(rank, *arguments)
        dist.barrier()
        writer.send((None, result))
    except BaseException:  # every fault is the parent's to report
        writer.send((traceback.format_exc(), None))
    os._exit(0)


def run(ranks, function, *arguments):
    """Runs function(rank, *arguments) on processes of a gloo group. Returns the results in order of ranks. A failed rank
    fails the test with its own error, and a rank that ends without a result with its exit code and what it wrote to stderr. The
    others have GRACE seconds more then. A rank that waits for ever fails after HANG."""
    context = multiprocessing.get_context("fork")  # torch is imported once; the parent starts no thread
    workers, results, faults, grace = {}, {}, {}, None
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            reader, writer = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(rank, ranks, folder, function, arguments, writer))
            worker.start()
            workers[reader] = rank, worker
            writer.close()  # the rank alone holds it now, so the pipe ends with the rank
        waiting = set(workers)
        try:
            while waiting and (ready := multiprocessing.connection.wait(waiting, grace)):
                for reader in ready:
                    waiting.remove(reader)
                    rank, worker = workers[reader]
                    try:
                        faults[rank], results[rank] = reader.recv()
                    except EOFError:
                        worker.join(GRACE)
                        faults[rank] = f"exit code {worker.exitcode} and no result; stderr:\n{_words(folder, rank)}"
                    grace = GRACE if faults[rank] else grace  # peers may wait for it for half an hour
        finally:
            for reader, (rank, worker) in workers.items():
                worker.join(0 if reader in waiting else GRACE)
                if worker.is_alive():
                    worker.kill()
    for reader in waiting:
        faults[workers[reader][0]] = "stopped while it waited"
    found = [f"rank {rank}: {fault}" for rank, fault in sorted(faults.items()) if fault]
    if found:
        raise AssertionError("\n".join(found))
    return [results[rank] for rank in range(ranks)]


def _words(folder, rank):
    """The end of what a rank wrote to stderr."""
    with open(f"{folder}/words.{rank}", encoding="utf-8", errors="replace") as file:
        return file.read()[-4000:]


_meshes = {}


def mesh_of(sizes):
    """A mesh of the first ranks, row-major, made once."""
    key = tuple(sizes), id(dist.distributed_c10d._get_default_group())
    if key not in _meshes:
        _meshes[key] = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=tuple(f"d{i}" for i in range(len(sizes))))
    return _meshes[key]


def parse(word):
    """A placement of torch from R, S(0), P(sum) or SS(0,4)."""
    if word == "R":
        return Replicate()
    inside = word[word.index("(") + 1:-1]
    if word.startswith("P"):
        return Partial(inside)
    if word.startswith("SS"):
        dim, factor = inside.split(",")
        return placement_types._StridedShard(int(dim), split_factor=int(factor))
    return Shard(int(inside))


def _dim(word):
    return int(word[word.index("(") + 1:].split(",")[0].rstrip(")"))


def _chunk(indices, count, at):
    parts = torch.chunk(indices, count)
    return parts[at] if at < len(parts) else indices[:0]


def tile(full, words, sizes, at):
    """The tile of the rank at `at`. It is cut axis by axis, as torch.chunk cuts. [SS(d, k), S(d)] is cut right to left, as FSDP2 over
    TP writes it. A partial axis holds summands 1, 2, ... times the array."""
    indices, weight, axes = [torch.arange(extent) for extent in full.shape], 1, list(range(len(words)))
    for axis in range(len(words) - 1):
        if words[axis].startswith("SS"):
            axes[axis], axes[axis + 1] = axes[axis + 1], axes[axis]
    for axis in axes:
        if words[axis].startswith("S"):
            dim = _dim(words[axis])
            indices[dim] = _chunk(indices[dim], sizes[axis], at[axis])
        elif words[axis].startswith("P"):
            weight *= at[axis] + 1
    for dim, one in enumerate(indices):
        full = full.index_select(dim, one)
    return full * weight


def _sum(count, word):
    return {"sum": count * (count + 1) / 2, "avg": (count + 1) / 2, "max": count, "min": 1,
            "product": math.factorial(count)}[word]


def wanted(full, source, target, sizes, at):
    """The tile of the rank at `at` after the move."""
    scale = math.prod(_sum(size, s[2:-1]) for size, s, t in zip(sizes, source, target) if s.startswith("P") and s != t)
    return tile(full, target, sizes, at) * scale


def dtensor(local, mesh, words, shape):
    stride = tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))
    return DTensor.from_local(local, mesh, [parse(word) for word in words], run_check=False, shape=torch.Size(shape),
                              stride=stride)


def on_mesh(full, sizes, words):
    """The array as a DTensor under these placements, on a mesh of these sizes."""
    mesh = mesh_of(sizes)
    return dtensor(tile(full, words, sizes, mesh.get_coordinate()).contiguous(), mesh, words, tuple(full.shape))


def draw(rng, ranks, old=False):
    """Mesh sizes, shape, source and target: half are uneven, a fifth has sums, an eighth is strided. old: nothing that torch
    2.8 itself gets wrong on gloo, which are reductions but sum, and strided shards."""
    sizes, dims = rng.choice(MESHES[ranks]), rng.randint(1, 3)
    even = rng.random() < 0.5
    shape = tuple(math.prod(sizes) * rng.randint(1, 2) if even else rng.randint(1, 19) for _ in range(dims))
    op = rng.choice(["sum"] if old else ["sum", "sum", "avg", "max", "min"]) if rng.random() < 0.4 else None

    def pick(more=()):
        return rng.choice(["R"] + [f"S({dim})" for dim in range(dims)] * 2 + list(more))

    while True:
        source = [pick([f"P({op})"] * 2 if op else ()) for _ in sizes]
        target = [pick() for _ in sizes]
        if op and rng.random() < 0.2:
            target = [s if s.startswith("P") else t for s, t in zip(source, target)]
        if len(sizes) == 2 and not old and rng.random() < 0.2:
            dim = rng.randrange(dims)
            odd = [f"SS({dim},{sizes[1]})", f"S({dim})"]
            if rng.random() < 0.5:
                source, target = odd, ["R" if word.startswith("P") else word for word in target]
            elif op is None:
                target = odd
        if source != target:
            return sizes, shape, source, target


class Count(TorchDispatchMode):
    """Bytes that this rank receives, of tensors as they are padded, and the collectives that it takes part in."""

    def __init__(self):
        super().__init__()
        self.received, self.calls = 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        space, _, name = func.name().partition("::")
        kind = name.partition(".")[0]
        if space in ("_c10d_functional", "_dtensor") and "wait" not in kind and "autograd" not in kind:
            self._add(kind, args, out)
        return out

    def _add(self, kind, args, out):
        group = dist.distributed_c10d._resolve_process_group([one for one in args if isinstance(one, str)][-1])
        ranks, sent = group.size(), args[0].numel() * args[0].element_size()
        if kind == "all_to_all_single":
            outs = args[1]
            rows = sum(outs)
            each = out.numel() // rows if rows else 0
            self.received += (rows - outs[group.rank()]) * each * out.element_size()
        else:
            share = {"all_gather_into_tensor": (ranks - 1) * ranks, "reduce_scatter_tensor": ranks - 1,
                     "shard_dim_alltoall": ranks - 1, "all_reduce": 2 * (ranks - 1)}[kind]
            self.received += sent * share // ranks
        self.calls.append(kind)


@contextlib.contextmanager
def all_to_all_of_gpus():
    """Torch's own moves between dimensions by its operator of GPUs, which gloo runs as well, and not by all_gather."""
    from reshard.torch import _axes
    held = placement_types.shard_dim_alltoall, _axes.native_all_to_all

    def native(tensor, gather_dim, shard_dim, mesh, mesh_dim):
        return torch.ops._dtensor.shard_dim_alltoall(tensor, gather_dim, shard_dim, mesh.get_group(mesh_dim).group_name)

    placement_types.shard_dim_alltoall, _axes.native_all_to_all = native, lambda mesh: True
    try:
        yield
    finally:
        placement_types.shard_dim_alltoall, _axes.native_all_to_all = held
