"""Two models on a mesh of 2 axes: a transformer block whose sequence, heads and weights lie over both axes (Ulysses, weights used
as tensor-parallel ones), and FSDP2 over tensor parallelism with sequence parallelism. Nothing here knows reshard."""

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

R, S = Replicate(), Shard


class Block(torch.nn.Module):
    """A transformer block. Its input is [sequence, width], the sequence over both axes."""

    def __init__(self, mesh, width, heads):
        super().__init__()
        self.heads, self.mesh = heads, mesh

        def weight(*shape):
            return torch.nn.Parameter(distribute_tensor(torch.randn(*shape) / shape[0] ** 0.5, mesh, [S(0), S(0)]))

        self.qkv, self.out = weight(width, 3 * width), weight(width, width)
        self.up, self.down = weight(width, 4 * width), weight(4 * width, width)

    def forward(self, x):
        mesh, qkv = self.mesh, self.qkv.redistribute(self.mesh, [R, R])
        q, k, v = [(x @ part).unflatten(1, (self.heads, -1)).redistribute(mesh, [S(1), S(1)]).transpose(0, 1)
                   for part in qkv.chunk(3, 1)]
        scores = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5, -1)
        y = torch.bmm(scores, v).transpose(0, 1).redistribute(mesh, [S(0), S(0)]).flatten(1)
        x = x + y @ self.out.redistribute(mesh, [R, R])
        wide = x.redistribute(mesh, [S(0), R]) @ self.up.redistribute(mesh, [R, S(1)])
        return x + (torch.relu(wide) @ self.down.redistribute(mesh, [R, S(0)])).redistribute(mesh, [S(0), S(0)])


def block(mesh, steps, width=256, rows=128):
    """A block, and a function from the number of a step to its loss."""
    torch.manual_seed(1)
    ranks = mesh.size()
    model = Block(mesh, width, 2 * ranks)
    inputs = [distribute_tensor(torch.randn(rows * ranks, width), mesh, [S(0), S(0)]) for _ in range(steps)]
    return model, lambda step: model(inputs[step]).square().mean().redistribute(mesh, [R, R])


def sharded(mesh, steps, width=256, rows=64):
    """FSDP2 over the first axis, tensor and sequence parallelism over the second one: a model and its loss."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    torch.manual_seed(1)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            return self.down(torch.relu(self.up(self.norm(x))))

    first, second = mesh.mesh_dim_names
    model = torch.nn.Sequential(Layer(), Layer())
    for layer in model:
        parallelize_module(layer, mesh[second], {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=S(1)),
                                                 "down": RowwiseParallel(output_layouts=S(1))})
        fully_shard(layer, mesh=mesh[first])
    fully_shard(model, mesh=mesh[first])
    parts, at = mesh[second].size(), mesh[second].get_local_rank()
    inputs = [torch.randn(2, rows, width) for _ in range(steps)]

    def loss(step):
        y = model(DTensor.from_local(inputs[step].chunk(parts, 1)[at], mesh[second], [S(1)]))
        return (y.full_tensor() if isinstance(y, DTensor) else y).square().mean()

    return model, loss
