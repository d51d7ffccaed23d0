#!/usr/bin/env python3
"""reshard.torch beside torch's own moves: one_gpu.py [--device cuda|cpu] [--ranks 2 4] [--pairs 60] [--seconds 100].

The ranks are processes. They share one GPU over NCCL, each with its own host id, or use CPUs over gloo. Each number of ranks has
its part of the seconds; a rank that waits then is killed. Exits with 0 if all elements agree, with 77 without torch or a GPU.
  pairs   seeded pairs of placements; each is moved by torch, by reshard's own plan (policy "always"), and by
          reshard.torch.redistribute (policy "time"); all are compared element by element with the expected tile
  more    gradients, another mesh, a halo, moves under install("bytes")
  times   three pairs of 64 MiB a rank, timed by events in turn; medians, and the slowest rank counts"""

import argparse
import collections
import datetime
import itertools
import logging
import math
import multiprocessing
import multiprocessing.connection
import os
import random
import statistics
import sys
import tempfile
import time
import traceback
import warnings

BEGIN = time.monotonic()

try:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard

    import reshard.torch
    from reshard.torch import _choice, _move
except ImportError as reason:
    print(f"skipped: {reason}")
    sys.exit(77)

ALWAYS = _choice.Settings("always")
MESHES = {2: [(2,)], 4: [(4,), (2, 2)], 3: [(3,)]}
KINDS = [torch.float32, torch.bfloat16, torch.int64]


def parse(word):
    inside = word[word.find("(") + 1:-1]
    if word == "R":
        return Replicate()
    if word.startswith("P"):
        return Partial(inside)
    if word.startswith("SS"):
        return _StridedShard(int(inside.split(",")[0]), split_factor=int(inside.split(",")[1]))
    return Shard(int(inside))


def tile(full, words, sizes, at):
    """The tile of the rank at `at`, cut as torch.chunk cuts. A partial axis holds summands 1, 2, ... times the array."""
    axes, weight = list(range(len(words))), 1
    for axis in range(len(words) - 1):
        if words[axis].startswith("SS"):
            axes[axis], axes[axis + 1] = axes[axis + 1], axes[axis]
    for axis in axes:
        word = words[axis]
        if word.startswith("S"):
            dim = int(word[word.index("(") + 1:].split(",")[0].rstrip(")"))
            parts = torch.chunk(full, sizes[axis], dim)
            full = parts[at[axis]] if at[axis] < len(parts) else full.narrow(dim, 0, 0)
        elif word.startswith("P"):
            weight *= at[axis] + 1
    return (full * weight).contiguous()


def wanted(full, source, target, sizes, at):
    scale = math.prod(size * (size + 1) // 2 for size, s, t in zip(sizes, source, target) if s.startswith("P") and s != t)
    return tile(full, target, sizes, at) * scale


def draw(rng, ranks):
    sizes, dims, even = rng.choice(MESHES[ranks]), rng.randint(1, 3), rng.random() < 0.5
    shape = tuple(math.prod(sizes) * rng.randint(1, 3) if even else rng.randint(1, 19) for _ in range(dims))
    sums = rng.random() < 0.4

    def pick(more=()):
        return rng.choice(["R"] + [f"S({dim})" for dim in range(dims)] * 2 + list(more))

    while True:
        source, target = [pick(["P(sum)"] * 2 if sums else ()) for _ in sizes], [pick() for _ in sizes]
        if sums and rng.random() < 0.2:
            target = [s if s.startswith("P") else t for s, t in zip(source, target)]
        if len(sizes) == 2 and rng.random() < 0.25:
            dim = rng.randrange(dims)
            odd = [f"SS({dim},{sizes[1]})", f"S({dim})"]
            if rng.random() < 0.5:
                source, target = odd, ["R" if word.startswith("P") else word for word in target]
            elif not sums:
                target = odd
        if source != target:
            return sizes, shape, source, target, rng.choice(KINDS)


class Rank:
    """What a rank knows: its meshes, a clock that all ranks share by the store, and where it writes."""

    def __init__(self, rank, ranks, asked, writer, end):
        self.rank, self.ranks, self.asked, self.end, self.writer = rank, ranks, asked, end, writer
        self.device = torch.device("cuda:0" if asked.device == "cuda" else "cpu")
        self.store, self.asks, self.failed = dist.distributed_c10d._get_default_store(), 0, 0
        self.meshes = {sizes: init_device_mesh(asked.device, sizes, mesh_dim_names=tuple(f"d{i}" for i in range(len(sizes))))
                       for sizes in MESHES[ranks]}
        self.say(f"mesh ready after {time.monotonic() - BEGIN:.1f} s")

    def say(self, words, everyone=False):
        if self.rank == 0 or everyone:
            self.writer.send(("say", f"[{self.ranks} ranks, rank {self.rank}] {words}"))

    def goes_on(self, left):
        """True on all ranks if rank 0 has more than `left` seconds."""
        self.asks += 1
        key = f"goes on {self.asks}"
        if self.rank == 0:
            self.store.set(key, "yes" if time.monotonic() + left < self.end else "no")
        return self.store.get(key) == b"yes"

    def dtensor(self, local, mesh, words, shape):
        stride = tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))
        return DTensor.from_local(local, mesh, [parse(word) for word in words], run_check=False, shape=torch.Size(shape),
                                  stride=stride)

    def x(self, full, sizes, words):
        mesh = self.meshes[sizes]
        local = tile(full, words, sizes, mesh.get_coordinate()).to(self.device)
        return self.dtensor(local, mesh, words, tuple(full.shape))


