#!/usr/bin/env python3
"""mooncake_planner.py [--layers 58]: Mooncake's planner of weight transfers beside the rows of reshard, in processor time.

The stacked experts of DeepSeek-V3 go from 256 ranks to 128 others: three tensors of (256, 2048, 7168) in each layer, cut by
experts. Mooncake makes its manifests and its plan. reshard makes a schedule and the rows of all ranks. Both must move each
byte once. The rest of the model is left out: Mooncake fuses no tensors, and cuts no dimension over two axes. Run it with a
Python that has reshard and mooncake-transfer-engine-non-cuda."""

import argparse
import math
import sys
import time

import reshard

try:
    from mooncake.reshard.weight import manifest, planner
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

EXPERTS, SHAPE = 256, (2048, 7168)
BYTES = EXPERTS * SHAPE[0] * SHAPE[1]


def names(layers):
    return [f"layers.{layer}.experts.{part}" for layer in range(layers) for part in ("gate", "up", "down")]


def placement(layers, ranks):
    each = EXPERTS // ranks
    devices = [manifest.ParallelRank(ep=rank) for rank in range(ranks)]
    topology = manifest.ParallelTopology(tp_size=1, pp_size=1, ep_size=ranks, dp_size=1, participants=tuple(
        manifest.TopologyParticipant(f"rank{rank}", device) for rank, device in enumerate(devices)))
    tensors = [manifest.TensorDescriptor(name, (EXPERTS, *SHAPE), "float8_e4m3fn", 1, (0,), "dense",
                                         (manifest.SplitAxis("ep", 0),)) for name in names(layers)]
    parts = [manifest.PlacementFragment(name, (each * rank, 0, 0), (each, *SHAPE), each * SHAPE[0] * SHAPE[1], device)
             for name in names(layers) for rank, device in enumerate(devices)]
    return manifest.WeightPlacementManifest.from_fragments(
        resource_id="model", revision="1", weight_generation=1, placement_set_id=f"on{ranks}", topology=topology,
        tensors=tensors, fragments=parts)


def by_mooncake(layers):
    """Regions and bytes."""
    plan = planner.plan_placement_transfer(placement(layers, 256), placement(layers, 128))
    return len(plan.operations), sum(one.inner_bytes * math.prod(one.outer_loop_counts) for one in plan.operations)


def by_reshard(layers):
    """Rows and bytes."""
    source = reshard.parse_layout("ep=256", f"f8_e4m3fn[{EXPERTS}@ep,{SHAPE[0]},{SHAPE[1]}]")
    target = reshard.parse_layout("ep=128[256-383]", f"f8_e4m3fn[{EXPERTS}@ep,{SHAPE[0]},{SHAPE[1]}]")
    schedule = reshard.RowSchedule([(source, target)] * len(names(layers)))
    rows = [schedule.rows(rank) for rank in range(schedule.ranks)]
    return sum(map(len, rows)), sum(reshard.rows.packed_bytes(of_rank) for of_rank in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=58)
    asked = parser.parse_args()
    for name, way in (("reshard", by_reshard), ("Mooncake", by_mooncake)):
        begin = time.process_time()
        rows, size = way(asked.layers)
        print(f"{name}: {rows} rows or regions in {(time.process_time() - begin) * 1e3:.1f} ms")
        if size != len(names(asked.layers)) * BYTES:
            sys.exit(f"wrong: {size} bytes of {len(names(asked.layers)) * BYTES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
