"""reshard.torch.explain in one process without any rank beside it: rows, totals, JSON, a page, and the command for CI."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ranks  # noqa: F401 (skips the test if there is no torch)

PROGRAM = '''import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def step():
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("dp", "tp"))
    x = distribute_tensor(torch.randn(512, 512), mesh, [Shard(0), Shard(1)]).requires_grad_()
    w = distribute_tensor(torch.randn(512, 512), mesh, [Shard(0), Shard(0)])
    for _ in range(2):
        y = x.redistribute(placements=[Shard(1), Shard(0)])
    ((y * 2) @ w).sum().backward()


def nothing():
    pass
'''


class Explain(unittest.TestCase):
    def run_it(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.py").write_text(PROGRAM, encoding="utf-8")
            return subprocess.run([sys.executable, "-m", "reshard.torch", *arguments], cwd=folder, capture_output=True,
                                  text=True, timeout=300, check=False, env=dict(os.environ))

    def test_rows_and_totals(self):
        done = self.run_it("model.py:step", "--ranks", "64", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        first = next(row for row in found["rows"] if row["op"] == "redistribute")
        self.assertEqual((first["place"], first["times"], first["asked"]), ("model.py:12", 2, True))
        self.assertEqual(first["line"], "reshard.torch.redistribute(x, [Shard(1), Shard(0)])")
        tile = 512 * 512 * 4 // 64
        self.assertEqual((first["bytes"], first["peak"], first["plan"]), (tile, tile, ["exchange"]))
        self.assertEqual(first["saved_bytes"], 2 * (first["torch_bytes"] - tile))
        self.assertTrue({"backward"} < {row["op"] for row in found["rows"]})
        self.assertEqual(found["saved_bytes"], sum(row["saved_bytes"] for row in found["rows"]))

    def test_text_and_page(self):
        text = self.run_it("model.py:step").stdout
        self.assertRegex(text, r"1\. model\.py:12   2 times\n   float32\[512, 512\] \[dp=2: Shard\(0\), tp=4: Shard\(1\)\] -> ")
        self.assertRegex(text, r"torch +\d.*all_gather.*\n   reshard .*\n   saves .*reshard\.torch\.redistribute\(x, ")
        page = self.run_it("model.py:step", "--html").stdout
        self.assertIn("<th>torch&#x27;s bytes</th>".replace("&#x27;", "'"), page)
        self.assertNotIn("<script", page)

    def test_for_ci(self):
        done = self.run_it("model.py:step", "--waste-max", "1.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("model.py:12: torch receives", done.stderr)
        self.assertEqual(self.run_it("model.py:step", "--waste-max", "1000").returncode, 0)
        done = self.run_it("model.py:nothing", "--waste-max", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for wrong in (("model.py",), ("model.py:none",), ("model.py:step", "--ranks", "0")):
            self.assertEqual(self.run_it(*wrong).returncode, 2, wrong)


if __name__ == "__main__":
    unittest.main()
