"""Random moves on gloo ranks: every element, and no more bytes than torch's own plans. test_values.py [RANKS [PAIRS]]"""

import contextlib
import math
import random
import sys
import unittest

import ranks
from ranks import Count, Replicate, draw, dtensor, mesh_of, parse, tile, torch, wanted

import reshard.torch
from reshard.torch import _move
from reshard.torch._choice import Settings
from torch.distributed.tensor import _redistribute

RANKS = [int(sys.argv.pop(1))] if len(sys.argv) > 1 else [4, 8]
PAIRS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else (700 if ranks.LONG else 100)
HAS_MIN_COST = hasattr(_redistribute, "use_min_cost_redistribution_plan")  # torch 2.10 and newer
WAYS = ("time", "bytes", "always", "greedy", *(["min cost"] if HAS_MIN_COST else []))
ALWAYS = Settings("always")


def moved(x, mesh, to, way):
    if way == "always":
        spec = _move.DTensorSpec(mesh, tuple(to), tensor_meta=x._spec.tensor_meta)
        return _move.moved(x._local_tensor, x._spec, spec, ALWAYS)
    if way in ("time", "bytes"):
        with reshard.torch.installed(way):
            return x.redistribute(mesh, to)._local_tensor
    with _redistribute.use_min_cost_redistribution_plan() if way == "min cost" else contextlib.nullcontext():
        return x.redistribute(mesh, to)._local_tensor


def fault(got, want):
    if got.shape != want.shape:
        return f"{tuple(got.shape)} for {tuple(want.shape)}"
    return "" if torch.allclose(got, want) else "values"


def one_pair(case, way):
    sizes, shape, source, target = case
    mesh = mesh_of(sizes)
    full = torch.arange(1, 1 + math.prod(shape), dtype=torch.float32).reshape(shape)
    local = tile(full, source, sizes, mesh.get_coordinate()).contiguous()
    x = dtensor(local.clone(), mesh, source, shape)
    _redistribute._gen_transform_infos.cache_clear()
    try:
        with Count() as seen:
            got = moved(x, mesh, [parse(word) for word in target], way)
        bad = fault(got, wanted(full, source, target, sizes, mesh.get_coordinate()))
        got.add_(1)  # the result is the caller's own memory
        bad = bad or ("" if torch.equal(x._local_tensor, local) else "the source changed")
    except RuntimeError as error:
        bad, seen = f"raises {error}", Count()
    return bad, seen.received, len(seen.calls)


def work(rank, cases):
    with ranks.all_to_all_of_gpus():
        return [[one_pair(case, way) for way in WAYS] for case in cases]


class Values(unittest.TestCase):
    def test_every_element_and_no_more_bytes(self):
        for count in RANKS:
            rng = random.Random(ranks.SEED + count)
            cases = [draw(rng, count, old=not HAS_MIN_COST) for _ in range(PAIRS)]
            found = ranks.run(count, work, cases)
            logs, moving = dict.fromkeys(WAYS[3:], 0.0), 0
            for number, case in enumerate(cases):
                with self.subTest(case=case):
                    by = {way: [rank[number][at] for rank in found] for at, way in enumerate(WAYS)}
                    bad = {way: {one[0] for one in by[way]} - {""} for way in WAYS}
                    if bad["greedy"]:
                        self.assertTrue(all("raises" in text for text in bad["greedy"]), bad)  # torch refuses it
                        continue
                    self.assertEqual({way: text for way, text in bad.items() if way not in logs and text}, {})
                    most = {way: max(one[1] for one in by[way]) for way in WAYS}
                    self.assertLessEqual(most["bytes"], min(most[way] for way in logs), most)
                    moving += most["greedy"] > 0
                    for way in logs:
                        logs[way] += math.log((most[way] + 1) / (most["bytes"] + 1))
            means = {way: f"{math.exp(total / moving):.2f}x" for way, total in logs.items()}
            print(f"{len(cases)} pairs on {count} ranks, {moving} move bytes; bytes of torch over plans, geometric mean: {means}")


if __name__ == "__main__":
    unittest.main()
