"""Counts the collectives of PyTorch's own DTensor for each pair: its redistribute runs on fake tensors over a fake process
group, and every operator that communicates is counted. Pairs come on stdin and counts go to stdout, a line of JSON each.

One branch is taken as on GPUs: a mesh of CPUs replaces all_to_all by all_gather and a chunk."""

import json
import math
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, _collective_utils, _redistribute
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

_collective_utils.local_tensor_mode = lambda: True


def group_size(arguments):
    name = [one for one in arguments if isinstance(one, str)][-1]
    return dist.distributed_c10d._resolve_process_group(name).size()


class Count(TorchDispatchMode):
    """Bytes that rank 0 receives, with the tensors' padding."""

    def __init__(self):
        super().__init__()
        self.received, self.collectives, self.peak = 0, [], 0

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        out = operator(*arguments, **(options or {}))
        name = operator.name().partition("::")
        if name[0] in ("_c10d_functional", "_dtensor") and "wait" not in name[2]:
            kind = name[2].partition(".")[0]
            tensor = arguments[0]
            if isinstance(tensor, (list, tuple)):
                raise RuntimeError(f"{kind} of several tensors is not counted")
            bytes_in, group = tensor.numel() * tensor.element_size(), group_size(arguments)
            share = {"all_gather_into_tensor": (group - 1) * group, "reduce_scatter_tensor": group - 1,
                     "shard_dim_alltoall": group - 1, "all_to_all_single": group - 1, "all_reduce": 2 * (group - 1)}
            if kind not in share:
                raise RuntimeError(f"{kind} is not counted")
            self.received += bytes_in * share[kind] // group
            self.collectives.append(kind)
        if isinstance(out, torch.Tensor):
            self.peak = max(self.peak, out.numel() * out.element_size())
        return out


def placement(what):
    return Partial("sum") if what == "sum" else Replicate() if what is None else Shard(what)


def count(one, mesh, graph_based):
    meta = TensorMeta(torch.Size(one["shape"]), torch.empty(one["shape"], device="meta").stride(), torch.float32)
    before, after = (DTensorSpec(mesh, tuple(map(placement, one[end])), tensor_meta=meta) for end in ("source", "target"))
    local = list(one["shape"])
    for axis, what in enumerate(one["source"]):
        if isinstance(what, int):  # rank 0 has the first chunk, which is a largest one
            local[what] = -(-local[what] // one["sizes"][axis])
    with FakeTensorMode():
        tensor = torch.empty(local)
        with Count() as counted:
            moved = _redistribute.redistribute_local_tensor(tensor, before, after, use_graph_based_transform=graph_based)
    del moved
    return {"received": counted.received, "collectives": counted.collectives, "peak": counted.peak}


def main():
    held = None
    for line in sys.stdin:
        one = json.loads(line)
        if held != one["sizes"]:
            if dist.is_initialized():
                dist.destroy_process_group()
            dist.init_process_group("fake", rank=0, world_size=math.prod(one["sizes"]), store=FakeStore())
            mesh, held = init_device_mesh("cpu", tuple(one["sizes"]), mesh_dim_names=tuple("abcd"[:len(one["sizes"])])), one["sizes"]
        answer = {"id": one["id"]}
        for planner, graph_based in (("greedy", False), ("min_cost", True)):
            try:
                answer[planner] = count(one, mesh, graph_based)
            except (NotImplementedError, ValueError, RuntimeError, AssertionError) as error:
                answer[planner] = {"refused": str(error).splitlines()[0][:100]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print(torch.__version__)
    else:
        main()
