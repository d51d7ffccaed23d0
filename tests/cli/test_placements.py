"""DTensor's placements as PyTorch itself cuts them, uneven and strided. Exits with 77 if PyTorch is not installed.

`compute_local_shape_and_global_offset` states the begin and length of a local tensor; `redistribute` makes one. If the two
differ, the layout is redistribute's, and the row is listed but not counted.
"""

import json
import os
import random
import sys
import warnings

import tool

warnings.filterwarnings("ignore")
try:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset as local_shape_and_offset
    from torch.distributed.tensor.placement_types import _StridedShard
    from torch.testing._internal.distributed.fake_pg import FakeStore
except ImportError as error:
    print("skipped: no PyTorch with DTensor here:", error)
    sys.exit(77)

COUNTED = 500


def drawn(rng):
    """Mesh, shape, placements: one or two strided axes, nested chunks, a second dimension."""
    mesh = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    dims = [rng.choice((0, 0, 0, 1, None)) for _ in mesh]
    placements = [Replicate() if dim is None else Shard(dim) for dim in dims]
    if rng.random() < 0.3:  # any splits
        for axis in rng.sample(range(len(mesh)), min(len(mesh), rng.randint(1, 2))):
            if dims[axis] is not None:
                placements[axis] = _StridedShard(dims[axis], split_factor=rng.randint(2, 6))
    else:  # splits that state an order of axes
        order = rng.sample(range(len(mesh)), len(mesh))
        for place, axis in enumerate(order):
            split = 1
            for other in order[:place]:
                if other > axis and dims[other] == dims[axis]:
                    split *= mesh[other]
            if dims[axis] is not None and split > 1:
                placements[axis] = _StridedShard(dims[axis], split_factor=split)
    return mesh, [rng.randint(1, 40), rng.randint(1, 6)], placements


def coordinate(mesh, device):
    at = []
    for size in reversed(mesh):
        at.insert(0, device % size)
        device //= size
    return at


def rows_of(pair):
    """The indices of one dimension, from the tool's intervals."""
    intervals = pair if pair and isinstance(pair[0], list) else [pair]
    return [row for begin, end in intervals for row in range(begin, end)]


def redistributed(mesh, shape, placements, device, devices):
    """The rows and columns that redistribute leaves on a device. To cut a replica it needs no message."""
    dist.init_process_group("fake", store=FakeStore(), rank=device, world_size=devices)
    try:
        whole = torch.arange(shape[0] * shape[1]).reshape(shape)
        device_mesh = init_device_mesh("cpu", tuple(mesh))
        replica = DTensor.from_local(whole, device_mesh, [Replicate()] * len(mesh), run_check=False)
        return replica.redistribute(device_mesh, placements).to_local().tolist()
    finally:
        dist.destroy_process_group()


class Placements(tool.Case):
    def tiles(self, mesh, shape, placements):
        text = "(" + ", ".join(map(repr, placements)) + ",)"
        sizes = "(" + ",".join(map(str, mesh)) + ")"
        array = "f32[%d,%d]" % tuple(shape)
        ran = tool.reshard("draw", "--json", "--notation", "dtensor", "--mesh", sizes, "--array", array, text, text)
        stage = json.loads(self.ran_well(ran).out)["stages"][0]
        return {tile["device"]: [rows_of(pair) for pair in tile["tile"]] for tile in stage["tiles"]}

    def test_uneven_strided_layouts_are_cut_as_pytorch_cuts_them(self):
        seed = int(os.environ.get("RESHARD_SEED", "1"))
        rng = random.Random(seed)
        counted, listed = 0, []
        while counted < COUNTED:
            mesh, shape, placements = drawn(rng)
            devices = 1
            for size in mesh:
                devices *= size
            strided = any(isinstance(one, _StridedShard) for one in placements)
            if not strided or all(extent % devices == 0 for extent in shape):
                continue
            row = "RESHARD_SEED=%d: %s %s %s" % (seed, mesh, shape, placements)
            tiles = self.tiles(mesh, shape, placements)
            disputed = False
            for device in range(devices):
                sizes, offsets = local_shape_and_offset(tuple(shape), tuple(mesh), coordinate(mesh, device), placements)
                mine = tiles[device]
                begins = [side[0] if side else extent for side, extent in zip(mine, shape)]
                disputed |= ([len(side) for side in mine], begins) != (list(sizes), list(offsets))
            if not disputed:
                counted += 1
                continue
            # The layout must equal the other function's, and the two functions must differ.
            listed.append(row)
            for device in range(devices):
                wanted = [[r * shape[1] + c for c in tiles[device][1]] for r in tiles[device][0]]
                self.assertEqual(redistributed(mesh, shape, placements, device, devices), wanted, row)
        for row in listed:
            print("PyTorch %s disagrees with itself: %s" % (torch.__version__, row))
        print("%d layouts as in PyTorch, %d on which its functions disagree" % (counted, len(listed)))


if __name__ == "__main__":
    tool.main()
