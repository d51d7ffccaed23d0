"""Random programs of moves on eight gloo ranks with uneven sizes. All ranks make the same choices, and every element is right. A rank that
chose differently would wait for ever; ranks.HANG ends it as an error. test_programs.py [PROGRAMS]"""

import math
import random
import sys
import unittest

import ranks
from ranks import dtensor, mesh_of, parse, tile, torch

from reshard.torch import _move
from reshard.torch._choice import Settings

RANKS = 8
PROGRAMS = int(sys.argv.pop(1)) if len(sys.argv) > 1 else (1000 if ranks.LONG else 150)


def drawn(rng):
    """Mesh sizes, shape, and the placements of three to five moves; the first may have sums."""
    sizes, dims = rng.choice(ranks.MESHES[RANKS]), rng.randint(1, 3)
    shape = tuple(rng.randint(1, 23) for _ in range(dims))
    ends = [[rng.choice(["R"] + [f"S({dim})" for dim in range(dims)] * 2) for _ in sizes] for _ in range(rng.randint(3, 5))]
    if rng.random() < 0.3:
        op = rng.choice(["sum", "avg", "max"])
        ends[0] = [f"P({op})" if rng.random() < 0.5 else word for word in ends[0]]
    return sizes, shape, ends, rng.choice(["time", "bytes"])


def run_one(case, settings):
    sizes, shape, ends, policy = case
    mesh = mesh_of(sizes)
    at, scale = mesh.get_coordinate(), 1
    full = torch.arange(1, 1 + math.prod(shape), dtype=torch.float32).reshape(shape)
    x, chosen = dtensor(tile(full, ends[0], sizes, at).contiguous(), mesh, ends[0], shape), []
    for source, target in zip(ends, ends[1:]):
        to = tuple(map(parse, target))
        spec = _move.DTensorSpec(mesh, to, tensor_meta=x._spec.tensor_meta)
        if source != target:
            chosen.append(_move.move_of(x._spec, spec, settings[policy]).choice.how)
            x = dtensor(_move.moved(x._local_tensor, x._spec, spec, settings[policy]), mesh, target, shape)
        scale *= math.prod(ranks._sum(n, s[2:-1]) for n, s in zip(sizes, source) if s.startswith("P"))
    good = torch.allclose(x._local_tensor, tile(full, ends[-1], sizes, at) * scale)
    return good, chosen


def work(rank, cases):
    settings = {policy: Settings(policy) for policy in ("time", "bytes")}
    return [run_one(case, settings) for case in cases]


class Programs(unittest.TestCase):
    def test_all_ranks_choose_alike_and_no_rank_waits_for_ever(self):
        rng = random.Random(ranks.SEED)
        cases = [drawn(rng) for _ in range(PROGRAMS)]
        found = ranks.run(RANKS, work, cases)
        ways = {}
        for number, case in enumerate(cases):
            with self.subTest(case=case):
                self.assertEqual(len({tuple(rank[number][1]) for rank in found}), 1)
                self.assertTrue(all(rank[number][0] for rank in found))
            for how in found[0][number][1]:
                ways[how] = ways.get(how, 0) + 1
        print(f"{PROGRAMS} programs on {RANKS} ranks: {ways}")
        self.assertGreater(min(ways.get(how, 0) for how in ("program", "exchange", "reduce, exchange", "torch")), 0, ways)


if __name__ == "__main__":
    unittest.main()
