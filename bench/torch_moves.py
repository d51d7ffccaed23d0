#!/usr/bin/env python3
"""build/peers/bin/python bench/torch_moves.py TABLE [--ranks 8] [--rounds 5] [--pairs 100] [--only PAIR] [--small]

reshard.torch beside DTensor's own moves, on processes of a gloo group. PYTHONPATH names the folder of the package. TABLE:
  bytes   random pairs: bytes that the busiest rank receives, beside torch's greedy plan and its plan of least cost
  times   twelve pairs of 16 MiB, all ways in turn, medians of rounds; every element is compared. Meshes are of 8 ranks; their
          last axis is shorter on 4. For an exchange also gloo's all_to_all of its rows and their packing, each alone
  models  training steps of a transformer block and of FSDP2 over tensor parallelism
  calls   the cost of a call and of a new plan on a process group that moves nothing
  plans   the CPU time of new plans of random pairs, and of torch's own planner, whose steps a plan asks for once: for each
          pair the median of as many launches as rounds. Python's garbage collector is off meanwhile
Prices of policy "time" are measured first, on the same ranks. The machine should be quiet: the ranks share its cores."""

import argparse
import contextlib
import functools
import gc
import logging
import math
import multiprocessing
import os
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python/torch"))

import model
import ranks
from ranks import Count, dist, dtensor, mesh_of, parse, tile, torch, wanted

import reshard.torch
from reshard.torch import _axes, _choice, _move, _packing, _specs
from reshard.torch._choice import Settings
from torch.distributed.tensor import _redistribute

SQUARE, CUBE = (2048, 2048), (128, 128, 256)
PAIRS = [((8,), SQUARE, "S(0)", "S(1)"), ((8,), SQUARE, "S(1)", "R"), ((8,), SQUARE, "P(sum)", "S(1)"),
         ((2, 4), SQUARE, "S(0) S(1)", "S(1) S(0)"), ((2, 4), SQUARE, "S(0) S(0)", "S(1) S(1)"),
         ((2, 4), SQUARE, "S(0) R", "R S(0)"), ((2, 4), SQUARE, "S(0) S(0)", "R S(0)"),
         ((2, 4), SQUARE, "P(sum) S(0)", "S(0) S(1)"), ((2, 2, 2), CUBE, "S(0) S(0) S(0)", "S(1) S(1) S(1)"),
         ((2, 2, 2), CUBE, "R S(0) R", "R R S(0)"), ((2, 4), (2051, 2045), "S(0) S(1)", "S(1) S(0)"),
         ((2, 4), SQUARE, "SS(0,4) S(0)", "S(1) R")]


def greedy(x, mesh, to):
    return x.redistribute(mesh, to)._local_tensor


def least_cost(x, mesh, to):
    with _redistribute.use_min_cost_redistribution_plan():
        _redistribute._gen_transform_infos.cache_clear()
        return x.redistribute(mesh, to)._local_tensor


