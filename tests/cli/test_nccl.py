"""The tool over NCCL, on the doubles of a GPU: the same files as the local backend, and the error if there is no GPU."""

import filecmp
import json
import os

import tool


class Nccl(tool.Case):
    QUESTION = ("--mesh", "x=2,y=2", "f32[64@x,96]", "f32[64,96@(y,x)]")

    def test_run(self):
        ran = self.ran_well(tool.reshard("run", "--backend", "nccl", *self.QUESTION, "--output", "nccl.npy",
                                         folder=self.folder))
        self.assertIn("wrong 0 of 6144", ran.out)
        self.assertIn("moved by NCCL", ran.out)
        self.assertIn("communicators take", ran.out)
        self.ran_well(tool.reshard("run", "--backend", "local", *self.QUESTION, "--output", "local.npy",
                                   folder=self.folder))
        self.assertTrue(filecmp.cmp(self.path("nccl.npy"), self.path("local.npy"), shallow=False))

    def test_sums(self):
        ran = self.ran_well(tool.reshard("run", "--backend", "nccl", "--mesh", "x=2,y=3", "bf16[60,30]{U:x}",
                                         "bf16[60@y,30@x]"))
        self.assertIn("wrong 0 of", ran.out)

    def test_bench(self):
        ran = self.ran_well(tool.reshard("bench", "--json", "--rounds", "3", "--backend", "nccl", *self.QUESTION))
        told = json.loads(ran.out)
        self.assertEqual(told["backend"], "nccl")
        self.assertEqual(told["ranks"], 4)
        self.assertGreaterEqual(len(told["contestants"]), 2)
        for contestant in told["contestants"]:
            self.assertEqual(contestant["wrong"], 0)

    def test_without_a_gpu(self):
        kept = os.environ.pop("GPU_DOUBLE_DEVICES", None)
        os.environ["GPU_DOUBLE_DEVICES"] = "0"
        try:
            ran = tool.reshard("run", "--backend", "nccl", *self.QUESTION)
        finally:
            del os.environ["GPU_DOUBLE_DEVICES"]
            if kept is not None:
                os.environ["GPU_DOUBLE_DEVICES"] = kept
        self.assertEqual(ran.code, 2)
        self.assertIn("--backend nccl needs a GPU", ran.err)


if __name__ == "__main__":
    tool.main()