def full_of(shape, kind):
    """Small whole numbers, which all sums hold exactly in bfloat16 too."""
    return torch.arange(math.prod(shape)).remainder(5).add(1).reshape(shape).to(kind)


def differs(got, want):
    got = got.detach().cpu()
    return got.shape != want.shape or got.dtype != want.dtype or not torch.equal(got, want)


def pairs(here):
    rng, done, bad, refused, wrong_torch = random.Random(20211203 + here.ranks), 0, 0, 0, 0
    hows = collections.Counter()
    for number in range(here.asked.pairs):
        sizes, shape, source, target, kind = draw(rng, here.ranks)
        if not here.goes_on(here.asked.keep):
            break
        name = f"pair {number}: {'x'.join(map(str, sizes))} {list(shape)} {kind} {' '.join(source)} to {' '.join(target)}"
        here.writer.send(("at", name))
        full, to = full_of(shape, kind), [parse(word) for word in target]
        x = here.x(full, sizes, source)
        want = wanted(full, source, target, sizes, x.device_mesh.get_coordinate())
        try:
            theirs = x.redistribute(placements=to)._local_tensor.cpu()
        except Exception as error:
            theirs, refused = None, refused + 1
            here.say(f"{name}: torch refuses: {str(error).splitlines()[0][:120]}")
        if theirs is not None and differs(theirs, want):
            wrong_torch += 1
            here.say(f"{name}: torch's own elements are not the expected ones", True)
        spec = _move.DTensorSpec(x.device_mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
        ways = {"always": lambda: _move.moved(x._local_tensor, x._spec, spec, ALWAYS),
                "time": lambda: reshard.torch.redistribute(x, to)._local_tensor}
        for way, run in ways.items():
            if way == "time" and theirs is None:
                continue
            try:
                got = run()
            except Exception as error:
                bad += 1
                here.say(f"FAILED {name}, {way}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", True)
                raise  # the other ranks wait in a collective
            how = _move.move_of(x._spec, spec, ALWAYS).choice.how if way == "always" else ""
            if how:
                hows[how] += 1
            if differs(got, want) and (theirs is None or differs(got, theirs)):
                bad += 1
                here.say(f"FAILED {name}, {way} {how}: wrong elements; {'' if got.device == here.device else got.device}", True)
        done += 1
    if here.asked.device == "cuda":
        torch.cuda.synchronize()
    here.writer.send(("total", ("pairs", done, bad, refused, wrong_torch, dict(hows))))


def more(here):
    """Gradients, sums, another mesh, a halo, install()."""
    done, bad = 0, 0

    def check(name, good):
        nonlocal done, bad
        done, bad = done + 1, bad + (not good)
        if not good:
            here.say(f"FAILED {name}", True)

    sizes = MESHES[here.ranks][-1]
    mesh = here.meshes[sizes]
    at = mesh.get_coordinate()
    for kind, shape in itertools.product(KINDS[:2], ((8, 12), (7, 5))):
        full = full_of(shape, kind)
        source, target = (["S(0)", "S(1)"], ["S(1)", "S(0)"]) if len(sizes) == 2 else (["S(0)"], ["S(1)"])
        if not here.goes_on(here.asked.keep):
            return
        here.writer.send(("at", f"gradients of {kind} {shape}"))
        x = here.x(full, sizes, source).requires_grad_()
        y = reshard.torch.redistribute(x, [parse(word) for word in target])
        y.backward(here.dtensor(tile(full * 3, target, sizes, at).to(here.device), mesh, target, shape))
        check(f"gradient of {kind} {shape}", not differs(x.grad._local_tensor, tile(full * 3, source, sizes, at)))
        with reshard.torch.installed("bytes"):
            there = x.detach().redistribute(placements=[parse(word) for word in target])
            whole = there.full_tensor()
        check(f"full_tensor of {kind} {shape} under install()", not differs(whole, full))
    if not here.goes_on(here.asked.keep):
        return
    here.writer.send(("at", "another mesh"))
    turned = DeviceMesh(here.asked.device, torch.arange(here.ranks).flip(0))
    for shape in ((8, 12), (7, 5)):
        full = full_of(shape, torch.float32)
        x = here.x(full, sizes, source)
        z = reshard.torch.redistribute(x, [Shard(1)], mesh=turned)
        check(f"another mesh {shape}", not differs(z._local_tensor, tile(full, ["S(1)"], (here.ranks,), turned.get_coordinate())))
    if not here.goes_on(here.asked.keep):
        return
    here.writer.send(("at", "halo"))
    u = here.x(torch.arange(96.0).reshape(8, 12), sizes, source).requires_grad_()
    h = reshard.torch.halo(u, width=1, periodic=len(sizes) == 2)
    h.sum().backward()
    if len(sizes) == 2:
        rows, columns = ([(at[axis] * (extent // 2) + i) % extent for i in range(-1, extent // 2 + 1)] for axis, extent in ((0, 8), (1, 12)))
        check("halo", not differs(h, torch.arange(96.0).reshape(8, 12)[rows][:, columns]))
        total = torch.zeros(8, 12)
        for a, b in itertools.product(range(2), range(2)):
            for i, j in itertools.product(range(-1, 5), range(-1, 7)):
                total[(a * 4 + i) % 8, (b * 6 + j) % 12] += 1
        check("gradient of a halo", not differs(u.grad._local_tensor, tile(total, source, sizes, at)))
    if here.asked.device == "cuda":
        torch.cuda.synchronize()
    here.writer.send(("total", ("more", done, bad)))


def times(here):
    cuda, ranks = here.asked.device == "cuda", here.ranks
    side = 4096 if cuda else 512  # float32: 64 MiB a rank
    sizes = MESHES[ranks][-1]
    listed = [((ranks,), "S(0)", "S(1)"), (sizes, "S(0) S(1)", "S(1) S(0)"), (sizes, "S(0) S(0)", "R S(0)")] if len(sizes) == 2 else [
        ((ranks,), "S(0)", "S(1)"), ((ranks,), "P(sum)", "S(1)"), ((ranks,), "S(1)", "R")]
    for sizes, source, target in listed:
        if not here.goes_on(1.0):
            return
        mesh, shape = here.meshes[sizes], (side, side * ranks)
        source, target = source.split(), target.split()
        if "P(sum)" in source:
            shape = (side, side)
        name = f"{'x'.join(map(str, sizes))}: {' '.join(source)} to {' '.join(target)}"
        here.writer.send(("at", f"times of {name}"))
        to = [parse(word) for word in target]
        shape_here = tile(torch.empty(shape, device="meta"), source, sizes, mesh.get_coordinate()).shape
        local = torch.randint(0, 100, tuple(shape_here), device=here.device).float()
        x = here.dtensor(local, mesh, source, shape)
        spec = _move.DTensorSpec(mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
        policies = {policy: _choice.Settings(policy) for policy in ("time", "always")}
        hows = {policy: _move.move_of(x._spec, spec, one).choice for policy, one in policies.items()}
        runs = {"torch": lambda: x.redistribute(placements=to)._local_tensor,
                **{policy: lambda one=one: _move.moved(x._local_tensor, x._spec, spec, one) for policy, one in policies.items()
                   if policy == "time" or hows["time"].how == "torch"}}
        taken, same, first = {way: [] for way in runs}, True, None
        for round_ in range(11):
            if not here.goes_on(0.5):
                break
            for way, run in runs.items():
                here.writer.send(("at", f"times of {name}, {way}, round {round_}"))
                if cuda:
                    dist.all_reduce(here.token)
                    torch.cuda.synchronize()
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    out = run()
                    end.record()
                    end.synchronize()
                    ms = begin.elapsed_time(end)
                else:
                    dist.barrier()
                    began = time.perf_counter()
                    out = run()
                    ms = 1e3 * (time.perf_counter() - began)
                if round_:
                    taken[way].append(ms)
                elif first is None:
                    first = out
                else:
                    same = same and torch.equal(first, out)
                del out
        if not same:
            here.say(f"FAILED times of {name}: wrong elements", True)
        here.writer.send(("times", (name, {way: f"{one.how} ({one.price.words if one.price else one.why})" for way, one in hows.items()},
                                    taken, same)))
        del first, local, x


def work(rank, ranks, asked, folder, writer, end):
    try:
        os.environ.update(NCCL_HOSTID=f"rank{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1", NCCL_MAX_CTAS="2",
                          CUDA_DEVICE_MAX_CONNECTIONS="32", TORCH_NCCL_ASYNC_ERROR_HANDLING="1")
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        torch.set_num_threads(1)
        writer.send(("at", "the start of the process group"))
        if asked.device == "cuda":
            torch.cuda.set_device(0)
        dist.init_process_group("nccl" if asked.device == "cuda" else "gloo", init_method=f"file://{folder}/meeting",
                                rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=300))
        here = Rank(rank, ranks, asked, writer, end)
        here.token = torch.ones(1, device=here.device)
        dist.all_reduce(here.token)
        if asked.device == "cuda":
            torch.cuda.synchronize()
        here.say(f"first collective after {time.monotonic() - BEGIN:.1f} s")
        pairs(here)
        here.say(f"pairs end after {time.monotonic() - BEGIN:.1f} s")
        more(here)
        here.say(f"more ends after {time.monotonic() - BEGIN:.1f} s")
        times(here)
        here.say(f"times end after {time.monotonic() - BEGIN:.1f} s")
        here.writer.send(("end", None))
        time.sleep(0.2)
    except BaseException:
        writer.send(("fault", traceback.format_exc()))
        time.sleep(1.0)  # what the other ranks say arrives
    os._exit(0)


def job(ranks, asked, end):
    """Runs the ranks until `end`. Returns True if nothing failed."""
    context, readers, totals, timings = multiprocessing.get_context("fork"), {}, [], []
    places, ended, good = {}, set(), True
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            reader, writer = context.Pipe(duplex=False)
            worker = context.Process(target=work, args=(rank, ranks, asked, folder, writer, end))
            worker.start()
            writer.close()
            readers[reader] = rank, worker
        limit, open_ones = end + 3, set(readers)
        while open_ones and time.monotonic() < limit:
            for reader in multiprocessing.connection.wait(open_ones, max(0.0, limit - time.monotonic())):
                rank, worker = readers[reader]
                try:
                    kind, what = reader.recv()
                except EOFError:
                    open_ones.remove(reader)
                    continue
                if kind == "say":
                    print(what, flush=True)
                    good = good and "FAILED" not in what
                elif kind == "at":
                    places[rank] = what
                elif kind == "total":
                    totals.append(what)
                elif kind == "times":
                    timings.append((rank, *what))
                elif kind == "end":
                    ended.add(rank)
                else:
                    good = False
                    print(f"[{ranks} ranks, rank {rank}] FAULT at {places.get(rank)}\n{what}", flush=True)
                    limit = min(limit, time.monotonic() + 3)
        for rank, worker in readers.values():
            if worker.is_alive() and rank not in ended:
                good = False
                print(f"[{ranks} ranks, rank {rank}] KILLED at {places.get(rank)}", flush=True)
            worker.kill()
    for kind in ("pairs", "more"):
        found = [one for one in totals if one[0] == kind]
        if found:
            print(f"{ranks} ranks, {kind}: {found[0][1]} done on {len(found)} ranks, {sum(one[2] for one in found)} failures"
                  + (f"; torch refuses {found[0][3]}, torch wrong {sum(one[4] for one in found)}; ways of 'always': {found[0][5]}"
                     if kind == "pairs" else ""), flush=True)
        else:
            good = False
            print(f"{ranks} ranks, {kind}: NOT DONE", flush=True)
    for name in dict.fromkeys(one[1] for one in timings):
        rows = [one for one in timings if one[1] == name]
        ms = {way: max(statistics.median(one[3][way]) for one in rows) for way in rows[0][3] if all(one[3][way] for one in rows)}
        if "torch" in ms:
            ways = ", ".join(f"{way} {value:.1f} ms ({ms['torch'] / value:.2f}x) by {rows[0][2].get(way, 'torch')}"
                             for way, value in ms.items())
            print(f"{ranks} ranks, {name}, {len(rows[0][3]['torch'])} rounds, {ways}", flush=True)
        else:
            print(f"{ranks} ranks, {name}: no full round", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=100, help="of all together")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("skipped: no GPU")
        return 77
    print(f"torch {torch.__version__}, reshard from {reshard.torch.__file__}, {asked.device}", flush=True)
    good, shares = True, {ranks: 1.0 + ranks / 8 for ranks in asked.ranks}
    for number, ranks in enumerate(asked.ranks):
        left = asked.seconds - (time.monotonic() - BEGIN) - 3 * (len(asked.ranks) - number)
        mine = left * shares[ranks] / sum(shares[one] for one in asked.ranks[number:])
        asked.keep = 0.35 * mine  # seconds that pairs leave for the times
        good = job(ranks, asked, time.monotonic() + mine) and good
    print(f"{'GOOD' if good else 'FAILED'} after {time.monotonic() - BEGIN:.1f} s", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
