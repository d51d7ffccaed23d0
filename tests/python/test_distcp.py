"""A checkpoint that four processes save with torch.distributed.checkpoint is the same after `reshard convert`. If torch is not
installed, there is one clear error, and the rest is skipped."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import reshard
import reshard.distcp

try:
    import torch
    import torch.distributed
    import torch.distributed.checkpoint
    import torch.multiprocessing
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
except ImportError:
    torch = None

RANKS = 4


def model():
    """name -> (tensor, how it is cut)"""
    numbers = torch.Generator().manual_seed(1)
    made = lambda *shape: torch.randn(*shape, generator=numbers)
    return {"rows": (made(10, 6), [Shard(0)]), "columns": (made(7, 9).bfloat16(), [Shard(1)]),
            "whole": (made(5), [Replicate()]), "counts": (torch.arange(12).reshape(3, 4), [Shard(1)])}


def save(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS, init_method=f"file://{folder}/meeting")
    mesh = init_device_mesh("cpu", (RANKS,))
    state = {name: distribute_tensor(tensor, mesh, cut) for name, (tensor, cut) in model().items()}
    torch.distributed.checkpoint.save({"model": state, "step": 7}, checkpoint_id=f"{folder}/saved")
    torch.distributed.destroy_process_group()


def tensors_of(path):
    """name -> bytes, of a single safetensors file."""
    with open(path, "rb") as file:
        raw = file.read()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    return {name: (entry["shape"], raw[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


class Distcp(unittest.TestCase):
    @unittest.skipIf(torch, "torch is here")
    def test_without_torch(self):
        with self.assertRaisesRegex(reshard.UnsupportedError, "read by torch, which is not here"):
            reshard.distcp.to_safetensors("nowhere", "out")

    def test_a_folder_of_somebody_else_stays(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("reshard.distcp._torch"), \
                mock.patch("reshard.distcp._boxes", return_value={}):
            os.mkdir(f"{folder}/out.reshard-partial")
            with open(f"{folder}/out.reshard-partial/paper", "w", encoding="utf-8") as file:
                file.write("years of work")
            reshard.distcp.to_safetensors(f"{folder}/saved", f"{folder}/out")
            self.assertEqual(sorted(os.listdir(folder)), ["out", "out.reshard-partial"])
            with open(f"{folder}/out.reshard-partial/paper", encoding="utf-8") as file:
                self.assertEqual(file.read(), "years of work")

    @unittest.skipUnless(torch, "no torch here")
    def test_saved_by_four(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(save, (folder,), nprocs=RANKS)
            left_out = reshard.distcp.to_safetensors(f"{folder}/saved", f"{folder}/out")
            self.assertEqual(left_out, ["step"])
            with self.assertRaises(FileExistsError):
                reshard.distcp.to_safetensors(f"{folder}/saved", f"{folder}/out")
            subprocess.run([os.environ["RESHARD_TOOL"], "convert", f"{folder}/out", f"{folder}/one.safetensors"],
                           check=True, stdout=subprocess.DEVNULL)
            found = tensors_of(f"{folder}/one.safetensors")
            self.assertEqual(set(found), {"model." + name for name in model()})
            for name, (tensor, _) in model().items():
                shape, raw = found["model." + name]
                self.assertEqual(shape, list(tensor.shape), name)
                self.assertEqual(raw, tensor.contiguous().view(torch.uint8).numpy().tobytes(), name)
            self.assertEqual([name for name in os.listdir(folder) if name.endswith("partial")], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