def by_plan(x, mesh, to, settings):
    spec = _move.DTensorSpec(mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
    return _move.moved(x._local_tensor, x._spec, spec, settings)


def bytes_of_pairs(rank, asked):
    rng, rows = random.Random(asked.seed), []
    settings = {policy: Settings(policy) for policy in ("bytes", "time")}
    with ranks.all_to_all_of_gpus():
        while len(rows) < asked.pairs:
            sizes, shape, source, target = ranks.draw(rng, asked.ranks)
            mesh, full = mesh_of(sizes), torch.arange(1.0, 1 + math.prod(shape)).reshape(shape)
            at, to = mesh.get_coordinate(), [parse(word) for word in target]
            want, row = wanted(full, source, target, sizes, at), {}
            ways = {"greedy": greedy, "least cost": least_cost,
                    **{policy: lambda x, mesh, to, one=one: by_plan(x, mesh, to, one) for policy, one in settings.items()}}
            for way, run in ways.items():
                x = dtensor(tile(full, source, sizes, at).contiguous(), mesh, source, shape)
                _redistribute._gen_transform_infos.cache_clear()
                with Count() as seen:
                    try:
                        got = run(x, mesh, to)
                        good = got.shape == want.shape and torch.allclose(got, want)
                    except RuntimeError:
                        good = None
                row[way] = good, seen.received, len(seen.calls)
            rows.append(row)
    return rows


def print_bytes(asked):
    found = ranks.run(asked.ranks, bytes_of_pairs, asked)
    rows = [{way: (all(rank[at][way][0] for rank in found), any(rank[at][way][0] is None for rank in found),
                   max(rank[at][way][1] for rank in found), max(rank[at][way][2] for rank in found)) for way in found[0][at]}
            for at in range(len(found[0]))]
    refused = sum(row["greedy"][1] for row in rows)
    rows = [row for row in rows if not row["greedy"][1]]
    wrong = {way: sum(not row[way][0] for row in rows) for way in rows[0]}
    print(f"{len(rows)} pairs on {asked.ranks} ranks, {refused} refused by torch; wrong: {wrong}")
    for policy in ("bytes", "time"):
        for way in ("greedy", "least cost"):
            ratios = [(row[way][2] + 1) / (row[policy][2] + 1) for row in rows if row[way][2] or row[policy][2]]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            more = sum(ratio < 1 for ratio in ratios)
            print(f"  policy {policy}: torch ({way}) receives {mean:.2f}x in the geometric mean of {len(ratios)} pairs that move "
                  f"bytes, at most {max(ratios):.1f}x; plans receive more on {more}")


def parts_of_exchange(source, target, tile):
    """Gloo's all_to_all of the rows of an exchange, alone, and their packing, alone. Nobody orders the result."""
    schedule = reshard.RowSchedule([(_specs.layout_of(source), _specs.layout_of(target))])
    out, into = (_packing.Rows(schedule.nested_rows(dist.get_rank(), side), tile.itemsize) for side in ("send", "receive"))
    sent, received = (rows.counts(list(range(dist.get_world_size()))) for rows in (out, into))
    packed, got = out.packed(tile).clone(), tile.new_empty(sum(received))
    return {"all_to_all": lambda: dist.all_to_all_single(got, packed, received, sent), "packing": lambda: out.packed(tile)}


def times_of_pairs(rank, asked):
    prices = reshard.torch.calibrate(mesh_of((2, asked.ranks // 2)))
    settings = {policy: Settings(policy, prices) for policy in ("time", "bytes", "always")}
    rows = []
    for sizes, shape, source, target in [pair for pair in PAIRS if asked.only in f"{pair[2]} to {pair[3]}"]:
        shape = tuple(max(1, extent // 8) for extent in shape) if asked.small else shape
        sizes = (*sizes[:-1], sizes[-1] * asked.ranks // 8)
        source, target, mesh = source.replace(",4)", f",{sizes[-1]})").split(), target.split(), mesh_of(sizes)
        at, to = mesh.get_coordinate(), [parse(word) for word in target]
        full = torch.arange(math.prod(shape), dtype=torch.float32).remainder_(1 << 12).reshape(shape)
        x, want = dtensor(tile(full, source, sizes, at).contiguous(), mesh, source, shape), wanted(full, source, target, sizes, at)
        runs = {"torch": lambda: greedy(x, mesh, to),
                **{policy: lambda one=one: by_plan(x, mesh, to, one) for policy, one in settings.items()},
                "greedy, GPU": lambda: greedy(x, mesh, to)}
        spec = _move.DTensorSpec(mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
        choice = _move.move_of(x._spec, spec, settings["time"]).choice
        alone = parts_of_exchange(x._spec, spec, x._local_tensor) if choice.how == "exchange" else {}
        runs.update(alone)
        seconds, wrong = {way: [] for way in runs}, {}
        for number in range(asked.rounds + 1):
            for way, run in runs.items():
                with ranks.all_to_all_of_gpus() if way == "greedy, GPU" else contextlib.nullcontext():
                    dist.barrier()
                    begin = time.perf_counter()
                    out = run()
                    dist.barrier()
                    seconds[way].append(time.perf_counter() - begin)
                wrong[way] = way not in alone and (wrong.get(way, False) or not torch.equal(out, want))
        guess = [prices.seconds(price) for price in (_axes.torch_price(x._spec, spec), choice.price)]
        rows.append((sizes, source, target, {way: values[1:] for way, values in seconds.items()}, wrong, choice.how, guess))
    return rows, prices.json()


def print_times(asked):
    found = ranks.run(asked.ranks, times_of_pairs, asked)
    print(f"load {os.getloadavg()[0]:.1f}; prices {found[0][1]}")
    print(f"{'pair':42} {'torch':>8} {'greedy, GPU':>12} {'time':>8} {'bytes':>8} {'always':>8}  torch/time  way (estimates, ms)")
    for at, (sizes, source, target, seconds, wrong, how, guess) in enumerate(found[0][0]):
        if any(bad for rank, _ in found for bad in rank[at][4].values()):
            raise SystemExit(f"wrong elements: {sizes} {source} {target} {wrong}")
        ms = {way: 1e3 * statistics.median(values) for way, values in seconds.items()}
        ratio = statistics.median(a / b for a, b in zip(seconds["torch"], seconds["time"]))
        name = f"{'x'.join(map(str, sizes))}: {' '.join(source)} to {' '.join(target)}"
        print(f"{name:42} {ms['torch']:8.1f} {ms['greedy, GPU']:12.1f} {ms['time']:8.1f} {ms['bytes']:8.1f} {ms['always']:8.1f}  "
              f"{ratio:9.2f}x  {how} ({1e3 * guess[0]:.1f}, {1e3 * guess[1]:.1f})"
              + "".join(f", {way} alone {ms[way]:.1f} ms" for way in ("all_to_all", "packing") if way in ms))


def steps_of_models(rank, asked):
    """The ways take turns, step by step; the first step of each counts bytes and not time."""
    mesh, rows = mesh_of((2, asked.ranks // 2)), []
    prices = reshard.torch.calibrate(mesh)
    for name in ("block", "sharded"):
        runs = {}
        for way in ("torch", "time", "bytes"):
            net, loss = getattr(model, name)(mesh, asked.rounds + 1)
            runs[way] = loss, torch.optim.SGD(net.parameters(), lr=1e-3), Count(), [], []
        for step in range(asked.rounds + 1):
            for way, (loss, optimizer, seen, seconds, losses) in runs.items():
                with reshard.torch.installed(way, prices=prices) if way != "torch" else contextlib.nullcontext():
                    optimizer.zero_grad()
                    dist.barrier()
                    begin = time.perf_counter()
                    with seen if step == 0 else contextlib.nullcontext():
                        value = loss(step)
                        value.backward()
                    optimizer.step()
                    dist.barrier()
                    seconds.append(time.perf_counter() - begin)  # install() and uninstall() do not count
                losses.append(float(value.to_local() if hasattr(value, "to_local") else value))
        for way, (_, _, seen, seconds, losses) in runs.items():
            ratio = statistics.median(a / b for a, b in zip(runs["torch"][3][1:], seconds[1:]))
            rows.append((name, way, losses, seen.received, len(seen.calls), statistics.median(seconds[1:]), ratio))
    return rows


def print_models(asked):
    found = ranks.run(asked.ranks, steps_of_models, asked)
    for at, (name, way, losses, _, calls, seconds, ratio) in enumerate(found[0]):
        received = max(rank[at][3] for rank in found)
        print(f"{name:8} {way:6} losses {losses[0]:.6f} to {losses[-1]:.6f}   {received / 2**20:6.2f} MiB received a step in "
              f"{calls} collectives   {1e3 * seconds:7.1f} ms a step, torch takes {ratio:.2f}x (paired)")


def least(runs, count=100, rounds=15):
    """Microseconds of a call of each: the least of the rounds, which take turns."""
    best = {}
    for _ in range(rounds):
        for name, (context, run) in runs.items():
            with context():
                run()
                begin = time.perf_counter()
                for _ in range(count):
                    run()
                best[name] = min(best.get(name, math.inf), 1e6 * (time.perf_counter() - begin) / count)
    return best


def print_calls(asked):
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    for sizes, s, t in [((8,), "S(0)", "S(1)"), ((8,), "S(0)", "R"), ((8,), "P(sum)", "S(0)"), ((2, 4), "S(0) S(1)", "S(1) S(0)"),
                        ((2, 4), "S(0) S(0)", "R S(0)"), ((2, 4), "P(sum) S(0)", "S(0) S(1)"),
                        ((2, 2, 2), "S(0) S(0) S(0)", "S(1) S(1) S(1)")]:
        source, target, mesh = s.split(), t.split(), mesh_of(sizes)
        full = torch.zeros(32, 32)
        x = dtensor(tile(full, source, sizes, mesh.get_coordinate()).contiguous(), mesh, source, (32, 32))
        to = [parse(word) for word in target]
        with ranks.all_to_all_of_gpus():
            policies = {policy: functools.partial(reshard.torch.installed, policy) for policy in ("time", "bytes")}
            costs = least({name: (context, lambda: x.redistribute(mesh, to))
                           for name, context in {"torch": contextlib.nullcontext, **policies}.items()})
            spec = _move.DTensorSpec(mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
            hows = {policy: _choice.choose(x._spec, spec, Settings(policy)).how for policy in policies}
            new = {policy: new_plan(x, mesh, to, Settings(policy)) for policy in policies}
        print(f"{'x'.join(map(str, sizes))}: {s} to {t}: torch {costs['torch']:.0f} us a call; " + "; ".join(
            f"{policy} {costs[policy]:.0f} ({hows[policy]}), a new plan {new[policy]:.0f}" for policy in policies), flush=True)


def new_plan(x, mesh, to, settings):
    """Microseconds of a plan that nobody asked for before: the median of 20."""
    found = []
    for rows in range(1, 21):
        meta = type(x._spec.tensor_meta)(torch.Size((32 * rows, 96)), (96, 1), torch.float32)
        ends = [_move.DTensorSpec(mesh, tuple(placements), tensor_meta=meta) for placements in (x.placements, to)]
        begin = time.perf_counter()
        _move._made(*ends, settings, None)
        found.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(found)


def times_of_plans(asked):
    """For each pair its kind, and the milliseconds of torch's planner and of a plan beside it, in a process of its own."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    logging.disable(logging.WARNING)
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=asked.ranks)
    for sizes in ranks.MESHES[asked.ranks]:
        reshard.torch._groups.prepare(mesh_of(sizes))
    gc.disable()  # as timeit does: a collection of torch's own objects takes 1 ms
    rng, rows = random.Random(asked.seed), []
    for _ in range(asked.pairs):
        sizes, shape, *words = ranks.draw(rng, asked.ranks)
        stride = tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))
        meta = reshard.torch._versions.TensorMeta(torch.Size(shape), stride, torch.float32)
        ends = [_move.DTensorSpec(mesh_of(sizes), tuple(map(parse, one)), tensor_meta=meta) for one in words]
        ms = []
        for plan in (lambda: _axes.torch_price(*ends), lambda: _move._made(*ends, Settings("time"), None)):
            begin = time.thread_time()
            plan()
            ms.append(1e3 * (time.thread_time() - begin))
        strided = any(word.startswith("SS") for one in words for word in one)
        rows.append(("strided" if strided else f"{len(sizes)} axes", *ms))
    return rows


def print_plans(asked):
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as launches:
        found = launches.map(times_of_plans, [asked] * asked.rounds, chunksize=1)
    kinds = {}
    for (kind, *_), *pair in zip(found[0], *found):
        kinds.setdefault(kind, []).append([statistics.median(row[at] for row in pair) for at in (1, 2)])
    for kind, rows in sorted(kinds.items()):
        for name, all_of_it in zip(("torch's planner", "a plan beside it"), zip(*rows)):
            at = sorted(all_of_it)
            print(f"{kind:8} {len(at):4} pairs, {name:17} median {at[len(at) // 2]:.2f} ms, 95 of 100 {at[len(at) * 95 // 100]:.2f}, "
                  f"most {at[-1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("bytes", "times", "models", "calls", "plans"))
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--only", default="", help="times: pairs whose name has this text, such as 'S(0) S(0) to R S(0)'")
    parser.add_argument("--small", action="store_true", help="arrays of 256 KiB")
    asked = parser.parse_args()
    tables = {"bytes": print_bytes, "times": print_times, "models": print_models, "calls": print_calls, "plans": print_plans}
    tables[asked.table](asked)


if __name__ == "__main__":
    main()
