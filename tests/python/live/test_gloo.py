"""reshard.live between jobs of torch: two processes with DTensors that are cut by rows publish, and three with DTensors cut
by columns take each version. Every job is a process group of gloo. With arguments this file is one process of a job.
`./dev check --peers` runs it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import reshard
import reshard.torch

HANG = 240  # seconds, far above any wait that is right
VERSIONS = 3


def whole(version, dtype=torch.float32):
    return (torch.arange(24 * 18).reshape(24, 18) % 251 + version).to(dtype)


def begin(folder, job, rank, ranks):
    dist.init_process_group("gloo", init_method=f"file://{folder}/{job}", rank=int(rank), world_size=int(ranks))
    return init_device_mesh("cpu", (int(ranks),))


def trainer(folder, rank, endpoint):
    """The job is the module. It leaves when its parent closes the input."""
    mesh = begin(folder, "trainer", rank, 2)
    made = {"w": (torch.float32, [Shard(0)]), "b": (torch.bfloat16, [Replicate()])}

    def tensors(version):
        return {name: distribute_tensor(whole(version, dtype), mesh, how) for name, (dtype, how) in made.items()}
    with reshard.live.publish(dist, endpoint, tensors(0)) as out:
        print(f"P{out.endpoint}", flush=True)
        for version in range(1, VERSIONS + 1):
            out.commit(version, tensors(version))
            sys.stdin.readline()


def engine(folder, rank, endpoint):
    """The job is a group. Its parent lets the trainer go on when all ranks have compared a version."""
    mesh = begin(folder, "engine", rank, 3)
    wanted = {"b": distribute_tensor(whole(0, torch.bfloat16), mesh, [Shard(0)]), "w": distribute_tensor(whole(0), mesh, [Shard(1)])}
    with reshard.live.subscribe(mesh.get_group(), endpoint, wanted) as into:
        while into.version < VERSIONS:
            version = into.update(HANG)
            for name, like in wanted.items():
                got = into[name]
                assert (got.placements, got.dtype, got.shape) == (like.placements, like.dtype, like.shape), name
                assert torch.equal(got.full_tensor(), whole(version, like.dtype)), name
            print(f"V{version}", flush=True)


class Process(subprocess.Popen):
    def __init__(self, *arguments):
        super().__init__([sys.executable, "-B", os.path.abspath(__file__), *map(str, arguments)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)

    def said(self, kind):
        """The next line that begins with `kind`. Libraries print lines of their own."""
        for line in self.stdout:
            if line.startswith(kind):
                return line[1:].strip()
        return ""


class Gloo(unittest.TestCase):
    def move(self, endpoint):
        with tempfile.TemporaryDirectory() as folder:
            asked = endpoint or str(pathlib.Path(folder, "weights"))
            trainers = [Process("trainer", folder, rank, asked) for rank in range(2)]
            engines = []
            try:
                reached = trainers[0].said("P")
                engines = [Process("engine", folder, rank, reached) for rank in range(3)]
                for version in range(1, VERSIONS + 1):
                    self.assertEqual([one.said("V") for one in engines], [str(version)] * 3)
                    for one in trainers:
                        one.stdin.write("\n")
                        one.stdin.flush()
                self.assertEqual([one.wait(HANG) for one in [*engines, *trainers]], [0] * 5)
            finally:
                for one in [*trainers, *engines]:
                    one.kill()
                    one.communicate()

    def test_in_shared_memory(self):
        self.move("")

    def test_over_tcp(self):
        self.move("127.0.0.1:0")


if __name__ == "__main__":
    roles = {"trainer": trainer, "engine": engine}
    if sys.argv[1:2] and sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
        dist.destroy_process_group()
    else:
        unittest.main()
